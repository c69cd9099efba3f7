# shellcheck shell=bash
# One private containerd. use_instance sets the variables that the other functions work on:
# name, instance (its directory), version, oci, network, socket.
#
# Its processes share a mount namespace with a /run of its own: shims put their sockets in
# /run/containerd whatever the configuration says, and so nothing of it shows on the machine. A "holder"
# process keeps the namespace while containerd restarts. The CRI socket lies outside /run, for clients.

sandbox_image=localhost/pause:test
beside=cri-ci-beside # The namespace of containers that are not made through the CRI.

use_instance() {
  name=$1
  instance=$ci_dir/instances/$1
  version=$(cat "$instance/version" 2>/dev/null || true)
  oci=$(cat "$instance/oci-runtime" 2>/dev/null || true)
  network=$(cat "$instance/network" 2>/dev/null || true)
  socket=$(cat "$instance/socket" 2>/dev/null || true)
  mark=cri-ci:$instance
}

# create_instance VERSION OCI_RUNTIME NETWORK: a fresh one, with no container and no image.
create_instance() {
  mkdir -p "$instance"/{root,state,cni,opt}
  echo "$1" >"$instance/version"
  echo "$2" >"$instance/oci-runtime"
  echo "$3" >"$instance/network"
  socket_path >"$instance/socket"
  : >"$instance/containerd.log"
  use_instance "$name"
  write_faulty_runtime
  write_config >"$instance/config.toml"
  [[ $network == none ]] || write_network >"$instance/cni/bridge.conflist"
  {
    "$(containerd_bin "$version" containerd)" --version
    "$(oci_bin "$version" "$oci")" --version | sed -n 1p  # head would end it with SIGPIPE
  } | sed 's/ *$//' >"$instance/versions"
}

