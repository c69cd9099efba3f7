//! The kinds of findings, each listed once: its key, its guarantee, its meaning and its sentences.
//!
//! In a sentence `{name}` is replaced by the value of a fact: in the first sentence by an expected
//! one, or else an actual one, and in the second in the reverse order. Text between `[` and `]` is
//! omitted if a fact in it is missing.
//!
//! Long, because it lists every kind of finding.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::guarantee::Guarantee;
use super::mismatch::Sentences;
use crate::history::EventKind;

/// Makes the enum of all kinds.
macro_rules! kinds {
    ($(
        $key:literal $variant:ident $guarantee:ident
        $meaning:literal $expected:literal $actual:literal;
    )+) => {
        /// The problem, by a stable key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[derive(Serialize, JsonSchema)]
        pub enum Kind {
            $(#[doc = $meaning] #[serde(rename = $key)] $variant,)+
        }

        impl Kind {
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The key in files and reports.
            pub fn key(self) -> &'static str {
                match self {
                    $(Self::$variant => $key,)+
                }
            }

            /// The meaning, as a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)+
                }
            }

            /// The guarantee that a finding of this kind breaks in a case of no situation of its
            /// own.
            pub fn guarantee(self) -> Guarantee {
                match self {
                    $(Self::$variant => Guarantee::$guarantee,)+
                }
            }

            /// The sentences for the expected and the actual state.
            pub(super) fn sentences(self) -> Sentences {
                match self {
                    $(Self::$variant => Sentences { expected: $expected, actual: $actual },)+
                }
            }
        }
    };
}

