#!/usr/bin/env bash
# What ci/vm-kubelet runs inside of the machine: runs beside a stand-in for a kubelet, a unit that removes
# every sandbox each second, as a kubelet does with those that it does not know.
#
#   ci/lib/kubelet-guest.sh SUITE pause|watch

set -euo pipefail

# shellcheck source=ci/lib/common.sh
. /ci-vm/common.sh
suite=$1
socket=/run/containerd/containerd.sock
unit=kubelet.service
timer=cri-event-conformance-start-kubelet.timer
# The machine is slow. One case is enough: what is tested is how the run begins and ends.
# While this file exists, the stand-in leaves all pods alone, as a kubelet does with its own.
known=/run/all-pods-are-known
# What a relay does to the events that come through it.
defects=(drop-created drop-started drop-stopped drop-deleted drop-every-ninth repeat-stopped no-sandbox
  no-sandbox-metadata foreign-uid cut)
arguments=(--runtime-endpoint "unix://$socket" --tier core --timeout 120s --timeout-scale 5 --expectations builtin)
log=/tmp/run.log

main() {
  make_kubelet
  "check_$1"
}

check_pause() {
  check "doctor finds the kubelet, its unit and what it has logged" examined
  check "a run beside a kubelet is refused" refused
  check "what the stand-in does disturbs a run" disturbed
  check "--pause-kubelet lets a run succeed" succeeds
  check "a plugin of Sonobuoy pauses it with another root directory" plugin
  check "Ctrl-C ends it" interrupted
  check "a second Ctrl-C ends it at once" interrupted_twice
  check "a panic in a case ends it" panicked
  check "a larger tier is refused" larger
  check "SIGKILL ends it, and the timer starts the kubelet" killed
}

