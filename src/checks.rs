//! The expectations of a case: one file for each word of the case language, with its shape, its
//! validation, its assessment and its tests; and the verdict on a case by its expectations. Pure.
//!
//! A new check is a file here, its `mod` line, and a line of the list below. [`judge()`] returns
//! the verdict; [`pending`] names the missing event for a driver that waits.

#![cfg_attr(
    test,
    expect(
        clippy::needless_pass_by_value,
        clippy::needless_raw_string_hashes,
        reason = "this is how expect-test is used"
    )
)]

mod addresses;
mod aftermath;
mod answers;
mod call_edge;
mod check;
pub(crate) mod duration;
mod events;
mod invariant;
mod judge;
pub(crate) mod kind_words;
mod latencies;
mod latency;
mod message_size;
mod name_refs;
mod no_growth;
mod order;
mod replay;
mod scope;
mod situation;
mod status;
mod subject_events;
mod subscription;
#[cfg(test)]
pub(crate) mod testing;
mod timing;
mod word;

pub use call_edge::CallEdge;
pub use check::Expectation;
pub use invariant::is_invariant;
pub use judge::{Claim, Undecided, judge, pending};
pub use latencies::latencies;
pub use scope::{Kind, Scope, Wanted};
pub use situation::Situation;

check::checks! {
    /// Exactly these events, in this order.
    "events" Events(events::EventsCheck);
    /// These events, in this order; others may come before, between and after them.
    "includes" Includes(events::IncludesCheck);
    /// No such event.
    "never" Never(events::NeverCheck);
    /// No event comes twice.
    "no-repeats" NoRepeats(events::NoRepeatsCheck);
    /// The status of its own container in an event's snapshot.
    "status" Status(status::StatusCheck);
    /// When an event arrives, measured from a call.
    "timing" Timing(timing::TimingCheck);
    /// One event arrives before another.
    "order" Order(order::OrderCheck);
    /// The events that a subscription delivers, and whether and how it ends.
    "subscription" Subscription(subscription::SubscriptionCheck);
    /// A new stream replays either all events from the time without a subscription, or none.
    "replay" Replay(replay::ReplayCheck);
    /// From the sandbox's STARTED until its STOPPED, events carry the addresses that
    /// `PodSandboxStatus` returns, and there is at least one.
    "addresses" Addresses(addresses::AddressesCheck);
    /// `ContainerStatus` and `PodSandboxStatus` succeed, or fail with `NOT_FOUND`.
    "answered" Answered(answers::AnsweredCheck);
    /// Each status that shows the container EXITED has a message. There is at least one such
    /// status, unless the container is removed.
    "explained" Explained(answers::ExplainedCheck);
    /// The state in the last list or status that shows the sandbox or container, whether an event
    /// reported it or not.
    "last-state" LastState(answers::LastStateCheck);
    /// The time from an event's `created_at` to its arrival.
    "latency" Latency(latency::LatencyCheck);
    /// The size of the messages of events.
    "message-size" MessageSize(message_size::MessageSizeCheck);
    /// The runtime uses no more at the last measurement than at the first.
    "no-growth" NoGrowth(no_growth::NoGrowthCheck);
    /// An invariant holds in a situation that the case provokes.
    "invariant" Invariant(invariant::InvariantCheck);
    /// The remains of a sandbox or container whose creation may have failed.
    "aftermath" Aftermath(aftermath::AftermathCheck);
}
