# shellcheck shell=bash
# The steps of ci/release: what a release consists of, and how each part is tried.

program=cri-event-conformance
artifacts=$repo/target/release-artifacts
stage=$repo/target/ci/release # What packages are made of; the same path as in Cargo.toml.
tools=$repo/target/ci/tools
# The newest ones that were tried. They run once, so they are built fast and not optimized.
release_tools=(cargo-about@0.9.3 cargo-auditable@0.7.7 cargo-cyclonedx@0.5.9 cargo-deb@3.8.0)

check_version() {
  local own
  own=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1)
  [[ $version == "$own" ]] ||
    die "VERSION is '$version', and Cargo.toml has $own: set it there, in Cargo.lock and in CHANGELOG.md, and commit"
  grep -q "^## $version - 20..-..-..$" CHANGELOG.md ||
    die "CHANGELOG.md has no heading '## $version - DATE': rename 'Unreleased', and commit"
}

check_tree() {
  [[ -z $(git status --porcelain) ]] ||
    die "there are changes that are not committed (git status shows them), which no release can name"
}

ensure_release_tools() {
  local tool name
  for tool in "${release_tools[@]}"; do
    name=${tool%@*}
    grep -qs "^\"$name ${tool#*@} " "$tools/.crates.toml" && continue
    say "building $tool from crates.io"
    CARGO_TARGET_DIR=$tools/target CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off \
      CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 cargo install --quiet --locked --root "$tools" --features "$(features "$name")" "$tool" ||
      die "cannot build $tool (cargo's reason is above)"
  done
  export PATH=$tools/bin:$PATH
}

features() { [[ $1 != cargo-about ]] || echo cli; }

# linker TARGET: the program that links for it.
linker() {
  if [[ $1 == "$(rustc -vV | sed -n 's/^host: //p')" ]]; then echo cc; else echo "${1%%-*}-linux-gnu-gcc"; fi
}

can_build() {
  if [[ ! -d $(rustc --print target-libdir --target "$1") ]]; then
    say "left out: $1, as Rust's target is not installed (rustup target add $1)"
  elif ! command -v "$(linker "$1")" >/dev/null; then
    say "left out: $1, as there is no $(linker "$1") (Debian: gcc-${1%%-*}-linux-gnu)"
  else
    return 0
  fi
  return 1
}