kinds! {
    "missing-created" MissingCreated Complete
        "CREATED is due, and has not come."
        "{event}[ of {of}][ within {within}][ of {cause}][, {because}]"
        "{event} has not come[, but came under the unknown id {id}]";
    "missing-started" MissingStarted Complete
        "STARTED is due, and has not come."
        "{event}[ of {of}][ within {within}][ of {cause}][, {because}]"
        "{event} has not come[, but came under the unknown id {id}]";
    "missing-stopped" MissingStopped Complete
        "STOPPED is due, and has not come."
        "{event}[ of {of}][ within {within}][ of {cause}][, {because}]"
        "{event} has not come[, but came under the unknown id {id}]";
    "missing-deleted" MissingDeleted Complete
        "DELETED is due, and has not come."
        "{event}[ of {of}][ within {within}][ of {cause}][, {because}]"
        "{event} has not come[, but came under the unknown id {id}]";
    "late-event" LateEvent Prompt
        "An event came later than it is due."
        "{event} within {within} of {cause}"
        "{event} came {pause} later";
    "event-out-of-order" EventOutOfOrder Ordered
        "An event came after one that it must precede."
        "{event} before {after}"
        "{event} after {after}[, {because}]";
    "duplicate-event" DuplicateEvent Once
        "A stream delivered an event twice."
        "one {event} event"
        "{event} again after {pause}[, {because}]";
    "replayed-event" ReplayedEvent Once
        "A later subscriber got an event that an earlier one had got."
        "{event} not to be sent to a subscriber that came after it"
        "it had come to an earlier one, and was sent to this one, too";
    "unknown-event-type" UnknownEventType Addressed
        "An event has a type that the CRI does not define."
        "a type from 0 to 3"
        "type {number}";
    "empty-id" EmptyId Addressed
        "An event has no container id."
        "a container id"
        "an empty one";
    "shortened-id" ShortenedId Addressed
        "An event has only the beginning of a container id."
        "the whole id {id}"
        "the shortened id {id}";
    "unknown-id" UnknownId Addressed
        "An event has an id that no call returned and no list shows."
        "the id of something that a call has made or a list has shown"
        "{event} of an id that no call has returned and no list shows";
    "created-at-not-current" CreatedAtNotCurrent Truthful
        "`created_at` of an event is no time of the case in nanoseconds."
        "created_at from {earliest} to {latest}"
        "{time}[, which {hint}]";
    "created-at-decreased" CreatedAtDecreased Ordered
        "`created_at` of an event is before that of the container's event before it."
        "created_at of {earliest} or later"
        "{time}, which is {apart-ns} ns earlier";
    "created-at-before-sibling" CreatedAtBeforeSibling Ordered
        "`created_at` of an event is before that of an earlier event about another of its sandbox."
        "{event} of {of}, which came after {cause}, to be made after it, too, and not {apart-ns} \
         ns before"
        "its created_at is earlier";
    "created-at-after-call" CreatedAtAfterCall Current
        "`created_at` of an event is after the return of the call that causes it."
        "{event} to be made before {method} returned"
        "its created_at is later";
    "uncaused-event" UncausedEvent Once
        "An event came before any call that can cause it."
        "{event} after a call that can cause it"
        "{event} without one";
    "missing-sandbox-status" MissingSandboxStatus Addressed
        "An event has no `pod_sandbox_status`."
        "pod_sandbox_status with the UID `{uid}`"
        "no pod_sandbox_status in {event}";
    "missing-sandbox-metadata" MissingSandboxMetadata Addressed
        "The `pod_sandbox_status` of an event has no metadata."
        "pod_sandbox_status with the UID `{uid}`"
        "no metadata in the pod_sandbox_status of {event}";
    "wrong-pod-uid" WrongPodUid Addressed
        "The `pod_sandbox_status` of an event has the UID of another pod."
        "pod_sandbox_status with the UID `{uid}`"
        "the UID `{uid}` in {event}";
    "wrong-sandbox-state" WrongSandboxState Truthful
        "The `pod_sandbox_status` of an event has another state than the sandbox."
        "the sandbox {state} in {event}"
        "{state}";
    "outdated-status" OutdatedStatus Truthful
        "The status of an event's own container is older than the event."
        "{states} in {event}"
        "{state} in {event}";
    "status-in-deleted" StatusInDeleted Truthful
        "DELETED has a status of its own container."
        "no status of it in DELETED"
        "{state} in DELETED";
    "snapshot-regressed" SnapshotRegressed Truthful
        "An event shows a container in an earlier state than an event before it."
        "{state} or later in the snapshots that follow"
        "{state} after {after-state}";
    "own-container-missing" OwnContainerMissing Truthful
        "The snapshot of an event lacks the event's own container."
        "a status of it among the {among} in {event}"
        "it is missing";
    "sibling-missing" SiblingMissing Truthful
        "The snapshot of an event lacks another container of the sandbox."
        "a status of it among the {among} in {event} of {of}"
        "it is missing[, {state} before]";
    "container-repeated" ContainerRepeated Truthful
        "The snapshot of an event has a container more than once."
        "one status of it among the {among} in {event} of {of}"
        "there are {count}";
    "wrong-exit-code" WrongExitCode Consistent
        "An event has another exit code than it should."
        "exit code {exit-code}[ in {event}][ in {method}]"
        "exit code {exit-code}[, reason `{reason}`]";
    "wrong-last-state" WrongLastState Current
        "The last list or status shows another state or exit code than it should."
        "that the last list or status {text}[, with exit code {exit-code}]"
        "{method} {text}[, with exit code {exit-code}, reason `{reason}`]";
    "snapshot-stale" SnapshotStale Truthful
        "The snapshot of an event shows a state that was over before the event's cause."
        "a state in which it was between the cause and the arrival of {event} of {of}"
        "{state}, which was over before";
    "snapshot-premature" SnapshotPremature Truthful
        "The snapshot of an event shows a state that began after the event's arrival."
        "a state from before {cause} in {event}"
        "{state}";
    "snapshot-fractured" SnapshotFractured Truthful
        "The snapshot of an event shows states of two containers that were not at one time."
        "states that were at one time, in {event} of {of}"
        "{text}, which were not at one time";
    "snapshot-before-previous" SnapshotBeforePrevious Truthful
        "The snapshot of an event shows an earlier time than the one before it."
        "a state after that in the snapshot before, in {event} of {of}"
        "{text}, which was over then";
    "times-out-of-order" TimesOutOfOrder Consistent
        "Two times of a status are in the wrong order."
        "{field} not {pause} after {after-field} in [{event}][{method}]"
        "{field} after {after-field}";
    "zero-time-of-go" ZeroTimeOfGo Consistent
        "A time that is not set is the zero time of Go in nanoseconds, and not 0."
        "no {field} of what is {state} in [{event}][{method}]"
        "the zero time of Go in nanoseconds, which is in the year 1754";
    "missing-on-subscription" MissingOnSubscription Independent
        "A subscription lacks an event that another one got."
        "{event} on {of}, too[ ({subject})]"
        "it has not come";
    "missing-on-main-stream" MissingOnMainStream Independent
        "The stream of all cases lacks an event that a subscription got."
        "{event} of {of} on the stream of all cases, too[ ({subject})]"
        "it has not come";
    "different-order" DifferentOrder Independent
        "Two subscriptions got the events of a container in different orders."
        "{event} on {of} in the same place as on other streams[ ({subject})]"
        "it came in another one";
    "stream-ended" StreamEnded Continuous
        "The runtime ended a stream while it kept running."
        "a stream that stays open as long as the runtime runs"
        "{end}; after five such ends a kubelet up to 1.37 follows no events until it is restarted";
    "kubelet-panic" KubeletPanic Truthful
        "A kubelet that follows events panics on one."
        "a kubelet takes the event"
        "the kubelet panics: {panic}";
    "beliefs-differ" BeliefsDiffer Truthful
        "A kubelet that follows events has another view of a pod than one that relists."
        "both kubelets believe the same of {of}"
        "by relists {by-relists}, by events {by-events}[, since {cause}]";
    "missing-timestamp" MissingTimestamp Consistent
        "`PodSandboxStatus` has statuses of containers, and no timestamp."
        "a timestamp beside the statuses of containers"
        "none beside {count}";
    "timestamp-not-current" TimestampNotCurrent Consistent
        "The timestamp of `PodSandboxStatus` is no time of the call in nanoseconds."
        "a timestamp from {earliest} to {latest}"
        "{time}[, which {hint}]";
    "timestamp-before-event" TimestampBeforeEvent Consistent
        "The timestamp of `PodSandboxStatus` is before an event that had come."
        "a timestamp not before {event}, which had come"
        "it is {apart-ns} ns before it";
    "container-of-other-sandbox" ContainerOfOtherSandbox Consistent
        "`PodSandboxStatus` has a container of another sandbox, or an event one of another pod."
        "no status of {of}"
        "it is shown, though it is of another sandbox";
    "nothing-observed" NothingObserved Complete
        "The subject of a check was not observed."
        "{text}"
        "it has not come";
    "nothing-made" NothingMade Complete
        "A case created no object for a name in a check."
        "`{of}`"
        "the case made none, so that nothing could be checked";
    "unmet-wait" UnmetWait Complete
        "A step waited for a state that did not occur."
        "{of}[ within {within}]"
        "it did not come";
    "refuted-wait" RefutedWait Current
        "A step waited for a state and observed another one."
        "{of}[ within {within}]"
        "{text}";
    "stream-ended-in-wait" StreamEndedInWait Continuous
        "The stream ended while a step waited for an event."
        "{of}[ within {within}]"
        "the stream ended before: {end}; after five such ends a kubelet up to 1.37 follows no \
         events until it is restarted";
    "wrong-events" WrongEvents Complete
        "The events differ from those that a check requires."
        "{events}"
        "{events}";
    "wrong-order" WrongOrder Ordered
        "The events that a check demands came in another order."
        "{events}, in this order"
        "{events}";
    "unwanted-event" UnwantedEvent Once
        "A forbidden event arrived."
        "no {event}"
        "{events}";
    "repeated-event" RepeatedEvent Once
        "An event came more than once."
        "{event} once"
        "{events}";
    "partial-replay" PartialReplay Recoverable
        "A new subscription replayed only a part of the earlier events."
        "{events}, or nothing at all"
        "{events}";
    "new-created-at" NewCreatedAt Recoverable
        "A replayed event has a new `created_at`."
        "the time at which it happened"
        "a new created_at in {event}";
    "too-late" TooLate Prompt
        "An event came later than a check allows."
        "{event} within {within}"
        "{pause} {cause}";
    "too-early" TooEarly Prompt
        "An event came earlier than a check allows."
        "{event} not before {within} have passed"
        "{pause} {cause}";
    "after-other-event" AfterOtherEvent Ordered
        "An event came after one of another container or sandbox that it must precede."
        "{event} before {before} of {of}"
        "it came later";
    "wrong-list" WrongList Current
        "A filtered list shows other objects than the filter matches."
        "{state} in {method}"
        "{state}";
    "no-address" NoAddress Truthful
        "`PodSandboxStatus` has no address."
        "an address in PodSandboxStatus"
        "none";
    "wrong-address" WrongAddress Truthful
        "An event has other addresses than `PodSandboxStatus`."
        "the address {address} in {event}"
        "{address}";
    "answer-stale" AnswerStale Current
        "A list or status shows a state that was over before it was asked for, or a call succeeds \
         that needs such a state."
        "a state from after {cause} in {method}"
        "{state}";
    "answer-premature" AnswerPremature Current
        "A list or status shows a state that began after the answer."
        "a state from before {cause} in {method}"
        "{state}";
    "missing-in-answer" MissingInAnswer Current
        "A list or status lacks an object that exists."
        "it in {method}, after {cause}"
        "{text}";
    "repeated-in-answer" RepeatedInAnswer Consistent
        "A list or status has an object more than once."
        "it in {method} once"
        "there are {count}";
    "failed-call" FailedCall Current
        "A call about a container or sandbox failed with another code than `NOT_FOUND`."
        "a status of {method}, or NOT_FOUND"
        "{text}";
    "missing-message" MissingMessage Consistent
        "A status of an exited container has no message."
        "a message in the status of {of}"
        "none, reason `{reason}`";
    "differs-from-spec" DiffersFromSpec Consistent
        "A statement has another value of a field than was requested."
        "{field} {value} in [{event}][{method}], as was requested"
        "{field} {value}";
    "field-changed" FieldChanged Consistent
        "Two statements have different values of a field that cannot have changed."
        "{field} {value} in [{event}][{method}], as {because} has it"
        "{field} {value}";
    "field-unset" FieldUnset Consistent
        "A statement lacks a field that the state demands."
        "{field} of what is {state} in [{event}][{method}]"
        "none";
    "field-too-early" FieldTooEarly Consistent
        "A statement has a value in a field that its state does not have yet."
        "no {field} of what is {state} in [{event}][{method}]"
        "{field} {value}";
    "created-at-before-cause" CreatedAtBeforeCause Truthful
        "`created_at` of an event is before its cause."
        "created_at of {event} not before {cause}"
        "{pause} before it";
    "created-at-after-arrival" CreatedAtAfterArrival Truthful
        "`created_at` of an event is after its arrival."
        "created_at of {event} not after its arrival"
        "{pause} after it";
    "time-before-call" TimeBeforeCall Consistent
        "A time is before the call that sets it."
        "{field} in [{event}][{method}] not before {cause}"
        "{pause} before it";
    "time-after-call" TimeAfterCall Consistent
        "A time is after the call that sets it, or after the statement that has it."
        "{field} in [{event}][{method}] not after {cause}"
        "{pause} after it";
    "too-slow" TooSlow Prompt
        "Events take longer on their way than a check allows."
        "{event} within {within}, 99 of 100 within {p99}"
        "median {median}, p99 {p99}, worst {worst} of {count}";
    "call-refused" CallRefused Current
        "A call of a step that must succeed failed, or one that stops or removes what a case has left."
        "{method} to succeed"
        "{text}";
    "unanswered" Unanswered Current
        "A call had no answer within its deadline, or long after its grace period or time-out."
        "an answer of {method} within {within}"
        "none[, it came after {pause}]";
    "too-large" TooLarge Bounded
        "The message of an event is larger than a check allows."
        "a message of {event} with at most {count} bytes"
        "{count} bytes";
    "unwanted-announcement" UnwantedAnnouncement Once
        "Events report the object of a creation, although they must not."
        "no event"
        "{events} of {id}";
    "unwanted-start" UnwantedStart Once
        "The object of a creation was started, although it must not be."
        "no STARTED"
        "STARTED of {id}";
    "unwanted-listing" UnwantedListing Current
        "A list shows the object of a creation, although it must not."
        "nothing of it in any list"
        "{method} shows {id}";
    "missing-own-status" MissingOwnStatus Truthful
        "An event lacks the status of its own container."
        "the container's own status in {event}"
        "it is not there";
    "unwanted-exit-code" UnwantedExitCode Consistent
        "An event has an exit code that it must not have."
        "exit code any but {exit-code} in {event}"
        "exit code {exit-code}, reason `{reason}`";
    "wrong-reason" WrongReason Consistent
        "An event has another reason than it should."
        "reason `{reasons}` in {event}"
        "reason `{reason}`, exit code {exit-code}";
    "unwanted-reason" UnwantedReason Consistent
        "An event has a reason that it must not have."
        "any reason but `{reason}` in {event}"
        "reason `{reason}`, exit code {exit-code}";
    "late-headers" LateHeaders Continuous
        "The headers of the response came later than a check allows."
        "the headers of the response within {within}"
        "they came later";
    "missing-headers" MissingHeaders Continuous
        "The headers of the response did not come."
        "the headers of the response within {within}"
        "they did not come";
    "stream-open" StreamOpen Continuous
        "A stream stayed open that the runtime should end."
        "an end with {end}"
        "the stream stayed open";
    "wrong-end" WrongEnd Continuous
        "A stream ended otherwise than it should."
        "an end with {end}[, not before {within} have passed]"
        "{end} after {pause}";
    "silent-end" SilentEnd Independent
        "The runtime ended a stream with OK, though events were lost."
        "an end that reports what has not come"
        "the runtime ended the stream with OK";
    "replays-differ" ReplaysDiffer Recoverable
        "Two subscriptions replayed different events."
        "the same of what happened before, on both streams"
        "one has {event} and {cause}";
    "subscription-ended" SubscriptionEnded Continuous
        "The runtime ended a subscription that should stay open."
        "a stream that stays open"
        "{end}";
    "event-before-subscription" EventBeforeSubscription Once
        "A subscription got an event that is older than its request."
        "no event from before the subscription"
        "{event} from {pause} before it";
    "growth" Growth Bounded
        "The runtime uses more of a resource than before, although its purpose has ended."
        "at most {limit} more {resource} than {count}"
        "{count}";
    "no-such-rule" NoSuchRule Complete
        "A check names an unknown rule."
        "a rule {of}"
        "there is none";
}

