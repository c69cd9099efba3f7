//! The rules that hold on every history, whatever the case.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::ahead::no_state_ahead;
use super::audience::all_see_the_same;
use super::ends::{exit_code_of_the_process, what_stopped_tells_stays};
use super::events::{
    created_at_is_now, created_at_never_goes_back, each_event_once, events_in_order,
    known_type_and_whole_id,
};
use super::missed::no_missed_event;
use super::plegs::plegs_agree;
use super::reports::sandbox_reports_are_whole;
use super::sandboxes::{sandbox_as_asked_for, sandbox_with_uid};
use super::siblings::{siblings_in_the_snapshot, snapshots_not_empty};
use super::snapshots::snapshots_never_go_back;
use super::stamps::{made_within_the_call, stamps_in_order};
use super::statuses::{no_empty_status, own_container_once, status_not_older, times_in_order};
use super::strays::no_unknown_id;
use super::streams::streams_stay_open;
use super::{entries_about, name_of};
use crate::history::{CaseHistory, Seq, Sighting, Subject, SubscriptionId};
use crate::outcome::{Level, Levels, Violation};

/// A rule that every history must keep.
#[derive(Clone, Copy, Debug)]
pub struct Invariant {
    /// Its id in the catalogue.
    pub id: &'static str,
    /// The name under which it is listed.
    pub name: &'static str,
    /// What must hold, as a sentence.
    pub sentence: &'static str,
    /// Where the requirement comes from.
    pub source: &'static str,
    /// The ids of the requirements that it checks.
    pub requirements: &'static [&'static str],
    /// How binding it is, for whom.
    pub levels: Levels,
    check: fn(&Invariant, &CaseHistory) -> Vec<Violation>,
}

const MUST_SHOULD: Levels = Levels {
    cache: Some(Level::Must),
    hint: Some(Level::Should),
    observer: None,
};
const MUST_MUST: Levels = Levels {
    cache: Some(Level::Must),
    hint: Some(Level::Must),
    observer: None,
};
const MUST_MAY: Levels = Levels {
    cache: Some(Level::Must),
    hint: Some(Level::May),
    observer: None,
};
const SHOULD_MAY: Levels = Levels {
    cache: Some(Level::Should),
    hint: Some(Level::May),
    observer: None,
};
const SHOULD_SHOULD: Levels = Levels {
    cache: Some(Level::Should),
    hint: Some(Level::Should),
    observer: None,
};
const OBSERVERS: Levels = Levels {
    cache: None,
    hint: None,
    observer: Some(Level::Must),
};

/// The id of the rule that a relist shows nothing that no event has told.
pub const NO_MISSED_EVENT: &str = "INV-11";
/// The id of the rule that both PLEGs believe the same.
pub const PLEGS_AGREE: &str = "INV-13";

/// The id of the rule that a runtime ends no stream.
pub(super) const STREAMS_STAY_OPEN: &str = "INV-21";
/// The id of the rule that what has waited for a subscriber is sent once. It is judged over the
/// whole run: one case seldom has the two streams that it takes.
pub(super) const REPLAYED_ONCE: &str = "INV-25";

/// Those that compare times of the wall clock. They say nothing of a case in which it was set.
const BY_THE_CLOCK: &[&str] = &[
    "INV-04",
    "INV-05",
    "INV-09",
    "INV-12",
    PLEGS_AGREE,
    "INV-15",
    "INV-16",
    "INV-17",
    "INV-18",
    "INV-20",
    "INV-22",
    "INV-23",
    "INV-26",
];

