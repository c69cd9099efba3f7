//! A case that has ended, and its judgement.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::findings::{Found, Place, Sort, find, slice};
use super::known::{Decided, Known, KnownFailure, Losses};
use super::plan::{Execution, Readable};
use crate::checks::{self, Undecided};
use crate::history::{Body, CaseHistory, CaseRun, Entry, Reply, Request, Seq, SubjectKind};
use crate::oracle::Index;
use crate::outcome::{LAST_SHOWN, Level, Outcome, Profile, Seen, Times, Verdict, Violation};
use crate::plan::Facts;

/// A case that has ended and has not been judged.
#[derive(Debug)]
pub struct EndedCase {
    pub(super) execution: Execution,
    pub(super) history: CaseHistory,
    pub(super) began: Arc<Entry>,
    pub(super) ended: Arc<Entry>,
    pub(super) known: Arc<Known>,
    pub(super) hints: Arc<Known>,
    pub(super) profiles: Arc<[Profile]>,
    /// Violation kinds whose evidence quota is used up.
    pub(super) filled: Arc<BTreeSet<Sort>>,
    pub(super) call_deadline: Option<Duration>,
}

#[derive(Debug)]
pub struct JudgedCase {
    pub(super) run: CaseRun,
    pub(super) ended: Seq,
    pub(super) outcome: Outcome,
    pub(super) found: Vec<Found>,
    pub(super) latencies: Vec<Times>,
    /// The largest message of an event of the case.
    pub(super) largest_event: u32,
    pub(super) containers: usize,
    /// It broke a binding invariant, and no expectation file lists that.
    breaks_an_invariant: bool,
}

/// The tally of every judged execution.
#[derive(Debug, Default)]
pub(super) struct Tallies(BTreeMap<CaseRun, Tally>);

#[derive(Debug)]
pub(super) struct Tally {
    pub(super) case: Arc<str>,
    pub(super) ended: Seq,
    pub(super) containers: usize,
    /// Its own broken expectations, and their numbers.
    pub(super) seen: BTreeMap<Seen, usize>,
}

impl JudgedCase {
    /// The ids of the invariants that the case has broken, once per violation.
    pub fn broken_invariants(&self) -> impl Iterator<Item = &str> {
        self.found.iter().map(Found::rule)
    }

    /// Whether its history breaks an invariant that is a MUST, and that is not a known failure.
    pub fn breaks_an_invariant(&self) -> bool {
        self.breaks_an_invariant
    }

    pub(super) fn tally(&self) -> Tally {
        Tally {
            case: self.outcome.id.clone(),
            ended: self.ended,
            containers: self.containers,
            seen: self.outcome.seen.clone(),
        }
    }
}

impl EndedCase {
    /// The facts about the case for a selection.
    pub fn facts(&self) -> Facts<'_> {
        self.execution.case.facts()
    }

    pub fn entries(&self) -> &[Arc<Entry>] {
        self.history.entries()
    }

    pub fn run(&self) -> CaseRun {
        self.history.case()
    }

    /// Judges the case by its expectations and by all invariants.
    pub fn judge(self) -> JudgedCase {
        let mut outcome = self.execution.blank(self.began.at);
        outcome.duration = self.ended.at.since(self.began.at);
        outcome.leftovers = leftovers(&self.history);
        let (mut found, mut latencies) = (Vec::new(), Vec::new());
        if let Readable::Case(case) = &*self.execution.case {
            let history = &self.history;
            let index = Index::new(history);
            let judgement = checks::judge(&case.claim(), &index);
            (outcome.verdict, outcome.reason) = match judgement.undecided {
                Some(Undecided::Error(reason)) => (Verdict::Error, Some(reason)),
                Some(Undecided::Inconclusive(reason)) => (Verdict::Inconclusive, Some(reason)),
                Some(Undecided::Skip(reason)) => (Verdict::Skip, Some(reason)),
                None if judgement.violations.is_empty() => (Verdict::Pass, None),
                None => (Verdict::Fail, None),
            };
            outcome.violations = judgement.violations;
            outcome.advice = judgement.advice;
            outcome.evidence = if outcome.verdict == Verdict::Error {
                last_of_steps(history)
            } else {
                slice(history, outcome.violations.iter().chain(&outcome.advice))
            };
            outcome.seen = seen(&outcome.violations);
            let cap = case.levels.highest_of(&self.profiles);
            if !outcome.cap(cap.unwrap_or(Level::May)) {
                self.known.apply(&mut outcome, &Decided::default());
            }
            explain(&mut outcome, &self.hints);
            let judged = (Place::Case(case), &*self.profiles);
            found = find(judged, &index, &self.known, &self.filled);
            let measured = checks::latencies(&case.claim(), &index, self.call_deadline);
            latencies = Times::of(measured);
        }
        let breaks = |found: &Found| !found.is_listed() && found.binds(&self.profiles);
        JudgedCase {
            breaks_an_invariant: found.iter().any(breaks),
            containers: containers(&self.history),
            run: self.run(),
            ended: self.ended.seq,
            outcome,
            found,
            latencies,
            largest_event: self.history.largest_event(),
        }
    }
}

