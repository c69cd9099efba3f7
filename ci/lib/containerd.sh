# shellcheck shell=bash
# What of a private instance is containerd's: its programs, its configuration, its images.
# shellcheck disable=SC2034 # Read by the other files in this folder.

daemon=containerd
config_file=config.toml
outside_namespace=cri-ci-outside # The namespace of containers that are not made through the CRI.
cgroups_of_its_own=(/k8s.io "/$outside_namespace") # They are named as its namespaces are.
private_places=()
reports=state # The directory where shims keep what they know.
debian_versions=(1.6 1.7 2.1)

# daemon_command: sets command, which becomes the daemon.
daemon_command() { command=("$(daemon_bin containerd)" --config "$instance/$config_file"); }

oci_program() { oci_bin; }

# Version 2 is the one that Debian's development suite has.
short_version() {
  local number=${1#containerd-}
  [[ $number == 2 ]] && number=2.1
  echo "$number"
}

canonical_version() {
  local number
  number=$(short_version "$1")
  suite_of "$number" >/dev/null
  echo "$number"
}

download_more() { :; }

write_config() {
  local runtime=cri.v1.runtime
  ((${version%%.*} >= 2)) || runtime=grpc.v1.cri
  cat >"$instance/$config_file" <<TOML
$(config_head)

[plugins."io.containerd.$runtime".cni]
  conf_dir = "$instance/cni"  # Pods on the host's network need no plugin, and it may be empty.
$(plugins_setting)

[plugins."io.containerd.$runtime".containerd]
  default_runtime_name = "$oci"
$(handler "$oci" oci)
$(handler other oci-other)
$(handler faulty oci-faulty "$instance/faulty-runtime")
$([[ $oci == runc ]] || handler runc oci-runc)
TOML
}

# handler NAME ROOT [PROGRAM]: a runtime handler that runs the instance's OCI runtime. containerd offers "runc"
# by default, so a case that tries all handlers finds that one, too.
handler() {
  cat <<TOML

[plugins."io.containerd.$runtime".containerd.runtimes.$1]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.$runtime".containerd.runtimes.$1.options]
  BinaryName = "${3:-$(oci_program)}"
  Root = "$instance/$2"
  SystemdCgroup = false
TOML
}

plugins_setting() {
  [[ $network == none ]] || echo "  bin_dir = \"$(cni_bin_dir "$(instance_suite)")\""
}

# The head ends inside the table of the CRI's runtime settings: up to containerd 1.7 it is that of
# the whole CRI plugin, and a table may not be opened twice.
config_head() {
  cat <<TOML
version = $((${version%%.*} >= 2 ? 3 : 2))
root = "$instance/root"
state = "$instance/state"
imports = []
$(nri_setting)

[grpc]
  address = "$socket"

[ttrpc]
  address = "$socket.ttrpc"

[plugins."io.containerd.internal.v1.opt"]
  path = "$instance/opt"

[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
$(sandbox_image_setting)
  restrict_oom_score_adj = $(restrict_oom_score)
$(restore_setting)
  disable_apparmor = true  # It would load a profile into the machine's kernel.
TOML
}

# NRI is on by default since 2.0, with a socket at a fixed place.
nri_setting() {
  ((${version%%.*} < 2)) || echo 'disabled_plugins = ["io.containerd.nri.v1.nri"]'
}

# containerd 2.3 restores containers only if it is told to.
restore_setting() {
  [[ -z $criu ]] || ((${version%%.*} < 2)) || echo '  enable_experimental_restore_via_create = true'
}

sandbox_image_setting() {
  if ((${version%%.*} < 2)); then
    echo "  sandbox_image = \"$sandbox_image\""
  else
    printf '\n[plugins."%s".pinned_images]\n  sandbox = "%s"\n\n[plugins."%s"]\n' \
      io.containerd.cri.v1.images "$sandbox_image" io.containerd.cri.v1.runtime
  fi
}

# Sandboxes ask for oom_score_adj -998, as they should; but where the kernel refuses it, no sandbox
# starts, unless containerd limits itself.
restrict_oom_score() { if may_lower_oom_score; then echo false; else echo true; fi; }

import_sandbox_image() {
  local namespace
  sandbox_image_file
  for namespace in k8s.io "$outside_namespace"; do
    in_instance "$(daemon_bin ctr)" -a "$socket" -n "$namespace" images import "$image_file" >>"$log" 2>&1 ||
      die_with_log "ctr cannot import the sandbox image $image_file into the namespace $namespace"
  done
  await_sandbox_image
}

# outsider: a command that any shell outside the instance can run. Its container has no output, for
# which a place in the instance's own /run would be needed.
outsider() {
  # shellcheck disable=SC2016 # The shell that runs it expands the number, for a name of its own.
  printf '%q --address %q --namespace %q run --rm --null-io --runc-binary %q --runc-root %q %q %s %s\n' \
    "$(daemon_bin ctr)" "$socket" "$outside_namespace" "$(oci_bin)" "$instance/oci" "$sandbox_image" 'outsider-$$' \
    '/workload exit 0 300'
}
