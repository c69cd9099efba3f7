#!/bin/sh
# Runs a command in an emulation of a pod of `kubectl debug node/NODE`. The node is this host with an empty
# /run and a process 1 of its own; the pod has a root directory with the suite alone, and /host in some
# profiles. In the directory of the repository:
#   unshare --mount --pid --cgroup --fork --kill-child sh tests/support/debug-pod.sh SUITE PROFILE COMMAND...
# The runtime is the model, or the one at the socket $RUNTIME. All that is created is on a file system in
# memory, which ends with the namespaces.
set -eu

suite=$1 profile=$2 pod=/run/pod
shift 2
# Of containerd, for a container that is not privileged.
capabilities=-all,+chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,+setuid,+setfcap
capabilities=$capabilities,+setpcap,+net_bind_service,+sys_chroot,+kill,+audit_write

# Starts a server, and waits for its first line.
serve() {
  "$@" 2>&3 3>&- &
  read -r _ <&3
}

socket=/run/containerd/containerd.sock
[ -z "${RUNTIME:-}" ] || exec 4<"${RUNTIME%/*}"
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/containerd /run/bin $pod/bin $pod/dev $pod/proc $pod/host
mkfifo /run/says
exec 3<>/run/says
if [ -n "${RUNTIME:-}" ]; then
  touch $socket
  mount --bind "/proc/self/fd/4/${RUNTIME##*/}" $socket
fi
mount -t proc proc /proc
[ -n "${RUNTIME:-}" ] || serve "$suite" model --listen unix://$socket

# Its own version is none of a kubelet's; crictl's keys are all that it reads of the file.
touch /run/bin/kubelet
mount --bind "$suite" /run/bin/kubelet
printf 'apiVersion: v1\nkind: KubeletConfiguration\nfeatureGates: {EventedPLEG: true}\n' >/run/kubelet.yaml
serve /run/bin/kubelet --config=/run/kubelet.yaml model --listen unix:///run/kubelet.sock

ldd "$suite" | grep -o '/[^ )]*' | while read -r library; do cp -L --parents "$library" $pod; done
touch $pod/cri-event-conformance $pod/dev/null
mount --bind "$suite" $pod/cri-event-conformance
mount --bind /dev/null $pod/dev/null
# A build for debugging reads the cases and the like there.
mkdir -p "$pod$PWD"
mount --bind "$PWD" "$pod$PWD"
ln -s /proc/self/fd/1 $pod/dev/stdout
for command in doctor watch; do ln -s /cri-event-conformance $pod/bin/$command; done
mount -t proc proc $pod/proc
case $profile in
  sysadmin | general) mount --rbind / $pod/host ;;
esac
export KUBERNETES_SERVICE_HOST=10.96.0.1
case $profile in
  sysadmin) unshare --cgroup chroot $pod "$@" ;;
  general | netadmin)
    unshare --cgroup setpriv --bounding-set $capabilities --inh-caps -all chroot $pod "$@" ;;
  baseline)
    unshare --cgroup --pid --fork --mount-proc=$pod/proc \
      setpriv --bounding-set $capabilities --inh-caps -all chroot $pod "$@" ;;
esac
