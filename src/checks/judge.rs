//! The verdict on a case by its expectations, from the effects of its steps.
//!
//! Each check is assessed for each sandbox or container of its name, as holding, broken or pending.
//! A driver waits while a check is pending; at the end, a pending check is broken.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use super::check::Expectation;
use super::situation::{self, Situation};
use super::word::About;
use super::word::Finding::{Broken, Holds, Pending, Unproven};
use crate::history::{Body, CaseHistory, EventKind, HostInstant, Seq, StepsEnd, SubjectKind};
use crate::oracle::{
    Index, held_up_at_the_end, lost_with_the_runtime, refused_step, unexpected_end,
};
use crate::outcome::{Fact, Facts, Kind, Level, Mismatch, Violation};

/// The parts of a case that determine its verdict.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    pub id: &'a str,
    pub title: &'a str,
    /// The checks, and their requirement levels.
    pub expectations: &'a [Expectation],
    /// The situation without which the case proves nothing.
    pub provokes: Option<Situation>,
    /// Whether it sets the host's wall clock.
    pub sets_clock: bool,
}

/// The verdict of a history on its case, with the evidence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Broken expectations that fail the case.
    pub violations: Vec<Violation>,
    /// Broken expectations of a lower level.
    pub advice: Vec<Violation>,
    /// The reason why the case proves nothing, if so.
    pub undecided: Option<Undecided>,
}

/// The reason why a case proves nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// A step could not be executed.
    Error(String),
    /// The situation did not arise.
    Inconclusive(String),
    /// The runtime behaves in another permitted way than the case assumes.
    Skip(String),
}

impl Claim<'_> {
    pub fn kinds(&self) -> BTreeSet<Kind> {
        let of_checks = self.expectations.iter();
        let of_checks = of_checks.flat_map(|expectation| expectation.check.kinds());
        let of_waits = OF_WAITS.into_iter().chain(Kind::MISSING);
        of_checks.chain(of_waits).chain([OF_NAMES]).collect()
    }
}

/// The kinds of findings of an unsuccessful wait.
const OF_WAITS: [Kind; 3] = [Kind::UnmetWait, Kind::RefutedWait, Kind::StreamEndedInWait];

/// The kind of finding of a check with an unbound name.
const OF_NAMES: Kind = Kind::NothingMade;

pub fn judge(claim: &Claim<'_>, index: &Index<'_>) -> Judgement {
    let history = index.history;
    let mut judgement = Judgement::default();
    match history.steps_end() {
        Some(StepsEnd::Complete) => {
            // The evidence of a violation begins with the proof of the provoked OOM kill.
            let facts = history.entries().iter();
            let facts = facts.filter(|entry| {
                claim.provokes.is_some() && matches!(entry.body, Body::Fact { .. })
            });
            let facts: Vec<Seq> = facts.map(|entry| entry.seq).collect();
            for mut violation in broken_expectations(claim, index) {
                violation.evidence.extend(&facts);
                violation.evidence.sort_unstable();
                violation.evidence.dedup();
                match violation.level {
                    Level::Must => judgement.violations.push(violation),
                    Level::Should | Level::May => judgement.advice.push(violation),
                }
            }
            let undecided = situation::missing(claim, history);
            let holds = judgement.violations.is_empty();
            let unproven = || unproven(claim, index).filter(|_| holds);
            judgement.undecided = undecided.or_else(unproven).map(Undecided::Inconclusive);
        }
        Some(StepsEnd::Unmet) => match unmet_wait(claim, history) {
            Some(Ok(violation)) => match lost_with_the_runtime(history) {
                None => judgement.violations.push(violation),
                Some(reason) => judgement.undecided = Some(Undecided::Error(reason)),
            },
            Some(Err(reason)) => judgement.undecided = Some(Undecided::Inconclusive(reason)),
            None => {
                let reason = "the history does not record which wait was in vain".to_owned();
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
            // INV-30 judges the refusal.
            let refused = refused_step(history);
            judgement.undecided = Some(match refused {
                Some(_) => Undecided::Inconclusive(reason.clone()),
                None => Undecided::Error(reason.clone()),
            });
        }
        None => {
            let reason = "the history ends before the case's steps do".to_owned();
            judgement.undecided = Some(Undecided::Error(reason));
        }
    }
    let broken = judgement.violations.iter_mut();
    for violation in broken.chain(&mut judgement.advice) {
        name_unknown(history, violation);
    }
    if judgement.undecided.is_some() {
        // The expectations are for a situation that did not arise.
        judgement.violations.clear();
        judgement.advice.clear();
    }
    judgement
}

/// Adds the event of the case's pods with an unknown id that a missing event may be, if there is
/// one: its id, and its arrival as evidence.
fn name_unknown(history: &CaseHistory, violation: &mut Violation) {
    let Some(missing) = violation.missing() else {
        return;
    };
    let subjects = history.subjects().iter();
    let mut unknown = subjects.filter(|subject| matches!(subject.kind, SubjectKind::Stray));
    let Some(arrival) = unknown.find_map(|subject| subject.first(missing)) else {
        return;
    };
    let id = Fact::Id(arrival.event().container.to_string());
    let mismatch = &mut violation.mismatch;
    mismatch.actual = mismatch.actual.iter().cloned().chain([id]).collect();
    violation.evidence.push(arrival.seq());
    violation.evidence.sort_unstable();
}

/// The violation of the wait that timed out; or the reason why it proves nothing.
fn unmet_wait(claim: &Claim<'_>, history: &CaseHistory) -> Option<Result<Violation, String>> {
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
                || {
                    Ok(in_vain(
                        claim,
                        history,
                        (entry.seq, wanted, *bound),
                        instead,
                    ))
                },
                |held_up| Err(unread(&within(wanted, *bound), held_up)),
            )),
            _ => None,
        })
}

