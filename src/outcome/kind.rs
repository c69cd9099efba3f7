//! The kinds of findings, each listed once: its key, what it means, and how it is put in words.
//!
//! In a sentence `{name}` stands for the value of a fact: in the first sentence of one that was
//! expected, or else of one that was seen, and in the second the other way round. What stands
//! between `[` and `]` is left out where a fact in it is missing.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Makes the enum of all kinds.
macro_rules! kinds {
    ($($key:literal $variant:ident $meaning:literal $expected:literal $actual:literal;)+) => {
        /// What is wrong, by a stable key.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize,
        )]
        pub enum Kind {
            $(#[doc = $meaning] #[serde(rename = $key)] $variant,)+
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The key by which files and reports name it.
            #[must_use]
            pub fn key(self) -> &'static str {
                match self {
                    $(Self::$variant => $key,)+
                }
            }

            /// What it means, as a sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)+
                }
            }

            /// How it is put in words: what should have been, and what was.
            pub(super) fn sentences(self) -> Sentences {
                match self {
                    $(Self::$variant => Sentences { expected: $expected, actual: $actual },)+
                }
            }
        }
    };
}

/// The words for what a finding expected and saw.
pub(super) struct Sentences {
    pub(super) expected: &'static str,
    pub(super) actual: &'static str,
}

