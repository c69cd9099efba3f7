# shellcheck shell=bash
# What is left on the machine and at a private runtime, counted from outside of the suite. Every function
# here prints lines of KIND, a tab, and NAME. use_instance (instance.sh) says which runtime.

# count_all: all that a run may leave, sorted. What it is up to the suite to remove has a bare KIND; what only
# the runtime can, begins with "runtime's".
count_all() {
  (
    set +e # What is not there is not left.
    count_cri sandbox RuntimeService/ListPodSandbox '[0-9a-f]{64}'
    count_cri container RuntimeService/ListContainers '[0-9a-f]{64}'
    count_cri image ImageService/ListImages '[0-9a-f]{64}|[0-9.:]+/cri-event-conformance/[^[:cntrl:]]+'
    count_processes
    count_cgroups
    count_files
    count_mounts mount /proc/self/mountinfo
    count_mounts "runtime's mount" "/proc/$(<"$instance/holder.pid")/mountinfo"
    count_runtime_files
    "count_of_$daemon"
    true
  ) | sort -u
}

# of_kind KIND: names from stdin.
of_kind() { sed "s|^|$1"$'\t'"|"; }

# count_cri KIND METHOD PATTERN: what matches in the answer to a list call, or that there was none.
count_cri() {
  local answer
  answer=$(mktemp -p "$scratch")
  cri_list "$2" >"$answer"
  grep -a 'grpc-status: 0' "$answer" >/dev/null || echo "no answer to $2" | of_kind "$1"
  grep -aoE "$3" "$answer" | of_kind "$1"
  rm "$answer"
}

# Of the runtime's namespace, and so shims, monitors and containers; and of the suite's session.
count_processes() {
  local pid kind
  for pid in $(instance_pids) $([[ -z $trial ]] || pgrep --session "$trial"); do
    [[ $pid != "$(fact holder.pid)" && $pid != "$(fact "$daemon.pid")" ]] && alive "$pid" || continue
    kind=process
    ! is_forgotten_shim "$pid" || kind="runtime's shim"
    cat "/proc/$pid/comm" 2>/dev/null | sed "s/^/$pid /" | of_kind "$kind"
  done
}

# is_forgotten_shim PID: a shim without a child, whose working folder, the bundle, containerd has deleted. So
# nothing tells whose sandbox it was for: only containerd could have ended it.
is_forgotten_shim() {
  [[ $(cat "/proc/$1/comm" 2>/dev/null) == containerd-shim* && $(readlink "/proc/$1/cwd") == *' (deleted)' ]] &&
    ! pgrep --parent "$1" >/dev/null
}

# A container's is the runtime's to remove; other runtimes on this machine make such, too.
count_cgroups() {
  local root
  for root in $(cgroup_roots); do
    find "$root" -mindepth 1 -type d -regextype egrep ! -regex '.*[0-9a-f]{64}.*' 2>/dev/null
  done | of_kind cgroup
  cgroups_in_log | of_kind "runtime's cgroup"
}

# The suite's TMPDIR is its own here. Anything else in these folders by its name alone, as others use them.
count_files() {
  local path
  {
    find "$scratch/tmp" -mindepth 1
    find /tmp /run /var/log /dev/shm /run/netns -maxdepth 1 -name '*cri-event-conformance*' 2>/dev/null
  } | while read -r path; do
    is_of_another_run "$path" || echo "$path"
  done | of_kind file
}

count_mounts() { cut -d' ' -f5 "$2" | of_kind "$1"; }

# Its bundles, sockets, network namespaces, addresses and ends of the bridge.
count_runtime_files() {
  local run
  run=/proc/$(<"$instance/holder.pid")/root/run
  find "$run/netns" -mindepth 1 -printf '%f\n' 2>/dev/null | of_kind "runtime's network namespace"
  find "$run" -mindepth 1 -path "$run/netns" -prune -o -type s -printf '%P\n' 2>/dev/null |
    of_kind "runtime's socket"
  find "$instance"/{state,oci,oci-other,oci-faulty,oci-runc,faults} -mindepth 1 -type d \
    -regextype egrep -regex '.*/[0-9a-f]{64}' 2>/dev/null | of_kind "runtime's directory"
  find "$instance/cni/addresses" -name '192.*' -printf '%f\n' 2>/dev/null | of_kind "runtime's address"
  find "/sys/class/net/$(bridge_name)/brif" -mindepth 1 -printf '%f\n' 2>/dev/null |
    of_kind "runtime's network device"
}

count_of_containerd() {
  in_ctr containers list -q | of_kind "runtime's container"
  in_ctr tasks list -q | of_kind "runtime's task"
  in_ctr leases list -q | of_kind "runtime's lease"
  in_ctr content list -q | of_kind "runtime's blob"
  in_ctr snapshots list | awk 'NR > 1 { print $1 }' | of_kind "runtime's snapshot"
}

in_ctr() { in_instance "$(daemon_bin ctr)" --address "$socket" --namespace k8s.io "$@" 2>>"$log"; }

# It has no leases.
count_of_crio() {
  find "$instance/root/overlay-containers" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' |
    of_kind "runtime's container"
  find "$instance/root/overlay" -mindepth 1 -maxdepth 1 -type d ! -name l -printf '%f\n' |
    of_kind "runtime's snapshot"
}

# left_since FILE: what is counted now and was not then, into $scratch/left; false if there is any. A sandbox
# that a list shows again, of which the runtime had kept the container at the time of FILE, is the runtime's.
left_since() {
  local kind name
  count_all >"$scratch/now"
  comm -13 "$1" "$scratch/now" | while IFS=$'\t' read -r kind name; do
    [[ $kind != sandbox && $kind != container ]] || ! grep -qxF "runtime's container"$'\t'"$name" "$1" ||
      kind="runtime's $kind"
    [[ $kind == cgroup ]] && is_of_others "$name" || printf '%s\t%s\n' "$kind" "$name"
  done >"$scratch/left"
  [[ ! -s $scratch/left ]]
}

none_of_ours() { left_since "$1" || ! grep -qv "^runtime's" "$scratch/left"; }

# is_of_another_run PATH: its name has the process of its run, and that of a pod's cgroup a number, too.
is_of_another_run() {
  [[ $1 =~ cri.event.conformance..*\.([0-9]+)[-_][0-9]+(\.[0-9]+(\.slice)?)?$ && ${BASH_REMATCH[1]} != "$trial" ]]
}

# is_of_others CGROUP: gone by now, or of another run, or others on this machine have a process in it.
is_of_others() {
  [[ -d $1 ]] && ! is_of_another_run "$1" || return 0
  find "$1" -name cgroup.procs -exec cat {} + 2>/dev/null | grep -vxF "$(instance_pids)" >/dev/null
}
