//! What a history proves: the invariants that hold on every history, and the expectations of the
//! case that caused it. Pure: a verdict can be recomputed from a recorded history at any time.
//!
//! [`judge`] convicts by the case's own expectations, [`invariants`] by the rules of
//! [`INVARIANTS`], [`WholeRun`] by what comes only after a case was judged.
//! [`pending`] tells what is still to come, for a driver that waits.

mod capabilities;
mod clocks;
mod expectations;
mod index;
mod invariants;
mod lifecycle;
mod relist;
mod rules;
#[cfg(test)]
pub(crate) mod script;
mod situation;
mod streams;
mod subscribers;
#[cfg(test)]
mod tests;
mod transition;
mod whole_run;

pub use capabilities::Measuring;
pub use expectations::{latencies, pending};
pub use invariants::{Invariant, context, invariants};
pub use rules::no_missed_events::unannounced;
pub use rules::{INVARIANTS, NO_MISSED_EVENT, PLEGS_AGREE};
pub use whole_run::WholeRun;

use std::time::Duration;

use crate::case::Case;
use crate::history::{Body, CaseHistory, Seq, Sighting, StepsEnd, Subject};
use crate::outcome::{Level, Mismatch, Violation};

/// What a history says about its case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Broken expectations that convict.
    pub violations: Vec<Violation>,
    /// Broken expectations of a lower level.
    pub advice: Vec<Violation>,
    /// Why the case proves nothing, if it does not.
    pub undecided: Option<Undecided>,
}

/// Why a case proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// A step could not be done.
    Error(String),
    /// The situation did not arise.
    Inconclusive(String),
    /// The runtime does otherwise than the case presumes, and may.
    Skip(String),
}

/// Judges a case by its expectations, on what its steps caused.
#[must_use]
pub fn judge(case: &Case, history: &CaseHistory) -> Judgement {
    let mut judgement = Judgement::default();
    match history.steps_end() {
        Some(StepsEnd::Complete) => {
            // Who reads of an OOM kill asks first what proves that there was one.
            let facts = history.entries().iter();
            let facts = facts
                .filter(|entry| case.provokes.is_some() && matches!(entry.body, Body::Fact { .. }));
            let facts: Vec<Seq> = facts.map(|entry| entry.seq).collect();
            for mut violation in expectations::check(case, history) {
                violation.evidence.extend(&facts);
                violation.evidence.sort_unstable();
                violation.evidence.dedup();
                match violation.level {
                    Level::Must => judgement.violations.push(violation),
                    Level::Should | Level::May => judgement.advice.push(violation),
                }
            }
            let undecided = situation::missing(case, history);
            let holds = judgement.violations.is_empty();
            let unproven = || expectations::unproven(case, history).filter(|_| holds);
            judgement.undecided = undecided.or_else(unproven).map(Undecided::Inconclusive);
        }
        Some(StepsEnd::Unmet) => match unmet_wait(case, history) {
            Some(Ok(violation)) => match streams::lost_with_the_runtime(history) {
                None => judgement.violations.push(violation),
                Some(reason) => judgement.undecided = Some(Undecided::Error(reason)),
            },
            Some(Err(reason)) => judgement.undecided = Some(Undecided::Inconclusive(reason)),
            None => {
                let reason = "the history does not tell which wait was in vain".to_owned();
                judgement.undecided = Some(Undecided::Error(reason));
            }
        },
        Some(StepsEnd::Inconclusive(reason)) => {
            judgement.undecided = Some(Undecided::Inconclusive(reason.clone()));
        }
        Some(StepsEnd::NotApplicable(reason)) => {
            judgement.undecided = Some(Undecided::Skip(reason.clone()));
        }
        Some(StepsEnd::Error(reason)) => {
            judgement.undecided = Some(Undecided::Error(reason.clone()));
        }
        None => {
            let reason = "the history ends before the case's steps do".to_owned();
            judgement.undecided = Some(Undecided::Error(reason));
        }
    }
    if judgement.undecided.is_some() {
        // Whatever was broken was broken in another situation than the case is about.
        judgement.violations.clear();
        judgement.advice.clear();
    }
    judgement
}

/// The step that waited in vain; or why that proves nothing.
fn unmet_wait(case: &Case, history: &CaseHistory) -> Option<Result<Violation, String>> {
    history
        .entries()
        .iter()
        .rev()
        .find_map(|entry| match &entry.body {
            Body::Waited {
                wanted,
                met: false,
                bound,
                instead,
                ..
            } => Some(history.held_up_before(entry.at, *bound).map_or_else(
                || Ok(in_vain(case, history, (entry.seq, wanted, *bound), instead)),
                |held_up| Err(unread(&within(wanted, *bound), held_up)),
            )),
            _ => None,
        })
}

/// The violation of a wait for something that did not come.
fn in_vain(
    case: &Case,
    history: &CaseHistory,
    (at, wanted, bound): (Seq, &str, Duration),
    instead: &str,
) -> Violation {
    let (actual, seq) = match end_of_stream(history, at) {
        _ if !instead.is_empty() => (instead.to_owned(), None),
        Some((seq, how)) => (format!("the stream ended before: {how}"), Some(seq)),
        None => ("it did not come".to_owned(), None),
    };
    Violation {
        rule: case.id.clone(),
        level: Level::Must,
        sentence: "Each awaited event arrives in time.".to_owned(),
        subject: wanted.to_owned(),
        mismatch: Mismatch::in_words(within(wanted, bound), actual),
        evidence: seq.into_iter().chain([at]).collect(),
    }
}

/// How the stream of all cases had ended by then, if it had, though nobody gave it up.
fn end_of_stream(history: &CaseHistory, by: Seq) -> Option<(Seq, String)> {
    let entries = history.entries().iter();
    let mut before = entries.rev().filter(|entry| entry.seq < by);
    before.find_map(|entry| match &entry.body {
        Body::SubscriptionEnded { end, .. } => {
            Some(streams::unasked(end).map(|how| (entry.seq, how)))
        }
        Body::SubscriptionOpened { .. } => Some(None),
        _ => None,
    })?
}

/// Why it proves nothing that something has not come.
fn unread(awaited: &str, held_up: Duration) -> String {
    format!("{awaited} has not come, and the suite itself was held up for {held_up:?} meanwhile")
}

/// What was to come, or did not, and in which time, if there was any.
fn within(what: &str, bound: Duration) -> String {
    if bound.is_zero() {
        what.to_owned()
    } else {
        format!("{what} within {bound:?}")
    }
}

/// The entries about a subject: its calls and its events, the material of most evidence.
fn entries_about(history: &CaseHistory, subject: &Subject) -> Vec<Seq> {
    let calls = history
        .calls()
        .filter(|call| expectations::is_about(call, subject));
    let calls = calls.flat_map(|call| [Some(call.began().seq), call.ended().map(|end| end.seq)]);
    let mut entries: Vec<Seq> = calls.flatten().collect();
    entries.extend(subject.sightings.iter().map(Sighting::seq));
    entries.sort_unstable();
    entries
}

/// How a subject is named in a violation.
fn name_of(subject: &Subject) -> String {
    let label = subject.label();
    if label == subject.id.as_str() {
        label
    } else {
        format!("{label} ({})", subject.id)
    }
}
