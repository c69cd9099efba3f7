# shellcheck shell=bash
# One private runtime, whose daemon containerd.sh or crio.sh describes. use_instance sets the variables
# that the other functions work on: name, instance (its directory), version, bin (a folder of the user's
# own programs, or empty), oci, network, infra, no_events, criu, socket.
#
# Its processes share a mount namespace with a /run of its own: shims put their sockets in
# /run/containerd whatever the configuration says, and so nothing of it shows on the machine. A "holder"
# process keeps the namespace while the daemon restarts. The CRI socket lies outside /run, for clients.

sandbox_image=localhost/pause:test

use_instance() {
  name=$1
  instance=$ci_dir/instances/$1
  version=$(fact version)
  bin=$(fact bin)
  oci=$(fact oci-runtime)
  network=$(fact network)
  infra=$(fact infra)
  no_events=$(fact no-events)
  criu=$(fact criu)
  socket=$(fact socket)
  log=$instance/$daemon.log
  mark=cri-ci:$instance
}

fact() { cat "$instance/$1" 2>/dev/null || true; }

# create_instance VERSION BIN OCI_RUNTIME NETWORK INFRA NO_EVENTS CRIU: a fresh one, with no container and no image.
create_instance() {
  mkdir -p "$instance"/{root,state,exits,cni,opt,logs}
  echo "$daemon" >"$instance/daemon"
  echo "$1" >"$instance/version"
  echo "$2" >"$instance/bin"
  echo "$3" >"$instance/oci-runtime"
  echo "$4" >"$instance/network"
  echo "$5" >"$instance/infra"
  echo "$6" >"$instance/no-events"
  echo "$7" >"$instance/criu"
  socket_path >"$instance/socket"
  use_instance "$name"
  : >"$log"
  write_config
  write_faulty_runtime
  [[ $network == none ]] || make_network
  {
    "$(daemon_bin "$daemon")" --version | sed -n 1p  # head would end it with SIGPIPE
    "$(oci_bin)" --version | sed -n 1p
  } | sed 's/ *$//' >"$instance/versions"
}

# The Debian suite of all that is not in a folder of the user's own.
instance_suite() { if [[ -n $bin ]]; then echo "$newest_suite"; else suite_of "$version"; fi; }

daemon_bin() {
  if [[ -n $bin ]]; then echo "$bin/$1"; else find_binary "$(instance_suite)" "$daemon" "$1"; fi
}

oci_bin() {
  if [[ -n $bin && -x $bin/$oci ]]; then echo "$bin/$oci"; else find_binary "$(instance_suite)" "$oci" "$oci"; fi
}

