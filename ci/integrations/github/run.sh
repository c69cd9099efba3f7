#!/usr/bin/env bash
# Runs the suite for action.yml, which passes its inputs as environment variables.

set -euo pipefail

program=$INPUT_BINARY
if [[ -z $program ]]; then
  source=$(realpath "$GITHUB_ACTION_PATH/../../..")
  command -v protoc >/dev/null || { sudo apt-get update -qq && sudo apt-get install -qq protobuf-compiler; }
  cargo build --release --quiet --manifest-path "$source/Cargo.toml"
  program=$source/target/release/cri-event-conformance
fi

mapfile -t more <<<"$INPUT_ARGS"
options=()
for option in "${more[@]}"; do [[ -z $option ]] || options+=("$option"); done

as_root=() code=0
((EUID == 0)) || as_root=(sudo)
"${as_root[@]}" "$program" run --runtime-endpoint "$INPUT_RUNTIME_ENDPOINT" --tier "$INPUT_TIER" \
  --expectations "$INPUT_EXPECTATIONS" --report-dir "$INPUT_REPORT_DIR" --format github "${options[@]}" || code=$?

# Reports can be read by their owner only, and a later step is to upload them.
[[ ! -d $INPUT_REPORT_DIR ]] || "${as_root[@]}" chown -R "$(id -u):$(id -g)" "$INPUT_REPORT_DIR"
[[ ! -e $INPUT_REPORT_DIR/summary.md ]] || cat "$INPUT_REPORT_DIR/summary.md" >>"$GITHUB_STEP_SUMMARY"

# With a policy, it decides and not the run.
if [[ -n $INPUT_POLICY && -e $INPUT_REPORT_DIR/report.json ]]; then
  code=0
  "$program" gate --policy "$INPUT_POLICY" --markdown "$INPUT_REPORT_DIR/gate.md" "$INPUT_REPORT_DIR/report.json" ||
    code=$?
  [[ ! -e $INPUT_REPORT_DIR/gate.md ]] || cat "$INPUT_REPORT_DIR/gate.md" >>"$GITHUB_STEP_SUMMARY"
fi
echo "exit-code=$code" >>"$GITHUB_OUTPUT"
exit "$code"
