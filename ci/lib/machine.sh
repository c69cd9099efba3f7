# shellcheck shell=bash
# The emulated machine of ci/vm: what it is made of, in $ci_dir/DIST, and how it runs.

tools=trixie # The suite that qemu is taken from: a stable one, whatever the machine is made of.
firmware=(qemu-system-data seabios)

# build_machine DIST: after it, $ci_dir/DIST has disk.ext4 and vmlinux. One at a time.
build_machine() {
  require_root
  [[ $(dpkg --print-architecture) == amd64 ]] || die "the machine is made for amd64 alone"
  mkdir -p "$ci_dir"
  (
    flock 9
    [[ $(cat "$ci_dir/$1/made-by" 2>/dev/null) == "$(recipe)" ]] || make_machine "$1"
  ) 9>"$ci_dir/.lock"
}

# A machine that another version of these functions has made is made again.
recipe() { declare -f make_kernel unpack_kernel make_disk furnish | sha256sum; }

make_machine() {
  local dist=$1 started=$SECONDS free
  free=$(df --output=avail -k "$ci_dir" | tail -1)
  ((free > 4000000)) || die "$ci_dir has $((free / 1000)) MB of disk left: the machine needs 4000"
  ensure_commands mmdebstrap:mmdebstrap mke2fs:e2fsprogs zstd:zstd xz:xz-utils
  obtain "$tools" qemu-system-x86 qemu-system-x86_64
  obtain "$tools" virtiofsd virtiofsd
  fetch "$tools" "${firmware[@]}"
  say "making the machine, of Debian $dist"
  make_kernel "$dist"
  make_disk "$dist"
  recipe >"$ci_dir/$dist/made-by"
  say "made the machine in $((SECONDS - started)) s: $(<"$ci_dir/$dist/versions")"
}

# make_kernel DIST: the cloud flavour has all built in that it boots with, so no initramfs is needed.
make_kernel() {
  local dist=$1 name parts image
  mkdir -p "$ci_dir/$dist"
  ensure_package_list "$dist"
  name=$(own_apt "$dist" cache show linux-image-cloud-amd64 | grep -oE 'linux-image-[0-9][^ ,]*-cloud-amd64' | sed -n 1p)
  # forky has it in several packages.
  parts=$(own_apt "$dist" cache show "$name" | grep -oE 'linux-(binary|modules|base)-[0-9][^ ,]*-cloud-amd64' | sort -u || true)
  # shellcheck disable=SC2086 # One word per package.
  fetch "$dist" ${parts:-$name}
  rm -rf "$ci_dir/$dist/kernel" && mkdir "$ci_dir/$dist/kernel"
  for name in ${parts:-$name}; do cp -a "$ci_dir/$dist/$name/." "$ci_dir/$dist/kernel"; done
  image=$(find "$ci_dir/$dist/kernel" -type f -name 'vmlinuz*')
  [[ -n $image ]] || die "Debian $dist's ${parts:-$name} have no vmlinuz"
  unpack_kernel "$image" >"$ci_dir/$dist/vmlinux"
}

# unpack_kernel BZIMAGE: what it contains, since to unpack it in the emulation takes seconds. The fields
# are those of Linux's Documentation/arch/x86/boot.rst; the last 4 bytes are the size.
unpack_kernel() {
  local start size
  start=$(((1 + $(number "$1" 497 1)) * 512 + $(number "$1" 584 4)))
  size=$(($(number "$1" 588 4) - 4))
  dd if="$1" bs=1M iflag=skip_bytes,count_bytes skip="$start" count="$size" status=none |
    case $(number "$1" "$start" 4) in
      4247762216) zstd -dcq ;;
      1484404733) xz -dc ;;
      *) gzip -dc ;;
    esac
}

# number FILE OFFSET BYTES
number() { od -An -v -t "u$3" -j "$2" -N "$3" "$1" | tr -d ' '; }