# A Unix socket's path has at most 107 bytes; containerd also makes one with .ttrpc appended.
socket_path() {
  local path=$instance/c.sock
  ((${#path} + 6 <= 107)) || path=$(mktemp -d /tmp/cri-ci.XXXXXX)/c.sock
  echo "$path"
}

# The OCI runtime that dies on demand, with what it has to know.
write_faulty_runtime() {
  {
    echo '#!/bin/sh'
    printf 'FAULTY_RUNTIME=%q FAULTY_STATE=%q exec %q "$@"\n' \
      "$(oci_program)" "$instance/faults" "$repo/ci/lib/faulty-runtime"
  } >"$instance/faulty-runtime"
  chmod 755 "$instance/faulty-runtime"
}

# A bridge for the pods: they see each other on it, and nothing else. They get addresses of 192.0.2.0/24,
# which is kept for documentation. A bridge that has no MAC address of its own takes one of its ports', and
# another when that pod goes; a network plugin that sees it change in between fails.
make_network() {
  local bridge mac
  bridge=$(bridge_name)
  mac=02$(sha256sum <<<"$instance" | cut -c1-10 | sed 's/../:&/g')
  ip link show "$bridge" &>/dev/null || ip link add "$bridge" address "$mac" type bridge
  ip link set "$bridge" up
  cat >"$instance/cni/bridge.conflist" <<JSON
{
  "cniVersion": "1.0.0",
  "name": "cri-ci",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "$bridge",
      "isGateway": false,
      "ipMasq": false,
      "ipam": {
        "type": "host-local",
        "dataDir": "$instance/cni/addresses",
        "ranges": [[{ "subnet": "192.0.2.0/24" }]]
      }
    }
  ]
}
JSON
}

# A name of at most 15 bytes that no other instance has.
bridge_name() { echo "cri$(sha256sum <<<"$instance" | cut -c1-10)"; }

# start_holder: the namespace, with the mark as the source of its /run, by which its processes are found.
# What monitors write for the daemon is on a small file system, which a case fills.
start_holder() {
  local unmount=
  [[ $oci != crun ]] || unmount=$(hybrid_mount)
  make_places
  # shellcheck disable=SC2016 # Expanded by the inner shell.
  setsid unshare --mount --propagation slave bash -ec '
    mount -t tmpfs -o mode=755 "$1" /run
    mkdir /run/lock
    if [[ -n $2 ]]; then umount "$2"; fi
    mount -t tmpfs -o mode=711,size=64m "$1" "$3"
    for place in "${@:4}"; do mount -t tmpfs -o mode=700 "$1" "$place"; done
    exec sleep infinity' holder "$mark" "$unmount" "$instance/$reports" "${places[@]}" </dev/null >>"$log" 2>&1 9>&- &
  echo $! >"$instance/holder.pid"
  disown # Or bash would report its end.
  { wait_until 10 holder_settled && holder_alive; } ||
    die_with_log "cannot make a mount namespace (10 s)"
}

# Places where libraries keep something whatever the configuration says: network plugins' answers,
# where layers of images came from. In the namespace they are empty and private, but must be there.
make_places() {
  local place
  places=("${private_places[@]}")
  [[ $network == none ]] || places+=(/var/lib/cni)
  for place in "${places[@]}"; do
    [[ ! -d $place ]] || grep -qsxF "$place" "$ci_dir"/instances/*/made-places || continue
    mkdir -p "$place"
    echo "$place" >>"$instance/made-places"
  done
}

# Unless somebody else uses them, or has filled them.
remove_places() {
  local place
  [[ -e $instance/made-places ]] || return 0
  while read -r place; do
    grep -qsF " $place " /proc/[0-9]*/mountinfo || rmdir "$place" 2>/dev/null || true
  done <"$instance/made-places"
  rm "$instance/made-places"
}

# The holder becomes sleep when all is mounted.
holder_settled() {
  local pid
  pid=$(<"$instance/holder.pid")
  gone "$pid" || [[ $(cat "/proc/$pid/comm") == sleep ]]
}

# The mark guards against a pid that now belongs to somebody else.
holder_alive() {
  local pid
  pid=$(cat "$instance/holder.pid" 2>/dev/null) &&
    alive "$pid" && grep -qF " $mark " "/proc/$pid/mountinfo"
}

in_instance() { nsenter --mount --target "$(<"$instance/holder.pid")" "$@"; }

start_daemon() {
  local command path
  path=$(dirname "$(daemon_bin "$daemon")")
  [[ -z $criu ]] || path+=:$(dirname "$(find_binary "$newest_suite" criu criu)")
  daemon_command
  rm -f "$socket" "$socket.ttrpc"
  # Neither setsid nor nsenter forks here, so $! is the daemon's own pid.
  PATH=$path:$PATH setsid nsenter --mount --target "$(<"$instance/holder.pid")" \
    "${command[@]}" </dev/null >>"$log" 2>&1 9>&- &
  echo $! >"$instance/$daemon.pid"
  disown
  { wait_until 60 cri_settled && daemon_alive; } ||
    die_with_log "$daemon $version did not answer ListPodSandbox on $socket (60 s)"
}

daemon_alive() {
  local pid
  pid=$(cat "$instance/$daemon.pid" 2>/dev/null) && alive "$pid" &&
    tr '\0' '\n' <"/proc/$pid/cmdline" | grep -xF "$instance/$config_file" >/dev/null
}

# containerd answers "ctr version", and has loaded all its plugins, before its CRI has recovered its
# state and serves; so ask the CRI itself.
cri_settled() {
  gone "$(<"$instance/$daemon.pid")" ||
    cri_list RuntimeService/ListPodSandbox | grep -a 'grpc-status: 0' >/dev/null
}

# cri_list METHOD: a gRPC call with an empty request, which is a frame of five zero bytes.
cri_list() {
  printf '\0\0\0\0\0' | curl --silent --include --max-time 10 --http2-prior-knowledge \
    --unix-socket "$socket" -H 'Content-Type: application/grpc' -H 'TE: trailers' \
    --data-binary @- "http://cri/runtime.v1.$1"
}

# sandbox_image_file: makes it unless the user has one, and sets image_file.
sandbox_image_file() {
  image_file=${CRI_CI_SANDBOX_IMAGE:-$instance/sandbox-image.tar}
  [[ -n ${CRI_CI_SANDBOX_IMAGE:-} ]] || make_sandbox_image "$image_file"
  [[ -r $image_file ]] || die "cannot read the sandbox image $image_file (named by CRI_CI_SANDBOX_IMAGE)"
  image_file=$(realpath "$image_file")
}

# The CRI may learn of it only by an event.
await_sandbox_image() {
  wait_until 10 cri_has_sandbox_image ||
    die_with_log "the CRI does not list $sandbox_image after importing $image_file (10 s)"
}

cri_has_sandbox_image() { cri_list ImageService/ListImages | grep -aF "$sandbox_image" >/dev/null; }

# The project's own image, so that no registry is needed: its default command pauses for ever.
make_sandbox_image() {
  [[ -x $suite ]] || build_suite >&2 ||
    die "cannot build the suite, which makes the sandbox image (cargo's reason is above)"
  "$suite" image --format docker-archive --tag "$sandbox_image" --output "$1" >&2
}

# stop_daemon SIGNAL: the daemon alone. Shims and containers go on.
stop_daemon() {
  local pid
  daemon_alive || return 0
  pid=$(<"$instance/$daemon.pid")
  kill -"$1" "$pid"
  # A bare return would, in a trap on EXIT, return the script's exit code.
  wait_until 15 gone "$pid" && return 0
  say "$daemon $pid has not ended 15 s after SIG$1: killing it"
  kill -KILL "$pid"
  wait_until 5 gone "$pid" || die "$daemon $pid cannot be killed"
}

# stop_instance: ends all its processes, with which its namespace and mounts go; then its cgroups, and
# its data. The log and the configuration stay, for those who ask what happened.
stop_instance() {
  local cgroups
  stop_daemon TERM
  cgroups=$(container_cgroups)
  thaw "$cgroups"
  wait_until 15 all_killed ||
    die "processes of $name still live after SIGKILL (15 s): $(instance_pids | tr '\n' ' ')"
  remove_cgroups "$cgroups"
  remove_network
  remove_places
  rm -rf --one-file-system "$instance"/{root,state,exits,logs,oci,oci-other,oci-faulty,oci-runc,faults,faulty-runtime,limited,opt,cni,seccomp}
  rm -f "$instance"/{holder.pid,"$daemon".pid,sandbox-image.tar}
  remove_socket
}

# The pods' ends of the bridge went with their namespaces, and those with the instance's processes.
remove_network() {
  [[ -n $network && $network != none ]] || return 0
  ip link delete "$(bridge_name)" 2>/dev/null || true # An up that failed may not have made it.
  rm -f "$instance/network"
}

remove_socket() {
  [[ -n $socket ]] || return 0
  rm -f "$socket" "$socket.ttrpc" "$instance/socket"
  [[ $socket == "$instance"/* ]] || rmdir "$(dirname "$socket")" 2>/dev/null || true
}

# Every process of the instance is in its marked namespace (shims, too) or has its root in one of its
# snapshots (containers, even those whose shim was killed).
instance_pids() {
  grep -lF -e " $mark " -e "$instance/root/" /proc/[0-9]*/mountinfo 2>/dev/null | cut -d/ -f3 || true
}

all_killed() {
  local pid pids
  mapfile -t pids < <(instance_pids)
  ((${#pids[@]})) || return 0
  kill -KILL "${pids[@]}" 2>/dev/null || true
  # An exiting process has no mounts any more, but holds its cgroup.
  for pid in "${pids[@]}"; do wait_until 10 gone "$pid" || break; done
  return 1
}

# Only with CAP_SYS_RESOURCE (bit 24) may a process have its oom_score_adj lowered.
may_lower_oom_score() {
  local capabilities
  capabilities=$(awk '/^CapEff:/ { print $2 }' /proc/self/status)
  (((0x$capabilities >> 24) & 1))
}

die_with_log() {
  say "$1. The end of $log:"
  tail -n 20 "$log" >&2
  exit 1
}
