//! The verdict of a run for one kind of consumer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    DISTURBED, Guarantee, Level, Levels, NOT_CLEANED_UP, NOT_REMOVED, NOT_RUN, Outcome, Profile,
    RunReport, Verdict,
};

/// The verdict in one profile, and the counts it is derived from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// The profile.
    pub profile: Profile,
    /// The verdict.
    pub verdict: Conformance,
    /// The claims that are a MUST in this profile.
    pub musts: Musts,
    /// The claims that are a SHOULD in this profile.
    pub shoulds: Shoulds,
    /// The ids of the broken MUSTs, known or not, each once, in the order of the plan.
    pub broken: Vec<Arc<str>>,
    /// The ids of the MUSTs that were not run.
    pub skipped: Vec<Arc<str>>,
    /// The ids of the MUSTs whose situation did not arise, or that could not be decided.
    pub open: Vec<Arc<str>>,
    /// Whether each guarantee is kept, as far as it is a MUST in this profile; empty in older
    /// reports.
    #[serde(default)]
    pub guarantees: BTreeMap<Guarantee, Keeping>,
}

impl Standing {
    /// The counts in the order of a report's columns: MUSTs kept, broken, known and open, SHOULDs
    /// kept and broken.
    pub fn counts(&self) -> [usize; 6] {
        let (musts, shoulds) = (self.musts, self.shoulds);
        [
            musts.passed,
            musts.failed,
            musts.known,
            musts.open(),
            shoulds.kept,
            shoulds.broken,
        ]
    }

    /// `keeps 9 of 12 guarantees for hint; breaks Recoverable; races in Ordered`: the guarantees
    /// of which a MUST was decided.
    pub fn in_one_line(&self) -> String {
        let with = |keeping: &[Keeping]| -> Vec<&str> {
            let mut all: Vec<_> = self.guarantees.iter().collect();
            all.retain(|(_, kept)| keeping.contains(kept));
            all.into_iter().map(|(name, _)| name.name()).collect()
        };
        let kept = with(&[Keeping::Kept]).len();
        let tried = self.guarantees.len() - with(&[Keeping::Open]).len();
        let profile = self.profile;
        let mut parts = vec![format!("keeps {kept} of {tried} guarantees for {profile}")];
        let broken = with(&[Keeping::Broken, Keeping::Known]);
        for (words, names) in [("breaks", broken), ("races in", with(&[Keeping::Races]))] {
            if !names.is_empty() {
                parts.push(format!("{words} {}", names.join(", ")));
            }
        }
        parts.join("; ")
    }
}

/// Whether a runtime keeps a guarantee in one profile.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Keeping {
    /// No MUST of it was decided, or it has none.
    Open,
    /// All of its decided MUSTs hold.
    Kept,
    /// It is broken by races only, as an expectation file lists.
    Races,
    /// It is broken only as an expectation file lists.
    Known,
    /// It is broken as no expectation file lists.
    Broken,
}

impl fmt::Display for Keeping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Open => "–",
            Self::Kept => "kept",
            Self::Races => "races",
            Self::Known => "known",
            Self::Broken => "broken",
        })
    }
}

/// The verdict on a runtime.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Conformance {
    /// Every MUST of the run holds.
    Conformant,
    /// No MUST is broken, but some were left out, skipped or inconclusive.
    Partial,
    /// Only MUSTs that the expectation file lists are broken.
    KnownFailures,
    /// A MUST is broken that no expectation file lists.
    NonConformant,
    /// No decided MUST is broken, but some could not be decided.
    Error,
    /// There was no MUST to judge by, or all were skipped.
    NotJudged,
}

/// The number of claims with each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Musts {
    /// They held.
    pub passed: usize,
    /// They are broken.
    pub failed: usize,
    /// They are broken, as listed in an expectation file.
    pub known: usize,
    /// They were not run.
    pub skipped: usize,
    /// Their situation did not arise.
    pub inconclusive: usize,
    /// They could not be decided.
    pub undecided: usize,
}

