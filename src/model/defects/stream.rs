//! Defects that lose, repeat, reorder or delay events, or break their stream; of the fan-out to
//! subscribers, of replay, and of the life of streams.

use std::time::Duration;

use super::{Fault, Row};
use crate::history::{CallFault, Event, EventKind, RuntimeNanos, StatusCode, StreamEnd};
use crate::model::{Delivery, FanOutPolicy, FullQueue, HookContext, Replay};

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
pub(super) const SUBSCRIBERS: &[Row] = &[
    (
        "shared-channel",
        Fault::Behaviour(|behaviour| behaviour.fan_out = FanOutPolicy::RoundRobin),
    ),
    (
        "newest-subscriber-only",
        Fault::Behaviour(|behaviour| behaviour.fan_out = FanOutPolicy::NewestOnly),
    ),
    (
        "oldest-subscriber-only",
        Fault::Behaviour(|behaviour| behaviour.fan_out = FanOutPolicy::OldestOnly),
    ),
    (
        "zombie-subscribers",
        Fault::Behaviour(|behaviour| behaviour.zombie_subscribers = true),
    ),
    (
        "latest-events-for-new-subscribers",
        Fault::Behaviour(|behaviour| behaviour.replay = Replay::Latest),
    ),
    (
        "replay-of-the-tail",
        Fault::Behaviour(|behaviour| behaviour.replay = Replay::TailToFirst),
    ),
    (
        "replay-for-each-subscriber",
        Fault::Behaviour(|behaviour| behaviour.replay = Replay::ToEach),
    ),
    (
        "late-subscription",
        Fault::Behaviour(|behaviour| {
            behaviour.effective_after = Duration::from_millis(300);
        }),
    ),
    (
        "headers-with-the-first-event",
        Fault::Behaviour(|behaviour| behaviour.sends_headers_at_once = false),
    ),
    (
        "wedged-by-a-slow-reader",
        Fault::Behaviour(|behaviour| {
            behaviour.queue = 100;
            behaviour.full_queue = FullQueue::Wedge;
        }),
    ),
    (
        "lists-wait-for-a-slow-reader",
        Fault::Behaviour(|behaviour| {
            behaviour.queue = 20;
            behaviour.full_queue = FullQueue::Wedge;
            behaviour.lists_wait_for_events = true;
        }),
    ),
    (
        "gap-for-a-slow-reader",
        Fault::Behaviour(|behaviour| {
            behaviour.queue = 16;
            behaviour.full_queue = FullQueue::Drop;
        }),
    ),
    (
        "deadline-ignored",
        Fault::Behaviour(|behaviour| behaviour.honours_deadlines = false),
    ),
    (
        "idle-stream-ends",
        Fault::Behaviour(|behaviour| {
            behaviour.max_stream_age = Some(Duration::from_secs(3));
        }),
    ),
    (
        "stream-ends-after-half-a-minute",
        Fault::Behaviour(|behaviour| {
            behaviour.max_stream_age = Some(Duration::from_secs(30));
        }),
    ),
    (
        "fiftieth-event-ends-the-stream",
        Fault::Stream(|context, event| {
            if context.nth == 49 {
                vec![Delivery::End(Duration::ZERO, StreamEnd::Closed)]
            } else {
                Delivery::now(event)
            }
        }),
    ),
    (
        "events-by-the-dozen",
        Fault::Stream(|context, event| {
            context.held.push(event);
            if context.held.len() < 12 {
                return Vec::new();
            }
            let gathered = std::mem::take(context.held);
            gathered.into_iter().flat_map(Delivery::now).collect()
        }),
    ),
    (
        "each-subscriber-misses-another",
        Fault::Events(|context, event| {
            if event.kind != EventKind::Deleted {
                return Delivery::now(event);
            }
            context.held.push(event.clone());
            if context.held.len() % 7 == 0 {
                return Vec::new();
            }
            Delivery::now(event)
        }),
    ),
];
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

fn is_of_sandbox(event: &Event) -> bool {
    let sandbox = event.sandbox.as_ref();
    sandbox.is_some_and(|sandbox| sandbox.id.as_str() == event.container.as_str())
}

pub(super) fn own_reason(event: &Event) -> &str {
    event.own_status().map_or("", |status| &*status.reason)
}

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