kinds! {
    "missing-created" MissingCreated
        "CREATED is due, and has not come."
        "{event}[ of {of}][ within {within} of {cause}]"
        "{event} has not come";
    "missing-started" MissingStarted
        "STARTED is due, and has not come."
        "{event}[ of {of}][ within {within} of {cause}]"
        "{event} has not come";
    "missing-stopped" MissingStopped
        "STOPPED is due, and has not come."
        "{event}[ of {of}][ within {within} of {cause}]"
        "{event} has not come";
    "missing-deleted" MissingDeleted
        "DELETED is due, and has not come."
        "{event}[ of {of}][ within {within} of {cause}]"
        "{event} has not come";
    "late-event" LateEvent
        "An event came later than it is due."
        "{event} within {within} of {cause}"
        "{event} came {pause} later";
    "event-out-of-order" EventOutOfOrder
        "An event came after one that it must precede."
        "{event} before {after}"
        "{event} after {after}";
    "late-event-out-of-order" LateEventOutOfOrder
        "The same, after the case was judged."
        "{event} before {after}"
        "{after} and, {pause} later, {event}, when its case had been judged";
    "duplicate-event" DuplicateEvent
        "A stream brought an event twice."
        "one {event} event"
        "{event} again after {pause}";
    "late-duplicate-event" LateDuplicateEvent
        "The same, after the case was judged."
        "one {event} event"
        "{event} and, {pause} later, {event}, when its case had been judged";
    "replayed-event" ReplayedEvent
        "A later subscriber got an event that an earlier one had got."
        "{event} not to be sent to a subscriber that came after it"
        "it had come to an earlier one, and was sent to this one, too";
    "unknown-event-type" UnknownEventType
        "An event has a type that the CRI does not define."
        "a type from 0 to 3"
        "type {number}";
    "empty-id" EmptyId
        "An event has no container id."
        "a container id"
        "an empty one";
    "shortened-id" ShortenedId
        "An event has only the beginning of a container id."
        "the whole id {id}"
        "the shortened id {id}";
    "unknown-id" UnknownId
        "An event has an id that no call returned and no list shows."
        "the id of something that a call has made or a list has shown"
        "{event} of an id that no call has returned and no list shows";
    "created-at-not-current" CreatedAtNotCurrent
        "`created_at` of an event is no time of the case in nanoseconds."
        "created_at from {earliest} to {latest}"
        "{time}[, which {hint}]";
    "created-at-decreased" CreatedAtDecreased
        "`created_at` of an event is before that of the container's event before it."
        "created_at of {earliest} or later"
        "{time}, which is {apart-ns} ns earlier";
    "created-at-before-sibling" CreatedAtBeforeSibling
        "`created_at` of an event is before that of an earlier event about another of its sandbox."
        "{event} of {of}, which came after {cause}, to be made after it, too, and not {apart-ns} \
         ns before"
        "its created_at is earlier";
    "created-at-after-call" CreatedAtAfterCall
        "`created_at` of an event is after the return of the call that causes it."
        "{event} to be made before {method} returned"
        "its created_at is later";
    "missing-sandbox-status" MissingSandboxStatus
        "An event has no `pod_sandbox_status`."
        "pod_sandbox_status with the UID `{uid}`"
        "no pod_sandbox_status in {event}";
    "missing-sandbox-metadata" MissingSandboxMetadata
        "The `pod_sandbox_status` of an event has no metadata."
        "pod_sandbox_status with the UID `{uid}`"
        "no metadata in the pod_sandbox_status of {event}";
    "wrong-pod-uid" WrongPodUid
        "The `pod_sandbox_status` of an event has the UID of another pod."
        "pod_sandbox_status with the UID `{uid}`"
        "the UID `{uid}` in {event}";
    "wrong-sandbox-field" WrongSandboxField
        "A field of an event's `pod_sandbox_status` has another value than `RunPodSandbox` gave."
        "the sandbox with the {field} `{value}` in {event}"
        "the {field} `{value}`";
    "wrong-sandbox-state" WrongSandboxState
        "The `pod_sandbox_status` of an event has another state than the sandbox."
        "the sandbox {state} in {event}"
        "{state}";
    "incomplete-status" IncompleteStatus
        "A container status of an event lacks a required field."
        "an id, metadata, an image, its reference and created_at in each status"
        "status {place} of {event} has no {field}";
    "image-ref-changed" ImageRefChanged
        "A container's `image_ref` is not the same in all of its statuses."
        "image_ref `{value}`, as was shown first"
        "image_ref `{value}`";
    "outdated-status" OutdatedStatus
        "The status of an event's own container is older than the event."
        "{states} in {event}"
        "{state} in {event}";
    "status-in-deleted" StatusInDeleted
        "DELETED has a status of its own container."
        "no status of it in DELETED"
        "{state} in DELETED";
    "snapshot-regressed" SnapshotRegressed
        "An event shows a container in an earlier state than an event before it."
        "{state} or later in the snapshots that follow"
        "{state} after {after-state}";
    "own-container-missing" OwnContainerMissing
        "The snapshot of an event lacks the event's own container."
        "one status of it among the {among} in {event}"
        "it is missing from {event}";
    "own-container-repeated" OwnContainerRepeated
        "The snapshot of an event has the event's own container more than once."
        "one status of it among the {among} in {event}"
        "there are {count} in {event}";
    "sibling-missing" SiblingMissing
        "The snapshot of an event lacks another container of the sandbox."
        "a status of it among the {among} in {event} of {of}"
        "it is missing";
    "empty-snapshot" EmptySnapshot
        "The snapshot of an event has no container, though the sandbox has one."
        "a container in {event}, as one is there"
        "the snapshot of {event} is empty";
    "exit-status-changed" ExitStatusChanged
        "A later status reports an end of a container other than STOPPED did."
        "{field} {value}, as STOPPED reported"
        "{field} {value}";
    "wrong-exit-code" WrongExitCode
        "STOPPED has another exit code than the process."
        "exit code {exit-code} in STOPPED"
        "exit code {exit-code}, reason `{reason}`";
    "premature-state" PrematureState
        "An event shows a container in a state that calls prove to have come later."
        "{state} in {event}, as {method} found it later"
        "{state}";
    "missing-time" MissingTime
        "A status in an event lacks a time that its state demands."
        "{field} in {event}[, of {of}]"
        "none, of what is {state}";
    "times-out-of-order" TimesOutOfOrder
        "Two times of a status in an event are in the wrong order."
        "{field} not {pause} after {after-field} in {event}[, of {of}]"
        "{field} after {after-field}";
    "missing-on-subscription" MissingOnSubscription
        "A subscription lacks an event that another one got."
        "{event} on {of}, too"
        "it has not come";
    "missing-on-main-stream" MissingOnMainStream
        "The stream of all cases lacks an event that a subscription got."
        "{event} of {of} on the stream of all cases, too"
        "it has not come";
    "different-order" DifferentOrder
        "Two subscriptions got the events of a container in different orders."
        "{event} on {of} in the same place as on other streams"
        "it came in another one";
    "stream-ended" StreamEnded
        "The runtime ended a stream while it went on."
        "a stream that stays open as long as the runtime runs"
        "{end}";
    "kubelet-panic" KubeletPanic
        "A kubelet that follows events panics on one."
        "a kubelet takes the event"
        "the kubelet panics: {panic}";
    "beliefs-differ" BeliefsDiffer
        "A kubelet that follows events believes something else of a pod than one that relists."
        "both kubelets believe the same of {of}"
        "by relists {by-relists}, by events {by-events}";
    "missing-timestamp" MissingTimestamp
        "`PodSandboxStatus` has statuses of containers, and no timestamp."
        "a timestamp beside the statuses of containers"
        "none beside {count}";
    "timestamp-not-current" TimestampNotCurrent
        "The timestamp of `PodSandboxStatus` is no time of the call in nanoseconds."
        "a timestamp from {earliest} to {latest}"
        "{time}[, which {hint}]";
    "timestamp-before-event" TimestampBeforeEvent
        "The timestamp of `PodSandboxStatus` is before an event that had come."
        "a timestamp not before {event}, which had come"
        "it is {apart-ns} ns before it";
    "container-missing" ContainerMissing
        "`PodSandboxStatus` lacks a container of the sandbox."
        "a status of {of} among the {among}"
        "it is missing";
    "container-of-other-sandbox" ContainerOfOtherSandbox
        "`PodSandboxStatus` has a container of another sandbox."
        "no status of {of}"
        "it is shown, though it is of another sandbox";
    "removed-container" RemovedContainer
        "`PodSandboxStatus` has a container that was removed."
        "no status of {of}"
        "it is shown, after its removal";
    "contradicted-status" ContradictedStatus
        "`PodSandboxStatus` shows a container otherwise than calls and events."
        "{value} of {of}, as {cause}"
        "{value}";
    "unsorted" Unsorted
        "A finding of a check."
        "{text}"
        "{text}";
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}
