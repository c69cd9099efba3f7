# shellcheck shell=bash
# Downloads containerd, OCI runtimes and what goes with them from Debian into $ci_dir/SUITE, with apt
# directories of our own: the machine's apt is only asked for its mirror and its proxy, and nothing is installed.
# Everything a version needs comes from one suite, so only one package list has to be fetched.

# Suites, not package versions: the tests follow what Debian has, and say what it is.
suite_of() {
  case $1 in
    1.6) echo bookworm ;;
    1.7) echo trixie ;;
    2.1) echo forky ;;
    *) die "unknown containerd version '$1': there are 1.6, 1.7 and 2.1, and your own with --bin DIR" ;;
  esac
}

newest_suite=forky

# download_runtime VERSION OCI_RUNTIME: Debian's containerd of that version, and the OCI runtime.
download_runtime() {
  local suite
  suite=$(suite_of "$1")
  obtain "$suite" containerd containerd ctr containerd-shim-runc-v2
  obtain "$suite" "$2" "$2"
}

# CRIU, which makes checkpoints of processes: older suites have one that newer kernels are too new for.
download_criu() { obtain "$newest_suite" criu criu; }

# obtain SUITE PACKAGE [BINARY...]: after it, find_binary works for them, and they run here.
obtain() {
  mkdir -p "$ci_dir/$1"
  (
    flock 9
    fetch "$1" "$2"
    make_runnable "$@"
  ) 9>"$ci_dir/$1/.lock"
  say "$2 $(<"$ci_dir/$1/$2/.version") from Debian $1"
}

# find_binary SUITE PACKAGE NAME: Debian moves binaries between bin and sbin.
find_binary() {
  local file
  for file in "$ci_dir/$1/$2"/usr/{bin,sbin,libexec}/"$3"; do
    [[ -x $file ]] && echo "$file" && return 0
  done
  die "Debian $1's package $2 has no $3 in usr/bin, sbin or libexec"
}

cni_bin_dir() { echo "$ci_dir/$1/containernetworking-plugins/usr/lib/cni"; }

