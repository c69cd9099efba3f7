//! Replaces the names of a user's workloads by hashes: names of pods, containers and namespaces,
//! labels, annotations, images, and messages. Equal texts have equal hashes, so the verdicts stay
//! the same. Ids, UIDs, times, states, exit codes and addresses are kept.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::drive::Relist;
use crate::history::{
    Body, ContainerListing, ContainerSetup, ContainerStatus, Entry, Event, Labels, Reply,
    SandboxListing, SandboxMetadata, SandboxStatus, Shared, Text,
};
use crate::pleg::POD_UID_LABEL;

/// Redacts an entry. Drops the original CRI message, and records its decoded fields instead.
pub(super) fn entry(entry: &mut Entry) {
    match &mut entry.body {
        Body::Event { event, message, .. } => {
            *message = Bytes::new();
            redact_event(event);
        }
        Body::CallEnded {
            result, message, ..
        } => {
            *message = Bytes::new();
            match result {
                Ok(reply) => redact_reply(reply),
                Err(fault) => text(&mut fault.message),
            }
        }
        _ => {}
    }
}

pub(super) fn relist(relist: &mut Relist) {
    relist.sandboxes.iter_mut().for_each(sandbox_listing);
    relist.containers.iter_mut().for_each(container_listing);
}

fn redact_event(event: &mut Event) {
    if let Some(status) = &mut event.sandbox {
        sandbox(status);
    }
    for status in &mut event.containers {
        container(status);
    }
}

fn redact_reply(reply: &mut Reply) {
    match reply {
        Reply::Sandboxes(listed) => listed.iter_mut().for_each(sandbox_listing),
        Reply::Containers(listed) => listed.iter_mut().for_each(container_listing),
        Reply::SandboxStatus(report) => {
            sandbox(&mut report.status);
            for status in &mut report.containers {
                container(status);
            }
        }
        Reply::ContainerStatus(report) => container(&mut report.status),
        _ => {}
    }
}

fn sandbox_listing(listing: &mut SandboxListing) {
    if let Some(names) = &mut listing.metadata {
        metadata(names);
    }
    labels(&mut listing.labels);
    labels(&mut listing.annotations);
}

fn container_listing(listing: &mut ContainerListing) {
    if let Some(names) = &mut listing.metadata {
        shared(&mut names.name);
    }
    labels(&mut listing.labels);
    labels(&mut listing.annotations);
    listing.image.iter_mut().for_each(shared);
    shared(&mut listing.image_ref);
    listing.image_id = Text::default();
}

fn sandbox(status: &mut Shared<SandboxStatus>) {
    let status: &mut SandboxStatus = status;
    if let Some(names) = &mut status.metadata {
        metadata(names);
    }
    labels(&mut status.labels);
    labels(&mut status.annotations);
}

fn container(status: &mut Shared<ContainerStatus>) {
    let status: &mut ContainerStatus = status;
    if let Some(names) = &mut status.metadata {
        shared(&mut names.name);
    }
    labels(&mut status.labels);
    labels(&mut status.annotations);
    status.image.iter_mut().for_each(shared);
    shared(&mut status.image_ref);
    text(&mut status.message);
    status.setup = ContainerSetup::default().into();
}

fn metadata(names: &mut SandboxMetadata) {
    shared(&mut names.name);
    shared(&mut names.namespace);
}

/// Hashes the values of the kubelet's own labels, and keys and values of all others. A pod's UID
/// is kept.
fn labels(labels: &mut Labels) {
    const KUBELETS: &str = "io.kubernetes.";
    let redacted = labels.iter().map(|(key, value)| {
        if **key == *POD_UID_LABEL {
            (key.clone(), value.clone())
        } else if key.starts_with(KUBELETS) {
            (key.clone(), hash(value).into())
        } else {
            (hash(key).into(), hash(value).into())
        }
    });
    *labels = Shared::from(redacted.collect::<std::collections::BTreeMap<Text, Text>>());
}

fn shared(value: &mut Text) {
    *value = hash(value).into();
}

pub(super) fn text(value: &mut String) {
    *value = hash(value);
}

/// The first 12 digits of a text's SHA-256; an empty text stays empty.
fn hash(value: &str) -> String {
    use std::fmt::Write;

    const BYTES: usize = 6;
    let mut hex = String::new();
    if !value.is_empty() {
        for byte in &Sha256::digest(value)[..BYTES] {
            let _ = write!(hex, "{byte:02x}");
        }
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{
        ContainerMetadata, EventKind, HostInstant, PodUid, Seq, SubscriptionId, codec,
    };

    /// Names that must not be in a redacted file.
    const SECRETS: [&str; 6] = ["shop", "web", "app", "registry", "team", "secret"];

    fn event() -> Event {
        let sandbox = SandboxStatus {
            metadata: Some(SandboxMetadata {
                name: "web-0".into(),
                uid: PodUid::from("8d5f"),
                namespace: "shop".into(),
                attempt: 0,
            }),
            labels: Shared::from(
                [("team".into(), "secret".into())]
                    .into_iter()
                    .collect::<std::collections::BTreeMap<Text, Text>>(),
            ),
            ..SandboxStatus::default()
        };
        let container = ContainerStatus {
            metadata: Some(ContainerMetadata {
                name: "app".into(),
                attempt: 1,
            }),
            image: Some("registry/app:1".into()),
            image_ref: "registry/app@sha256:1".into(),
            message: "a secret".to_owned(),
            ..ContainerStatus::default()
        };
        Event {
            container: "c".into(),
            kind: EventKind::Started,
            created_at: crate::history::RuntimeNanos(1),
            sandbox: Some(sandbox.into()),
            containers: vec![container.into()],
        }
    }

    #[test]
    fn no_name_is_left_and_equal_names_stay_equal() {
        let mut redacted = Entry {
            seq: Seq(0),
            at: HostInstant::default(),
            body: Body::Event {
                subscription: SubscriptionId(0),
                event: event(),
                message: Bytes::from_static(b"web-0 of shop"),
            },
        };
        entry(&mut redacted);
        let mut bytes = Vec::new();
        codec::encode(&redacted, &mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert!(text.contains("8d5f"), "the UID stays: {text}");
        let mut other = event();
        redact_event(&mut other);
        let Body::Event { event, .. } = &redacted.body else {
            unreachable!();
        };
        assert_eq!(*event, other);
    }
}
