//! The checks of the case language, one line each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scope::Scope;
use super::word::Word;
use super::{
    addresses, aftermath, all_containers, announced, answered, created_at_valid, ended, events,
    eventually_known, explained, filtered, final_status, headers, includes, invariant, latency,
    matches_spec, message_size, never, no_repeats, nothing_older, order, own_status, replay,
    same_events, same_replay, same_status, sandbox_state, sandbox_status, shown, status,
    status_times, stays_open, timing, unchanged,
};
use crate::outcome::Level;

/// Something that must be seen once the steps are over, and how binding that is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expectation {
    /// How binding it is.
    pub level: Level,
    /// What must be seen.
    pub check: Check,
}

/// Makes the enum of all checks, and gives each its word.
macro_rules! checks {
    ($($(#[doc = $doc:literal])+ $word:literal $variant:ident($shape:ty);)+) => {
        /// What must be seen. Where a name stands for several containers, each of them is checked;
        /// a name that stands for none breaks the expectation.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(
            rename_all = "kebab-case",
            expecting = "a check such as `never: {of: c, event: deleted}`"
        )]
        pub enum Check {
            $($(#[doc = $doc])+ #[serde(rename = $word)] $variant($shape),)+
        }

        impl Check {
            /// Its word in a case.
            #[must_use]
            pub fn word(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $word,)+
                }
            }

            pub(super) fn as_word(&self) -> &dyn Word {
                match self {
                    $(Self::$variant(check) => check,)+
                }
            }
        }
    };
}

checks! {
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
    /// From when it is live, each subscription gets what the stream that all cases read brings, and
    /// nothing else; or its end says that it does not.
    "same-events" SameEvents(same_events::SameEventsCheck);
    /// What happened before the subscription was asked for is told on it as on the next stream of
    /// all cases: all of it on both, or nothing on either.
    "same-replay" SameReplay(same_replay::SameReplayCheck);
    /// The runtime has not ended the subscription.
    "stays-open" StaysOpen(stays_open::StaysOpenCheck);
    /// No event on the subscription was made before it was asked for.
    "nothing-older" NothingOlder(nothing_older::NothingOlderCheck);
    /// The headers of the response come in time.
    "headers" Headers(headers::HeadersCheck);
    /// The runtime ends the subscription so.
    "ended" Ended(ended::EndedCheck);
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

impl Check {
    /// Reports what makes no sense in a case that binds these names, or can never fail.
    pub fn validate(&self, scope: &mut dyn Scope<'_>) {
        self.as_word().validate(scope);
    }
}