# Two at a time: more would hold one another up.
check_watch() {
  local place
  check "watch finds the runtime conformant beside it" watched_as conformant none
  for ((place = 0; place < ${#defects[@]}; place += 2)); do
    check "watch finds ${defects[*]:place:2}" watched_as non-conformant "${defects[@]:place:2}"
  done
}

# check NAME FUNCTION [ARGUMENTS...]: with errexit, which `if` and `||` would switch off within the function.
check() {
  say "$1 ..."
  wait_until 60 is_active "$unit"
  : >"$log"
  "${@:2}"
  say "$1: ok, in $SECONDS s since the start"
}

trap 'code=$?; ((code == 0)) || { say "failed"; tail -n 40 "$log"; systemctl status --no-pager "$unit" "$timer"; }' EXIT

make_kubelet() {
  # A kubelet is known by the name of its program.
  install /bin/bash /usr/local/bin/kubelet
  cat >/usr/local/lib/stand-in <<'KUBELET'
# call METHOD ID: with a message that has the id as its first field.
call() {
  printf "\\0\\0\\0\\0\\x$(printf %x $((${#2} + 2)))\\x0a\\x$(printf %x ${#2})%s" "$2" |
    curl --silent --max-time 10 --http2-prior-knowledge --unix-socket /run/containerd/containerd.sock \
      -H 'Content-Type: application/grpc' -H 'TE: trailers' --data-binary @- \
      "http://cri/runtime.v1.RuntimeService/$1" --output /dev/null
}
echo 'Evented PLEG: Generated pod status from the received event'
while sleep 1; do
  [[ ! -e /run/all-pods-are-known ]] || continue
  for id in $(printf '\0\0\0\0\0' | curl --silent --max-time 10 --http2-prior-knowledge \
    --unix-socket /run/containerd/containerd.sock -H 'Content-Type: application/grpc' -H 'TE: trailers' \
    --data-binary @- http://cri/runtime.v1.RuntimeService/ListPodSandbox |
    grep -aoE '[0-9a-f]{64}' | sort -u); do
    echo "removes sandbox $id"
    call StopPodSandbox "$id"
    call RemovePodSandbox "$id"
  done
done
KUBELET
  printf '[Service]\nExecStart=/usr/local/bin/kubelet /usr/local/lib/stand-in\nRestart=always\n' \
    >"/etc/systemd/system/$unit"
  systemctl daemon-reload
  systemctl start "$unit"
}

is_restored() {
  is_active "$unit"
  not is_active "$timer"
}

is_active() { systemctl is-active --quiet "$1"; }

has_removed() { journalctl --quiet --unit "$unit" --grep 'removes sandbox' >/dev/null; }

is_paused() { grep -q 'is stopped for this run' "$log" && ! is_active "$unit"; }

# A command behind `!` does not end the script.
not() { ! "$@"; }

# exits_with CODE COMMAND...
exits_with() {
  local code=0
  "${@:2}" >>"$log" 2>&1 || code=$?
  [[ $code == "$1" ]] || die "exit code $code, not $1"
}

# begin: a run that goes on until it is ended; sets pid.
begin() {
  "$suite" "${arguments[@]}" --pause-kubelet --repeat 1000 ORD-01 >"$log" 2>&1 &
  pid=$!
  wait_until 120 is_paused
  is_active "$timer"
  # Until a case has begun.
  wait_until 120 grep -q '^run ' "$log"
}

ended_with() {
  local code=0
  wait "$pid" || code=$?
  [[ $code == "$1" ]] || die "exit code $code, not $1"
}

# The stand-in has no gate and no version.
examined() {
  exits_with 1 "$suite" doctor --runtime-endpoint "unix://$socket"
  grep -q "is .kubelet., $unit" "$log"
  grep -q '^ok *kubelet-uses-events: ' "$log"
  grep -q '^wrong *gate-off-events-on: ' "$log"
  grep -q '^unknown *kubelet-version-unknown: ' "$log"
}

refused() {
  exits_with 3 "$suite" "${arguments[@]}" ORD-01
  grep -q 'a kubelet runs on this node' "$log"
  grep -q -e '--pause-kubelet' "$log"
  grep -q 'watch --for' "$log"
  not has_removed
  is_restored
}

disturbed() {
  local code=0
  timeout --signal INT 300 "$suite" "${arguments[@]}" --allow kubelet ORD-01 >"$log" 2>&1 || code=$?
  has_removed
  ((code == 3)) || die "exit code $code beside the stand-in, not 3"
  grep -q 'disturbed: a kubelet ran beside this run' "$log"
}

succeeds() {
  exits_with 0 "$suite" "${arguments[@]}" --pause-kubelet ORD-01
  grep -q "$unit is started again" "$log"
  is_restored
}

# As in a container, where the root directory of the node is a mount.
plugin() {
  local results=/tmp/results root=/tmp/host
  mkdir "$results" "$root"
  # shellcheck disable=SC2016 # The inner shell expands them.
  unshare --mount sh -ec 'mount --rbind / "$0" && exec "$@"' "$root" \
    env SYSTEMD_IGNORE_CHROOT=1 SONOBUOY_RESULTS_DIR="$results" \
    "$suite" sonobuoy --host-root "$root" "${arguments[@]}" --pause-kubelet ORD-01 >"$log" 2>&1 &
  pid=$!
  wait_until 300 test -e "$results/done"
  grep -q "$unit is started again" "$log"
  is_restored
  not grep -q '<error\|<failure' "$(<"$results/done")/junit_cri_events.xml"
  kill -TERM "$pid"
  ended_with 0
}

interrupted() {
  begin
  kill -INT "$pid"
  ended_with 3
  is_restored
}

interrupted_twice() {
  begin
  kill -INT "$pid"
  wait_until 60 grep -q 'repeat to exit at once' "$log"
  # The orderly end may be faster than this.
  kill -INT "$pid" 2>/dev/null || true
  ended_with 3
  wait_until 60 is_active "$unit"
  systemctl stop "$timer" 2>/dev/null || true
}

# In a debug build, the steps of the named case panic.
panicked() {
  exits_with 3 env CRI_EVENT_CONFORMANCE_PANIC_IN=ORD-01 "$suite" "${arguments[@]}" --pause-kubelet ORD-01
  grep -q 'panic' "$log"
  is_restored
}

larger() {
  exits_with 2 "$suite" --runtime-endpoint "unix://$socket" --tier extended --pause-kubelet
  is_restored
}

# watched_as VERDICT DEFECT...: watches the changing pods of the node through a relay for each defect.
watched_as() {
  local defect pid pids=() changing
  touch "$known"
  "$suite" "${arguments[@]}" --allow kubelet --repeat 1000 --test-threads 1 ORD-01 >"$log" 2>&1 &
  changing=$!
  wait_until 120 grep -q '^run ' "$log"
  for defect in "${@:2}"; do
    "$suite" --runtime-endpoint "unix://$socket" --inject "$defect" watch --for 2m --within 20s \
      >"/tmp/watch-$defect" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || true; done
  kill -INT "$changing"
  wait "$changing" || true
  rm "$known"
  for defect in "${@:2}"; do
    say "$defect: $(grep -m 1 'conformant: ' "/tmp/watch-$defect")"
    grep -q "^$1: " "/tmp/watch-$defect" || { cat "/tmp/watch-$defect" && die "not $1 with $defect"; }
    [[ $1 == conformant ]] || grep -A 20 -m 1 'INV-' "/tmp/watch-$defect"
  done
}

killed() {
  begin
  kill -KILL "$pid"
  wait "$pid" || true
  not is_active "$unit"
  is_active "$timer"
  wait_until 330 is_active "$unit"
}

main "$2"
