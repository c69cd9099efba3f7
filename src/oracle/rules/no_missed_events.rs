//! INV-11 and INV-33: each transition that a relist or a call proves has its event.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::history::{
    Body, CaseHistory, ContainerState, Entry, EventKind, HostFact, Request, SandboxState, Seq,
    Subject, SubjectKind,
};
use crate::limits;
use crate::oracle::clocks::deadline_passed;
use crate::oracle::fields::Message;
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MUST, MUST_SHOULD};
use crate::oracle::objects::Object;
use crate::oracle::subjects::how_it_ended;
use crate::oracle::subscribers::is_on_other_stream;
use crate::oracle::transition::Transition;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-11",
    name: "invariant::no-missed-events",
    sentence: "Each transition of a container that a relist shows or a call makes has its event, \
                   before or soon after.",
    source: "KEP-3386, Monitoring: missed events are ideally zero; R6 and R23 of the kubelet",
    requirements: &["R6", "R23"],
    kinds: &[
        Kind::MissingCreated,
        Kind::MissingStarted,
        Kind::MissingStopped,
        Kind::MissingDeleted,
        Kind::LateEvent,
    ],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_MUST,
    check,
};

/// CREATED of a sandbox is no MUST: SBX-01 asks for it.
pub(in crate::oracle) const OF_SANDBOXES: Invariant = Invariant {
    id: "INV-33",
    name: "invariant::no-missed-sandbox-events",
    sentence: "A sandbox that a call or a relist shows to run, to be stopped or to be removed has \
               the event of that, before or soon after.",
    kinds: &[
        Kind::MissingStarted,
        Kind::MissingStopped,
        Kind::MissingDeleted,
        Kind::LateEvent,
    ],
    levels: MUST_SHOULD,
    ..RULE
};

/// A list that would show an object.
#[derive(Clone, Copy, Debug)]
struct Relist<'a> {
    began: &'a Entry,
    ended: &'a Entry,
    /// A sandbox that is READY is RUNNING, and one that is not is EXITED.
    state: Option<ContainerState>,
}

impl Relist<'_> {
    /// The events that report the container's change from its state in one relist to that in the
    /// next, if one stream was live; and that state.
    fn announced_since(&self, before: &Self) -> (&'static str, &'static [EventKind]) {
        use ContainerState::{Created, Exited, Running, Unknown};
        use EventKind as Kind;

        let needed: &[EventKind] = match [before.state, self.state] {
            [None, Some(Created)] => &[Kind::Created],
            [None, Some(Running)] => &[Kind::Created, Kind::Started],
            [None, Some(Exited)] => &[Kind::Created, Kind::Stopped],
            [Some(Created), Some(Running)] => &[Kind::Started],
            [Some(Created | Running), Some(Exited)] | [Some(Running), Some(Unknown(_))] => {
                &[Kind::Stopped]
            }
            [Some(Running), None] => &[Kind::Stopped, Kind::Deleted],
            [Some(Created | Exited), None] => &[Kind::Deleted],
            _ => &[],
        };
        let shown = self.announcement().map(|(shown, _)| shown);
        (shown.unwrap_or("shows it UNKNOWN"), needed)
    }

    /// Whether it shows only UNKNOWN or undefined states.
    fn is_unknown(&self) -> bool {
        matches!(self.state, Some(ContainerState::Unknown(_)))
    }

    /// The state that it shows, and the event that announces it; `None` if no event does.
    fn announcement(&self) -> Option<(&'static str, EventKind)> {
        match self.state {
            None => Some(("does not show it", EventKind::Deleted)),
            Some(ContainerState::Created) => Some(("shows it CREATED", EventKind::Created)),
            Some(ContainerState::Running) => Some(("shows it RUNNING", EventKind::Started)),
            Some(ContainerState::Exited) => Some(("shows it EXITED", EventKind::Stopped)),
            Some(ContainerState::Unknown(_)) => None,
        }
    }
}

