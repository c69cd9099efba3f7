//! Defects of an event: its creation time, type and id, how its container ended, and the statuses
//! that it carries.

use super::Fault;
use super::stream::own_reason;
use crate::history::{
    ContainerId, ContainerState, ContainerStatus, Event, EventKind, Labels, PodUid, Reply,
    RuntimeNanos, SandboxId, SandboxState, SandboxStatus, Shared, Text,
};
use crate::model::HookContext;
use crate::model::behaviour::EventHook;

defects! { STATUSES:
    // Sandbox status.
    "no-sandbox" changes(event) { event.sandbox = None; }
    "no-sandbox-in-deleted" changes(event) {
        if event.kind == EventKind::Deleted {
            event.sandbox = None;
        }
    }
    "no-sandbox-metadata" changes(event) {
        if let Some(sandbox) = sandbox_in_stopped(event) {
            sandbox.metadata = None;
        }
    }
    "empty-uid" changes(event) { set_uid_in_stopped(event, ""); }
    "foreign-uid" changes(event) { set_uid_in_stopped(event, "another-pod"); }
    "foreign-sandbox" changes(event) {
        if let Some(sandbox) = sandbox_in_stopped(event) {
            sandbox.id = SandboxId::from("another-sandbox");
        }
    }
    "sandbox-always-ready" changes(event) {
        if let Some(sandbox) = &mut event.sandbox {
            sandbox.state = SandboxState::Ready;
        }
    }

    // Container statuses.
    "zero-status" changes(event) { event.containers.push(Shared::default()); }
    "no-image" changes(event) {
        event.containers.iter_mut().for_each(|status| status.image = None);
    }
    "no-image-ref-once-exited" behaves(it) {
        it.events.push(EventHook::Change(|_, event| {
            let exited =
                |status: &&mut Shared<ContainerStatus>| status.state == ContainerState::Exited;
            let exited = event.containers.iter_mut().filter(exited);
            exited.for_each(|status| status.image_ref = Text::default());
        }));
        it.replies.push(|_, answer| {
            if let Ok(Reply::ContainerStatus(report)) = &mut answer.result
                && report.status.state == ContainerState::Exited
            {
                report.status.image_ref = Text::default();
            }
        });
    }
    "own-status-missing" changes(event) {
        event.containers.retain(|status| status.id != event.container);
    }
    "own-status-twice" changes(event) {
        let own = event.own_status().cloned();
        event.containers.extend(own);
    }
    "own-status-in-deleted" changes(context, event) {
        if event.kind == EventKind::Deleted {
            let mut held = context.held.iter();
            let held = held.find(|held| held.container == event.container);
            event.containers.extend(held.and_then(Event::own_status).cloned());
        } else if event.kind == EventKind::Stopped {
            keep(context, event);
        }
    }
    "state-too-old" changes(event) {
        if event.kind == EventKind::Stopped {
            own(event, |status| status.state = ContainerState::Running);
        }
    }
    "siblings-go-back" changes(context, event) {
        keep(context, event);
        let statuses = event.containers.iter_mut();
        for status in statuses.filter(|status| status.id != event.container) {
            let first = context.held.iter().find(|held| held.container == status.id);
            if let Some(first) = first.and_then(Event::own_status) {
                status.clone_from(first);
            }
        }
    }
    "siblings-missing" changes(event) {
        event.containers.retain(|status| status.id == event.container);
    }
    "snapshot-lost-in-a-removal" changes(context, event) {
        let of_same = |held: &Event| held.pod_uid() == event.pod_uid();
        let follows = context.held.iter().any(of_same);
        context.held.clear();
        if event.kind == EventKind::Deleted {
            context.held.push(event.clone());
        } else if follows {
            event.containers.clear();
        }
    }
    "unlabelled-missing" changes(event) {
        let label = "io.kubernetes.pod.uid";
        event.containers.retain(|status| status.labels.contains_key(label));
    }
    "no-mounts" changes(event) {
        event.containers.iter_mut().for_each(|status| status.setup.mounts.clear());
    }
    "no-annotations" changes(event) {
        event.containers.iter_mut().for_each(|status| status.annotations = Labels::new());
    }
    "no-finished-at" changes(event) {
        if event.kind == EventKind::Stopped {
            own(event, |status| status.finished_at = RuntimeNanos(0));
        }
    }
    "finished-at-the-stop" changes(event) {
        own(event, |status| {
            if status.exit_code == 137 {
                status.finished_at.0 -= 2 * SECOND_NS;
            }
        });
    }
    "resources-in-events-are-old" changes(event) {
        for status in &mut event.containers {
            if let Some(resources) = &mut status.setup.resources {
                resources.remove("cpu_shares");
            }
        }
    }
    "state-too-new" changes(event) {
        if event.kind == EventKind::Created {
            own(event, |status| {
                status.state = ContainerState::Running;
                status.started_at = status.created_at;
            });
        }
    }
    "hundred-containers-in-a-snapshot" changes(event) { event.containers.truncate(100); }
    "bulky-stopped" changes(context, event) {
        let is_first = context.held.is_empty() && event.kind == EventKind::Stopped;
        if event.containers.len() >= 30 && is_first {
            context.held.push(event.clone());
            event.containers[0].message = "x".repeat(5 << 20);
        }
    }
}

