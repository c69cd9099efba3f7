//! What the CRI permits a runtime to do otherwise than the model at its best: no case may fail for
//! it. `tests/defects.rs` runs all of them.

use std::time::Duration;

use super::behaviour::{Behaviour, Delivery, Order, Replay};
use crate::history::{ContainerId, EventKind};

/// One thing that runtimes do differently and may.
#[derive(Clone, Copy, Debug)]
pub struct Variation {
    /// Its name, in kebab-case.
    pub name: &'static str,
    /// What the runtime does.
    pub what: &'static str,
    /// Makes a behaviour do so.
    pub apply: fn(&mut Behaviour),
}

/// All variations.
pub const VARIATIONS: &[Variation] = &[
    Variation {
        name: "no-created-of-sandbox",
        what: "a sandbox has no CREATED event, as with CRI-O",
        apply: |behaviour| {
            behaviour.events.push(|_, event| {
                let sandbox = event.sandbox.as_ref().map(|sandbox| &sandbox.id);
                let own = sandbox.is_some_and(|id| ContainerId::from(id) == event.container);
                if own && event.kind == EventKind::Created {
                    Vec::new()
                } else {
                    Delivery::now(event)
                }
            });
        },
    },
    Variation {
        name: "events-after-answers",
        what: "every event comes 40 ms after the answer to the call that caused it",
        apply: |behaviour| {
            behaviour.events.push(|_, event| {
                let late = Duration::from_millis(40);
                vec![Delivery::after(late, event)]
            });
        },
    },
    Variation {
        name: "answers-after-events",
        what: "every answer comes 40 ms after the events that the call causes",
        apply: |behaviour| {
            behaviour.replies.push(|_, mut answer| {
                answer.after = Some(Duration::from_millis(40));
                answer
            });
        },
    },
    Variation {
        name: "siblings-in-any-order",
        what: "containers of a pod are listed, shown and ended in any order",
        apply: |behaviour| behaviour.siblings = Order::Any,
    },
    Variation {
        name: "replay-to-the-first",
        what: "the first subscriber gets what nobody has heard, as with containerd 2.1 and CRI-O",
        apply: |behaviour| behaviour.replay = Replay::ToFirst,
    },
    Variation {
        name: "subscription-takes-a-moment",
        what: "a subscription is effective 200 ms after it was asked for",
        apply: |behaviour| behaviour.effective_after = Duration::from_millis(200),
    },
];
