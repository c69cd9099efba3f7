//! What the defects do to events on their way to a subscriber.

use std::time::Duration;

use crate::history::{
    ContainerId, ContainerState, ContainerStatus, Event, EventKind, Labels, PodUid, RuntimeNanos,
};
use crate::model::behaviour::Delivery;
use crate::model::stage::Passage;

/// Long enough to be overtaken, short enough to be no other fault.
const LATE: Duration = Duration::from_millis(20);

fn is_of_sandbox(event: &Event) -> bool {
    let sandbox = event.sandbox.as_ref();
    sandbox.is_some_and(|sandbox| ContainerId::from(&sandbox.id) == event.container)
}

fn is(event: &Event, kind: EventKind) -> bool {
    event.kind == kind && !is_of_sandbox(event)
}

fn drop_if(drops: bool, event: Event) -> Vec<Delivery> {
    if drops {
        Vec::new()
    } else {
        Delivery::now(event)
    }
}

fn late_if(is_late: bool, event: Event) -> Vec<Delivery> {
    let delay = if is_late { LATE } else { Duration::ZERO };
    vec![Delivery::after(delay, event)]
}

/// The event, with a change.
fn with(mut event: Event, change: impl FnOnce(&mut Event)) -> Vec<Delivery> {
    change(&mut event);
    Delivery::now(event)
}

pub(super) fn drop_created(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    drop_if(is(&event, EventKind::Created), event)
}

pub(super) fn drop_started(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    drop_if(is(&event, EventKind::Started), event)
}

pub(super) fn drop_stopped(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    drop_if(is(&event, EventKind::Stopped), event)
}

pub(super) fn drop_deleted(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    drop_if(is(&event, EventKind::Deleted), event)
}

pub(super) fn drop_every_seventh(passage: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    drop_if(passage.nth % 7 == 6, event)
}

pub(super) fn drop_third_of_stream(passage: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    drop_if(passage.nth == 2, event)
}

pub(super) fn drop_of_sandboxes(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    drop_if(is_of_sandbox(&event), event)
}

pub(super) fn twice(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    [Delivery::now(event.clone()), Delivery::now(event)].concat()
}

pub(super) fn twice_stopped(passage: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    match event.kind {
        EventKind::Stopped => twice(passage, event),
        _ => Delivery::now(event),
    }
}

pub(super) fn delete_on_stop(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    let mut deliveries = Delivery::now(event.clone());
    if is(&event, EventKind::Stopped) {
        deliveries.extend(with(event, |event| {
            event.kind = EventKind::Deleted;
            let own = event.container.clone();
            event.containers.retain(|status| status.id != own);
        }));
    }
    deliveries
}

pub(super) fn delay_created(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    late_if(is(&event, EventKind::Created), event)
}

pub(super) fn delay_stopped(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    late_if(is(&event, EventKind::Stopped), event)
}

pub(super) fn delay_container_deleted(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    late_if(is(&event, EventKind::Deleted), event)
}

pub(super) fn no_sandbox(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    with(event, |event| event.sandbox = None)
}

pub(super) fn no_sandbox_when_deleted(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    let lacks = is_of_sandbox(&event) && event.kind == EventKind::Deleted;
    with(event, |event| {
        event.sandbox = event.sandbox.take().filter(|_| !lacks);
    })
}

fn with_uid(event: Event, uid: &str) -> Vec<Delivery> {
    with(event, |event| {
        let sandbox = event.sandbox.as_mut();
        if let Some(metadata) = sandbox.and_then(|sandbox| sandbox.metadata.as_mut()) {
            metadata.uid = PodUid::from(uid);
        }
    })
}

pub(super) fn no_uid(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    with_uid(event, "")
}

pub(super) fn other_uid(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    with_uid(event, "00000000-0000-0000-0000-000000000000")
}

pub(super) fn drop_own_status(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    with(event, |event| {
        let own = event.container.clone();
        event.containers.retain(|status| status.id != own);
    })
}

/// The status of the event's own container in the last event that had one, which is kept instead.
fn last_own_status(passage: &mut Passage<'_>, event: &Event) -> Option<ContainerStatus> {
    let held = &mut *passage.held;
    let place = held
        .iter()
        .position(|held| held.container == event.container);
    let last = place.map(|place| held.swap_remove(place));
    if event.own_status().is_some() {
        held.push(event.clone());
    }
    last?.own_status().cloned()
}

pub(super) fn keep_in_deleted(passage: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    let last = last_own_status(passage, &event);
    let keeps = event.kind == EventKind::Deleted;
    with(event, |event| {
        event.containers.extend(last.filter(|_| keeps));
    })
}

pub(super) fn previous_snapshot(passage: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    let last = last_own_status(passage, &event);
    with(event, |event| {
        let own = event.container.clone();
        let own = event.containers.iter_mut().find(|status| status.id == own);
        if let (Some(own), Some(last)) = (own, last) {
            *own = last;
        }
    })
}

pub(super) fn running_siblings(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    with(event, |event| {
        let exited = |status: &&mut ContainerStatus| status.state == ContainerState::Exited;
        let own = event.container.clone();
        for status in event.containers.iter_mut().filter(exited) {
            if status.id != own {
                status.state = ContainerState::Running;
            }
        }
    })
}

pub(super) fn add_empty_status(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    with(event, |event| {
        event.containers.push(ContainerStatus {
            id: ContainerId::default(),
            metadata: None,
            state: ContainerState::Created,
            created_at: RuntimeNanos(0),
            started_at: RuntimeNanos(0),
            finished_at: RuntimeNanos(0),
            exit_code: 0,
            image: None,
            image_ref: String::new(),
            reason: String::new(),
            message: String::new(),
            labels: Labels::new(),
            annotations: Labels::new(),
        });
    })
}

pub(super) fn no_image(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    with(event, |event| {
        for status in &mut event.containers {
            status.image = None;
        }
    })
}

pub(super) fn exit_code_zero(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    with(event, |event| {
        for status in &mut event.containers {
            status.exit_code = 0;
        }
    })
}

fn at(event: Event, created_at: impl FnOnce(i64) -> i64) -> Vec<Delivery> {
    with(event, |event| {
        event.created_at.0 = created_at(event.created_at.0);
    })
}

pub(super) fn no_time(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    at(event, |_| 0)
}

pub(super) fn seconds(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    at(event, |ns| ns / 1_000_000_000)
}

pub(super) fn milliseconds(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    at(event, |ns| ns / 1_000_000)
}

pub(super) fn future_time(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    at(event, |ns| ns + 3_600_000_000_000)
}

pub(super) fn constant_time(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    at(event, |_| 1_600_000_000_000_000_000)
}

/// By so little that only the order tells.
pub(super) fn time_goes_back(passage: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    let back = i64::try_from(passage.nth).unwrap_or(0) % 1_000 * 200_000;
    let first = passage.at.realtime_ns;
    at(event, |_| first - back)
}

pub(super) fn short_id(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    let started = event.kind == EventKind::Started;
    with(event, |event| {
        if started {
            event.container.0.truncate(13);
        }
    })
}

pub(super) fn unknown_kind(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    let started = is(&event, EventKind::Started);
    with(event, |event| {
        if started {
            event.kind = EventKind::Unknown(7);
        }
    })
}

pub(super) fn add_started_to_failed_start(_: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    let own = event.own_status();
    let failed = own.is_some_and(|own| own.reason == "StartError");
    if !failed || event.kind != EventKind::Stopped {
        return Delivery::now(event);
    }
    let started = with(event.clone(), |event| event.kind = EventKind::Started);
    [started, Delivery::now(event)].concat()
}
