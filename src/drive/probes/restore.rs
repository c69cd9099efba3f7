//! Whether the runtime creates containers from checkpoints.

use super::Unavailable;
use super::checkpoint::{checkpoint, remove_checkpoint};
use super::trial_container::TrialContainer;
use crate::drive::session::Session;
use crate::history::OciRuntime;

/// Restores a trial container beside the one that its checkpoint was made of.
pub(super) async fn probe_restore(session: &Session) -> Result<(), Unavailable> {
    let options = session.options();
    let cgroup = options.kernel.host().and_then(|host| host.cgroup);
    if multiplies_cgroups(options.oci.as_ref(), cgroup.as_deref()) {
        return Err(Unavailable::because(
            "crun adds copies of a whole hierarchy of cgroups to it whenever it restores a container, \
             where one of version 1 is mounted (containers/crun#2256)",
        ));
    }
    let trial = TrialContainer::run(session, "trial-original").await?;
    let restored = async {
        let location = checkpoint(session, &trial).await?;
        trial.restore("trial-restored", location).await
    };
    let restored = restored.await;
    remove_checkpoint(session, &trial);
    trial.end().await;
    match restored {
        Ok(restored) => {
            restored.end().await;
            Ok(())
        }
        Err(fault) => Err(format!(
            "the runtime restores no container from a checkpoint, as was measured when the run \
             began: {fault}. containerd 2.3 does with enable_experimental_restore_via_create = true, \
             CRI-O where no signature_policy is set"
        )
        .into()),
    }
}

/// Whether restores by this OCI runtime multiply cgroups, on a host with these.
fn multiplies_cgroups(oci: Option<&OciRuntime>, cgroup: Option<&str>) -> bool {
    let program = oci.and_then(|oci| oci.name.as_deref());
    program == Some("crun") && cgroup.is_some_and(|cgroup| cgroup != "2")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crun_multiplies_cgroups_of_version_1() {
        let multiplies = |name: Option<&str>, cgroup| {
            let oci = OciRuntime {
                name: name.map(str::to_owned),
                ..OciRuntime::default()
            };
            multiplies_cgroups(Some(&oci), cgroup)
        };
        assert!(multiplies(Some("crun"), Some("1")) && multiplies(Some("crun"), Some("hybrid")));
        assert!(!multiplies(Some("crun"), Some("2")) && !multiplies(Some("crun"), None));
        assert!(!multiplies(Some("runc"), Some("1")) && !multiplies(None, Some("1")));
    }
}
