//! Defects that lose or repeat events, or break their stream.

use std::time::Duration;

use super::{Fault, Row};
use crate::history::{CallFault, Event, EventKind, StatusCode, StreamEnd};
use crate::model::{Delivery, HookContext};

const SECOND_NS: i64 = 1_000_000_000;

pub(super) const STREAM: &[Row] = &[
    // Lost.
    (
        "drop-created",
        Fault::Events(|_, event| unless(event.kind == EventKind::Created, event)),
    ),
    (
        "drop-started",
        Fault::Events(|_, event| unless(event.kind == EventKind::Started, event)),
    ),
    (
        "drop-stopped",
        Fault::Events(|_, event| unless(event.kind == EventKind::Stopped, event)),
    ),
    (
        "drop-deleted",
        Fault::Events(|_, event| unless(event.kind == EventKind::Deleted, event)),
    ),
    (
        "drop-every-ninth",
        Fault::Events(|context, event| unless(context.nth % 9 == 8, event)),
    ),
    (
        "drop-sandbox-events",
        Fault::Events(|_, event| unless(is_of_sandbox(&event), event)),
    ),
    (
        "drop-oom-stopped",
        Fault::Events(|_, event| unless(own_reason(&event) == "OOMKilled", event)),
    ),
    // The stream itself.
    (
        "stall",
        Fault::Stream(|context, event| unless(over(context, &event), event)),
    ),
    (
        "cut",
        Fault::Stream(|context, event| {
            let broken = StreamEnd::Failed(CallFault {
                code: StatusCode::UNAVAILABLE,
                message: "the connection was cut".to_owned(),
                deadline: Duration::ZERO,
            });
            end(context, event, broken)
        }),
    ),
    (
        "half-close",
        Fault::Stream(|context, event| end(context, event, StreamEnd::Closed)),
    ),
    // Too many.
    (
        "repeat-every-event",
        Fault::Events(|_, event| vec![at_once(event.clone()), at_once(event)]),
    ),
    (
        "repeat-stopped",
        Fault::Events(|_, event| again(event, EventKind::Stopped, Duration::ZERO)),
    ),
    (
        "repeat-stopped-late",
        Fault::Events(|_, event| again(event, EventKind::Stopped, Duration::from_millis(2))),
    ),
    (
        "deleted-with-stopped",
        Fault::Events(|_, event| {
            let mut deleted = event.clone();
            deleted.kind = EventKind::Deleted;
            deleted
                .containers
                .retain(|status| status.id != deleted.container);
            let stopped = event.kind == EventKind::Stopped && !is_of_sandbox(&event);
            let deleted = stopped.then(|| at_once(deleted));
            [at_once(event)].into_iter().chain(deleted).collect()
        }),
    ),
    (
        "started-for-a-failed-start",
        Fault::Events(|_, event| {
            let failed = event.kind == EventKind::Stopped && own_reason(&event) == "StartError";
            let mut started = event.clone();
            started.kind = EventKind::Started;
            let started = failed.then(|| at_once(started));
            started.into_iter().chain([at_once(event)]).collect()
        }),
    ),
];

pub(super) fn at_once(event: Event) -> Delivery {
    Delivery::after(Duration::ZERO, event)
}

fn unless(lost: bool, event: Event) -> Vec<Delivery> {
    if lost {
        Vec::new()
    } else {
        vec![at_once(event)]
    }
}

/// Ends a stream instead of the event that follows the first STARTED of a container.
fn end(context: &mut HookContext<'_>, event: Event, end: StreamEnd) -> Vec<Delivery> {
    if over(context, &event) {
        vec![Delivery::End(Duration::ZERO, end)]
    } else {
        vec![at_once(event)]
    }
}

/// Whether a stream has delivered STARTED of a container before, not counting queued events.
fn over(context: &mut HookContext<'_>, event: &Event) -> bool {
    const QUEUED_NS: i64 = SECOND_NS / 2;
    let over = !context.held.is_empty();
    let age_ns = context.at.realtime_ns.saturating_sub(event.created_at.0);
    let started = event.kind == EventKind::Started && !is_of_sandbox(event);
    if started && age_ns < QUEUED_NS && !over {
        context.held.push(event.clone());
    }
    over
}

fn again(event: Event, kind: EventKind, after: Duration) -> Vec<Delivery> {
    let repeated = event.kind == kind;
    let again = repeated.then(|| Delivery::after(after, event.clone()));
    [at_once(event)].into_iter().chain(again).collect()
}

pub(super) fn is_of_sandbox(event: &Event) -> bool {
    let sandbox = event.sandbox.as_ref();
    sandbox.is_some_and(|sandbox| sandbox.id.as_str() == event.container.as_str())
}

pub(super) fn own_reason(event: &Event) -> &str {
    event.own_status().map_or("", |status| &*status.reason)
}