fn in_vain(
    claim: &Claim<'_>,
    history: &CaseHistory,
    (at, wanted, bound): (Seq, &str, Duration),
    instead: &str,
) -> Violation {
    let within = (!bound.is_zero()).then_some(Fact::Within(bound));
    let expected = |of: &str| [Fact::Of(of.to_owned())].into_iter().chain(within.clone());
    let expected_wait = || expected(wanted).collect::<Facts>();
    let (mismatch, seq) = match end_of_stream(history, at) {
        _ if !instead.is_empty() => {
            let instead = [Fact::Text(instead.to_owned())];
            let refuted = Mismatch::new(Kind::RefutedWait, expected_wait(), instead);
            (refuted, None)
        }
        Some((seq, how)) => {
            let how = [Fact::End(how)];
            let ended = Mismatch::new(Kind::StreamEndedInWait, expected_wait(), how);
            (ended, Some(seq))
        }
        None => match awaited(wanted) {
            Some((event, of)) => (Mismatch::missing(event, expected(of)), None),
            None => (Mismatch::new(Kind::UnmetWait, expected_wait(), []), None),
        },
    };
    let subject = awaited(wanted).map_or(wanted, |(_, of)| of);
    Violation {
        rule: claim.id.to_owned(),
        level: Level::Must,
        sentence: match mismatch.kind {
            Kind::RefutedWait => "Each step ends as the case demands.",
            _ => "Each awaited event arrives in time.",
        }
        .to_owned(),
        subject: subject.to_owned(),
        mismatch,
        evidence: seq.into_iter().chain([at]).collect(),
    }
}

/// The event that a wait is for, and its subject.
fn awaited(wanted: &str) -> Option<(EventKind, &str)> {
    use EventKind::{Created, Deleted, Started, Stopped};

    let (event, of) = wanted.split_once(" of ")?;
    let mut events = [Created, Started, Stopped, Deleted].into_iter();
    let event = events.find(|kind| kind.to_string() == event)?;
    Some((event, of))
}

/// The end of the main stream before an entry, if the runtime ended it.
fn end_of_stream(history: &CaseHistory, by: Seq) -> Option<(Seq, String)> {
    let entries = history.entries().iter();
    let mut before = entries.rev().filter(|entry| entry.seq < by);
    before.find_map(|entry| match &entry.body {
        Body::SubscriptionEnded { end, .. } => {
            Some(unexpected_end(end).map(|how| (entry.seq, how)))
        }
        Body::SubscriptionOpened { .. } => Some(None),
        _ => None,
    })?
}

