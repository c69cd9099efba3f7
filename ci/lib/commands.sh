# shellcheck shell=bash
# The commands of ci/containerd and ci/crio, which differ in their daemon.

main() {
  local command=${1:-} targets=() oci_runtime=runc cni=none new_name='' signal=TERM all='' wipe='' folder=''
  local real_infra='' events_off='' with_criu=''
  shift || true
  while (($#)); do
    case $1 in
      --oci-runtime | --cni | --name | --signal | --bin) (($# > 1)) || bad_usage "$1 needs a value" ;;&
      --oci-runtime) oci_runtime=$2 && shift ;;
      --cni) cni=$2 && shift ;;
      --name) new_name=$2 && shift ;;
      --signal) signal=${2#SIG} && shift ;;
      --bin) folder=$(realpath -m "$2") && shift ;;
      --infra) real_infra=yes ;;
      --criu) with_criu=yes ;;
      --no-events) events_off=yes ;;
      --all) all=yes ;;
      --wipe) wipe=yes ;;
      -h | --help) command=--help ;;
      -*) bad_usage "unknown option '$1'" ;;
      *) targets+=("$1") ;;
    esac
    shift
  done
  [[ $oci_runtime == runc || $oci_runtime == crun ]] ||
    bad_usage "the OCI runtime is runc or crun, not '$oci_runtime'"
  [[ $cni == none || $cni == bridge ]] || bad_usage "the network is bridge or none, not '$cni'"
  [[ -z $real_infra || $daemon == crio ]] || bad_usage "--infra is of ci/crio: containerd's sandboxes always have a process"
  [[ -z $events_off || $daemon == crio ]] || bad_usage "--no-events is of ci/crio: containerd cannot switch them off"
  ci_dir=$(realpath -m "${CRI_CI_DIR:-$repo/target/ci/runtimes}")
  case $command in
    -h | --help | help) print_help && return ;;
    '') bad_usage "which command?" ;;
  esac
  [[ " ${commands[*]} " == *" $command "* ]] || bad_usage "unknown command '$command'"
  "command_$command"
}

bad_usage() {
  local list=${commands[*]}
  say "$1 (commands: ${list// /, }; see ci/${0##*/} --help)"
  exit 2
}

ensure_tools() {
  ensure_commands dpkg-deb:dpkg unshare:util-linux flock:util-linux curl:curl
}