impl Kind {
    /// The kinds for a missing event.
    pub const MISSING: [Self; 4] = [
        Self::MissingCreated,
        Self::MissingStarted,
        Self::MissingStopped,
        Self::MissingDeleted,
    ];

    /// The kind for a missing event. An event of a type that the CRI does not define cannot be
    /// missing.
    pub fn missing(event: EventKind) -> Self {
        match event {
            EventKind::Created | EventKind::Unknown(_) => Self::MissingCreated,
            EventKind::Started => Self::MissingStarted,
            EventKind::Stopped => Self::MissingStopped,
            EventKind::Deleted => Self::MissingDeleted,
        }
    }

    pub fn from_key(key: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().copied();
        known.clone().find(|kind| kind.key() == key).ok_or_else(|| {
            let likeness = |kind: &Self| strsim::jaro_winkler(kind.key(), key);
            let near = known.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
            let hint = near.filter(|near| likeness(near) > 0.8);
            let hint = hint.map(|near| format!("; do you mean `{near}`?"));
            format!(
                "there is no kind of findings `{key}`{}",
                hint.unwrap_or_default()
            )
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Kind;

    #[test]
    fn keys_are_in_kebab_case_and_unique() {
        let mut keys = BTreeSet::new();
        for kind in Kind::ALL {
            let words = kind.key().split('-');
            let plain = |word: &str| {
                let mut letters = word.bytes();
                !word.is_empty() && letters.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit())
            };
            assert!(words.clone().all(plain), "{kind}");
            assert!(keys.insert(kind.key()), "{kind}");
            assert_eq!(Kind::from_key(kind.key()), Ok(*kind));
        }
    }

    #[test]
    fn meanings_are_sentences() {
        for kind in Kind::ALL {
            let meaning = kind.meaning();
            let is_begun = meaning.starts_with(|it: char| it.is_uppercase() || it == '`');
            assert!(is_begun && meaning.ends_with('.'), "{kind}: {meaning}");
        }
    }
}
