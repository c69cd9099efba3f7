# shellcheck shell=bash
# What ci/vm --cgroup-driver runs inside of the machine: Debian's containerd as the system's service.

# shellcheck source=ci/lib/common.sh
. /ci-vm/common.sh
# shellcheck source=ci/lib/instance.sh
. /ci-vm/instance.sh
# shellcheck disable=SC2034 # For cri_list.
socket=/run/containerd/containerd.sock

start_containerd() {
  write_guest_config "$([[ $1 == systemd ]] && echo true || echo false)" >/etc/containerd/config.toml
  if ! { systemctl start containerd && wait_until 300 cri_answers && import_into_guest; }; then
    journalctl --unit containerd --lines 30 --no-pager
    die "containerd does not start, or has no sandbox image (its log is above)"
  fi
}

import_into_guest() {
  ctr -n k8s.io images import /ci-vm/sandbox-image.tar >/dev/null && wait_until 60 cri_has_sandbox_image
}

cri_answers() { cri_list RuntimeService/ListPodSandbox | grep -a 'grpc-status: 0' >/dev/null; }

# containerd 2 reads this version of the file, too.
write_guest_config() {
  cat <<TOML
version = 2

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$sandbox_image"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = $1
TOML
}
