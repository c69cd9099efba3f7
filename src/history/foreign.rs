//! The sandboxes and containers of a pod that others made, as lists and events show them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{
    ContainerId, ContainerMetadata, ContainerSpec, Event, PodUid, Reply, SandboxId, SandboxListing,
    SandboxMetadata, SandboxSpec, Subject, SubjectKind,
};

/// The sandboxes of these pods in a list of sandboxes, and the containers of known sandboxes in a
/// list of containers.
pub(super) fn listed(
    reply: &Reply,
    pods: &BTreeSet<PodUid>,
    known: &[Subject],
) -> Vec<(ContainerId, SubjectKind)> {
    match reply {
        Reply::Sandboxes(listed) => {
            let of_pods = listed.iter().filter_map(|listing| {
                let metadata = listing.metadata.as_ref()?;
                let sandbox = SubjectKind::Sandbox(sandbox(metadata, Some(listing)));
                let is_own = pods.contains(&metadata.uid);
                is_own.then(|| (ContainerId::from(&listing.id), sandbox))
            });
            of_pods.collect()
        }
        Reply::Containers(listed) => {
            let of_pods = listed.iter().filter_map(|listing| {
                let mut known = known.iter();
                let own = known.find(|subject| subject.id.as_str() == listing.sandbox.as_str())?;
                let SubjectKind::Sandbox(sandbox) = &own.kind else {
                    return None;
                };
                let of_listing = ContainerSpec {
                    labels: listing.labels.clone(),
                    ..container(&listing.sandbox, sandbox, listing.metadata.as_ref())
                };
                let kind = SubjectKind::Container(Arc::new(of_listing));
                Some((listing.id.clone(), kind))
            });
            of_pods.collect()
        }
        _ => Vec::new(),
    }
}

/// What an event is about, by its own snapshot; none if the snapshot does not show it.
pub(super) fn shown(event: &Event) -> Option<SubjectKind> {
    let status = event.sandbox.as_ref()?;
    let sandbox = sandbox(status.metadata.as_ref()?, None);
    if status.id.as_str() == event.container.as_str() {
        return Some(SubjectKind::Sandbox(sandbox));
    }
    let own = event.own_status()?;
    let spec = container(&status.id, &sandbox, own.metadata.as_ref());
    Some(SubjectKind::Container(Arc::new(spec)))
}

fn sandbox(metadata: &SandboxMetadata, listing: Option<&SandboxListing>) -> Arc<SandboxSpec> {
    Arc::new(SandboxSpec {
        binding: "sandbox".to_owned(),
        name: metadata.name.to_string(),
        namespace: metadata.namespace.to_string(),
        uid: metadata.uid.clone(),
        attempt: metadata.attempt,
        labels: listing.map_or_else(Default::default, |listing| listing.labels.clone()),
        ..SandboxSpec::default()
    })
}

fn container(
    id: &SandboxId,
    sandbox: &Arc<SandboxSpec>,
    metadata: Option<&ContainerMetadata>,
) -> ContainerSpec {
    let name = metadata.map_or_else(String::new, |metadata| metadata.name.to_string());
    ContainerSpec {
        sandbox: id.clone(),
        sandbox_spec: sandbox.clone(),
        binding: name,
        attempt: metadata.map_or(0, |metadata| metadata.attempt),
        ..ContainerSpec::default()
    }
}
