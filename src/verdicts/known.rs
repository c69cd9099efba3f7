//! Expectation files: the failures that are known of a runtime, each with its reason and evidence.

mod entry;
mod read;
mod terms;
#[cfg(test)]
mod tests;
mod texts;
mod versions;
mod when;

use std::collections::BTreeSet;

use serde::Deserialize;

pub use entry::{KnownFailure, KnownFault};
pub use terms::Rate;
pub(super) use texts::stable;
pub use texts::{Signatures, Texts};
pub use versions::Versions;
pub use when::{RuntimeFacts, When};

use crate::history::HostInstant;
use crate::outcome::{Outcome, Seen, Verdict};

/// The name of a watch in `in` of an entry, where those of cases stand: what names cases only is of
/// no pod of others.
pub(super) const WATCH: &str = "watch";

/// The known failures of one runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a file with `runtime:` and `known:`, and perhaps `faults:`"
)]
pub struct Known {
    /// The name by which the runtime calls itself, or `any`; in a written file also its version.
    pub runtime: String,
    /// What was measured, of a built-in file: versions, and what they ran with.
    #[serde(default)]
    pub measured: Option<String>,
    /// Of how many runs the file is made, as long as nobody has finished it.
    #[serde(default)]
    pub runs: Option<u32>,
    pub known: Vec<KnownFailure>,
    /// What goes wrong with it now and then, so that a case cannot be decided.
    #[serde(default)]
    pub faults: Vec<KnownFault>,
    #[serde(skip)]
    path: String,
    #[serde(skip)]
    run: JudgedRun,
}

/// The run that is judged by a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgedRun {
    /// What it knows of the runtime.
    pub facts: RuntimeFacts,
    pub began: HostInstant,
    /// Not all cases run: a fault may not come because the case that meets it is left out.
    pub partial: bool,
}

/// Which cases came to a verdict of the oracle's: what an invariant's pass is a proof of.
#[derive(Clone, Debug, Default)]
pub struct Decided<'a> {
    /// Their ids.
    pub cases: BTreeSet<&'a str>,
    /// Whether these are all that there are.
    pub all: bool,
}

/// How often a race was lost, and in how many containers it could have been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    pub findings: usize,
    pub containers: usize,
}

impl Known {
    /// Whether it is a file of this runtime. A file that a run has written names its version, too.
    pub fn is_for(&self, runtime_name: &str) -> bool {
        let listed = self.runtime.split_whitespace().next().unwrap_or_default();
        listed == "any" || listed.eq_ignore_ascii_case(runtime_name)
    }

