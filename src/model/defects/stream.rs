//! Defects that lose, repeat, reorder or delay events, or break their stream; of the fan-out to
//! subscribers, of replay, and of the life of streams.

use std::time::Duration;

use super::Fault;
use crate::history::{CallFault, Event, EventKind, RuntimeNanos, StatusCode, StreamEnd};
use crate::model::behaviour::EventHook;
use crate::model::{Delivery, FanOutPolicy, FullQueue, HookContext, Replay};

const SECOND_NS: i64 = 1_000_000_000;

defects! { STREAM:
    // Lost.
    "drop-created" drops(event) { event.kind == EventKind::Created }
    "drop-started" drops(event) { event.kind == EventKind::Started }
    "drop-stopped" drops(event) { event.kind == EventKind::Stopped }
    "drop-deleted" drops(event) { event.kind == EventKind::Deleted }
    "drop-every-ninth" drops(context, _) { context.nth % 9 == 8 }
    "drop-sandbox-events" drops(event) { event.is_of_sandbox() }
    "drop-stopped-after-a-minute" drops(event) {
        let lived_ns = event.own_status().map(|own| own.finished_at.0 - own.started_at.0);
        event.kind == EventKind::Stopped && lived_ns > Some(60 * SECOND_NS)
    }
    "drop-the-rest-of-a-burst" drops_of_stream(context, event) {
        const OF_A_SECOND: usize = 250;
        let since_ns = context.at.realtime_ns - SECOND_NS;
        context.held.retain(|sent| sent.created_at.0 > since_ns);
        let is_one = event.kind == EventKind::Stopped && event.created_at.0 > since_ns;
        let is_full = is_one && context.held.len() >= OF_A_SECOND;
        if is_one && !is_full {
            context.held.push(event.clone());
        }
        is_full
    }
    "deduplicated-by-name" drops(context, event) {
        let last = context.held.pop();
        let own = |event: &Event| event.own_status().and_then(|own| own.metadata.clone());
        let is_same = |last: &Event| {
            let is_named_so = own(last).is_some() && own(last) == own(event);
            last.kind == event.kind && last.container != event.container && is_named_so
        };
        let is_repeated = last.as_ref().is_some_and(is_same);
        context.held.push(event.clone());
        is_repeated
    }
    "drop-oom-stopped" drops(event) { own_reason(event) == "OOMKilled" }

    // The stream itself.
    "stall" drops_of_stream(context, event) { over(context, event) }
    "cut" delivers_of_stream(context, event) {
        let broken = StreamEnd::Failed(CallFault {
            code: StatusCode::UNAVAILABLE,
            message: "the connection was cut".to_owned(),
            deadline: Duration::ZERO,
        });
        end(context, event, broken)
    }
    "half-close" delivers_of_stream(context, event) { end(context, event, StreamEnd::Closed) }

    // Too many.
    "repeat-every-event" delivers(event) { [event.clone(), event].map(at_once).into() }
    "repeat-stopped" delivers(event) { again(event, EventKind::Stopped, Duration::ZERO) }
    "repeat-stopped-late" delivers(event) {
        again(event, EventKind::Stopped, Duration::from_millis(2))
    }
    "deleted-with-stopped" delivers(event) {
        let mut deleted = event.clone();
        deleted.kind = EventKind::Deleted;
        deleted.containers.retain(|status| status.id != deleted.container);
        let stopped = event.kind == EventKind::Stopped && !event.is_of_sandbox();
        let deleted = stopped.then(|| at_once(deleted));
        [at_once(event)].into_iter().chain(deleted).collect()
    }
    "started-for-a-failed-start" delivers(event) {
        let failed = event.kind == EventKind::Stopped && own_reason(&event) == "StartError";
        let mut started = event.clone();
        started.kind = EventKind::Started;
        let started = failed.then(|| at_once(started));
        started.into_iter().chain([at_once(event)]).collect()
    }
}

defects! { SUBSCRIBERS:
    "shared-channel" sets { fan_out = FanOutPolicy::RoundRobin }
    "newest-subscriber-only" sets { fan_out = FanOutPolicy::NewestOnly }
    "oldest-subscriber-only" sets { fan_out = FanOutPolicy::OldestOnly }
    "zombie-subscribers" sets { zombie_subscribers = true }
    "latest-events-for-new-subscribers" sets { replay = Replay::Latest }
    "replay-of-the-tail" sets { replay = Replay::TailToFirst }
    "replay-for-each-subscriber" sets { replay = Replay::ToEach }
    "late-subscription" sets { effective_after = Duration::from_millis(300) }
    "headers-with-the-first-event" sets { sends_headers_at_once = false }
    "wedged-by-a-slow-reader" sets { queue = 100, full_queue = FullQueue::Wedge }
    "lists-wait-for-a-slow-reader" sets {
        queue = 100,
        full_queue = FullQueue::Wedge,
        lists_wait_for_events = true,
    }
    "gap-for-a-slow-reader" sets { queue = 100, full_queue = FullQueue::Drop }
    "gap-for-a-very-slow-reader" sets { full_queue = FullQueue::Drop }
    "deadline-ignored" sets { honours_deadlines = false }
    "idle-stream-ends" sets { max_stream_age = Some(Duration::from_secs(3)) }
    "stream-ends-after-half-a-minute" sets { max_stream_age = Some(Duration::from_secs(30)) }
    "fiftieth-event-ends-the-stream" delivers_of_stream(context, event) {
        if context.nth == 49 {
            vec![Delivery::End(Duration::ZERO, StreamEnd::Closed)]
        } else {
            Delivery::now(event)
        }
    }
    "events-by-the-dozen" delivers_of_stream(context, event) {
        context.held.push(event);
        if context.held.len() < 12 {
            return Vec::new();
        }
        let gathered = std::mem::take(context.held);
        gathered.into_iter().flat_map(Delivery::now).collect()
    }
    "each-subscriber-misses-another" drops(context, event) {
        if event.kind != EventKind::Deleted {
            return false;
        }
        context.held.push(event.clone());
        context.held.len() % 7 == 0
    }
}