# fetch SUITE PACKAGE...: extracts each package that is not there yet to $ci_dir/SUITE/PACKAGE.
fetch() {
  local suite=$1 package missing=()
  shift
  for package; do
    [[ -e $ci_dir/$suite/$package/.version ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  ensure_package_list "$suite"
  download "$suite" "${missing[@]}"
  for package in "${missing[@]}"; do
    extract "$suite" "$package" "$ci_dir/$suite/$package"
  done
}

# extract SUITE PACKAGE DIR: .version is written last, and so marks a complete tree.
extract() {
  local deb=("$ci_dir/$1/debs/$2"_*.deb)
  rm -rf "$3"
  dpkg-deb -x "${deb[0]}" "$3"
  dpkg-deb -f "${deb[0]}" Version >"$3/.version"
  rm "${deb[@]}"
}

download() {
  local suite=$1
  shift
  mkdir -p "$ci_dir/$suite/debs"
  (cd "$ci_dir/$suite/debs" && own_apt "$suite" get -qq download "$@" >&2) ||
    die "cannot download $* of Debian $suite to $ci_dir/$suite/debs (apt's reason is above)"
}

own_apt() { APT_CONFIG=$ci_dir/$1/apt.conf "apt-$2" "${@:3}"; }

ensure_package_list() {
  local apt=$ci_dir/$1/apt mirror
  [[ -e $apt/updated ]] && return 0
  mirror=$(debian_mirror)
  mkdir -p "$apt"/{lists,cache}/partial
  printf 'deb [signed-by=%s] %s %s main\n' "$(debian_keyring)" "$mirror" "$1" >"$apt/sources.list"
  write_apt_conf "$apt" >"$ci_dir/$1/apt.conf"
  own_apt "$1" get -qq update >&2 ||
    die "cannot fetch the package list of Debian $1 from $mirror (apt's reason is above)." \
      "If that mirror lacks $1, name another: CRI_CI_MIRROR=URL"
  touch "$apt/updated"
}

# The machine's way to the network (Acquire: proxies and the like) holds for us too. Its pins,
# sources and hooks do not.
write_apt_conf() {
  local apt=$1 architecture
  architecture=$(dpkg --print-architecture)
  apt-config dump Acquire
  cat <<CONF
Acquire::Languages "none";
APT::Architecture "$architecture";
APT::Architectures "$architecture";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
CONF
}

# The mirror this machine takes its own Debian from, whichever kind of source file names it.
debian_mirror() {
  local mirror=${CRI_CI_MIRROR:-}
  [[ -n $mirror ]] || mirror=$(configured_mirror)
  echo "${mirror:-http://deb.debian.org/debian}"
}

# shellcheck disable=SC2016 # The placeholders are apt's.
configured_mirror() {
  local codename
  codename=$(. /etc/os-release && [[ ${ID:-} == debian ]] && echo "${VERSION_CODENAME:-}") || return 0
  apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' |
    awk -v codename="$codename" '
      $1 == codename && $2 == "main" && $3 !~ /^(cdrom|file|copy):/ && !found++ { print $3 }'
}

debian_keyring() {
  local file
  for file in /usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do
    [[ -e $file ]] && echo "$file" && return 0
  done
  die "Debian's signing keys are not in /usr/share/keyrings: install debian-archive-keyring"
}

# make_runnable SUITE PACKAGE BINARY...: gives binaries that this machine's libraries are too old for,
# or that lack one, the libraries of their own suite. The paths are baked into the binary, since runc
# re-executes itself and would shake off a wrapper.
make_runnable() {
  local suite=$1 package=$2 name binary
  for name in "${@:3}"; do
    binary=$(find_binary "$suite" "$package" "$name")
    runs "$binary" && continue
    say "$name of Debian $suite does not run with this machine's libraries: giving it its own"
    fetch_libraries "$suite" "$package"
    bake_libraries "$ci_dir/$suite/libs" "$binary"
    runs "$binary" || die "$binary still does not run: $("$binary" --version 2>&1 | sed -n 1p)"
  done
}

# The shim knows only -v.
runs() { "$1" --version >/dev/null 2>&1 || "$1" -v >/dev/null 2>&1; }

# patchelf is taken from the same suite, and run with that suite's libraries too.
fetch_libraries() {
  local suite=$1 package=$2 libs=$ci_dir/$1/libs name names
  [[ -e $libs/.has-$package ]] && return 0
  ensure_package_list "$suite"
  names=$(own_apt "$suite" cache depends --recurse --no-recommends --no-suggests --no-conflicts \
    --no-breaks --no-replaces --no-enhances "$package" patchelf | grep -xE '(lib|zlib)[a-z0-9.+-]+' | sort -u)
  # shellcheck disable=SC2086 # One word per package.
  download "$suite" $names patchelf
  mkdir -p "$libs"
  for name in "$ci_dir/$suite/debs"/*.deb; do
    # What is there may be in use by another instance.
    dpkg-deb --fsys-tarfile "$name" | tar -x --skip-old-files -C "$libs"
    rm "$name"
  done
  touch "$libs/.has-$package"
}

# In two steps, the interpreter last: in one, patchelf 0.18 breaks programs with a fixed place, such as skopeo.
bake_libraries() {
  local libs=$1 binary=$2 loader path patchelf
  loader=$(find "$libs" -path '*-linux-gnu*/ld-linux*.so.*' | sed -n 1p)
  path=$(find "$libs" -type d -path '*/lib/*-linux-gnu*' -prune -printf '%p:')
  patchelf=("$loader" --library-path "$path" "$libs/usr/bin/patchelf")
  "${patchelf[@]}" --force-rpath --set-rpath "${path%:}" "$binary"
  "${patchelf[@]}" --set-interpreter "$loader" "$binary"
}
