//! What can be wrong with who gets events, when, and for how long.

use std::time::Duration;

use super::{Fault, Row};
use crate::history::{EventKind, StreamEnd};
use crate::model::{Audience, Delivery, FullQueue, Replay};

pub(super) const SUBSCRIBERS: &[Row] = &[
    (
        "shared-channel",
        Fault::Behaviour(|behaviour| behaviour.audience = Audience::InTurns),
    ),
    (
        "newest-subscriber-only",
        Fault::Behaviour(|behaviour| behaviour.audience = Audience::Newest),
    ),
    (
        "oldest-subscriber-only",
        Fault::Behaviour(|behaviour| behaviour.audience = Audience::Oldest),
    ),
    (
        "zombie-subscribers",
        Fault::Behaviour(|behaviour| behaviour.zombies = true),
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
        Fault::Behaviour(|behaviour| behaviour.answers_at_once = false),
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
        Fault::Behaviour(|behaviour| behaviour.heeds_deadlines = false),
    ),
    (
        "idle-stream-ends",
        Fault::Behaviour(|behaviour| {
            behaviour.streams_last = Some(Duration::from_secs(3));
        }),
    ),
    (
        "stream-ends-after-half-a-minute",
        Fault::Behaviour(|behaviour| {
            behaviour.streams_last = Some(Duration::from_secs(30));
        }),
    ),
    (
        "fiftieth-event-ends-the-stream",
        Fault::Stream(|passage, event| {
            if passage.nth == 49 {
                vec![Delivery::End(Duration::ZERO, StreamEnd::Closed)]
            } else {
                Delivery::now(event)
            }
        }),
    ),
    (
        "events-by-the-dozen",
        Fault::Stream(|passage, event| {
            passage.held.push(event);
            if passage.held.len() < 12 {
                return Vec::new();
            }
            let gathered = std::mem::take(passage.held);
            gathered.into_iter().flat_map(Delivery::now).collect()
        }),
    ),
    (
        "each-subscriber-misses-another",
        Fault::Events(|passage, event| {
            if event.kind != EventKind::Deleted {
                return Delivery::now(event);
            }
            passage.held.push(event.clone());
            if passage.held.len() % 7 == 0 {
                return Vec::new();
            }
            Delivery::now(event)
        }),
    ),
];