command_get() {
  local number jobs=() job
  ((${#targets[@]})) || targets=("${debian_versions[@]}")
  for number in "${targets[@]}"; do canonical_version "$number" >/dev/null; done
  ensure_tools
  for number in "${targets[@]}"; do
    download_runtime "$(canonical_version "$number")" "$oci_runtime" &
    jobs+=($!)
    [[ -z $with_criu ]] || { download_criu & jobs+=($!); }
  done
  for job in "${jobs[@]}"; do wait "$job"; done
}

command_up() {
  local number
  ((${#targets[@]} <= 1)) || bad_usage "up takes one VERSION or NAME"
  require_root
  choose_version
  use_instance "${new_name:-$(usual_name "$number")}"
  [[ $name =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] || bad_usage "'$name' is no good as a name"
  lock_instance
  if holder_alive; then
    ensure_same "$number"
    [[ -z $with_criu || -n $criu ]] || say "$name is up without CRIU, and stays so"
    [[ $cni == none || $network == bridge ]] || say "$name is up without a network, and stays so"
    daemon_alive || start_daemon
  else
    ensure_tools
    download_companions "$number"
    bring_up "$number" "$folder" "$oci_runtime" "$cni" "$real_infra" "$events_off" "$with_criu"
  fi
  echo "unix://$socket"
}

# choose_version: sets number. With a folder it is the binary's; the argument is then that version, or a
# name for the instance.
choose_version() {
  local target=${targets[0]:-}
  if [[ -z $folder ]]; then
    [[ -n $target ]] || bad_usage "up needs one VERSION, or --bin DIR"
    number=$(canonical_version "$target")
    return 0
  fi
  check_folder "$folder" "$daemon"
  number=$(own_version "$folder/$daemon")
  if [[ $target =~ ^($daemon-)?[0-9.]+$ ]]; then
    [[ ${target#"$daemon-"} == "$number" ]] || die "$folder has $daemon $number, not ${target#"$daemon-"}"
  else
    new_name=${new_name:-$target}
  fi
}

# ensure_same VERSION: what is up is what is asked for.
ensure_same() {
  local asked="$daemon $1 of ${folder:-Debian} with $oci_runtime${real_infra:+ and infra containers}"
  local is
  is="$(fact daemon) $version of ${bin:-Debian} with $oci${infra:+ and infra containers}"
  asked+=${events_off:+, without events}
  is+=${no_events:+, without events}
  [[ $asked == "$is" ]] || die "$name is up as $is: take it down first (ci/$(fact daemon) down $name)"
}

# download_companions VERSION: all that is not in the user's folder.
download_companions() {
  local suite=$newest_suite
  if [[ -z $folder ]]; then
    suite=$(suite_of "$1")
    download_runtime "$1" "$oci_runtime"
  elif [[ ! -x $folder/$oci_runtime ]]; then
    obtain "$suite" "$oci_runtime" "$oci_runtime"
  fi
  download_more "$suite"
  [[ $cni == none ]] || ensure_network "$suite"
  [[ -z $with_criu ]] || download_criu
}

# ensure_network SUITE: what a bridge is made with.
ensure_network() {
  ensure_commands ip:iproute2
  obtain "$1" containernetworking-plugins
}

usual_name() {
  local suffix=-$oci_runtime
  echo "$daemon-$1${suffix#-runc}"
}

# What was left by a machine's restart, or a killed holder, goes first. What fails halfway goes too.
bring_up() {
  stop_instance
  trap 'stop_instance' EXIT
  create_instance "$@"
  free_root_cgroup
  start_holder
  start_daemon
  import_sandbox_image
  trap - EXIT
  say "$name is up: $(paste -sd, "$instance/versions")"
}

# Two scripts must not start or stop the same instance at once. Its processes do not inherit the lock.
lock_instance() {
  mkdir -p "$instance"
  exec 9>"$instance/.lock"
  flock 9
  use_instance "$name" # It may have changed while we waited.
}

# select_instance TARGET: the existing instance of a version, or of a name.
select_instance() {
  local target
  target=$(usual_name "$(short_version "$1")")
  [[ -d $ci_dir/instances/$target ]] || target=$1
  [[ -d $ci_dir/instances/$target ]] ||
    die "there is no instance '$1' in $ci_dir/instances; see ci/${0##*/} list"
  use_instance "$target"
  [[ $oci_runtime == runc || $oci_runtime == "$oci" ]] || die "$target has $oci, not $oci_runtime"
  [[ $(fact daemon) == "$daemon" ]] || die "$target is of ci/$(fact daemon)"
}

command_restart() {
  select_running
  stop_daemon "$signal"
  start_daemon
  echo "unix://$socket"
}

command_stop() {
  select_running
  stop_daemon "$signal"
}

command_start() {
  select_running
  daemon_alive || start_daemon
  echo "unix://$socket"
}

# select_running: the one that is named, whose daemon may be stopped.
select_running() {
  ((${#targets[@]} == 1)) || bad_usage "$command needs one VERSION or NAME"
  require_root
  select_instance "${targets[0]}"
  lock_instance
  holder_alive || die "$name is down: start it with ci/${0##*/} up"
}

command_outsider() {
  ((${#targets[@]} == 1)) || bad_usage "outsider needs one VERSION or NAME"
  select_instance "${targets[0]}"
  outsider
}

command_down() {
  local target
  [[ -z $all ]] || mapfile -t targets < <(instance_names)
  [[ -n $all ]] || ((${#targets[@]})) || bad_usage "down needs a VERSION, a NAME or --all"
  require_root
  for target in "${targets[@]}"; do
    select_instance "$target"
    lock_instance
    stop_instance
    [[ -z $wipe ]] || rm -rf --one-file-system "$instance"
  done
  [[ -z $all || -z $wipe ]] || wipe_downloads
}

# They are shared by all that have an instance, of whichever daemon.
wipe_downloads() {
  rmdir "$ci_dir/instances" 2>/dev/null || [[ ! -d $ci_dir/instances ]] || return 0
  rm -rf --one-file-system "$ci_dir"
}

# instance_names: those of this script's daemon.
instance_names() {
  local directory
  for directory in "$ci_dir"/instances/*/; do
    [[ $(cat "$directory/daemon" 2>/dev/null) != "$daemon" ]] || basename "$directory"
  done
}

command_list() {
  local target state
  for target in $(instance_names); do
    use_instance "$target"
    state=down
    if daemon_alive; then state=up; fi
    printf '%s\t%s\t%s\t%s\n' "$name" "$state" "${socket:+unix://$socket}" \
      "$(paste -sd, "$instance/versions" 2>/dev/null)"
  done
}
