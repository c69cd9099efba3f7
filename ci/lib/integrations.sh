# shellcheck shell=bash
# Checks the files for other CI systems: their schemas, and what an attacker could use.

# ensure_linters: sets linters, the folder of check-jsonschema and zizmor, which are fetched if missing.
ensure_linters() {
  local dir=$repo/target/ci/linters
  linters=$dir/bin
  [[ ! -x $linters/zizmor || ! -x $linters/check-jsonschema ]] || return 0
  fetch_from_pypi "$dir" check-jsonschema zizmor
}

check_integrations() {
  local dir=$repo/ci/integrations work
  ensure_linters
  work=$(mktemp -d)
  # The steps for containerd's workflow are checked within one.
  {
    printf 'name: containerd\non: push\npermissions: {}\njobs:\n  test:\n    runs-on: ubuntu-24.04\n    steps:\n'
    sed 's/^/      /' "$dir/containerd/steps.yml"
  } >"$work/containerd.yml"
  local workflows=("$dir/github/workflow.yml" "$work/containerd.yml")
  matches vendor.github-actions "$dir/github/action.yml"
  matches vendor.github-workflows "${workflows[@]}"
  matches vendor.github-issue-config "$repo/.github/ISSUE_TEMPLATE/config.yml"
  matches vendor.github-issue-forms "$repo"/.github/ISSUE_TEMPLATE/{bug,feature,runtime-fails}.yml
  # The schema looks into no job whose name begins with a dot.
  sed 's/^\.//' "$dir/gitlab/template.yml" >"$work/gitlab.yml"
  matches vendor.gitlab-ci "$work/gitlab.yml"
  quietly "$linters/zizmor" --offline --no-progress "$dir/github/action.yml" "${workflows[@]}"
  # What it does not know it only mentions. The program need not be installed.
  if command -v systemd-analyze >/dev/null; then
    sed 's#^ExecStart=[^ ]*#ExecStart=/bin/true#' "$dir/node-e2e/cri-event-watch.service" >"$work/cri-event-watch.service"
    quietly says_nothing systemd-analyze verify "$work/cri-event-watch.service"
  fi
  rm -r "$work"
}

matches() { quietly "$linters/check-jsonschema" --builtin-schema "$@"; }

# quietly COMMAND...: shows what it says only if it fails.
quietly() {
  local said
  said=$("$@" 2>&1) || { echo "$said" >&2 && return 1; }
}

says_nothing() { ! "$@" 2>&1 | grep .; }