/// The reason why a missing event proves nothing.
fn unread(awaited: &str, held_up: Duration) -> String {
    let below_ms = Duration::from_nanos(u64::from(held_up.subsec_nanos()) % 1_000_000);
    let held_up = held_up.saturating_sub(below_ms);
    format!(
        "{awaited} was awaited in vain, and the suite itself was held up for {held_up:?} meanwhile"
    )
}

/// The awaited event or state, with the wait's bound if it had one.
fn within(what: &str, bound: Duration) -> String {
    if bound.is_zero() {
        what.to_owned()
    } else {
        format!("{what} within {bound:?}")
    }
}

/// The event that the first pending MUST of the case waits for, as a phrase: `STOPPED of c`.
pub fn pending(claim: &Claim<'_>, index: &Index<'_>) -> Option<String> {
    claim
        .expectations
        .iter()
        .filter(|expectation| expectation.level == Level::Must)
        .map(|expectation| expectation.check.as_word())
        .filter(|check| check.is_awaited())
        .flat_map(|check| check.findings(index))
        .find_map(|(about, finding)| match finding {
            Pending { missing, .. } => Some(format!("{} of {}", missing.expected(), about.label)),
            Holds | Broken { .. } | Unproven(_) => None,
        })
}

/// The broken expectations of a case after its steps.
pub(super) fn broken_expectations(claim: &Claim<'_>, index: &Index<'_>) -> Vec<Violation> {
    claim
        .expectations
        .iter()
        .flat_map(|expectation| broken(claim, expectation, index))
        .collect()
}

fn broken(claim: &Claim<'_>, expectation: &Expectation, index: &Index<'_>) -> Vec<Violation> {
    let (level, check) = (expectation.level, expectation.check.as_word());
    let violation = |subject: String, mismatch, evidence| Violation {
        rule: claim.id.to_owned(),
        level,
        sentence: claim.title.to_owned(),
        subject,
        mismatch,
        evidence,
    };
    let declared = |about: About, mismatch: Mismatch, evidence| {
        let (word, kind) = (expectation.check.word(), mismatch.kind);
        debug_assert!(check.kinds().contains(&kind), "`{word}` has no `{kind}`");
        violation(about.name, mismatch, evidence)
    };
    let mut names = check.names().into_iter();
    if let Some(name) = names.find(|name| !check.is_present(index, name)) {
        let of = [Fact::Of(name.to_owned())];
        let mismatch = Mismatch::new(OF_NAMES, of, []);
        return vec![violation(name.to_owned(), mismatch, Vec::new())];
    }
    let is_unread = held_up_at_the_end(index.history).is_some();
    let broken = check
        .findings(index)
        .into_iter()
        .filter_map(|(about, finding)| match finding {
            Holds | Unproven(_) => None,
            Pending { .. } if is_unread => None,
            Pending {
                missing: mismatch,
                evidence,
            }
            | Broken { mismatch, evidence } => Some(declared(about, mismatch, evidence)),
        });
    broken.collect()
}

/// The reason why a MUST is neither kept nor broken: the suite itself was held up.
fn unproven(claim: &Claim<'_>, index: &Index<'_>) -> Option<String> {
    let history = index.history;
    if let Some(held_up) = held_up_at_the_end(history)
        && let Some(awaited) = pending(claim, index)
    {
        return Some(unread(&awaited, held_up));
    }
    let ended = history.steps_ended_at()?;
    if history.held_up(HostInstant::default(), ended).is_zero() {
        return None;
    }
    let mut binding = claim
        .expectations
        .iter()
        .filter(|it| it.level == Level::Must);
    binding.find_map(|expectation| {
        let findings = expectation.check.as_word().findings(index).into_iter();
        let mut unproven = findings.filter_map(|(about, finding)| match finding {
            Unproven(how) => Some(format!("{}: {how}", about.label)),
            Holds | Pending { .. } | Broken { .. } => None,
        });
        unproven.next()
    })
}
