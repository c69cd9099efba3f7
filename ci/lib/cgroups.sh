# shellcheck shell=bash
# The cgroups of a private runtime's containers, and the machine's own.

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

# crun refuses cgroup v1 with a v2 hierarchy beside it; without the latter it uses v1.
hybrid_mount() {
  [[ $(stat -fc %T /sys/fs/cgroup) == cgroup2fs ]] ||
    awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts
}

# The cgroups of its containers: of those that live, of those on the daemon's record, and of those that
# it no longer knows, as after a shim was killed; their ids are in the log.
container_cgroups() {
  local pid
  {
    for pid in $(instance_pids); do cut -d: -f3- "/proc/$pid/cgroup" 2>/dev/null; done
    grep -rhoP --include=config.json '"cgroupsPath":"\K[^"]+' "$instance"/{state,root} 2>/dev/null
    cgroups_in_log
  } | sort -u | grep -vxF -e / -f <(own_cgroups) || true
}

cgroups_in_log() {
  local root
  for root in $(cgroup_roots); do
    find "$root" -type d -regextype egrep -regex '.*/(crio-)?(conmon-)?[0-9a-f]{64}' -printf '/%P\n' 2>/dev/null
  done | grep -F -f <(grep -ohE "[0-9a-f]{64}" "$log" 2>/dev/null | sort -u)
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

# Removes them, and then their parents as far as these are empty, those that the daemon itself uses too.
remove_cgroups() {
  local root path
  wait_until 10 cgroups_removed "$1" || say "cgroups are left, with something in them: ${1//$'\n'/ }"
  for root in $(cgroup_roots); do
    for path in $1 "${cgroups_of_its_own[@]/%//any}"; do
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