/// All of them, by their ids.
pub const INVARIANTS: &[Invariant] = &[
    Invariant {
        id: "INV-01",
        name: "invariant::events-in-order",
        sentence: "The events of a container come in the order CREATED, STARTED, STOPPED, DELETED, \
                   and none after DELETED.",
        source: "KEP-3386, Runtime Service Changes; cri-o#9738",
        requirements: &["R9", "R10"],
        levels: MUST_SHOULD,
        check: events_in_order,
    },
    Invariant {
        id: "INV-02",
        name: "invariant::each-event-once",
        sentence: "A stream brings each event of a container at most once.",
        source: "cri-o#6625, cri-o#6631, containerd#4769",
        requirements: &["R8"],
        levels: MUST_SHOULD,
        check: each_event_once,
    },
    Invariant {
        id: "INV-03",
        name: "invariant::known-type-and-whole-id",
        sentence: "An event has a type that the CRI defines and the whole id of its container.",
        source: "CRI api.proto, ContainerEventResponse",
        requirements: &["R7", "R11"],
        levels: MUST_MUST,
        check: known_type_and_whole_id,
    },
    Invariant {
        id: "INV-04",
        name: "invariant::created-at-is-now-in-nanoseconds",
        sentence: "created_at is a time in nanoseconds, not before the case and not after the \
                   event's arrival.",
        source: "CRI api.proto, ContainerEventResponse.created_at; cri-o#8580",
        requirements: &["R18", "R19"],
        levels: MUST_SHOULD,
        check: created_at_is_now,
    },
    Invariant {
        id: "INV-05",
        name: "invariant::created-at-never-goes-back",
        sentence: "created_at never decreases from one event of a container to the next.",
        source: "kubelet 1.26 to 1.36, pod cache: an older time is dropped",
        requirements: &["R20"],
        levels: MUST_SHOULD,
        check: created_at_never_goes_back,
    },
    Invariant {
        id: "INV-06",
        name: "invariant::sandbox-with-the-pods-uid",
        sentence: "Every event tells the sandbox's status, with the UID given at RunPodSandbox.",
        source: "kubelet evented.go ignores an event without it; KEP-3386 2026; kubernetes#114371",
        requirements: &["R12"],
        levels: MUST_MUST,
        check: sandbox_with_uid,
    },
    Invariant {
        id: "INV-07",
        name: "invariant::no-empty-status",
        sentence: "Every container status in an event has an id, metadata, an image, a creation time \
                   and an image_ref, which is the same in all statuses of the container.",
        source: "cri-o#9663: a kubelet crashes on a status without an image; toKubeContainerStatus: \
                 image_ref is the imageID of a pod's status",
        requirements: &["R16"],
        levels: MUST_SHOULD,
        check: no_empty_status,
    },
    Invariant {
        id: "INV-08",
        name: "invariant::status-not-older-than-its-event",
        sentence: "In an event, the status of its own container is not older than the event says, \
                   and is absent from DELETED.",
        source: "kubelet evented.go, GeneratePodStatus",
        requirements: &["R17"],
        levels: MUST_MAY,
        check: status_not_older,
    },
    Invariant {
        id: "INV-09",
        name: "invariant::snapshots-never-go-back",
        sentence: "No event shows a container in an earlier state than an event of its pod has shown \
                   before.",
        source: "KEP-3386, Timestamp of the Pod Status; kubelet 1.26 to 1.36 keeps the last one",
        requirements: &["R21"],
        levels: MUST_MAY,
        check: snapshots_never_go_back,
    },
    Invariant {
        id: "INV-10",
        name: "invariant::no-unknown-id",
        sentence: "Every id of an event of the run's pods is one that a call has returned or may \
                   have made, or that a list shows.",
        source: "kubelet generic.go: what is told is looked up in lists; R11 of the kubelet",
        requirements: &["R11"],
        levels: SHOULD_SHOULD,
        check: no_unknown_id,
    },
    Invariant {
        id: NO_MISSED_EVENT,
        name: "invariant::no-missed-event",
        sentence: "Whatever a relist shows of a container, and whatever a call has done to it, has its \
                   event, before or soon after.",
        source: "KEP-3386, Monitoring: missed events are ideally zero; R6 and R23 of the kubelet",
        requirements: &["R6", "R23"],
        levels: MUST_MUST,
        check: no_missed_event,
    },
    Invariant {
        id: "INV-12",
        name: "invariant::all-subscribers-see-the-same",
        sentence: "Of each container, all subscribers that listen and read see the same events in \
                   the same order.",
        source: "containerd#7318 (subscribers took events from each other); R3 of the kubelet",
        requirements: &["R3"],
        levels: OBSERVERS,
        check: all_see_the_same,
    },
    Invariant {
        id: PLEGS_AGREE,
        name: "invariant::plegs-agree",
        sentence: "Where a case is at rest, a kubelet that lives by events believes of its pods what \
                   one believes that relists.",
        source: "kubernetes pkg/kubelet/pleg/evented.go and generic.go of 1.36",
        requirements: &["R15", "R17", "R20", "R21", "R23"],
        levels: MUST_MAY,
        check: plegs_agree,
    },
    Invariant {
        id: "INV-14",
        name: "invariant::own-container-once",
        sentence: "The snapshot of an event shows the event's own container exactly once, as long as \
                   it is not deleted.",
        source: "kubelet evented.go, GeneratePodStatus: what is not there is gone",
        requirements: &["R17"],
        levels: MUST_SHOULD,
        check: own_container_once,
    },
    Invariant {
        id: "INV-15",
        name: "invariant::siblings-in-the-snapshot",
        sentence: "The snapshot of an event shows every container of its sandbox that an earlier event \
                   was about, until its removal begins.",
        source: "kubelet evented.go, GeneratePodStatus: what is not there is gone; kubernetes#121003",
        requirements: &["R15"],
        levels: MUST_MAY,
        check: siblings_in_the_snapshot,
    },
    Invariant {
        id: "INV-16",
        name: "invariant::what-stopped-tells-stays",
        sentence: "How a container ended never changes once STOPPED has told it, neither in its \
                   status nor in later snapshots.",
        source: "CRI api.proto, ContainerStatus; containerd#12260 (OOMKilled came after STOPPED)",
        requirements: &["R17"],
        levels: MUST_SHOULD,
        check: what_stopped_tells_stays,
    },
    Invariant {
        id: "INV-17",
        name: "invariant::times-in-order",
        sentence: "In an event, created_at, started_at and finished_at of a status are set as its \
                   state demands, in this order, and neither was it started after its STARTED was made nor \
                   finished after its STOPPED was.",
        source: "CRI api.proto, ContainerStatus; kubelet toKubeContainerStatus",
        requirements: &["R16", "R17", "C7"],
        levels: MUST_SHOULD,
        check: times_in_order,
    },
    Invariant {
        id: "INV-18",
        name: "invariant::sandbox-as-asked-for",
        sentence: "Every event tells its own sandbox, by the id and the names of RunPodSandbox: READY \
                   until it is stopped, and NOTREADY from its STOPPED on.",
        source: "CRI api.proto, PodSandboxStatus; kubelet evented.go, getPodIPs and GeneratePodStatus",
        requirements: &["R13", "C9"],
        levels: MUST_SHOULD,
        check: sandbox_as_asked_for,
    },
    Invariant {
        id: "INV-19",
        name: "invariant::no-state-ahead-of-time",
        sentence: "No event shows a container in a state that calls prove to have come later.",
        source: "KEP-3386, failure modes (incorrect container statuses); R22 of the kubelet",
        requirements: &["R17", "R22"],
        levels: MUST_MAY,
        check: no_state_ahead,
    },
    Invariant {
        id: "INV-20",
        name: "invariant::exit-code-of-the-process",
        sentence: "STOPPED of a container that ended by itself tells the exit code of its process, and \
                   137 of one that a kill alone can end.",
        source: "CRI api.proto, ContainerStatus.exit_code; cri-o#9846",
        requirements: &["R17", "C8"],
        levels: MUST_SHOULD,
        check: exit_code_of_the_process,
    },
    Invariant {
        id: STREAMS_STAY_OPEN,
        name: "invariant::streams-stay-open",
        sentence: "A runtime ends no event stream while it runs.",
        source: "kubelet 1.26 to 1.36, evented.go: each end is one of five attempts, then no events; \
                 kubernetes#129827",
        requirements: &["R1"],
        levels: MUST_MUST,
        check: streams_stay_open,
    },
    Invariant {
        id: "INV-22",
        name: "invariant::whole-sandbox-reports",
        sentence: "PodSandboxStatus tells nothing of containers, or the statuses of all containers of \
                   the sandbox as they are, and when it read them, in nanoseconds.",
        source: "kubelet 1.26 to 1.36, GetPodStatus: it asks no container then; kubernetes#129857, \
                 containerd#11312, cri-o#8580",
        requirements: &["R24", "R25"],
        levels: MUST_MAY,
        check: sandbox_reports_are_whole,
    },
    Invariant {
        id: "INV-23",
        name: "invariant::stamps-in-order",
        sentence: "No event of a sandbox or its containers is older than an earlier one about another \
                   of them.",
        source: "kubelet 1.26 to 1.36, pod cache: one time for each pod, and an older one is dropped",
        requirements: &["R20"],
        levels: SHOULD_MAY,
        check: stamps_in_order,
    },
    Invariant {
        id: "INV-24",
        name: "invariant::snapshot-not-empty",
        sentence: "An event of a container shows at least one container, as long as its own, or an \
                   older one of its sandbox, is not being removed.",
        source: "kubelet evented.go, GeneratePodStatus: what is not there is gone",
        requirements: &["R15"],
        levels: MUST_MAY,
        check: snapshots_not_empty,
    },
    Invariant {
        id: REPLAYED_ONCE,
        name: "invariant::replayed-once",
        sentence: "An event that one subscriber has got is sent to none that comes after that.",
        source: "KEP-3386 2026 (no replay, no resumption); R8 of the kubelet",
        requirements: &["R8", "R30"],
        levels: SHOULD_SHOULD,
        check: |_, _| Vec::new(),
    },
    Invariant {
        id: "INV-26",
        name: "invariant::made-within-the-call",
        sentence: "CREATED, STARTED and DELETED of a container are made before the call returns that \
                   causes them.",
        source: "kubernetes#123087 (a late STARTED, a second container), kubernetes#137362",
        requirements: &["R29"],
        levels: SHOULD_MAY,
        check: made_within_the_call,
    },
];