make_disk() {
  local dist=$1 root=$ci_dir/$1/root packages
  packages=systemd-sysv,udev,dbus,kmod,procps,curl,busybox-static,containerd,runc
  rm -rf --one-file-system "$root" "$ci_dir/$dist/disk.ext4"
  apt-config dump Acquire >"$ci_dir/$dist/acquire.conf"
  mmdebstrap --quiet --mode=root --variant=minbase --skip=check/qemu --aptopt="$ci_dir/$dist/acquire.conf" \
    --include="$packages" "$dist" "$root" \
    "deb [signed-by=$(debian_keyring)] $(debian_mirror) $dist main" >&2 ||
    die "cannot make the machine's files from $(debian_mirror) (mmdebstrap's reason is above)"
  furnish "$root" "$ci_dir/$dist/kernel"
  chroot "$root" dpkg-query -W -f '${Package} ${Version}, ' containerd runc systemd >"$ci_dir/$dist/versions"
  printf 'Linux %s\n' "$(ls "$root/usr/lib/modules")" >>"$ci_dir/$dist/versions"
  truncate -s 4G "$ci_dir/$dist/disk.ext4"
  mke2fs -q -F -t ext4 -O ^has_journal -m 0 -d "$root" "$ci_dir/$dist/disk.ext4" ||
    die "cannot write $ci_dir/$dist/disk.ext4: $(df -h --output=avail "$ci_dir" | tail -1) of disk are left"
  rm -rf --one-file-system "$root" "$ci_dir/$dist/kernel"
}

# furnish ROOT KERNEL: the kernel's modules, a service that runs what ci/vm wants, and nothing that it
# would have to wait for.
furnish() {
  local root=$1 unit units=$1/etc/systemd/system
  mkdir -p "$root/usr/lib/modules" "$root/ci-vm"
  cp -a "$2"/{usr/,}lib/modules/* "$root/usr/lib/modules/" 2>/dev/null || true
  chroot "$root" depmod "$(ls "$root/usr/lib/modules")"
  echo vm >"$root/etc/hostname"
  echo '127.0.0.1 localhost vm' >"$root/etc/hosts"
  : >"$root/etc/fstab"
  rm -rf "$root"/usr/share/{doc,man,locale} "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*
  for unit in {getty@tty1,serial-getty@ttyS0,serial-getty@hvc0,e2scrub_reap,systemd-timesyncd}.service \
    systemd-{hwdb-update,pstore,journal-catalog-update,random-seed,update-done,firstboot}.service \
    systemd-{udev-trigger,binfmt,user-sessions,logind}.service {ldconfig,containerd-stress}.service \
    {apt-daily,apt-daily-upgrade,dpkg-db-backup,e2scrub_all,fstrim}.timer \
    dev-hugepages.mount proc-sys-fs-binfmt_misc.automount; do
    ln -sfn /dev/null "$units/$unit"
  done
  rm -f "$units/multi-user.target.wants/containerd.service"
  cat >"$units/ci-vm.service" <<'UNIT'
[Unit]
Description=The command of ci/vm
After=basic.target dbus.service
FailureAction=poweroff-force
SuccessAction=poweroff-force

[Service]
Type=oneshot
ExecStart=/bin/sh -c 'mount -t virtiofs control /ci-vm && exec /bin/bash /ci-vm/start'
Environment=HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
StandardInput=null
StandardOutput=file:/dev/hvc0
StandardError=inherit
TimeoutStartSec=infinity
UNIT
  ln -sfn ../ci-vm.service "$units/multi-user.target.wants/ci-vm.service"
}

# run_machine DIRECTORY COMMAND...: uses dist, driver and seconds.
run_machine() {
  local directory booted code=0
  directory=$(realpath "$1")
  remove_dead_runs
  run=$ci_dir/runs/$$ servers=() emulator=
  trap end_machine EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  mkdir -p "$run/control"
  [[ -z $driver ]] || provide_for_containerd "$run/control"
  start_script "$directory" "${@:2}" >"$run/control/start"
  cd "$run" # The paths of sockets are short ones then.
  serve control "$run/control"
  serve share "$directory"
  booted=$SECONDS
  emulate || code=$?
  cd "$repo"
  [[ ! -s $run/control/code ]] || exit "$(<"$run/control/code")"
  ((SECONDS - booted < seconds)) || fail_machine 124 "out of time after $seconds s"
  fail_machine 125 "the machine ended without an answer (qemu's exit code is $code)"
}

provide_for_containerd() {
  local instance=$1
  cp "$repo/ci/lib"/{common,instance,guest}.sh "$1"
  sandbox_image_file
  [[ $image_file -ef $1/sandbox-image.tar ]] || cp "$image_file" "$1/sandbox-image.tar"
}

# What a ci/vm that was killed has left: its files alone.
remove_dead_runs() {
  local old
  for old in "$ci_dir"/runs/*/; do
    old=${old%/}
    ! gone "${old##*/}" || rm -rf --one-file-system "$old"
  done
}

