//! What a case can expect: one file for each word of the case language, with its shape, its
//! validation, its assessment and its tests; and the verdict on a case by its expectations. Pure.
//!
//! A new check is a file here, its `mod` line, and a line of the list below. [`judge()`] makes the
//! verdict; [`pending`] names what is still to come, for a driver that waits.

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
mod call_edge;
mod check;
mod created_at_valid;
pub(crate) mod duration;
mod events;
mod eventually_known;
mod explained;
mod filtered;
mod final_status;
mod includes;
mod invariant;
mod judge;
pub(crate) mod kind_words;
mod labels;
mod latencies;
mod latency;
mod matches_spec;
mod message_size;
mod name_refs;
mod never;
mod no_repeats;
mod order;
mod own_status;
mod replay;
mod same_status;
mod sandbox_state;
mod sandbox_status;
mod scope;
mod shown;
mod situation;
mod status;
mod status_times;
mod subject_events;
mod subscription;
#[cfg(test)]
pub(crate) mod testing;
mod timing;
mod unchanged;
mod word;

pub use call_edge::CallEdge;
pub use check::Expectation;
pub use judge::{Claim, Judgement, Undecided, judge, pending};
pub use latencies::latencies;
pub use scope::{Kind, Scope, Wanted};
pub use situation::Situation;

check::checks! {
    /// Exactly these events, in this order.
    "events" Events(events::EventsCheck);
    /// These events, in this order; others may stand before, between and after them.
    "includes" Includes(includes::IncludesCheck);
    /// No such event.
    "never" Never(never::NeverCheck);
    /// No event comes twice.
    "no-repeats" NoRepeats(no_repeats::NoRepeatsCheck);
    /// What an event's snapshot says of its own container.
    "status" Status(status::StatusCheck);
    /// Every event carries the status of its sandbox, with the UID that the case gave to the pod.
    "sandbox-status" SandboxStatus(sandbox_status::SandboxStatusCheck);
    /// Every event's snapshot shows the event's own container exactly once, and DELETED's does not.
    "own-status" OwnStatus(own_status::OwnStatusCheck);
    /// When an event arrives, measured from a call.
    "timing" Timing(timing::TimingCheck);
    /// One event arrives before another.
    "order" Order(order::OrderCheck);
    /// Whatever the relists show has been announced by an event: EXITED by STOPPED, absence by
    /// DELETED.
    "announced" Announced(announced::AnnouncedCheck);
    /// What a subscription delivers, and whether and how it ends.
    "subscription" Subscription(subscription::SubscriptionCheck);
    /// An event tells it, or a relist on a new stream shows it.
    "eventually-known" EventuallyKnown(eventually_known::EventuallyKnownCheck);
    /// A new stream brings all that has happened while nobody listened, or nothing of it.
    "replay" Replay(replay::ReplayCheck);
    /// All relists of the sandbox show the same.
    "unchanged" Unchanged(unchanged::UnchangedCheck);
    /// From an event on, every list and status shows as much as it tells.
    "shown" Shown(shown::ShownCheck);
    /// Lists by a filter show it if it passes, and only then.
    "filtered" Filtered(filtered::FilteredCheck);
    /// From the sandbox's STARTED until its STOPPED, events tell the addresses that
    /// `PodSandboxStatus` tells, and there are some.
    "addresses" Addresses(addresses::AddressesCheck);
    /// No call that asks about it fails, unless with `NOT_FOUND`.
    "answered" Answered(answered::AnsweredCheck);
    /// How a container ended is told the same by STOPPED and by every status after it.
    "final" Final(final_status::FinalCheck);
    /// Each status that shows the container EXITED has a message, and there is one, unless the
    /// container is gone.
    "explained" Explained(explained::ExplainedCheck);
    /// What an event shows of its own container is what `ContainerStatus` says next.
    "same-status" SameStatus(same_status::SameStatusCheck);
    /// An event shows the containers that lists before and after it show.
    "all-containers" AllContainers(all_containers::AllContainersCheck);
    /// Every event shows the sandbox, and the container, as they were asked for.
    "matches-spec" MatchesSpec(matches_spec::MatchesSpecCheck);
    /// The state of the sandbox that an event shows.
    "sandbox-state" SandboxState(sandbox_state::SandboxStateCheck);
    /// An event is made after the call that caused it, or after the exit, and before it arrives.
    "created-at-valid" CreatedAtValid(created_at_valid::CreatedAtValidCheck);
    /// The times of each status lie within the calls that set them, and are 0 before.
    "status-times" StatusTimes(status_times::StatusTimesCheck);
    /// How long after its making an event arrives.
    "latency" Latency(latency::LatencyCheck);
    /// How large the messages of events are.
    "message-size" MessageSize(message_size::MessageSizeCheck);
    /// A rule is kept, of which the case provokes the situation.
    "invariant" Invariant(invariant::InvariantCheck);
    /// What became of what calls of the name were to make, whether they failed or not.
    "aftermath" Aftermath(aftermath::AftermathCheck);
}