/// The lists that would show the subject, from its creation to the teardown, in order.
fn relists_of<'a>(
    index: &Index<'a>,
    subject: &Subject,
) -> impl DoubleEndedIterator<Item = Relist<'a>> + use<'a> {
    let history = index.history;
    let object = index.object(&subject.id);
    let made = match object.and_then(|object| object.creation) {
        // Others may have created it at any time.
        None => history.is_of_foreign_pod().then(Seq::default),
        Some(call) => call.ended().map(|entry| entry.seq),
    };
    let answers = object.map(Object::answers).unwrap_or_default().into_iter();
    answers.filter_map(move |(call, ended, said)| {
        let began = call.began();
        let is_list = matches!(
            call.request(),
            Request::ListContainers { .. } | Request::ListSandboxes { .. }
        );
        let in_time = made.is_some_and(|made| began.seq > made) && history.within_steps(ended.seq);
        let state = match said.ok()? {
            Some(Message::Item(item)) => Some(item.state),
            Some(Message::SandboxItem(item)) => Some(state_of_sandbox(item.state)),
            Some(_) => return None,
            None => None,
        };
        (is_list && in_time).then_some(Relist {
            began,
            ended,
            state,
        })
    })
}

fn is_sandbox(subject: &Subject) -> bool {
    matches!(subject.kind, SubjectKind::Sandbox(_))
}

fn state_of_sandbox(state: SandboxState) -> ContainerState {
    match state {
        SandboxState::Ready => ContainerState::Running,
        SandboxState::NotReady => ContainerState::Exited,
        SandboxState::Unknown(number) => ContainerState::Unknown(number),
    }
}

/// A proof of a transition of a container or a sandbox.
pub(super) struct Proof<'a> {
    pub(super) needed: EventKind,
    /// The call, relist or fact that proves it, as a phrase in two parts.
    by: (&'static str, &'static str),
    began: &'a Entry,
    pub(super) ended: &'a Entry,
}

impl<'a> Proof<'a> {
    fn of_relist(relist: Relist<'a>) -> Option<Self> {
        let (shown, needed) = relist.announcement()?;
        Some(Self {
            needed,
            by: ("a relist that ", shown),
            began: relist.began,
            ended: relist.ended,
        })
    }

    fn of_call(transition: &Transition<'a>) -> Self {
        Self {
            needed: transition.needed,
            by: ("", transition.method),
            began: transition.began,
            ended: transition.ended,
        }
    }

    /// How much later than the proof the event has come, without the time for which the suite was
    /// held up; `None` if it has not.
    pub(super) fn pause(&self, history: &CaseHistory, subject: &Subject) -> Option<Duration> {
        let arrival = subject.first(self.needed)?;
        Some(history.not_held_up(self.ended.at, arrival.at()))
    }

    /// The violation by an event that came this much later than the proof.
    pub(super) fn late(
        &self,
        rule: &Invariant,
        subject: &Subject,
        bound: Duration,
        pause: Duration,
    ) -> Violation {
        let actual = [Fact::Event(self.needed), Fact::Pause(pause)];
        let mismatch = Mismatch::new(Kind::LateEvent, self.due(bound), actual);
        self.broken_by(rule, subject, mismatch)
    }

    fn due(&self, bound: Duration) -> [Fact; 2] {
        let cause = self.by.0.to_owned() + self.by.1;
        [Fact::Within(bound), Fact::Cause(cause)]
    }

    fn broken_by(&self, rule: &Invariant, subject: &Subject, mismatch: Mismatch) -> Violation {
        let mut violation = rule.violation_by(subject, mismatch, subject.first(self.needed));
        violation.evidence.extend([self.began.seq, self.ended.seq]);
        violation.evidence.sort_unstable();
        violation
    }
}

/// An evented kubelet learns of a missed transition only at its next relist, up to five minutes
/// later.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let missed = |subject| {
        let proofs = proofs(index, subject);
        proofs
            .iter()
            .find_map(|proof| missed(rule, history, subject, proof))
    };
    let of_sandboxes = rule.id == OF_SANDBOXES.id;
    let subjects = history.subjects().iter();
    let judged = subjects.filter(|subject| is_sandbox(subject) == of_sandboxes);
    judged.filter_map(missed).collect()
}

/// The proofs of an object's transitions that a stream could report.
pub(super) fn proofs<'a>(index: &Index<'a>, subject: &'a Subject) -> Vec<Proof<'a>> {
    let mut proofs = changes(index, subject);
    if !index.history.is_of_foreign_pod() {
        let relists = relists_of(index, subject).filter(|relist| listened(index, subject, relist));
        let calls = index.transitions(&subject.id).iter();
        proofs.extend(relists.filter_map(Proof::of_relist));
        proofs.extend(calls.map(Proof::of_call));
    }
    proofs.retain(|proof| !is_sandbox(subject) || proof.needed != EventKind::Created);
    proofs
}