# A Unix socket's path has at most 107 bytes; containerd also makes one with .ttrpc appended.
socket_path() {
  local path=$instance/c.sock
  ((${#path} + 6 <= 107)) || path=$(mktemp -d /tmp/cri-ci.XXXXXX)/c.sock
  echo "$path"
}

write_config() {
  local runtime=cri.v1.runtime
  ((${version%%.*} >= 2)) || runtime=grpc.v1.cri
  cat <<TOML
$(config_head)

[plugins."io.containerd.$runtime".cni]
  conf_dir = "$instance/cni"  # Pods on the host's network need no plugin, and it may be empty.
$(plugins_setting)

[plugins."io.containerd.$runtime".containerd]
  default_runtime_name = "$oci"
$(handler "$oci" oci)
$(handler other oci-other)
$(handler faulty oci-faulty "$instance/faulty-runtime")
$([[ $oci == runc ]] || handler runc oci-runc)
TOML
}

# handler NAME ROOT [PROGRAM]: a runtime handler that runs the instance's OCI runtime. containerd offers "runc"
# by default, so that whoever tries all handlers finds that one, too.
handler() {
  cat <<TOML

[plugins."io.containerd.$runtime".containerd.runtimes.$1]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.$runtime".containerd.runtimes.$1.options]
  BinaryName = "${3:-$(oci_bin "$version" "$oci")}"
  Root = "$instance/$2"
  SystemdCgroup = false
TOML
}

# The OCI runtime that dies on demand, with what it has to know.
write_faulty_runtime() {
  {
    echo '#!/bin/sh'
    printf 'FAULTY_RUNTIME=%q FAULTY_STATE=%q exec %q "$@"\n' \
      "$(oci_bin "$version" "$oci")" "$instance/faults" "$repo/ci/lib/faulty-runtime"
  } >"$instance/faulty-runtime"
  chmod 755 "$instance/faulty-runtime"
}

plugins_setting() {
  [[ $network == none ]] || echo "  bin_dir = \"$(cni_bin_dir "$version")\""
}

# A bridge without an address: pods see each other on it, and nothing else. Addresses are of those
# that are kept for documentation, so that none is anybody's.
write_network() {
  cat <<JSON
{
  "cniVersion": "1.0.0",
  "name": "cri-ci",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "$(bridge_name)",
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

# The head ends inside the table of the CRI's runtime settings: up to containerd 1.7 it is that of
# the whole CRI plugin, and a table may not be opened twice.
config_head() {
  cat <<TOML
version = $((${version%%.*} >= 2 ? 3 : 2))
root = "$instance/root"
state = "$instance/state"
imports = []
$(nri_setting)

[grpc]
  address = "$socket"

[ttrpc]
  address = "$socket.ttrpc"

[plugins."io.containerd.internal.v1.opt"]
  path = "$instance/opt"

[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
$(sandbox_image_setting)
  restrict_oom_score_adj = $(restrict_oom_score)
  disable_apparmor = true  # It would load a profile into the machine's kernel.
TOML
}

# NRI is on by default since 2.0, with a socket at a fixed place.
nri_setting() {
  ((${version%%.*} < 2)) || echo 'disabled_plugins = ["io.containerd.nri.v1.nri"]'
}

sandbox_image_setting() {
  if ((${version%%.*} < 2)); then
    echo "  sandbox_image = \"$sandbox_image\""
  else
    printf '\n[plugins."%s".pinned_images]\n  sandbox = "%s"\n\n[plugins."%s"]\n' \
      io.containerd.cri.v1.images "$sandbox_image" io.containerd.cri.v1.runtime
  fi
}

# Sandboxes ask for oom_score_adj -998, as they should; but where CAP_SYS_RESOURCE (bit 24) is
# missing, the kernel refuses it and no sandbox starts, unless containerd limits itself.
restrict_oom_score() {
  local capabilities
  capabilities=$(awk '/^CapEff:/ { print $2 }' /proc/self/status)
  if (((0x$capabilities >> 24) & 1)); then echo false; else echo true; fi
}

# In a container, on cgroup v2, our own cgroup looks like the root of all, and may not have both processes
# and children with controllers. So the processes move into one of its children, as Docker in Docker does.
free_root_cgroup() {
  local root=/sys/fs/cgroup pid
  [[ -e $root/cgroup.type && -n $(<"$root/cgroup.procs") ]] || return 0
  mkdir -p "$root/init"
  while read -r pid; do
    echo "$pid" >"$root/init/cgroup.procs" 2>/dev/null || true # Ended meanwhile.
  done < <(cat "$root/cgroup.procs")
}

# start_holder: the namespace, with the mark as the source of its /run, by which its processes are found.
start_holder() {
  local unmount=
  [[ $oci != crun ]] || unmount=$(hybrid_mount)
  [[ $network == none ]] || make_results_place
  # shellcheck disable=SC2016 # Expanded by the inner shell.
  setsid unshare --mount --propagation slave bash -ec '
    mount -t tmpfs -o mode=755 "$1" /run
    mkdir /run/lock
    if [[ -n $2 ]]; then umount "$2"; fi
    if [[ $3 != none ]]; then mount -t tmpfs -o mode=700 "$1" /var/lib/cni; fi
    exec sleep infinity' holder "$mark" "$unmount" "$network" </dev/null >>"$instance/containerd.log" 2>&1 9>&- &
  echo $! >"$instance/holder.pid"
  disown # Or bash would report its end.
  { wait_until 10 holder_settled && holder_alive; } ||
    die_with_log "cannot make a mount namespace (10 s)"
}

# The library that calls network plugins keeps what they answer in a fixed place. In the namespace
# that is empty and private, but the directory must be there.
make_results_place() {
  [[ ! -d /var/lib/cni ]] || return 0
  mkdir /var/lib/cni
  touch "$instance/made-results-place"
}

# crun refuses cgroup v1 with a v2 hierarchy beside it; without the latter it uses v1.
hybrid_mount() {
  [[ $(stat -fc %T /sys/fs/cgroup) == cgroup2fs ]] ||
    awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts
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
  local bin
  bin=$(dirname "$(containerd_bin "$version" containerd)")
  rm -f "$socket" "$socket.ttrpc"
  # Neither setsid nor nsenter forks here, so $! is containerd's own pid.
  PATH=$bin:$PATH setsid nsenter --mount --target "$(<"$instance/holder.pid")" \
    "$bin/containerd" --config "$instance/config.toml" \
    </dev/null >>"$instance/containerd.log" 2>&1 9>&- &
  echo $! >"$instance/containerd.pid"
  disown
  { wait_until 60 cri_settled && daemon_alive; } ||
    die_with_log "containerd $version did not answer ListPodSandbox on $socket (60 s)"
}

daemon_alive() {
  local pid
  pid=$(cat "$instance/containerd.pid" 2>/dev/null) && alive "$pid" &&
    tr '\0' '\n' <"/proc/$pid/cmdline" | grep -xF "$instance/config.toml" >/dev/null
}

# containerd answers "ctr version", and has loaded all its plugins, before its CRI has recovered its
# state and serves; so ask the CRI itself.
cri_settled() {
  gone "$(<"$instance/containerd.pid")" ||
    cri_list RuntimeService/ListPodSandbox | grep -a 'grpc-status: 0' >/dev/null
}

# cri_list METHOD: a gRPC call with an empty request, which is a frame of five zero bytes.
cri_list() {
  printf '\0\0\0\0\0' | curl --silent --include --max-time 10 --http2-prior-knowledge \
    --unix-socket "$socket" -H 'Content-Type: application/grpc' -H 'TE: trailers' \
    --data-binary @- "http://cri/runtime.v1.$1"
}

import_sandbox_image() {
  local tar=${CRI_CI_SANDBOX_IMAGE:-$instance/sandbox-image.tar} ctr
  [[ -n ${CRI_CI_SANDBOX_IMAGE:-} ]] || make_sandbox_image "$tar"
  [[ -r $tar ]] || die "cannot read the sandbox image $tar (named by CRI_CI_SANDBOX_IMAGE)"
  ctr=$(containerd_bin "$version" ctr)
  in_instance "$ctr" -a "$socket" -n k8s.io images import "$(realpath "$tar")" \
    >>"$instance/containerd.log" 2>&1 ||
    die_with_log "ctr cannot import the sandbox image $tar"
  in_instance "$ctr" -a "$socket" -n "$beside" images import "$(realpath "$tar")" \
    >>"$instance/containerd.log" 2>&1 ||
    die_with_log "ctr cannot import the sandbox image $tar into the namespace $beside"
  # The CRI learns of it by an event.
  wait_until 10 cri_has_sandbox_image ||
    die_with_log "the CRI does not list $sandbox_image after importing $tar (10 s)"
}

# outsider: a command that any shell outside the instance can run. Its container has no output, for
# which a place in the instance's own /run would be needed.
outsider() {
  local ctr oci_runtime
  ctr=$(containerd_bin "$version" ctr)
  oci_runtime=$(oci_bin "$version" "$oci")
  # shellcheck disable=SC2016 # The shell that runs it expands the number, for a name of its own.
  printf '%q --address %q --namespace %q run --rm --null-io --runc-binary %q --runc-root %q %q %s %s\n' \
    "$ctr" "$socket" "$beside" "$oci_runtime" "$instance/oci" "$sandbox_image" 'outsider-$$' \
    '/workload exit 0 300'
}

cri_has_sandbox_image() { cri_list ImageService/ListImages | grep -aF "$sandbox_image" >/dev/null; }

# The project's own image, so that no registry is needed: its default command pauses for ever.
make_sandbox_image() {
  cargo run --release --quiet --manifest-path "$repo/Cargo.toml" -- \
    image --format docker-archive --tag "$sandbox_image" --output "$1" >&2 ||
    die "cannot make the sandbox image (cargo's reason is above)"
}

# stop_daemon SIGNAL: containerd alone. Shims and containers go on.
stop_daemon() {
  local pid
  daemon_alive || return 0
  pid=$(<"$instance/containerd.pid")
  kill -"$1" "$pid"
  # A bare return would, in a trap on EXIT, return the script's exit code.
  wait_until 15 gone "$pid" && return 0
  say "containerd $pid has not ended 15 s after SIG$1: killing it"
  kill -KILL "$pid"
  wait_until 5 gone "$pid" || die "containerd $pid cannot be killed"
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
  rm -rf --one-file-system "$instance"/{root,state,oci,oci-other,oci-faulty,oci-runc,faults,faulty-runtime,opt,cni,holder.pid,containerd.pid,sandbox-image.tar}
  remove_socket
}

# The pods' ends of the bridge went with their namespaces, and those with the instance's processes.
remove_network() {
  [[ -n $network && $network != none ]] || return 0
  ip link delete "$(bridge_name)" 2>/dev/null || true # No pod has had one.
  if [[ -e $instance/made-results-place ]] && ! grep -qsF ' /var/lib/cni ' /proc/[0-9]*/mountinfo; then
    rmdir /var/lib/cni 2>/dev/null || true # Somebody else may have filled it.
  fi
  rm -f "$instance"/{made-results-place,network}
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

# The cgroups of its containers: of those that live, of those on containerd's record, and of those that
# it no longer knows, as after a shim was killed; their ids are in the log.
container_cgroups() {
  local pid
  {
    for pid in $(instance_pids); do cut -d: -f3- "/proc/$pid/cgroup" 2>/dev/null; done
    grep -rhoP --include=config.json '"cgroupsPath":"\K[^"]+' "$instance/state" 2>/dev/null
    cgroups_in_log
  } | sort -u | grep -vxF -e / -f <(own_cgroups) || true
}

cgroups_in_log() {
  local root
  for root in $(cgroup_roots); do
    find "$root" -type d -regextype egrep -regex '.*/[0-9a-f]{64}' -printf '/%P\n'
  done | grep -F -f <(grep -ohE "[0-9a-f]{64}" "$instance/containerd.log" 2>/dev/null | sort -u)
}

# Those in which the machine started us: not to be removed.
own_cgroups() {
  cut -d: -f3- "/proc/$(cat "$instance/holder.pid" 2>/dev/null || echo self)/cgroup" 2>/dev/null | sort -u
}

cgroup_roots() {
  if [[ $(stat -fc %T /sys/fs/cgroup) == cgroup2fs ]]; then
    echo /sys/fs/cgroup
  else
    awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts
  fi
}

# On cgroup v1 a frozen process does not even take a SIGKILL.
thaw() {
  local path
  for path in $1; do
    [[ ! -e /sys/fs/cgroup/freezer$path/freezer.state ]] ||
      echo THAWED >"/sys/fs/cgroup/freezer$path/freezer.state"
  done
}

# Removes them, and then their parents as far as these are empty. The parents that containerd itself uses
# are named as its namespaces are.
remove_cgroups() {
  local root path
  wait_until 10 cgroups_removed "$1" || say "cgroups are left, with something in them: ${1//$'\n'/ }"
  for root in $(cgroup_roots); do
    for path in $1 /k8s.io/any "/$beside/any"; do
      while path=${path%/*} && [[ -n $path ]]; do
        rmdir "$root$path" 2>/dev/null || break
      done
    done
  done
}

# A process that is dead holds its cgroup until somebody has reaped it.
cgroups_removed() {
  local root path left=0
  for root in $(cgroup_roots); do
    for path in $1; do
      [[ ! -d $root$path ]] || find "$root$path" -depth -type d -exec rmdir {} + 2>/dev/null || left=1
    done
  done
  return "$left"
}

die_with_log() {
  say "$1. The end of $instance/containerd.log:"
  tail -n 20 "$instance/containerd.log" >&2
  exit 1
}