    /// The same under another name.
    pub(super) fn named(self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..self
        }
    }

    /// The same for a run. Without it no entry with a condition counts.
    pub fn for_a_run(self, run: JudgedRun) -> Self {
        Self { run, ..self }
    }

    /// Notes on entries that have expired, and on faults that explain none of the run's outcomes,
    /// one sentence each.
    pub fn notes(&self, outcomes: &[Outcome]) -> Vec<String> {
        let expired = self.expired().filter_map(|entry| {
            let (path, case, day) = (&self.path, &entry.case, entry.expires.as_ref()?);
            Some(format!(
                "{path}: the entry of {case} has expired on {day} and counts no more; see whether \
                 {case} is mended, and remove it or give it another day"
            ))
        });
        expired.chain(self.stale_faults(outcomes)).collect()
    }

    /// The entries for the run's runtime that have expired.
    pub fn expired(&self) -> impl Iterator<Item = &KnownFailure> {
        let here = self.known.iter().filter(|entry| self.concerns(entry));
        here.filter(|entry| entry.is_over(self.run.began))
    }

    /// A part of the cases need not meet them all.
    fn stale_faults<'a>(&'a self, outcomes: &'a [Outcome]) -> impl Iterator<Item = String> + 'a {
        let is_met = |fault: &KnownFault| {
            let open = |outcome: &&Outcome| outcome.verdict == Verdict::Inconclusive;
            let mut excused = outcomes.iter().filter(open);
            excused.any(|outcome| {
                let reason = outcome.reason.as_deref();
                reason.is_some_and(|reason| fault.explains(&outcome.id, reason))
            })
        };
        let listed = self.faults_here().filter(|_| !self.run.partial);
        let stale = listed.filter(move |fault| !is_met(fault));
        stale.map(|KnownFault { message, .. }| {
            format!(
                "{}: the fault `{message}` has not come in this run; if it is mended, remove the \
                 entry",
                self.path
            )
        })
    }

    pub fn faults_here(&self) -> impl Iterator<Item = &KnownFault> {
        let holds = |when: &When| when.holds(&self.run.facts);
        let faults = self.faults.iter();
        faults.filter(move |fault| fault.when.as_ref().is_none_or(holds))
    }

    /// The ids of all cases and invariants that are named.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let of_entries = self.known.iter();
        let of_entries = of_entries.flat_map(|entry| {
            let cases = entry.cases.iter().flat_map(Texts::iter);
            cases.chain([&*entry.case])
        });
        let of_faults = self.faults.iter().flat_map(|fault| &fault.cases);
        let all = of_entries.chain(of_faults.flat_map(Texts::iter));
        all.filter(|id| *id != WATCH)
    }

    /// Whether an entry is of the run's runtime.
    pub fn concerns(&self, entry: &KnownFailure) -> bool {
        let when = entry.when.as_ref();
        when.is_none_or(|when| when.holds(&self.run.facts))
    }

    /// The entries of a case or an invariant that count for the run.
    pub fn of<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a KnownFailure> {
        let entries = self.known.iter().filter(move |entry| entry.case == id);
        entries.filter(|entry| self.concerns(entry) && !entry.is_over(self.run.began))
    }

    /// Whether a failure of this case or invariant is listed.
    pub fn lists(&self, id: &str, seen: &Seen) -> bool {
        self.of(id).any(|entry| entry.covers(seen))
    }

    /// Takes a listed failure for known, and a listed case that passed for unexpected; and an error
    /// of which a listed fault is the reason for inconclusive.
    pub fn apply(&self, outcome: &mut Outcome, decided: &Decided<'_>) {
        match outcome.verdict {
            Verdict::Error => self.excuse(outcome),
            Verdict::Fail => {
                let known = self.explaining(outcome).map(|entries| {
                    let race = entries.iter().all(|entry| entry.is_race());
                    (race, explanations(&entries))
                });
                if let Some((race, reason)) = known {
                    (outcome.verdict, outcome.race) = (Verdict::Known, race);
                    outcome.reason = Some(reason);
                }
            }
            Verdict::Pass => {
                if let Some(entry) = self.unmet(outcome, decided) {
                    outcome.verdict = Verdict::UnexpectedPass;
                    outcome.reason = Some(format!(
                        "{} lists it as failing: {}; if it is mended, remove the entry",
                        self.path,
                        entry.reason.trim(),
                    ));
                }
            }
            Verdict::Known | Verdict::UnexpectedPass | Verdict::Skip | Verdict::Inconclusive => {}
        }
    }

    /// Why it failed, if all that was seen is listed.
    pub fn explanation(&self, outcome: &Outcome) -> Option<String> {
        Some(explanations(&self.explaining(outcome)?))
    }

    /// The entries that list all that was seen, at least one.
    fn explaining<'a>(&'a self, outcome: &'a Outcome) -> Option<Vec<&'a KnownFailure>> {
        let seen = outcome.seen.keys();
        let covering = |seen| self.of(&outcome.id).find(|entry| entry.covers(seen));
        let entries: Option<Vec<_>> = seen.map(covering).collect();
        entries.filter(|entries| !entries.is_empty())
    }

    /// What says that a race was lost more often than its bound permits, if one was. `losses` says
    /// how often that of an entry was.
    pub fn broken_bound(
        &self,
        outcome: &Outcome,
        losses: impl Fn(&KnownFailure) -> Losses,
    ) -> Option<String> {
        let seen = |entry: &&KnownFailure| outcome.seen.keys().any(|seen| entry.covers(seen));
        self.of(&outcome.id).filter(seen).find_map(|entry| {
            let bound = entry.at_most?;
            let Losses {
                findings,
                containers,
            } = losses(entry);
            bound.is_broken_by(findings, containers).then(|| {
                format!(
                    "the race is lost {findings} times in {containers} containers, more often than \
                     chance explains: at most {bound} are known to. {}",
                    entry.explanation()
                )
            })
        })
    }

    /// An entry of which the outcome that passed says that it is mended.
    fn unmet(&self, outcome: &Outcome, decided: &Decided<'_>) -> Option<&KnownFailure> {
        let proved = |entry: &&KnownFailure| match &entry.cases {
            _ if !outcome.is_invariant() => true,
            Some(cases) => cases.iter().all(|case| decided.cases.contains(case)),
            None => decided.all,
        };
        // That of `outcome` lives shorter than the entry.
        let id = &*outcome.id;
        let entries = self.known.iter().filter(|entry| entry.case == id);
        let entries = entries.filter(|entry| self.concerns(entry));
        let mut certain =
            entries.filter(|entry| !entry.is_race() && !entry.is_over(self.run.began));
        certain.find(proved)
    }

    fn excuse(&self, outcome: &mut Outcome) {
        let found = outcome.reason.as_deref().unwrap_or_default();
        let mut faults = self.faults_here();
        if let Some(fault) = faults.find(|fault| fault.explains(&outcome.id, found)) {
            let KnownFault { reason, link, .. } = fault;
            let reason = format!("a known fault, {reason} ({link}): {found}");
            (outcome.verdict, outcome.reason) = (Verdict::Inconclusive, Some(reason));
        }
    }
}

/// Why something failed that these entries list, each reason once.
fn explanations(entries: &[&KnownFailure]) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for entry in entries {
        let reason = entry.explanation();
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons.join("; ")
}