/// The findings, with the number of containers or sandboxes of each.
fn seen(violations: &[Violation]) -> BTreeMap<Seen, usize> {
    let mut subjects = BTreeMap::<Seen, BTreeSet<&str>>::new();
    for violation in violations {
        let seen = Seen {
            signature: violation.mismatch.signature(),
            case: None,
        };
        subjects.entry(seen).or_default().insert(&violation.subject);
    }
    let counted = subjects.into_iter();
    counted
        .map(|(seen, subjects)| (seen, subjects.len()))
        .collect()
}

/// Notes in a failure that is known of the runtime the reason and the pages about it.
pub(super) fn explain(outcome: &mut Outcome, hints: &Known) {
    if outcome.verdict != Verdict::Fail {
        return;
    }
    if let Some((reason, pages)) = hints.explanation(outcome) {
        (outcome.hint, outcome.pages) = (Some(reason), pages);
    }
}

fn containers(history: &CaseHistory) -> usize {
    let subjects = history.subjects().iter();
    let containers = subjects.filter(|subject| matches!(subject.kind, SubjectKind::Container(_)));
    containers.count()
}

/// The last entries before the steps ended, preceded by those that name the subjects.
fn last_of_steps(history: &CaseHistory) -> Vec<Arc<Entry>> {
    /// The maximum number of entries that name subjects, and of the last ones.
    const ENTRIES: usize = 60;
    let of_steps = history.entries().iter();
    let of_steps: Vec<_> = of_steps
        .filter(|entry| history.within_steps(entry.seq))
        .collect();
    let last = of_steps.len().saturating_sub(LAST_SHOWN);
    let entries = of_steps.into_iter().enumerate();
    let kept = entries.filter(|(at, entry)| *at >= last || names_a_subject(&entry.body));
    let kept: Vec<_> = kept.map(|(_, entry)| entry.clone()).collect();
    kept[kept.len().saturating_sub(ENTRIES)..].to_vec()
}

fn names_a_subject(body: &Body) -> bool {
    match body {
        Body::CallBegan { request, .. } => {
            matches!(
                request,
                Request::CreateContainer(_) | Request::RunSandbox(_)
            )
        }
        Body::CallEnded { result, .. } => {
            matches!(result, Ok(Reply::Container(_) | Reply::Sandbox(_)))
        }
        _ => false,
    }
}

/// The leftovers after the teardown, one sentence each.
fn leftovers(history: &CaseHistory) -> Vec<String> {
    let torn_down = history
        .calls()
        .filter(|call| !history.within_steps(call.began().seq));
    let left = torn_down.filter_map(|call| match (call.request(), call.result()) {
        (Request::RemoveSandbox(sandbox), Some(Err(fault))) => {
            Some(format!("sandbox {sandbox}: RemovePodSandbox: {fault}"))
        }
        _ => None,
    });
    left.collect()
}

impl Tallies {
    pub(super) fn add(&mut self, run: CaseRun, tally: Tally) {
        self.0.insert(run, tally);
    }

    pub(super) fn forget(&mut self, run: CaseRun) {
        self.0.remove(&run);
    }

    /// The number of lost races of an entry in a case, up to the end of one of its executions.
    pub(super) fn of_case(&self, run: CaseRun, entry: &KnownFailure) -> Losses {
        let Some(last) = self.0.get(&run) else {
            return Losses::default();
        };
        let same = self.0.values().filter(|tally| tally.case == last.case);
        let until = same.filter(|tally| tally.ended <= last.ended);
        until.fold(Losses::default(), |losses, tally| Losses {
            findings: losses.findings + covered(&tally.seen, entry),
            containers: losses.containers + tally.containers,
        })
    }

    /// The number of lost races of an invariant's entry in the run.
    pub(super) fn of_invariant(&self, outcome: &Outcome, entry: &KnownFailure) -> Losses {
        let concerned = self.0.values().filter(|tally| entry.is_of(&tally.case));
        Losses {
            findings: covered(&outcome.seen, entry),
            containers: concerned.map(|tally| tally.containers).sum(),
        }
    }
}

fn covered(seen: &BTreeMap<Seen, usize>, entry: &KnownFailure) -> usize {
    let covered = seen.iter().filter(|(seen, _)| entry.covers(seen));
    covered.map(|(_, count)| count).sum()
}