/// The numbers of cases and invariants that keep and break their SHOULDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shoulds {
    /// They are a SHOULD as a whole, and hold.
    pub kept: usize,
    /// They break a SHOULD, even if they are a MUST otherwise.
    pub broken: usize,
}

impl fmt::Display for Conformance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Conformant => "conformant",
            Self::Partial => "partial",
            Self::KnownFailures => "known failures",
            Self::NonConformant => "non-conformant",
            Self::Error => "undecided",
            Self::NotJudged => "not judged",
        })
    }
}

impl RunReport {
    /// Whether another client may have changed the run's pods, so that it decides nothing.
    pub fn is_disturbed(&self) -> bool {
        self.faults.iter().any(|fault| fault.starts_with(DISTURBED))
    }

    /// Whether a fault leaves verdicts in doubt. Leftovers on the node do not.
    fn is_in_doubt(&self) -> bool {
        let mut faults = self.faults.iter();
        faults.any(|fault| !fault.starts_with(NOT_REMOVED) && !fault.starts_with(NOT_CLEANED_UP))
    }

    /// Whether more cases are open than decided, as where the run has given up the runtime.
    pub fn is_mostly_open(&self) -> bool {
        let cases = self.outcomes.iter().filter(|case| !case.is_invariant());
        let left_out = |case: &&Outcome| {
            let reason = case.reason.as_deref().unwrap_or_default();
            case.verdict == Verdict::Skip && !reason.starts_with(NOT_RUN)
        };
        let selected = cases.filter(|case| !left_out(case));
        let (open, decided): (Vec<_>, Vec<_>) = selected.partition(|case| {
            matches!(
                case.verdict,
                Verdict::Error | Verdict::Inconclusive | Verdict::Skip
            )
        });
        open.len() > decided.len()
    }

    /// The reason why the run is undecided; `None` if it broke a rule or ended well.
    pub fn undecided(&self) -> Option<&'static str> {
        let any = |verdict| self.count(verdict) > 0;
        let cases = self.outcomes.iter().filter(|case| !case.is_invariant());
        let ran: Vec<_> = cases.filter(|it| it.verdict != Verdict::Skip).collect();
        let is_open = |case: &&Outcome| case.verdict == Verdict::Inconclusive;
        if self.is_disturbed() {
            Some("the run was disturbed")
        } else if any(Verdict::Fail) || any(Verdict::UnexpectedPass) {
            None
        } else if any(Verdict::Error) {
            Some("not all is decided")
        } else if self.is_in_doubt() {
            Some("the run has a fault")
        } else if self.capabilities.events == Some(false) {
            Some("the runtime has no events")
        } else if !self.faults.is_empty() {
            Some("not all is removed, though all is decided")
        } else if !ran.is_empty() && ran.iter().all(is_open) {
            Some("every case was inconclusive")
        } else {
            None
        }
    }

    /// The verdicts in each profile for which the runtime was judged.
    pub fn standings(&self) -> Vec<Standing> {
        let profiles = self.profiles.iter();
        profiles.map(|profile| self.standing(*profile)).collect()
    }

    fn standing(&self, profile: Profile) -> Standing {
        let (mut musts, mut shoulds) = (Musts::default(), Shoulds::default());
        for outcome in &self.outcomes {
            let level = outcome.levels.of(profile);
            if level == Some(Level::Must) {
                musts.count(outcome.verdict_for(profile));
            }
            match outcome.should(profile) {
                Some(true) => shoulds.kept += 1,
                Some(false) => shoulds.broken += 1,
                None => {}
            }
        }
        let verdict = if self.is_disturbed() {
            Conformance::Error
        } else if musts.failed > 0 {
            Conformance::NonConformant
        } else if musts.is_unknown() {
            Conformance::NotJudged
        } else if musts.undecided > 0 || self.is_in_doubt() {
            Conformance::Error
        } else if musts.known > 0 {
            Conformance::KnownFailures
        } else if musts.open() > 0 || self.partial {
            Conformance::Partial
        } else {
            Conformance::Conformant
        };
        Standing {
            profile,
            verdict,
            musts,
            shoulds,
            broken: self.musts_that(profile, &[Verdict::Fail, Verdict::Known]),
            skipped: self.musts_that(profile, &[Verdict::Skip]),
            open: self.musts_that(profile, &[Verdict::Inconclusive, Verdict::Error]),
            guarantees: self.guarantees(profile),
        }
    }

    /// Whether each guarantee is kept: by the passes of what belongs to it, and by all violations.
    fn guarantees(&self, profile: Profile) -> BTreeMap<Guarantee, Keeping> {
        let mut all: BTreeMap<_, _> = Guarantee::ALL.map(|it| (it, Keeping::Open)).into();
        let outcomes = self.outcomes.iter();
        for outcome in outcomes.filter(|it| it.levels.of(profile) == Some(Level::Must)) {
            let keeping = match outcome.verdict_for(profile) {
                Verdict::Pass | Verdict::UnexpectedPass => Keeping::Kept,
                Verdict::Known if outcome.race => Keeping::Races,
                Verdict::Known => Keeping::Known,
                Verdict::Fail => Keeping::Broken,
                Verdict::Error | Verdict::Skip | Verdict::Inconclusive => continue,
            };
            let touched: Vec<_> = if keeping == Keeping::Kept {
                outcome.proves().into_iter().collect()
            } else {
                let broken = outcome.violations.iter();
                broken.map(|broken| outcome.breaks(broken)).collect()
            };
            for guarantee in touched {
                let known = all.entry(guarantee).or_insert(keeping);
                *known = keeping.max(*known);
            }
        }
        all
    }

    /// The ids of the MUSTs of a profile with one of these verdicts, each once.
    fn musts_that(&self, profile: Profile, verdicts: &[Verdict]) -> Vec<Arc<str>> {
        let mut ids = Vec::new();
        for outcome in &self.outcomes {
            let is_must = outcome.levels.of(profile) == Some(Level::Must);
            let verdict = outcome.verdict_for(profile);
            if is_must && verdicts.contains(&verdict) && !ids.contains(&outcome.id) {
                ids.push(outcome.id.clone());
            }
        }
        ids
    }
}