fail_machine() {
  say "$2. Its console's end:"
  tail -q -n 30 "$run"/{console,qemu.log,control.log,share.log} | tr -d '\r' >&2
  exit "$1"
}

end_machine() {
  [[ -z $emulator ]] || kill "$emulator" 2>/dev/null || true
  [[ -z $emulator ]] || wait "$emulator" || true
  ((${#servers[@]} == 0)) || kill "${servers[@]}" 2>/dev/null || true
  wait
  rm -rf --one-file-system "$run"
}

# start_script DIRECTORY COMMAND...: what the machine's service runs. Its output is no terminal.
start_script() {
  printf 'directory=%q driver=%q\n' "$1" "$driver"
  printf 'command=(%s)\n' "$(printf '%q ' "${@:2}")"
  cat <<'START'
begin() {
  mkdir -p "$directory" && mount -t virtiofs share "$directory" && cd "$directory" || return
  [[ -z $driver ]] || (. /ci-vm/guest.sh && start_containerd "$driver") || return 125
  "${command[@]}"
}
stty -F /dev/hvc0 raw
{
  begin
  echo "$?" >/ci-vm/code
} 2>&1 | cat
sync
START
}

# serve TAG DIRECTORY: makes it mountable in the machine. What it starts ends with us, however we do.
serve() {
  setpriv --pdeathsig KILL "$(find_binary "$tools" virtiofsd virtiofsd)" --socket-path="$1.sock" --shared-dir "$2" \
    --sandbox chroot --rlimit-nofile 0 </dev/null >"$1.log" 2>&1 &
  servers+=($!)
  wait_until 10 test -S "$1.sock" || fail_machine 125 "virtiofsd does not serve $2"
}

# The processor is one that is cheap to emulate and has what Debian's programs and Go's need. On a busy
# machine the kernel's check of the timer fails, and it would give up.
emulate() {
  local share=$ci_dir/$tools
  TMPDIR=$run setpriv --pdeathsig TERM timeout --kill-after 5 "$seconds" \
    "$(find_binary "$tools" qemu-system-x86 qemu-system-x86_64)" \
    -L "$share/qemu-system-data/usr/share/qemu" -L "$share/seabios/usr/share/seabios" \
    -accel tcg,thread=multi -cpu Nehalem-v1 -smp 2 -m 2048 \
    -object memory-backend-memfd,id=memory,size=2048M,share=on -numa node,memdev=memory \
    -nodefaults -no-user-config -display none -nic none -no-reboot -device virtio-rng-pci \
    -drive "if=none,id=disk,file=$ci_dir/$dist/disk.ext4,format=raw,snapshot=on,cache=unsafe" \
    -device nvme,drive=disk,serial=root \
    -chardev socket,id=control,path=control.sock -device vhost-user-fs-pci,chardev=control,tag=control \
    -chardev socket,id=share,path=share.sock -device vhost-user-fs-pci,chardev=share,tag=share \
    -serial file:console -device virtio-serial-pci \
    -chardev stdio,id=output,signal=off -device virtconsole,chardev=output \
    -kernel "$ci_dir/$dist/vmlinux" -append "root=/dev/nvme0n1 rootfstype=ext4 rw console=ttyS0 quiet \
panic=-1 no_timer_check nowatchdog mitigations=off audit=0 systemd.show_status=0" </dev/null 2>qemu.log &
  emulator=$!
  wait "$emulator"
}
