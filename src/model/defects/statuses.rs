//! Defects of an event: its creation time, type and id, how its container ended, and the statuses
//! that it carries.

use super::stream::{at_once, own_reason};
use super::{Fault, Row};
use crate::history::{
    ContainerId, ContainerState, ContainerStatus, Event, EventKind, Labels, PodUid, Reply,
    RuntimeNanos, SandboxId, SandboxState, Shared, Text,
};
use crate::model::{Delivery, HookContext};

pub(super) const STATUSES: &[Row] = &[
    // Sandbox status.
    (
        "no-sandbox",
        Fault::Events(|_, mut event| {
            event.sandbox = None;
            vec![at_once(event)]
        }),
    ),
    (
        "no-sandbox-in-deleted",
        Fault::Events(|_, mut event| {
            event.sandbox = event.sandbox.filter(|_| event.kind != EventKind::Deleted);
            vec![at_once(event)]
        }),
    ),
    (
        "no-sandbox-metadata",
        Fault::Events(|_, mut event| {
            if let Some(sandbox) = event
                .sandbox
                .as_mut()
                .filter(|_| event.kind == EventKind::Stopped)
            {
                sandbox.metadata = None;
            }
            vec![at_once(event)]
        }),
    ),
    (
        "empty-uid",
        Fault::Events(|_, event| with_uid_in_stopped(event, "")),
    ),
    (
        "foreign-uid",
        Fault::Events(|_, event| with_uid_in_stopped(event, "another-pod")),
    ),
    (
        "foreign-sandbox",
        Fault::Events(|_, mut event| {
            let stopped = event.kind == EventKind::Stopped;
            if let Some(sandbox) = event.sandbox.as_mut().filter(|_| stopped) {
                sandbox.id = SandboxId::from("another-sandbox");
            }
            vec![at_once(event)]
        }),
    ),
    (
        "sandbox-always-ready",
        Fault::Events(|_, mut event| {
            if let Some(sandbox) = event.sandbox.as_mut() {
                sandbox.state = SandboxState::Ready;
            }
            vec![at_once(event)]
        }),
    ),
    // Container statuses.
    (
        "zero-status",
        Fault::Events(|_, mut event| {
            event.containers.push(Shared::default());
            vec![at_once(event)]
        }),
    ),
    (
        "no-image",
        Fault::Events(|_, mut event| {
            event
                .containers
                .iter_mut()
                .for_each(|status| status.image = None);
            vec![at_once(event)]
        }),
    ),
    (
        "no-image-ref-once-exited",
        Fault::Behaviour(|behaviour| {
            behaviour.events.push(|_, mut event| {
                let exited =
                    |status: &&mut Shared<ContainerStatus>| status.state == ContainerState::Exited;
                let containers = event.containers.iter_mut();
                let exited = containers.filter(exited);
                exited.for_each(|status| status.image_ref = Text::default());
                vec![at_once(event)]
            });
            behaviour.replies.push(|_, mut answer| {
                if let Ok(Reply::ContainerStatus(report)) = &mut answer.result
                    && report.status.state == ContainerState::Exited
                {
                    report.status.image_ref = Text::default();
                }
                answer
            });
        }),
    ),
    (
        "own-status-missing",
        Fault::Events(|_, mut event| {
            event
                .containers
                .retain(|status| status.id != event.container);
            vec![at_once(event)]
        }),
    ),
    (
        "own-status-twice",
        Fault::Events(|_, mut event| {
            event.containers.extend(event.own_status().cloned());
            vec![at_once(event)]
        }),
    ),
    (
        "own-status-in-deleted",
        Fault::Events(|context, mut event| {
            if event.kind == EventKind::Deleted {
                let held = context
                    .held
                    .iter()
                    .find(|held| held.container == event.container);
                event
                    .containers
                    .extend(held.and_then(Event::own_status).cloned());
            } else if event.kind == EventKind::Stopped {
                keep(context, &event);
            }
            vec![at_once(event)]
        }),
    ),
    (
        "state-too-old",
        Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                for status in event
                    .containers
                    .iter_mut()
                    .filter(|status| status.id == event.container)
                {
                    status.state = ContainerState::Running;
                }
            }
            vec![at_once(event)]
        }),
    ),
    (
        "siblings-go-back",
        Fault::Events(|context, mut event| {
            keep(context, &event);
            let own = event.container.clone();
            for status in event
                .containers
                .iter_mut()
                .filter(|status| status.id != own)
            {
                let first = context.held.iter().find(|held| held.container == status.id);
                if let Some(first) = first.and_then(Event::own_status) {
                    status.clone_from(first);
                }
            }
            vec![at_once(event)]
        }),
    ),
    (
        "siblings-missing",
        Fault::Events(|_, mut event| {
            event
                .containers
                .retain(|status| status.id == event.container);
            vec![at_once(event)]
        }),
    ),
    (
        "snapshot-lost-in-a-removal",
        Fault::Events(|context, mut event| {
            let of_same = |held: &Event| held.pod_uid() == event.pod_uid();
            let follows = context.held.iter().any(of_same);
            context.held.clear();
            if event.kind == EventKind::Deleted {
                context.held.push(event.clone());
            } else if follows {
                event.containers.clear();
            }
            vec![at_once(event)]
        }),
    ),
    (
        "unlabelled-missing",
        Fault::Events(|_, mut event| {
            let label = "io.kubernetes.pod.uid";
            event
                .containers
                .retain(|status| status.labels.contains_key(label));
            vec![at_once(event)]
        }),
    ),
    (
        "no-mounts",
        Fault::Events(|_, mut event| {
            let statuses = event.containers.iter_mut();
            for status in statuses {
                status.setup.mounts.clear();
            }
            vec![at_once(event)]
        }),
    ),
    (
        "no-annotations",
        Fault::Events(|_, mut event| {
            let containers = event.containers.iter_mut();
            containers.for_each(|status| status.annotations = Labels::new());
            vec![at_once(event)]
        }),
    ),
    (
        "no-finished-at",
        Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                own(&mut event, |status| status.finished_at = RuntimeNanos(0));
            }
            vec![at_once(event)]
        }),
    ),
    (
        "state-too-new",
        Fault::Events(|_, mut event| {
            if event.kind == EventKind::Created {
                own(&mut event, |status| {
                    status.state = ContainerState::Running;
                    status.started_at = status.created_at;
                });
            }
            vec![at_once(event)]
        }),
    ),
    (
        "bulky-stopped",
        Fault::Events(|context, mut event| {
            let is_first = context.held.is_empty() && event.kind == EventKind::Stopped;
            if event.containers.len() >= 30 && is_first {
                context.held.push(event.clone());
                event.containers[0].message = "x".repeat(5 << 20);
            }
            vec![at_once(event)]
        }),
    ),
];
const MILLISECOND_NS: i64 = 1_000_000;
const SECOND_NS: i64 = 1_000_000_000;
pub(super) const FIELDS: &[Row] = &[
    // Time.
    (
        "created-at-in-seconds",
        Fault::Events(|_, event| at(event.created_at.0 / SECOND_NS, event)),
    ),
    (
        "created-at-in-milliseconds",
        Fault::Events(|_, event| at(event.created_at.0 / MILLISECOND_NS, event)),
    ),
    ("created-at-zero", Fault::Events(|_, event| at(0, event))),
    (
        "created-at-in-the-future",
        Fault::Events(|_, event| at(event.created_at.0 + 3_600 * SECOND_NS, event)),
    ),
    (
        "created-at-constant",
        Fault::Events(|context, event| {
            if context.held.is_empty() {
                context.held.push(event.clone());
            }
            at(context.held[0].created_at.0, event)
        }),
    ),
    (
        "created-at-goes-back",
        Fault::Events(|context, event| {
            if context.held.is_empty() {
                context.held.push(event.clone());
            }
            let steps = i64::try_from(context.nth).unwrap_or(i64::MAX);
            at(context.held[0].created_at.0.saturating_sub(steps), event)
        }),
    ),
    (
        "started-stamped-at-the-call",
        Fault::Events(|_, event| {
            let early_ns = match event.kind {
                EventKind::Started => 300 * MILLISECOND_NS,
                _ => 0,
            };
            at(event.created_at.0 - early_ns, event)
        }),
    ),
    // Types and ids.
    (
        "short-id",
        Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                let first: String = event.container.as_str().chars().take(13).collect();
                event.container = first.into();
            }
            vec![at_once(event)]
        }),
    ),
    (
        "id-of-a-sibling",
        Fault::Events(|_, mut event| {
            let others = event.containers.iter().map(|status| &status.id);
            let sibling = others.filter(|id| **id != event.container).max().cloned();
            if event.kind == EventKind::Stopped
                && let Some(sibling) = sibling
            {
                event.container = sibling;
            }
            vec![at_once(event)]
        }),
    ),
    (
        "no-id",
        Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                event.container = ContainerId::default();
            }
            vec![at_once(event)]
        }),
    ),
    (
        "unknown-type",
        Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                event.kind = EventKind::Unknown(9);
            }
            vec![at_once(event)]
        }),
    ),
    // Exit codes and reasons that no status agrees with.
    (
        "stopped-with-exit-code-0",
        Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                own(&mut event, |status| status.exit_code = 0);
            }
            vec![at_once(event)]
        }),
    ),
    (
        "stopped-without-oom-reason",
        Fault::Events(|_, mut event| {
            if own_reason(&event) == "OOMKilled" {
                own(&mut event, |status| status.reason = "Error".into());
            }
            vec![at_once(event)]
        }),
    ),
];

/// Keeps the first event of each container, up to a limit.
fn keep(context: &mut HookContext<'_>, event: &Event) {
    const KEPT: usize = 1_000;
    if context
        .held
        .iter()
        .any(|held| held.container == event.container)
    {
        return;
    }
    if context.held.len() == KEPT {
        context.held.remove(0);
    }
    context.held.push(event.clone());
}

fn with_uid_in_stopped(mut event: Event, uid: &str) -> Vec<Delivery> {
    let stopped = event.kind == EventKind::Stopped;
    let sandbox = event.sandbox.as_mut().filter(|_| stopped);
    if let Some(metadata) = sandbox.and_then(|sandbox| sandbox.metadata.as_mut()) {
        metadata.uid = PodUid::from(uid);
    }
    vec![at_once(event)]
}

pub(super) fn own(event: &mut Event, change: fn(&mut ContainerStatus)) {
    let own = event.container.clone();
    let statuses = event.containers.iter_mut();
    statuses
        .filter(|status| status.id == own)
        .for_each(|status| change(status));
}

fn at(created_at: i64, mut event: Event) -> Vec<Delivery> {
    event.created_at = RuntimeNanos(created_at);
    vec![at_once(event)]
}