defects! { ORDER:
    "clock-decides-what-is-new" drops(context, event) {
        let created_at = RuntimeNanos(context.at.realtime_ns);
        let is_old = context.held.iter().any(|before| before.created_at > created_at);
        if !is_old {
            *context.held = vec![Event { created_at, ..event.clone() }];
        }
        is_old
    }
    "stopped-before-started" delivers(context, event) {
        hold(context, event, EventKind::Started, EventKind::Stopped)
    }
    "started-before-created" delivers(context, event) {
        hold(context, event, EventKind::Created, EventKind::Started)
    }
    "deleted-before-stopped" delivers(context, event) {
        hold(context, event, EventKind::Stopped, EventKind::Deleted)
    }
    "started-after-deleted" delivers(context, event) {
        hold(context, event, EventKind::Started, EventKind::Deleted)
    }
    "late-started" delays(event) {
        if event.kind == EventKind::Started { Duration::from_millis(500) } else { Duration::ZERO }
    }
    "started-beside-the-call" delivers(context, event) {
        const LATE: Duration = Duration::from_millis(15);
        const ONE_OF: usize = 60;
        let mut event = event;
        if event.kind != EventKind::Started {
            return Delivery::now(event);
        }
        context.held.push(event.clone());
        if context.held.len() < ONE_OF {
            return Delivery::now(event);
        }
        context.held.clear();
        event.created_at.0 += 15_000_000;
        vec![Delivery::after(LATE, event)]
    }
    "overtaking" delays(context, _) { Duration::from_millis(context.nth % 2 * 20) }
    "lanes" delays(context, event) { Duration::from_millis(lane(context, event) * 20) }
    "late-stopped" delays(event) {
        if event.kind == EventKind::Stopped { Duration::from_secs(11) } else { Duration::ZERO }
    }
    "three-seconds-late" delays(_) { Duration::from_secs(3) }
    "three-seconds-late-by-its-stamp" delivers(event) {
        const LATE: Duration = Duration::from_secs(3);
        let created_at = RuntimeNanos(event.created_at.0 + 3 * SECOND_NS);
        vec![Delivery::after(LATE, Event { created_at, ..event })]
    }
    "sandbox-deleted-first" delays(event) {
        let is_late = event.kind == EventKind::Deleted && !event.is_of_sandbox();
        if is_late { Duration::from_millis(200) } else { Duration::ZERO }
    }
}

fn at_once(event: Event) -> Delivery {
    Delivery::after(Duration::ZERO, event)
}

/// Ends a stream instead of the event that follows the first STARTED of a container.
fn end(context: &mut HookContext<'_>, event: Event, end: StreamEnd) -> Vec<Delivery> {
    if over(context, &event) {
        vec![Delivery::End(Duration::ZERO, end)]
    } else {
        Delivery::now(event)
    }
}

/// Whether a stream has delivered STARTED of a container before, not counting queued events.
fn over(context: &mut HookContext<'_>, event: &Event) -> bool {
    const QUEUED_NS: i64 = SECOND_NS / 2;
    let over = !context.held.is_empty();
    let age_ns = context.at.realtime_ns.saturating_sub(event.created_at.0);
    let started = event.kind == EventKind::Started && !event.is_of_sandbox();
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

pub(super) fn own_reason(event: &Event) -> &str {
    event.own_status().map_or("", |status| &*status.reason)
}

/// The lane of a container's events, of which there are two: the first for sandboxes, alternating
/// for containers.
fn lane(context: &mut HookContext<'_>, event: &Event) -> u64 {
    const KEPT: usize = 1_000;
    if event.is_of_sandbox() {
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

/// Holds back a container's event of one kind until one of another kind has been sent.
fn hold(
    context: &mut HookContext<'_>,
    event: Event,
    held: EventKind,
    until: EventKind,
) -> Vec<Delivery> {
    if event.is_of_sandbox() {
        return Delivery::now(event);
    }
    if event.kind == held {
        context.held.push(event);
        return Vec::new();
    }
    let mut sent = Delivery::now(event.clone());
    let mut before = context.held.iter();
    let place = before.position(|held| held.container == event.container);
    if let Some(place) = place.filter(|_| event.kind == until) {
        sent.push(at_once(context.held.remove(place)));
    }
    sent
}
