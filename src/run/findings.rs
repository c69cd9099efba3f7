//! What the invariants have found in the histories of all cases, and the evidence kept for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::history::{CaseHistory, Entry, Seq};
use crate::metrics::Metrics;
use crate::oracle::{self, WholeRun};
use crate::outcome::{Outcome, Verdict, Violation};

/// The most violations of one invariant that are told in full.
const TOLD_VIOLATIONS: usize = 5;
/// The most history entries that are shown with one outcome.
const EVIDENCE_ENTRIES: usize = 60;

/// The violations of all invariants.
#[derive(Debug, Default)]
pub(super) struct Findings {
    found: Vec<Found>,
}

#[derive(Debug)]
struct Found {
    violation: Violation,
    evidence: Vec<Arc<Entry>>,
}

impl Findings {
    /// Judges the history of a case that has ended.
    pub(super) fn take_in(&mut self, case: &str, history: &CaseHistory, metrics: &Metrics) {
        for mut violation in oracle::invariants(history) {
            match violation.rule.as_str() {
                oracle::NO_MISSED_EVENT => metrics.missed(),
                oracle::PLEGS_AGREE => metrics.disagreed(),
                _ => {}
            }
            let told = self
                .found
                .iter()
                .filter(|found| found.violation.rule == violation.rule);
            let enough = told.count() >= TOLD_VIOLATIONS;
            let evidence = if enough {
                Vec::new()
            } else {
                slice(history, [&violation])
            };
            violation.subject = format!("{} in {case}", violation.subject);
            self.found.push(Found {
                violation,
                evidence,
            });
        }
    }

    /// Judges what came after the cases had ended.
    pub(super) fn take_in_late(&mut self, whole_run: &WholeRun) {
        let told: Vec<Violation> = self
            .found
            .iter()
            .map(|found| found.violation.clone())
            .collect();
        let late = whole_run
            .violations(&told)
            .into_iter()
            .map(|violation| Found {
                violation,
                evidence: Vec::new(),
            });
        self.found.extend(late);
    }

    /// Tells in an invariant's outcome what has been found; returns what was seen.
    pub(super) fn tell(&self, invariant: &str, outcome: &mut Outcome) -> BTreeSet<String> {
        let found = || {
            self.found
                .iter()
                .filter(|found| found.violation.rule == invariant)
        };
        let count = found().count();
        if count > 0 {
            outcome.verdict = Verdict::Fail;
        }
        if count > TOLD_VIOLATIONS {
            outcome.reason = Some(format!(
                "{count} times in all; the first {TOLD_VIOLATIONS} are told"
            ));
        }
        for found in found().take(TOLD_VIOLATIONS) {
            outcome.violations.push(found.violation.clone());
            outcome.evidence.extend(found.evidence.iter().cloned());
        }
        outcome.evidence.sort_by_key(|entry| entry.seq);
        outcome.evidence.dedup_by_key(|entry| entry.seq);
        found()
            .map(|found| found.violation.actual.clone())
            .collect()
    }
}

/// The entries that show what these violations are about, the proof before the context.
pub(super) fn slice<'a>(
    history: &CaseHistory,
    violations: impl IntoIterator<Item = &'a Violation>,
) -> Vec<Arc<Entry>> {
    let violations: Vec<&Violation> = violations.into_iter().take(TOLD_VIOLATIONS).collect();
    let mut seqs: Vec<Seq> = violations.iter().flat_map(|v| v.evidence.clone()).collect();
    for violation in violations {
        seqs.extend(oracle::context(history, violation));
    }
    let mut kept = BTreeSet::new();
    for seq in seqs {
        if kept.len() < EVIDENCE_ENTRIES {
            kept.insert(seq);
        }
    }
    history
        .entries()
        .iter()
        .filter(|entry| kept.contains(&entry.seq))
        .cloned()
        .collect()
}