const MILLISECOND_NS: i64 = 1_000_000;
const SECOND_NS: i64 = 1_000_000_000;

defects! { FIELDS:
    // Time.
    "created-at-in-seconds" changes(event) { event.created_at.0 /= SECOND_NS; }
    "created-at-in-milliseconds" changes(event) { event.created_at.0 /= MILLISECOND_NS; }
    "created-at-zero" changes(event) { event.created_at.0 = 0; }
    "created-at-in-the-future" changes(event) { event.created_at.0 += 3_600 * SECOND_NS; }
    "created-at-constant" changes(context, event) {
        event.created_at = first_of_all(context, event);
    }
    "created-at-goes-back" changes(context, event) {
        let steps = i64::try_from(context.nth).unwrap_or(i64::MAX);
        event.created_at.0 = first_of_all(context, event).0.saturating_sub(steps);
    }
    "started-stamped-at-the-call" changes(event) {
        if event.kind == EventKind::Started {
            event.created_at.0 -= 300 * MILLISECOND_NS;
        }
    }

    // Types and ids.
    "short-id" changes(event) {
        if event.kind == EventKind::Stopped {
            let first: String = event.container.as_str().chars().take(13).collect();
            event.container = first.into();
        }
    }
    "id-of-a-sibling" changes(event) {
        let others = event.containers.iter().map(|status| &status.id);
        let sibling = others.filter(|id| **id != event.container).max().cloned();
        if event.kind == EventKind::Stopped
            && let Some(sibling) = sibling
        {
            event.container = sibling;
        }
    }
    "no-id" changes(event) {
        if event.kind == EventKind::Stopped {
            event.container = ContainerId::default();
        }
    }
    "unknown-type" changes(event) {
        if event.kind == EventKind::Stopped {
            event.kind = EventKind::Unknown(9);
        }
    }

    // Exit codes and reasons that no status agrees with.
    "stopped-with-exit-code-0" changes(event) {
        if event.kind == EventKind::Stopped {
            own(event, |status| status.exit_code = 0);
        }
    }
    "stopped-without-oom-reason" changes(event) {
        if own_reason(event) == "OOMKilled" {
            own(event, |status| status.reason = "Error".into());
        }
    }
}

/// Keeps the first event of each container, up to a limit.
fn keep(context: &mut HookContext<'_>, event: &Event) {
    const KEPT: usize = 1_000;
    let mut held = context.held.iter();
    if held.any(|held| held.container == event.container) {
        return;
    }
    if context.held.len() == KEPT {
        context.held.remove(0);
    }
    context.held.push(event.clone());
}

/// The creation time of the first event of the stream.
fn first_of_all(context: &mut HookContext<'_>, event: &Event) -> RuntimeNanos {
    if context.held.is_empty() {
        context.held.push(event.clone());
    }
    context.held[0].created_at
}

/// The sandbox status that STOPPED carries.
fn sandbox_in_stopped(event: &mut Event) -> Option<&mut SandboxStatus> {
    let stopped = event.kind == EventKind::Stopped;
    event.sandbox.as_deref_mut().filter(|_| stopped)
}

fn set_uid_in_stopped(event: &mut Event, uid: &str) {
    if let Some(metadata) = sandbox_in_stopped(event).and_then(|it| it.metadata.as_mut()) {
        metadata.uid = PodUid::from(uid);
    }
}

fn own(event: &mut Event, change: fn(&mut ContainerStatus)) {
    let statuses = event.containers.iter_mut();
    let own = statuses.filter(|status| status.id == event.container);
    own.for_each(|status| change(status));
}
