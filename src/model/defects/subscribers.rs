//! Defects of the fan-out to subscribers, of replay, and of the life of streams.

use std::time::Duration;

use super::{Fault, Row};
use crate::history::{EventKind, StreamEnd};
use crate::model::{Delivery, FanOutPolicy, FullQueue, Replay};

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