/// The changes of an object from one relist to the next, also on a stream that was opened after its
/// creation, and the end of its process. Its first state is no change. UNKNOWN is no end for a
/// kubelet, but it ends the container and creates another one, in any state of its stream: that is
/// due from each relist that shows it.
fn changes<'a>(index: &Index<'a>, subject: &'a Subject) -> Vec<Proof<'a>> {
    let bound = index.history.scaled(limits::EVENT_WAIT);
    let live = |since: &Entry, until: &Entry| {
        let in_time = |entry: &Entry| entry.at.since(until.at) <= bound;
        index.streams().live(since.seq, in_time)
    };
    let mut before: Option<Relist<'_>> = None;
    let pairs = relists_of(index, subject).filter_map(|after| {
        let pair = before.map(|before| [before, after]);
        if !after.is_unknown() {
            before = Some(after);
        }
        pair
    });
    let proofs = pairs.flat_map(|[before, after]| {
        let (shown, needed) = after.announced_since(&before);
        let since = if after.is_unknown() { after } else { before };
        let was_live = live(since.began, after.ended);
        let proof = move |needed: &EventKind| Proof {
            needed: *needed,
            by: ("a relist that ", shown),
            began: after.began,
            ended: after.ended,
        };
        needed.iter().filter(move |_| was_live).map(proof)
    });
    let ends = index.history.entries().iter().filter_map(|entry| {
        let entry: &Entry = entry;
        let Body::Fact { fact, .. } = &entry.body else {
            return None;
        };
        let is_own =
            matches!(fact, HostFact::ProcessGone { container: of, .. } if *of == subject.id);
        (is_own && live(entry, entry)).then_some(Proof {
            needed: EventKind::Stopped,
            by: (
                "a look that shows its process gone",
                " and its state RUNNING",
            ),
            began: entry,
            ended: entry,
        })
    });
    proofs.chain(ends).collect()
}

fn missed(
    rule: &Invariant,
    history: &CaseHistory,
    subject: &Subject,
    proof: &Proof<'_>,
) -> Option<Violation> {
    let bound = history.scaled(limits::EVENT_WAIT);
    if let Some(pause) = proof.pause(history, subject) {
        return (pause > bound).then(|| proof.late(rule, subject, bound, pause));
    }
    let needed = proof.needed;
    // An event that not all subscribers get breaks INV-12.
    let is_missing =
        deadline_passed(history, proof.ended.at) && !is_on_other_stream(history, subject, needed);
    is_missing.then(|| {
        let missing = Mismatch::missing(needed, proof.due(bound));
        proof.broken_by(
            rule,
            subject,
            missing.with(how_it_ended(history, subject, needed)),
        )
    })
}

/// Whether one stream was live from the creation of the subject until the event's deadline after a
/// relist, or the end of the steps: no event reports a transition without a stream, and a late
/// event can fall into the gap between two.
fn listened(index: &Index<'_>, subject: &Subject, relist: &Relist<'_>) -> bool {
    let history = index.history;
    let bound = history.scaled(limits::EVENT_WAIT);
    let creation = index.object(&subject.id).and_then(|object| object.creation);
    let listening = |entry: &Entry| {
        let in_time = entry.at.since(relist.ended.at) <= bound;
        entry.seq < relist.ended.seq || in_time && history.within_steps(entry.seq)
    };
    creation.is_none_or(|made| index.streams().live(made.began().seq, listening))
}

/// The first event that is due according to a relist or a call and has not arrived, as a phrase:
/// `STOPPED of c`.
pub fn unannounced(index: &Index<'_>) -> Option<String> {
    index.history.subjects().iter().find_map(|subject| {
        let needed = unannounced_of(index, subject)?;
        Some(format!("{needed} of {}", subject.label()))
    })
}

/// The first event of a container or a sandbox that is due and has not arrived.
pub(crate) fn unannounced_of<'a>(index: &Index<'a>, subject: &'a Subject) -> Option<EventKind> {
    let is_missing = |needed: &EventKind| {
        let has_arrived = subject.first(*needed).is_some();
        !has_arrived && !is_on_other_stream(index.history, subject, *needed)
    };
    let mut shown = proofs(index, subject).into_iter().map(|proof| proof.needed);
    shown.find(is_missing)
}
