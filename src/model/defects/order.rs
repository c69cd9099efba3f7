//! Defects that reorder or delay events.

use std::time::Duration;

use super::stream::{at_once, is_of_sandbox};
use super::{Fault, Row};
use crate::history::{Event, EventKind, RuntimeNanos};
use crate::model::{Delivery, HookContext};

pub(super) const ORDER: &[Row] = &[
    (
        "clock-decides-what-is-new",
        Fault::Events(|context, event| {
            let sent = Event {
                created_at: RuntimeNanos(context.at.realtime_ns),
                ..event.clone()
            };
            if context
                .held
                .iter()
                .any(|before| before.created_at > sent.created_at)
            {
                return Vec::new();
            }
            *context.held = vec![sent];
            Delivery::now(event)
        }),
    ),
    (
        "stopped-before-started",
        Fault::Events(|context, event| {
            hold(context, event, EventKind::Started, EventKind::Stopped)
        }),
    ),
    (
        "started-before-created",
        Fault::Events(|context, event| {
            hold(context, event, EventKind::Created, EventKind::Started)
        }),
    ),
    (
        "deleted-before-stopped",
        Fault::Events(|context, event| {
            hold(context, event, EventKind::Stopped, EventKind::Deleted)
        }),
    ),
    (
        "started-after-deleted",
        Fault::Events(|context, event| {
            hold(context, event, EventKind::Started, EventKind::Deleted)
        }),
    ),
    (
        "late-started",
        Fault::Events(|_, event| late(event, EventKind::Started, Duration::from_millis(500))),
    ),
    (
        "started-beside-the-call",
        Fault::Events(|context, mut event| {
            const LATE: Duration = Duration::from_millis(15);
            const ONE_OF: usize = 60;
            if event.kind != EventKind::Started {
                return vec![at_once(event)];
            }
            context.held.push(event.clone());
            if context.held.len() < ONE_OF {
                return vec![at_once(event)];
            }
            context.held.clear();
            event.created_at.0 += 15_000_000;
            vec![Delivery::after(LATE, event)]
        }),
    ),
    (
        "overtaking",
        Fault::Events(|context, event| {
            let late = Duration::from_millis(context.nth % 2 * 20);
            vec![Delivery::after(late, event)]
        }),
    ),
    (
        "lanes",
        Fault::Events(|context, event| {
            let lane = lane(context, &event);
            vec![Delivery::after(Duration::from_millis(lane * 20), event)]
        }),
    ),
    (
        "late-stopped",
        Fault::Events(|_, event| late(event, EventKind::Stopped, Duration::from_secs(11))),
    ),
    (
        "two-seconds-late",
        Fault::Events(|_, event| vec![Delivery::after(Duration::from_secs(2), event)]),
    ),
    (
        "sandbox-deleted-first",
        Fault::Events(|context, event| {
            if event.kind != EventKind::Deleted {
                return vec![at_once(event)];
            }
            if !is_of_sandbox(&event) {
                return vec![Delivery::after(Duration::from_millis(200), event)];
            }
            context.held.clear();
            vec![at_once(event)]
        }),
    ),
];

/// The lane of a container's events, of which there are two: the first for sandboxes, alternating
/// for containers.
fn lane(context: &mut HookContext<'_>, event: &Event) -> u64 {
    const KEPT: usize = 1_000;
    if is_of_sandbox(event) {
        return 0;
    }
    if context.held.len() == KEPT {
        context.held.clear();
    }
    let of_same = |held: &Event| held.container == event.container;
    let known = context.held.iter().position(of_same);
    let place = known.unwrap_or_else(|| {
        context.held.push(event.clone());
        context.held.len() - 1
    });
    u64::from(place % 2 == 1)
}

fn late(event: Event, kind: EventKind, by: Duration) -> Vec<Delivery> {
    let delay = if event.kind == kind {
        by
    } else {
        Duration::ZERO
    };
    vec![Delivery::after(delay, event)]
}

/// Holds back a container's event of one kind until one of another kind has been sent.
fn hold(
    context: &mut HookContext<'_>,
    event: Event,
    held: EventKind,
    until: EventKind,
) -> Vec<Delivery> {
    if is_of_sandbox(&event) {
        return vec![at_once(event)];
    }
    if event.kind == held {
        context.held.push(event);
        return Vec::new();
    }
    let mut sent = vec![at_once(event.clone())];
    let place = context
        .held
        .iter()
        .position(|held| held.container == event.container);
    if let Some(place) = place.filter(|_| event.kind == until) {
        sent.push(at_once(context.held.remove(place)));
    }
    sent
}
