//! A case that is over, and what the oracle says of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::findings::{Found, Sort, find, slice};
use super::known::Known;
use super::plan::{Execution, Readable};
use crate::history::{CaseHistory, CaseRun, Entry, Request, Seq};
use crate::oracle::{self, Undecided};
use crate::outcome::{Latency, Level, Outcome, Profile, Verdict};

/// A case that is over and has not been judged.
#[derive(Debug)]
pub struct EndedCase {
    pub(super) execution: Execution,
    pub(super) history: CaseHistory,
    pub(super) began: Arc<Entry>,
    pub(super) ended: Arc<Entry>,
    pub(super) known: Arc<Known>,
    pub(super) profiles: Arc<[Profile]>,
    /// Of which earlier cases have told enough: no evidence is looked for.
    pub(super) told: Arc<BTreeSet<Sort>>,
    /// How long a call may take.
    pub(super) call_deadline: Option<Duration>,
}

/// A case that has been judged.
#[derive(Debug)]
pub struct JudgedCase {
    pub(super) run: CaseRun,
    pub(super) ended: Seq,
    pub(super) outcome: Outcome,
    pub(super) found: Vec<Found>,
    pub(super) latencies: Vec<Latency>,
    /// The largest message of an event of the case.
    pub(super) largest_event: u32,
}

impl JudgedCase {
    /// The ids of the invariants that the case has broken, each as often as it has.
    pub fn broken_invariants(&self) -> impl Iterator<Item = &str> {
        self.found.iter().map(Found::rule)
    }
}

impl EndedCase {
    /// Which execution it was.
    #[must_use]
    pub fn run(&self) -> CaseRun {
        self.history.case()
    }

    /// Judges the case by its expectations and by all invariants.
    #[must_use]
    pub fn judge(self) -> JudgedCase {
        let mut outcome = self.execution.blank(self.began.at);
        outcome.duration = self.ended.at.since(self.began.at);
        outcome.leftovers = leftovers(&self.history);
        let (mut found, mut latencies) = (Vec::new(), Vec::new());
        if let Readable::Case(case) = &*self.execution.case {
            let history = &self.history;
            let judgement = oracle::judge(case, history);
            (outcome.verdict, outcome.reason) = match judgement.undecided {
                Some(Undecided::Error(reason)) => (Verdict::Error, Some(reason)),
                Some(Undecided::Inconclusive(reason)) => (Verdict::Inconclusive, Some(reason)),
                Some(Undecided::Skip(reason)) => (Verdict::Skip, Some(reason)),
                None if judgement.violations.is_empty() => (Verdict::Pass, None),
                None => (Verdict::Fail, None),
            };
            outcome.violations = judgement.violations;
            outcome.advice = judgement.advice;
            outcome.evidence = slice(history, outcome.violations.iter().chain(&outcome.advice));
            let actual = outcome.violations.iter().map(|found| found.actual.clone());
            outcome.seen = actual.collect();
            let cap = case.levels.highest_of(&self.profiles);
            if !outcome.cap(cap.unwrap_or(Level::May)) {
                self.known.apply(&mut outcome);
            }
            let judged = (&*case.id, &case.levels, &*self.profiles);
            found = find(judged, history, &self.known, &self.told);
            latencies = oracle::latencies(case, history, self.call_deadline);
        }
        JudgedCase {
            run: self.run(),
            ended: self.ended.seq,
            outcome,
            found,
            latencies,
            largest_event: self.history.largest_event(),
        }
    }
}

/// What the teardown could not remove, one sentence each.
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
