//! What the invariants have found in the histories of all cases, and the evidence kept for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::history::{CaseHistory, CaseRun, Entry, Observed, Seq};
use crate::oracle::{self, WholeRun};
use crate::outcome::{Outcome, Verdict, Violation};

/// The most violations of one invariant that are told in full.
const TOLD_VIOLATIONS: usize = 5;
/// The most history entries that are shown with one outcome.
const EVIDENCE_ENTRIES: usize = 60;

/// The violations of all invariants, in the order in which their cases ended, however late each of
/// them is judged.
#[derive(Debug, Default)]
pub(super) struct Findings {
    found: BTreeMap<Seq, (Option<CaseRun>, Vec<Found>)>,
    /// Invariants of which no later violation is told in full.
    told: Arc<BTreeSet<String>>,
}

/// A broken invariant.
#[derive(Debug)]
pub(super) struct Found {
    violation: Violation,
    evidence: Vec<Arc<Entry>>,
    /// The id of the case that broke it; absent if it broke when that case had been judged.
    case: Option<Arc<str>>,
}

impl Found {
    /// The invariant's id.
    pub(super) fn rule(&self) -> &str {
        &self.violation.rule
    }
}

impl Findings {
    /// Takes in what was found in a case that ended there.
    pub(super) fn take_in(&mut self, case: CaseRun, ended: Seq, mut found: Vec<Found>) {
        for found in &mut found {
            let before = self.found.range(..ended).flat_map(|(_, (_, found))| found);
            let same = before.filter(|before| before.violation.rule == found.violation.rule);
            if same.take(TOLD_VIOLATIONS).count() == TOLD_VIOLATIONS {
                found.evidence = Vec::new();
                if !self.told.contains(found.rule()) {
                    Arc::make_mut(&mut self.told).insert(found.rule().to_owned());
                }
            }
        }
        if !found.is_empty() {
            self.found.insert(ended, (Some(case), found));
        }
    }

    /// Forgets what was found in a case, which has no verdict of the oracle's after all.
    pub(super) fn forget(&mut self, case: CaseRun) {
        self.found.retain(|_, (of, _)| *of != Some(case));
        self.told = Arc::default();
    }

    /// The invariants of which a case that ends now need not show any evidence.
    pub(super) fn told_in_full(&self) -> Arc<BTreeSet<String>> {
        self.told.clone()
    }

    /// Judges what came after the cases had ended.
    pub(super) fn take_in_late(&mut self, ended: Seq, whole_run: &WholeRun) {
        let told: Vec<Violation> = self.all().map(|found| found.violation.clone()).collect();
        let late = whole_run.violations(&told).into_iter();
        let late = late.map(|violation| Found {
            violation,
            evidence: Vec::new(),
            case: None,
        });
        self.found.insert(ended, (None, late.collect()));
    }

    /// Tells in an invariant's outcome what has been found.
    pub(super) fn tell(&self, invariant: &str, outcome: &mut Outcome) {
        let found = || self.all().filter(|found| found.violation.rule == invariant);
        let count = found().count();
        if count > 0 {
            outcome.verdict = Verdict::Fail;
        }
        if count > TOLD_VIOLATIONS {
            outcome.reason = Some(format!(
                "{count} times in all; the first {TOLD_VIOLATIONS} are told"
            ));
        }
        let cases: BTreeSet<&Arc<str>> = found().filter_map(|found| found.case.as_ref()).collect();
        outcome.broken_in = cases.into_iter().cloned().collect();
        for found in found().take(TOLD_VIOLATIONS) {
            outcome.violations.push(found.violation.clone());
            outcome.evidence.extend(found.evidence.iter().cloned());
        }
        outcome.evidence.sort_by_key(|entry| entry.seq);
        outcome.evidence.dedup_by_key(|entry| entry.seq);
        let seen = found().map(|found| found.violation.actual.clone());
        outcome.seen = seen.collect();
    }

    fn all(&self) -> impl Iterator<Item = &Found> {
        self.found.values().flat_map(|(_, found)| found)
    }
}

/// Judges the history of a case that has ended by all invariants. Of some there is enough evidence.
pub(super) fn find(case: &str, history: &CaseHistory, enough: &BTreeSet<String>) -> Vec<Found> {
    let mut told = BTreeMap::<String, usize>::new();
    let id: Arc<str> = case.into();
    let of_case = |mut violation: Violation| {
        let told = told.entry(violation.rule.clone()).or_default();
        *told += 1;
        let evidence = if *told > TOLD_VIOLATIONS || enough.contains(&violation.rule) {
            Vec::new()
        } else {
            slice(history, [&violation])
        };
        violation.subject = format!("{} in {case}", violation.subject);
        Found {
            violation,
            evidence,
            case: Some(id.clone()),
        }
    };
    let violations = oracle::invariants(history).into_iter();
    violations.map(of_case).collect()
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
    let observed = history.observed().flat_map(Observed::entries);
    let all = history.entries().iter().chain(observed);
    let mut told: Vec<_> = all
        .filter(|entry| kept.contains(&entry.seq))
        .cloned()
        .collect();
    told.sort_by_key(|entry| entry.seq);
    told
}
