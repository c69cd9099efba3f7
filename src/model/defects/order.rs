//! In what order events can come otherwise, and when.

use std::time::Duration;

use super::stream::{at_once, is_of_sandbox};
use super::{Fault, Row};
use crate::history::{Event, EventKind, RuntimeNanos};
use crate::model::{Delivery, Passage};

pub(super) const ORDER: &[Row] = &[
    (
        "clock-decides-what-is-new",
        Fault::Events(|passage, event| {
            let sent = Event {
                created_at: RuntimeNanos(passage.at.realtime_ns),
                ..event.clone()
            };
            if passage
                .held
                .iter()
                .any(|before| before.created_at > sent.created_at)
            {
                return Vec::new();
            }
            *passage.held = vec![sent];
            Delivery::now(event)
        }),
    ),
    (
        "stopped-before-started",
        Fault::Events(|passage, event| {
            hold(passage, event, EventKind::Started, EventKind::Stopped)
        }),
    ),
    (
        "started-before-created",
        Fault::Events(|passage, event| {
            hold(passage, event, EventKind::Created, EventKind::Started)
        }),
    ),
    (
        "deleted-before-stopped",
        Fault::Events(|passage, event| {
            hold(passage, event, EventKind::Stopped, EventKind::Deleted)
        }),
    ),
    (
        "started-after-deleted",
        Fault::Events(|passage, event| {
            hold(passage, event, EventKind::Started, EventKind::Deleted)
        }),
    ),
    (
        "late-started",
        Fault::Events(|_, event| late(event, EventKind::Started, Duration::from_millis(500))),
    ),
    (
        "started-beside-the-call",
        Fault::Events(|passage, mut event| {
            const LATE: Duration = Duration::from_millis(15);
            const ONE_OF: usize = 60;
            if event.kind != EventKind::Started {
                return vec![at_once(event)];
            }
            passage.held.push(event.clone());
            if passage.held.len() < ONE_OF {
                return vec![at_once(event)];
            }
            passage.held.clear();
            event.created_at.0 += 15_000_000;
            vec![Delivery::after(LATE, event)]
        }),
    ),
    (
        "overtaking",
        Fault::Events(|passage, event| {
            let late = Duration::from_millis(passage.nth % 2 * 20);
            vec![Delivery::after(late, event)]
        }),
    ),
    (
        "lanes",
        Fault::Events(|passage, event| {
            let lane = lane(passage, &event);
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
        Fault::Events(|passage, event| {
            if event.kind != EventKind::Deleted {
                return vec![at_once(event)];
            }
            if !is_of_sandbox(&event) {
                return vec![Delivery::after(Duration::from_millis(200), event)];
            }
            passage.held.clear();
            vec![at_once(event)]
        }),
    ),
];

/// Which of two lanes the events of a container take: the first for sandboxes, and then in turns.
fn lane(passage: &mut Passage<'_>, event: &Event) -> u64 {
    const KEPT: usize = 1_000;
    if is_of_sandbox(event) {
        return 0;
    }
    if passage.held.len() == KEPT {
        passage.held.clear();
    }
    let of_same = |held: &Event| held.container == event.container;
    let known = passage.held.iter().position(of_same);
    let place = known.unwrap_or_else(|| {
        passage.held.push(event.clone());
        passage.held.len() - 1
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

/// Holds a container's event of one kind back until one of another kind has been sent.
fn hold(
    passage: &mut Passage<'_>,
    event: Event,
    held: EventKind,
    until: EventKind,
) -> Vec<Delivery> {
    if is_of_sandbox(&event) {
        return vec![at_once(event)];
    }
    if event.kind == held {
        passage.held.push(event);
        return Vec::new();
    }
    let mut sent = vec![at_once(event.clone())];
    let place = passage
        .held
        .iter()
        .position(|held| held.container == event.container);
    if let Some(place) = place.filter(|_| event.kind == until) {
        sent.push(at_once(passage.held.remove(place)));
    }
    sent
}
