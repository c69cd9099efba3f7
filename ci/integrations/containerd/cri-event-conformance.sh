#!/usr/bin/env bash
# For script/ of containerd/containerd, beside critest.sh: runs the suite on the containerd that was just built.
#
#   script/cri-event-conformance.sh REPORT_DIR
#
# TEST_RUNTIME and CGROUP_DRIVER are those of critest.sh. Must run as root, with cri-event-conformance in PATH.

set -euo pipefail

report_dir=$(realpath -m "$1")
mkdir -p "$report_dir"
work=$(mktemp -d)
# The runtime has to reach the containers' root directories as another user.
chmod go+x "$work"
systemd_cgroup=false
[[ ${CGROUP_DRIVER:-} != systemd ]] || systemd_cgroup=true

cat >"$work/config.toml" <<CONFIG
version = 3
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "${TEST_RUNTIME:-io.containerd.runc.v2}"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
    SystemdCgroup = $systemd_cgroup
CONFIG

containerd --address "$work/containerd.sock" --config "$work/config.toml" --root "$work/root" \
  --state "$work/state" --log-level debug >"$report_dir/containerd-cri-events.log" 2>&1 &
containerd=$!

clean_up() {
  kill "$containerd" 2>/dev/null || true
  wait "$containerd" || true
  rm -rf "$work"
}
trap clean_up EXIT

for _ in {1..100}; do
  [[ ! -S $work/containerd.sock ]] || break
  sleep 0.1
done

cri-event-conformance run --runtime-endpoint "unix://$work/containerd.sock" --tier core \
  --expectations builtin --format github --report-dir "$report_dir"