# build_for TARGET: sets binary.
build_for() {
  local name=${1^^} flags date
  name=${name//-/_}
  # Of the file names that a panic prints, none says where this was built. A statically linked program
  # cannot look up getrandom(2) in the C library at run time, and would need /dev/random instead.
  flags=(-C target-feature=+crt-static --cfg 'getrandom_backend="linux_getrandom"'
    "--remap-path-prefix=/mnt=/$program" "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo")
  date=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH=$date
  # The names of symbols depend on the path of cargo-auditable, too.
  in_mnt env "PATH=/mnt/${tools#"$repo/"}/bin:$PATH" \
    CARGO_ENCODED_RUSTFLAGS="$(join $'\x1f' "${flags[@]}")" "CARGO_TARGET_${name}_LINKER=$(linker "$1")" \
    "CC_${1//-/_}=$(linker "$1")" CARGO_TARGET_DIR=/mnt/target \
    cargo auditable build --quiet --locked --profile dist --target "$1" --bin "$program"
  binary=$repo/target/$1/dist/$program
}

# in_mnt COMMAND...: runs it in this folder, which it sees as /mnt: the program depends on the path of
# the folder it is built in. Nobody else sees that mount.
in_mnt() {
  unshare --mount --propagation private sh -c 'mount --bind "$0" /mnt && cd /mnt && exec "$@"' "$repo" "$@"
}

join() { local IFS=$1 && shift && echo "$*"; }

# stage_files TARGET: in the order of a package, with the modes and times of one.
stage_files() {
  local runs=$binary
  # What runs here writes the same pages and completions.
  [[ $1 == "$(uname -m)"-* ]] || runs=$repo/target/$(uname -m)-unknown-linux-gnu/dist/$program
  rm -rf "$stage" && mkdir -p "$stage"/{man,completions}
  install -m 755 "$binary" "$stage/$program"
  "$runs" man --output-dir "$stage/man"
  gzip -9n "$stage"/man/*
  for shell in bash zsh fish; do "$runs" completions "$shell" >"$stage/completions/$program.$shell"; done
  list_licences "$1" >"$stage/THIRD-PARTY-LICENSES"
  chmod -R u=rwX,go=rX "$stage"
  find "$stage" -exec touch --date="@$SOURCE_DATE_EPOCH" {} +
}

# list_licences TARGET: prints the licences of all that is in the program, with their texts.
list_licences() {
  local config
  config=$(mktemp --suffix=.toml)
  {
    printf 'max-depth = 1\nignore-build-dependencies = true\nignore-dev-dependencies = true\n'
    sed -n '/^allow = \[/,/^\]/{s/^allow/accepted/;p}' deny.toml # The same licences.
  } >"$config"
  cargo fetch --locked --quiet # It reads all in Cargo.lock, also what only other systems need.
  cargo about -L error generate --config "$config" --offline --locked --target "$1" ci/lib/licences.hbs
  rm "$config"
}

# reproducible_tar DIRECTORY...: prints an archive that does not say who made it, and when.
reproducible_tar() {
  tar --create --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" "$@"
}

make_tar_gz() {
  local name=$program-$version-$1 folder
  folder=$(mktemp -d)
  cp -a "$stage" "$folder/$name"
  cp README.md LICENSE CHANGELOG.md SECURITY.md "$folder/$name"
  mkdir "$folder/$name/ci"
  cp -r ci/README.md ci/book ci/findings ci/policies "$folder/$name/ci"
  chmod -R u=rwX,go=rX "$folder"
  reproducible_tar --directory "$folder" "$name" | gzip -9n >"$artifacts/$name.tar.gz"
  rm -r "$folder"
}

make_deb() {
  cargo deb --quiet --locked --no-build --no-strip --profile dist --target "$1" --output "$artifacts/" >/dev/null
}

make_image() {
  local output=$artifacts/$program-$version-$1.oci.tar
  # The program puts itself into its image.
  if [[ $1 == "$(uname -m)"-* ]]; then
    "$binary" image --suite --output "$output" >/dev/null
    chmod 644 "$output"
  else
    say "left out: the image for $1, which its own program has to write"
  fi
}

make_bill_of_materials() {
  local name=$program-$version-$1.cdx
  cargo cyclonedx --quiet --format json --spec-version 1.5 --target "$1" \
    --override-filename "$name"
  # It names the folder in which the package lies.
  sed "s|file://$repo|file:///$program|g" "$name.json" >"$artifacts/$name.json"
  rm "$name.json"
}

try_all() {
  [[ $1 == "$(uname -m)"-* ]] || { say "not tried: it does not run on this machine" && return 0; }
  local root
  root=$(mktemp -d)
  try_part tar_gz "$root/1" "$1"
  try_part deb "$root/2" "$1"
  try_part image "$root/3" "$1"
  rm -r "$root"
}

try_part() {
  mkdir "$2"
  "unpack_$1" "$2" "$3"
  try_program "$2" "$unpacked" || die "the program of the $1 does not do what it should in a root of its own"
  say "tried: the $1"
}

# unpack_*: ROOT TARGET; set unpacked, the path of the program in that root.
unpack_tar_gz() {
  tar --extract --gzip --directory "$1" --file "$artifacts/$program-$version-$2.tar.gz"
  unpacked=/$program-$version-$2/$program
  for file in LICENSE THIRD-PARTY-LICENSES README.md "man/$program-check.1.gz" "completions/$program.bash"; do
    [[ -s $1/$program-$version-$2/$file ]] || die "there is no $file in the tar.gz"
  done
}

unpack_deb() {
  local file
  mkdir -p "$1/var/lib/dpkg/"{info,updates} && touch "$1/var/lib/dpkg/status"
  dpkg --root="$1" --log=/dev/null --install "$artifacts/${program}_$version-1_$(dpkg --print-architecture).deb" >/dev/null
  unpacked=/usr/bin/$program
  for file in man/man1/$program.1.gz bash-completion/completions/$program zsh/vendor-completions/_$program \
    doc/$program/copyright doc/$program/THIRD-PARTY-LICENSES doc/$program/examples/github/action.yml; do
    [[ -s $1/usr/share/$file ]] || die "there is no /usr/share/$file in the Debian package"
  done
}

# Follows the digests, as a runtime does.
unpack_image() {
  local dir=$1.image manifest layer
  mkdir "$dir"
  tar --extract --directory "$dir" --file "$artifacts/$program-$version-$2.oci.tar"
  (cd "$dir/blobs/sha256" && for blob in *; do echo "$blob  $blob"; done | sha256sum --quiet --check)
  manifest=$(blob "$dir" '.manifests[0].digest' "$dir/index.json")
  for layer in $(jq -r '.layers[].digest' "$manifest"); do
    tar --extract --directory "$1" --file "$dir/blobs/${layer/://}"
  done
  unpacked=$(jq -r '.config.Entrypoint[0]' "$(blob "$dir" .config.digest "$manifest")")
}

# blob LAYOUT FILTER FILE: the file of the digest that the filter finds in a JSON file.
blob() {
  local digest
  digest=$(jq -r "$2" "$3")
  echo "$1/blobs/${digest/://}"
}

# try_program ROOT PROGRAM: what anybody does first, where there is nothing else but /dev/null.
try_program() {
  local root=$1 run=(chroot "$1" "$2")
  mkdir -p "$root/dev"
  mknod -m 666 "$root/dev/null" c 1 3
  [[ $("${run[@]}" --version) == "$program $version ($(git rev-parse --short=12 HEAD))" ]] &&
    "${run[@]}" --help | grep -q "exit codes\|Exit codes" &&
    "${run[@]}" --list >/dev/null &&
    "${run[@]}" --runtime-endpoint model --history /history.binpb --report-dir /reports >/dev/null &&
    "${run[@]}" check /history.binpb >/dev/null
}

make_crate() {
  cargo package --quiet --locked --no-verify --target-dir target/ci/crate
  cp "target/ci/crate/package/$program-$version.crate" "$artifacts"
}

# What is in the crate can be built, and passes those tests that are in it.
try_crate() {
  local folder
  folder=$(mktemp -d)
  tar --extract --gzip --directory "$folder" --file "$artifacts/$program-$version.crate"
  (cd "$folder/$program-$version" && cargo test --quiet --locked --target-dir "$repo/target/ci/crate") >&2 ||
    die "the tests of the crate fail (see above)"
  rm -r "$folder"
}

# compare_with_a_clone: makes all again elsewhere, and compares the bytes.
compare_with_a_clone() {
  local elsewhere
  elsewhere=$(mktemp -d)
  git clone --quiet "$repo" "$elsewhere/clone"
  mkdir -p "$elsewhere/clone/target/ci"
  cp -a "$tools" "$elsewhere/clone/target/ci/tools"
  "$elsewhere/clone/ci/release" --untried "$version"
  diff "$artifacts/SHA256SUMS" "$elsewhere/clone/target/release-artifacts/SHA256SUMS" ||
    die "a second build in another folder gave other bytes, see above"
  rm -r "$elsewhere"
  say "a second build in another folder gave the same bytes"
}
