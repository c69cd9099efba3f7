# shellcheck shell=bash
# Building the suite, and running it against a runtime that ci/containerd or ci/crio provides.
# A RUNTIME is named as its instance is: containerd-VERSION or crio-VERSION, with -crun for that OCI runtime.

ctl=$repo/ci/containerd
folder='' # Of the user's own programs, instead of Debian's.
launcher=() # The command that runs the suite elsewhere, if anything does.
ours=() # The runtimes that this script started, and stops.
declare -A background=() # Background parts: the process by its name.
interrupted='' # By a signal, after which nothing more is begun.

known_runtime() {
  case $1 in
    containerd-1.6 | containerd-1.7 | containerd-1.7-crun | containerd-2.1 | containerd-2.1-crun) ;;
    model) ;;
    *)
      say "unknown runtime '$1': there are containerd-2.1, containerd-2.1-crun, containerd-1.7," \
        "containerd-1.7-crun, containerd-1.6, the suite's own model, and with --bin DIR your own"
      exit 2
      ;;
  esac
}

# own_runtime [RUNTIME]: checks the folder, and prints the name with the version of its binary. RUNTIME
# is crio or containerd, with that version or without, and with -crun or without.
own_runtime() {
  local kind asked oci version
  [[ ${1:-$(kind_of_folder)} =~ ^(containerd|crio)(-[0-9.]+)?(-crun)?$ ]] ||
    die "--bin goes with --runtime crio, crio-crun, containerd or containerd-crun, not '$1'"
  kind=${BASH_REMATCH[1]} asked=${BASH_REMATCH[2]#-} oci=${BASH_REMATCH[3]}
  check_folder "$folder" "$kind"
  version=$(own_version "$folder/$kind")
  [[ -z $asked || $asked == "$version" ]] || die "$folder has $kind $version, not $asked"
  echo "$kind-$version$oci"
}

kind_of_folder() { if [[ -e $folder/crio ]]; then echo crio; else echo containerd; fi; }

# runtime_do COMMAND RUNTIME [OPTION...]
runtime_do() {
  local command=$1 version=${2#*-} oci=runc own=()
  [[ $version != *-crun ]] || oci=crun
  [[ $command != up || -z $folder ]] || own=(--bin "$folder")
  "$repo/ci/${2%%-*}" "$command" "${version%-crun}" --oci-runtime "$oci" "${own[@]}" "${@:3}"
}

ensure_build_tools() {
  command -v cargo >/dev/null || die "there is no cargo: install Rust, see https://rustup.rs"
  ensure_commands cc:build-essential protoc:protobuf-compiler
}

# ensure_prometheus: sets prometheus_bin, the folder of prometheus and promtool. If they are missing,
# Debian's package is extracted: to install it would start a service.
ensure_prometheus() {
  local dir=$repo/target/ci/prometheus
  if command -v promtool >/dev/null && command -v prometheus >/dev/null; then
    prometheus_bin=$(dirname "$(command -v promtool)")
    return 0
  fi
  prometheus_bin=$dir/usr/bin
  [[ ! -x $prometheus_bin/promtool ]] || return 0
  say "fetching prometheus from Debian"
  mkdir -p "$dir"
  (
    cd "$dir"
    apt-get -qq download prometheus 2>/dev/null ||
      { apt-get -qq update && apt-get -qq download prometheus; }
    dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb
  ) >&2 || die "cannot fetch Debian's prometheus (apt's reason is above)"
}

# ensure_python: sets python, one of its own that has grpcio-tools and perfetto, for a client and a
# reader of another make.
ensure_python() {
  local dir=$repo/target/ci/python
  python=$dir/bin/python
  "$python" -c 'import grpc_tools, perfetto' 2>/dev/null || fetch_from_pypi "$dir" grpcio-tools perfetto
}

# fetch_from_pypi DIR PACKAGE...: a new Python environment with these packages.
fetch_from_pypi() {
  local dir=$1
  say "fetching ${*:2} from PyPI"
  rm -rf "$dir"
  python3 -m venv "$dir" 2>/dev/null || {
    ensure_commands python3:python3
    apt_install python3-venv
    python3 -m venv "$dir"
  } >&2 || die "cannot make a Python environment (the reason is above)"
  "$dir/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}" >&2 ||
    die "cannot fetch ${*:2} (pip's reason is above)"
}

# prepare RUNTIME...: downloads them while cargo builds the suite.
prepare() {
  local runtime jobs=() job built=0 with
  require_root
  ensure_build_tools
  ensure_commands dpkg-deb:dpkg unshare:util-linux flock:util-linux curl:curl
  for runtime; do
    [[ -z $folder ]] || break
    read -ra with < <(with_criu "$runtime")
    runtime_do get "$runtime" "${with[@]}" 2>/dev/null &
    jobs+=($!)
  done
  build_suite || built=$?
  # A download that failed is tried again, and its error shown, when the runtime is started.
  for job in "${jobs[@]}"; do wait "$job" || true; done
  return "$built"
}

# start_runtime RUNTIME: sets endpoint. One that was up already belongs to somebody else and stays up.
start_runtime() {
  local with
  "$repo/ci/${1%%-*}" list | grep "^$1"$'\tup' >/dev/null || ours+=("$1")
  trap clean_up EXIT
  read -ra with < <(with_criu "$1")
  endpoint=$(runtime_do up "$1" --cni bridge "${with[@]}")
}

# with_criu RUNTIME: the option that gives it CRIU. containerd 1.x makes no checkpoints through the CRI.
with_criu() { if [[ $1 == containerd-1.* ]]; then echo; else echo --criu; fi; }

clean_up() {
  local name runtime
  for name in "${!background[@]}"; do kill -TERM -- "-${background[$name]}" 2>/dev/null || true; done
  for runtime in "${ours[@]}"; do
    [[ ! -d ${CRI_CI_DIR:-$repo/target/ci/runtimes}/instances/$runtime ]] ||
      runtime_do down "$runtime" || true
  done
}

# offer RUNTIME: exports what a private runtime provides beyond the CRI, unless the user has set it.
offer() {
  if [[ $1 == containerd-* ]]; then
    export CRI_EVENT_CONFORMANCE_OUTSIDE_CRI
    : "${CRI_EVENT_CONFORMANCE_OUTSIDE_CRI:=$(runtime_do outsider "$1")}"
  fi
  export CRI_EVENT_CONFORMANCE_RUNTIME_STOP_CMD CRI_EVENT_CONFORMANCE_RUNTIME_START_CMD
  export CRI_EVENT_CONFORMANCE_RUNTIME_KILL_CMD
  : "${CRI_EVENT_CONFORMANCE_RUNTIME_STOP_CMD:=$(runtime_command stop "$1")}"
  : "${CRI_EVENT_CONFORMANCE_RUNTIME_START_CMD:=$(runtime_command start "$1")}"
  : "${CRI_EVENT_CONFORMANCE_RUNTIME_KILL_CMD:=$(runtime_command stop "$1") --signal KILL}"
  export CRI_EVENT_CONFORMANCE_RUNTIME_LOG_CMD
  : "${CRI_EVENT_CONFORMANCE_RUNTIME_LOG_CMD:=$(log_command "$1")}"
  export CRI_EVENT_CONFORMANCE_FAULTY_HANDLER
  : "${CRI_EVENT_CONFORMANCE_FAULTY_HANDLER:=faulty}"
}

# runtime_command stop|start RUNTIME: for a shell.
runtime_command() {
  printf 'CRI_CI_DIR=%q %q %q %q' "${CRI_CI_DIR:-$repo/target/ci/runtimes}" "$repo/ci/${2%%-*}" "$1" "$2"
}

# log_command RUNTIME: for a shell.
log_command() {
  local daemon=containerd
  [[ $1 != crio-* ]] || daemon=crio
  printf 'cat %q' "${CRI_CI_DIR:-$repo/target/ci/runtimes}/instances/$1/$daemon.log"
}

# run_suite RUNTIME ENDPOINT ARGS...: returns the suite's exit code.
run_suite() {
  local options=(--expectations builtin) reports=(--report-dir "$repo/target/conformance")
  [[ ! " ${*:3} " =~ \ --(report-dir|junit|json|markdown|html|history)[\ =] ]] || reports=()
  # Expectations that the user names replace the built-in ones; the model has none.
  [[ $1 != model && " ${*:3} " != *" --expectations"[\ =]* ]] || options=()
  [[ $1 == model || -n ${launcher[*]} ]] || offer "$1"
  await "${launcher[@]}" "$suite" --runtime-endpoint "$2" "${reports[@]}" "${options[@]}" "${@:3}"
}

# run_suite_in_vm DIST DRIVER ARGS...: runs the suite on containerd in an emulated machine.
run_suite_in_vm() {
  local dist=$1 runtime=containerd-2.1 patience=()
  require_root
  [[ $dist != trixie ]] || runtime=containerd-1.7
  launcher=("$repo/ci/vm" run --dist "$dist" --cgroup-driver "$2" --timeout "${CRI_CI_VM_TIMEOUT:-21600}" "$repo")
  shift 2
  [[ " $*" =~ \ (-t|--timeout[ =]) ]] || patience+=(--timeout 300s)
  [[ " $*" == *" --timeout-scale"* ]] || patience+=(--timeout-scale 5)
  [[ " $*" == *" --test-threads"* ]] || patience+=(--test-threads 1) # more would slow each other down
  ensure_build_tools
  "$repo/ci/vm" build "$dist"
  build_suite
  run_suite "$runtime" unix:///run/containerd/containerd.sock "${patience[@]}" "$@"
}

# run_matrix RUNTIME ENDPOINT ARGS...: the proof that the suite can fail; without an endpoint, on the
# model. Returns the suite's exit code.
run_matrix() {
  local out=$repo/target/matrix expectations=$repo/ci/expectations/containerd.yaml options=() name=$1
  [[ -z $2 ]] || options=(--runtime-endpoint "$2")
  [[ ! " ${*:3}" =~ " --timeout-scale"[\ =]([0-9.]+) || ${BASH_REMATCH[1]} == 1 ]] || name+=-scaled
  options+=(matrix --markdown "$out/$name.md" --json "$out/$name.json")
  [[ -z $2 ]] || options+=(--expectations "$expectations")
  mkdir -p "$out"
  await "$suite" "${options[@]}" "${@:3}"
}

# await COMMAND...: runs it, forwards the signals that stop us, and waits for its end in any case:
# the suite removes its containers before it ends, and needs the runtime for that. It gets a process
# group of its own (set -m), or Ctrl-C would reach it twice: from the terminal and from us.
await() {
  set -m
  "$@" &
  set +m
  await_process $!
}

# await_process PID: the same for a process that is running already.
await_process() {
  local pid=$1 code=0
  trap 'interrupted=yes; kill -INT -- "-$pid" 2>/dev/null || true' INT
  trap 'interrupted=yes; kill -TERM -- "-$pid" 2>/dev/null || true' TERM HUP
  # A signal ends wait, but not the command.
  while alive "$pid"; do wait "$pid" || true; done
  wait "$pid" || code=$?
  trap - INT TERM HUP
  return "$code"
}

# begin NAME COMMAND...: starts it in the background, in a session of its own.
begin() {
  trap clean_up EXIT
  setsid "${@:2}" >"$logs/$1.log" 2>"$logs/$1.err" </dev/null &
  background[$1]=$!
}

# begin_idle NAME COMMAND...: the same, with the processor time that the runtimes and the suite leave: in the
# kernel's idle class, and its session with the least weight, since Linux shares the processors among
# sessions first.
begin_idle() {
  begin "$1" sh -c 'echo 19 2>/dev/null >/proc/self/autogroup; exec chrt --idle 0 "$@"' sh "${@:2}"
}