impl Musts {
    /// The number of skipped, inconclusive and undecided claims.
    pub fn open(&self) -> usize {
        self.skipped + self.inconclusive + self.undecided
    }

    /// Whether none was tried: there is none, or all were skipped.
    fn is_unknown(&self) -> bool {
        let skipped = self.skipped;
        *self
            == Self {
                skipped,
                ..Self::default()
            }
    }

    fn count(&mut self, verdict: Verdict) {
        let counter = match verdict {
            Verdict::Pass | Verdict::UnexpectedPass => &mut self.passed,
            Verdict::Fail => &mut self.failed,
            Verdict::Known => &mut self.known,
            Verdict::Skip => &mut self.skipped,
            Verdict::Inconclusive => &mut self.inconclusive,
            Verdict::Error => &mut self.undecided,
        };
        *counter += 1;
    }
}

impl Outcome {
    /// Its verdict in a profile, in which an invariant holds if only cases of lower levels break
    /// it.
    pub fn verdict_for(&self, profile: Profile) -> Verdict {
        let is_broken = self.verdict.has_failed();
        match self.broken_in_cases() {
            Some(levels) if is_broken && levels.of(profile) != Some(Level::Must) => Verdict::Pass,
            _ => self.verdict,
        }
    }

    /// The requirement levels of an invariant in the cases that have broken it.
    fn broken_in_cases(&self) -> Option<Levels> {
        let is_broken = self.broken_levels != Levels::default();
        is_broken.then_some(self.broken_levels)
    }

    /// Whether it keeps its SHOULDs in a profile; `None` without any.
    pub fn should(&self, profile: Profile) -> Option<bool> {
        let level = self.levels.of(profile)?;
        if let Some(broken) = self.broken_in_cases() {
            return (broken.of(profile) == Some(Level::Should)).then_some(false);
        }
        let broken = self.violations.iter().chain(&self.advice);
        let mut broken = broken.map(|violation| violation.level.min(level));
        if broken.any(|level| level == Level::Should) {
            return Some(false);
        }
        (level == Level::Should && self.verdict.has_passed()).then_some(true)
    }
}
