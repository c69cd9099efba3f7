# shellcheck shell=bash
# A runtime of the user's own, from a folder that holds its programs: --bin DIR.

programs_of() {
  case $1 in
    containerd) echo containerd containerd-shim-runc-v2 ctr ;;
    crio) echo crio conmon pinns ;;
  esac
}

# check_folder DIR DAEMON: what would fail later, and less clearly, fails here.
check_folder() {
  local folder=$1 program file
  [[ -d $folder ]] || die "--bin $folder: there is no such folder"
  # The instance has a /run of its own.
  [[ $(realpath "$folder")/ != /run/* ]] || die "--bin $folder: it may lie anywhere but in /run"
  for program in $(programs_of "$2"); do
    file=$folder/$program
    [[ -f $file ]] || die "--bin $folder: $program is missing; for $2 it must have $(programs_of "$2")"
    [[ -x $file ]] || die "--bin $folder: $program is not executable"
    same_machine "$file" || die "--bin $folder: $program is built for another machine than this $(uname -m)"
    [[ $program == pinns ]] || loads "$file" || die "--bin $folder: $program does not run here: $("$file" --version 2>&1 | sed -n 1p)"
  done
}

# same_machine FILE: by the field e_machine of ELF files; scripts are of no machine.
same_machine() {
  [[ $(head -c 4 "$1" | tr -d '\0') != $'\x7fELF' ]] || [[ $(elf_machine "$1") == "$(elf_machine "$BASH")" ]]
}

# loads FILE: with the libraries of this machine. pinns knows no option that does nothing.
loads() {
  local code=0 text
  text=$("$1" --version 2>&1 </dev/null) || code=$?
  ((code != 126 && code != 127)) && [[ $text != *"not found (required by"* ]]
}

elf_machine() { od -An -tu2 -j18 -N2 "$1"; }

# own_version FILE: the major and minor number, such as 2.3, from what its --version prints.
own_version() {
  local text
  text=$("$1" --version 2>/dev/null | sed -n 1p)
  [[ $text =~ v?([0-9]+\.[0-9]+)\.[0-9]+ ]] || die "$1 --version prints no version, but '$text'"
  echo "${BASH_REMATCH[1]}"
}