/// Checks every invariant on a case's history; at most one violation for each rule and subject.
#[must_use]
pub fn invariants(history: &CaseHistory) -> Vec<Violation> {
    let clock_was_set = history.clock_set_by().is_some();
    INVARIANTS
        .iter()
        .filter(|invariant| !(clock_was_set && BY_THE_CLOCK.contains(&invariant.id)))
        .flat_map(|invariant| (invariant.check)(invariant, history))
        .collect()
}

/// What breaks the invariant of an id; none if there is no such invariant.
pub(super) fn broken_by(id: &str, history: &CaseHistory) -> Option<Vec<Violation>> {
    let invariant = INVARIANTS.iter().find(|invariant| invariant.id == id)?;
    Some((invariant.check)(invariant, history))
}

impl Invariant {
    /// How binding it is for whom it binds most.
    pub(super) fn level(&self) -> Level {
        self.levels.highest().unwrap_or(Level::May)
    }

    /// The invariant's violation by a subject, proven by these of its events.
    pub(super) fn broken<'a>(
        &self,
        subject: &Subject,
        expected: impl Into<String>,
        actual: impl Into<String>,
        proof: impl IntoIterator<Item = &'a Sighting>,
    ) -> Violation {
        let proof = proof.into_iter().map(Sighting::seq).collect();
        self.told(name_of(subject), expected.into(), actual.into(), proof)
    }

    /// The invariant's violation by whatever breaks it.
    pub(super) fn told(
        &self,
        subject: String,
        expected: String,
        actual: String,
        evidence: Vec<Seq>,
    ) -> Violation {
        Violation {
            rule: self.id.to_owned(),
            level: self.level(),
            sentence: self.sentence.to_owned(),
            subject,
            expected,
            actual,
            evidence,
        }
    }

    /// Applies a check to each event; the first finding of each subject counts.
    pub(super) fn on_each_event(
        &self,
        history: &CaseHistory,
        check: impl Fn(&Subject, &Sighting) -> Option<(String, String)>,
    ) -> Vec<Violation> {
        let first = |subject: &Subject| {
            subject.sightings.iter().find_map(|sighting| {
                let (expected, actual) = check(subject, sighting)?;
                Some(self.broken(subject, expected, actual, [sighting]))
            })
        };
        history.subjects().iter().filter_map(first).collect()
    }

    /// Applies a check to each two successive events of those that one stream brought about a
    /// subject and that count.
    pub(super) fn on_each_pair(
        &self,
        history: &CaseHistory,
        counts: impl Fn(&Sighting) -> bool,
        check: impl Fn(&Sighting, &Sighting) -> Option<(String, String)>,
    ) -> Vec<Violation> {
        let first = |subject: &Subject| {
            by_stream(subject).into_values().find_map(|mut sightings| {
                sightings.retain(|sighting| counts(sighting));
                sightings.windows(2).find_map(|pair| {
                    let (expected, actual) = check(pair[0], pair[1])?;
                    Some(self.broken(subject, expected, actual, [pair[0], pair[1]]))
                })
            })
        };
        history.subjects().iter().filter_map(first).collect()
    }
}

/// A runtime may repeat events to a new subscriber, so each stream is judged by itself.
pub(super) fn by_stream(subject: &Subject) -> BTreeMap<SubscriptionId, Vec<&Sighting>> {
    let mut streams = BTreeMap::<_, Vec<_>>::new();
    for sighting in &subject.sightings {
        streams
            .entry(sighting.subscription())
            .or_default()
            .push(sighting);
    }
    streams
}

/// The entries that show what a violation is about: its proof, and what else is known of the
/// subject.
#[must_use]
pub fn context(history: &CaseHistory, violation: &Violation) -> Vec<Seq> {
    let about = |subject: &&Subject| violation.subject.contains(subject.id.as_str());
    let mut entries = violation.evidence.clone();
    for subject in history.subjects().iter().filter(about) {
        entries.extend(entries_about(history, subject));
    }
    entries.sort_unstable();
    entries.dedup();
    entries
}
