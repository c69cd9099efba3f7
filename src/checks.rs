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
mod all_containers;
mod announced;
mod answered;
mod answers;
mod call_edge;
mod check;
mod created_at_valid;
pub(crate) mod duration;
mod events;
mod eventually_known;
mod explained;
mod includes;
mod invariant;
mod judge;
pub(crate) mod kind_words;
mod last_state;
mod latencies;
mod latency;
mod message_size;
mod name_refs;
mod never;
mod no_growth;
mod no_repeats;
mod order;
mod replay;
mod sandbox_state;
mod scope;
mod shown;
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
    "includes" Includes(includes::IncludesCheck);
    /// No such event.
    "never" Never(never::NeverCheck);
    /// No event comes twice.
    "no-repeats" NoRepeats(no_repeats::NoRepeatsCheck);
    /// The status of its own container in an event's snapshot.
    "status" Status(status::StatusCheck);
    /// Every event carries the status of its sandbox, with the UID that the case gave to the pod.
    /// Until its DELETED, every event's snapshot shows the event's own container exactly once; that
    /// of DELETED does not show it.
    /// When an event arrives, measured from a call.
    "timing" Timing(timing::TimingCheck);
    /// One event arrives before another.
    "order" Order(order::OrderCheck);
    /// An event has announced each state that a relist shows: EXITED by STOPPED, absence by
    /// DELETED.
    "announced" Announced(announced::AnnouncedCheck);
    /// The events that a subscription delivers, and whether and how it ends.
    "subscription" Subscription(subscription::SubscriptionCheck);
    /// An event reports the transition, or a relist shows its result.
    "eventually-known" EventuallyKnown(eventually_known::EventuallyKnownCheck);
    /// A new stream replays either all events from the time without a subscription, or none.
    "replay" Replay(replay::ReplayCheck);
    /// Every list and status after an event shows the state that the event reported, or a later
    /// one.
    "shown" Shown(shown::ShownCheck);
    /// From the sandbox's STARTED until its STOPPED, events carry the addresses that
    /// `PodSandboxStatus` returns, and there is at least one.
    "addresses" Addresses(addresses::AddressesCheck);
    /// `ContainerStatus` and `PodSandboxStatus` succeed, or fail with `NOT_FOUND`.
    "answered" Answered(answered::AnsweredCheck);
    /// Each status that shows the container EXITED has a message. There is at least one such
    /// status, unless the container is removed.
    "explained" Explained(explained::ExplainedCheck);
    /// An event's snapshot contains the containers that the lists before and after it contain.
    "all-containers" AllContainers(all_containers::AllContainersCheck);
    /// The state in the last list or status that shows the sandbox or container, whether an event
    /// reported it or not.
    "last-state" LastState(last_state::LastStateCheck);
    /// The state of the sandbox in an event's snapshot.
    "sandbox-state" SandboxState(sandbox_state::SandboxStateCheck);
    /// `created_at` of an event lies between the call or exit that caused it and its arrival.
    "created-at-valid" CreatedAtValid(created_at_valid::CreatedAtValidCheck);
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
