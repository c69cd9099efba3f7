# shellcheck shell=bash
# Shared by the scripts in ci/: messages, waiting, and what a machine must have installed.

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)

# The cargo profile that the suite is built with, and the program. With CRI_CI_WITH_TESTS, its
# dependencies have the features that the tests need, and are built once for both.
profile=${CRI_CI_PROFILE:-release}
suite=$repo/target/${profile/#dev/debug}/cri-event-conformance

# On a terminal cargo shows its progress.
build_suite() {
  local quiet=(--quiet)
  [[ ! -t 2 ]] || quiet=()
  say "building the suite: minutes at first and after a change, else seconds"
  cargo build --profile "$profile" "${quiet[@]}" --manifest-path "$repo/Cargo.toml" --bin cri-event-conformance \
    ${CRI_CI_WITH_TESTS:+--test tidy}
}

say() { printf '%s: %s\n' "ci/${0##*/}" "$*" >&2; }

# The exit code of wrong usage: 1 is a broken MUST.
die() {
  say "$@"
  exit 2
}

# needs_value OPTION [VALUE]
needs_value() { [[ -n ${2:-} ]] || die "$1 needs a value"; }

# The comment at the head of a script is its help text.
print_help() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }

# wait_until SECONDS COMMAND...: polls until the command succeeds; false when the time is over.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

# A dead process whose parent has not reaped it yet (state Z) still has its /proc entry and still
# takes signals, so neither of them says that it lives.
alive() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  stat=${stat##*) }
  [[ ${stat:0:1} != [ZX] ]]
}

gone() { ! alive "$1"; }

require_root() {
  ((EUID == 0)) || die "must run as root: a container runtime needs namespaces, mounts and cgroups." \
    "Run it with sudo, or in a privileged container"
}

# ensure_commands COMMAND:PACKAGE...: installs, with apt, the packages of the commands that are missing.
ensure_commands() {
  local pair missing=()
  for pair in "$@"; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
  done
  ((${#missing[@]})) || return 0
  command -v apt-get >/dev/null ||
    die "missing: ${missing[*]} (Debian's names), and there is no apt-get here: install them by hand"
  ((EUID == 0)) || die "missing: ${missing[*]}. Install them: sudo apt-get install ${missing[*]}"
  say "installing ${missing[*]}"
  # The machine's package lists may be absent or stale; update them only then.
  apt_install "${missing[@]}" 2>/dev/null && return 0
  apt-get update -qq >&2 || die "apt-get update failed: mend this machine's package sources"
  apt_install "${missing[@]}" || die "apt-get could not install ${missing[*]}"
}

apt_install() {
  DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends \
    -o DPkg::Lock::Timeout=120 "$@" </dev/null >/dev/null
}
