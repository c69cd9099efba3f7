//! Events that did not come: what relists and calls prove of containers, beside what was told.

#[cfg(test)]
mod tests;

use super::audience::is_told_elsewhere;
use super::expectations::makes;
use super::invariants::Invariant;
use super::relist::{Relist, relists_of};
use super::transition::{Streams, Transition, had_its_time, transitions};
use crate::history::{CaseHistory, Entry, EventKind, Subject};
use crate::limits;
use crate::outcome::Violation;

/// A proof that something has become of a container.
struct Proof<'a> {
    needed: EventKind,
    /// What proves it, as a phrase in two parts.
    by: (&'static str, &'static str),
    began: &'a Entry,
    ended: &'a Entry,
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
}

/// A kubelet that lives by events does not learn of such a transition before its next relist, which
/// may be five minutes away.
pub(super) fn no_missed_event(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let of_calls = transitions(history);
    let streams = Streams::of(history);
    let missed = |subject: &Subject| {
        let relists = relists_of(history, subject)
            .filter(|relist| listened(history, &streams, subject, relist));
        let relists = relists.filter_map(Proof::of_relist);
        let calls = of_calls.get(&subject.id).into_iter().flatten();
        let mut proofs = relists.chain(calls.map(Proof::of_call));
        proofs.find_map(|proof| missed(rule, history, subject, &proof))
    };
    history.subjects().iter().filter_map(missed).collect()
}

fn missed(
    rule: &Invariant,
    history: &CaseHistory,
    subject: &Subject,
    proof: &Proof<'_>,
) -> Option<Violation> {
    let bound = history.stretched(limits::EVENT_WAIT);
    let needed = proof.needed;
    let told = subject.first(needed);
    if told.is_none() && is_told_elsewhere(history, subject, needed) {
        // That not all subscribers get it is told by a rule of its own.
        return None;
    }
    let late = told.map(|told| {
        let late = told.at().since(proof.ended.at);
        late.saturating_sub(history.held_up(proof.ended.at, told.at()))
    });
    let last = history.entries().last();
    let is_unread = last.is_some_and(|last| history.held_up_before(last.at, bound).is_some());
    let actual = match late {
        None if is_unread => return None,
        None if had_its_time(history, proof.ended.at) => format!("{needed} has not come"),
        Some(late) if late > bound => format!("{needed} came {late:?} later"),
        None | Some(_) => return None,
    };
    let (kind, by) = proof.by;
    let expected = format!("{needed} within {bound:?} of {kind}{by}");
    let mut violation = rule.broken(subject, expected, actual, told);
    let places = [proof.began.seq, proof.ended.seq];
    violation.evidence.extend(places);
    violation.evidence.sort_unstable();
    Some(violation)
}

/// Whether one stream was live from when the subject was asked for until a relist: what has become
/// of it while there was none, no event tells.
fn listened(
    history: &CaseHistory,
    streams: &Streams<'_>,
    subject: &Subject,
    relist: &Relist<'_>,
) -> bool {
    let made = history.calls().find(|call| makes(call, subject));
    let until = relist.ended.seq;
    made.is_none_or(|made| streams.live(made.began().seq, |entry| entry.seq < until))
}

/// What relists and calls have shown and no event has told yet, as a phrase: `STOPPED of c`.
#[must_use]
pub fn unannounced(history: &CaseHistory) -> Option<String> {
    let of_calls = transitions(history);
    let streams = Streams::of(history);
    history.subjects().iter().find_map(|subject| {
        let relists = relists_of(history, subject)
            .filter(|relist| listened(history, &streams, subject, relist));
        let relists = relists.filter_map(|relist| relist.announcement());
        let calls = of_calls.get(&subject.id).into_iter().flatten();
        let shown = relists.map(|(_, needed)| needed);
        let mut shown = shown.chain(calls.map(|transition| transition.needed));
        let untold = |needed: &EventKind| {
            let told = subject.first(*needed).is_some();
            !told && !is_told_elsewhere(history, subject, *needed)
        };
        let needed = shown.find(untold)?;
        Some(format!("{needed} of {}", subject.label()))
    })
}
