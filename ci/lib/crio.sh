# shellcheck shell=bash
# What of a private instance is CRI-O's: its programs, its configuration, its images.
# shellcheck disable=SC2034 # Read by the other files in this folder.

daemon=crio
config_file=crio.conf
cgroups_of_its_own=(/crio)
reports=exits # The directory where conmon leaves exit codes.
private_places=(/var/lib/containers) # Where layers came from is kept in a fixed place.

short_version() { echo "${1#crio-}"; }

canonical_version() { bad_usage "Debian has no CRI-O: name a folder of your own, --bin DIR"; }

# Debian's skopeo brings the sandbox's image into the storage, without a registry.
download_more() { obtain "$1" skopeo skopeo; }

# daemon_command: sets command, which becomes the daemon. Nothing of the machine's configuration counts.
# CRI-O restores no container under a signature_policy, so the policy lies where the user's would.
daemon_command() {
  command=(env "HOME=$instance" "CONTAINERS_STORAGE_CONF=$instance/storage.conf"
    "$(daemon_bin crio)" --config "$instance/$config_file" --config-dir ''
    --registries-conf "$instance/registries.conf" --registries-conf-dir "$instance/opt")
}

# The suite knows an OCI runtime by its program's name.
oci_program() { if may_lower_oom_score; then oci_bin; else echo "$instance/limited/$oci"; fi; }

write_config() {
  write_limited_runtime
  mkdir -p "$instance/.config/containers"
  echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$instance/.config/containers/policy.json"
  printf '[storage]\ndriver = "overlay"\nroot = "%s"\nrunroot = "%s"\n' \
    "$instance/root" /run/containers/storage >"$instance/storage.conf"
  # The suite serves its image there, over plain HTTP.
  printf '[[registry]]\nlocation = "127.0.0.1"\ninsecure = true\n' >"$instance/registries.conf"
  { config_of_storage && config_of_runtimes; } >"$instance/$config_file"
}

config_of_storage() {
  cat <<TOML
[crio]
root = "$instance/root"
runroot = "/run/containers/storage"
storage_driver = "overlay"
log_dir = "$instance/logs"
version_file = "/run/crio/version"
clean_shutdown_file = "$instance/state/clean.shutdown"

[crio.api]
listen = "$socket"
stream_address = "127.0.0.1"
stream_port = "0"

[crio.image]
pause_image = "$sandbox_image"
pause_command = ""
signature_policy_dir = "$instance/state/policies"  # CRI-O makes it, by default in /etc/crio.
namespaced_auth_dir = "$instance/state/auth"

[crio.network]
network_dir = "$instance/cni"  # Pods on the host's network need no plugin, and it may be empty.
$([[ $network == none ]] || echo "plugin_dirs = [\"$(cni_bin_dir "$(instance_suite)")\"]")

[crio.nri]
enable_nri = false

TOML
}

config_of_runtimes() {
  cat <<TOML
[crio.runtime]
enable_pod_events = $(if [[ -n $no_events ]]; then echo false; else echo true; fi)
default_runtime = "$oci"
container_exits_dir = "$instance/exits"
drop_infra_ctr = $(if [[ -n $infra ]]; then echo false; else echo true; fi)
cgroup_manager = "cgroupfs"
conmon_cgroup = "pod"
pinns_path = "$(daemon_bin pinns)"
apparmor_profile = "unconfined"  # It would load a profile into the machine's kernel.
disable_hostport_mapping = true  # It would make rules of a firewall.
irqbalance_config_restore_file = "disable"  # It would change the machine's.
hooks_dir = []
cdi_spec_dirs = []
$(handler "$oci" oci)
$(handler other oci-other)
$(handler faulty oci-faulty "$instance/faulty-runtime")
TOML
}

# handler NAME ROOT [PROGRAM]: a runtime handler that runs the instance's OCI runtime.
handler() {
  cat <<TOML

[crio.runtime.runtimes.$1]
runtime_path = "${3:-$(oci_program)}"
runtime_type = "oci"
runtime_root = "$instance/$2"
monitor_path = "$(daemon_bin conmon)"
monitor_cgroup = "pod"
TOML
}

write_limited_runtime() {
  mkdir -p "$instance/limited"
  {
    echo '#!/bin/sh'
    printf 'LIMITED_RUNTIME=%q exec %q "$@"\n' "$(oci_bin)" "$repo/ci/lib/limited-runtime"
  } >"$instance/limited/$oci"
  chmod 755 "$instance/limited/$oci"
}

import_sandbox_image() {
  sandbox_image_file
  in_instance "$(find_binary "$newest_suite" skopeo skopeo)" --insecure-policy copy --quiet \
    "docker-archive:$image_file:$sandbox_image" \
    "containers-storage:[overlay@$instance/root+/run/containers/storage]$sandbox_image" >>"$log" 2>&1 ||
    die_with_log "skopeo cannot copy the sandbox image $image_file into CRI-O's storage"
  await_sandbox_image
}
