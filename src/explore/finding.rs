//! The findings of a walk, the equality of findings, and how often one is found.

use std::collections::BTreeMap;
use std::fmt;

use crate::outcome::{Kind, Level, Outcome, RunReport, Seen, Signature, Verdict, Violation};
use crate::verdicts::Known;

/// The identity of a finding: the broken rule and the kind of the violation; or why a walk could
/// not be decided.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Broken {
        /// The id of an invariant; none if a check of the walk itself is broken.
        rule: Option<String>,
        kind: Kind,
    },
    /// The walk could not be decided: a call failed that must succeed, or the runtime was lost.
    Undecided(String),
}

#[derive(Clone, Debug)]
pub struct Finding {
    /// The identity.
    pub key: Key,
    pub level: Level,
    /// The name of its subject in the walk.
    pub name: String,
    /// The claim, as a sentence; empty if it is undecided.
    pub sentence: String,
    /// The expected behaviour, and the actual one.
    pub words: (String, String),
    /// Why it is known of the runtime, if it is.
    pub known: Option<String>,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken {
                rule: Some(rule),
                kind,
            } => write!(f, "{rule} {}", kind.key()),
            Self::Broken { rule: None, kind } => write!(f, "{}", kind.key()),
            Self::Undecided(reason) => write!(f, "undecided: {reason}"),
        }
    }
}

/// The findings of a run of one walk, each once, those first that bind most.
pub(super) fn findings(report: &RunReport, known: &Known) -> Vec<Finding> {
    let mut found = BTreeMap::new();
    for outcome in &report.outcomes {
        let violations = outcome.violations.iter().chain(&outcome.advice);
        // What a check has not seen proves nothing.
        let proves = |violation: &&Violation| {
            violation.level > Level::May && violation.mismatch.kind != Kind::NothingObserved
        };
        for violation in violations.filter(proves) {
            let finding = broken(outcome, violation, known);
            found.entry(finding.key.clone()).or_insert(finding);
        }
        if let Some(finding) = undecided(outcome) {
            found.entry(finding.key.clone()).or_insert(finding);
        }
    }
    let mut found: Vec<Finding> = found.into_values().collect();
    found.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    found
}

fn broken(outcome: &Outcome, violation: &Violation, known: &Known) -> Finding {
    let rule = outcome.is_invariant().then(|| outcome.id.to_string());
    let signature = violation.mismatch.signature();
    let name = violation
        .subject
        .split([' ', '#'])
        .next()
        .unwrap_or_default();
    Finding {
        known: explanation(rule.as_deref(), signature, known),
        key: Key::Broken {
            rule,
            kind: violation.mismatch.kind,
        },
        level: violation.level,
        name: name.to_owned(),
        sentence: violation.sentence.clone(),
        words: (violation.expected(), violation.actual()),
    }
}

/// Why a finding is known: of an invariant by an entry of the same invariant in any case; of a
/// check of the walk itself by an entry of any case or invariant with the same finding.
fn explanation(rule: Option<&str>, signature: Signature, known: &Known) -> Option<String> {
    let seen = Seen {
        signature,
        case: None,
    };
    let mut entries = known.known.iter().filter(|entry| known.concerns(entry));
    let entry = entries.find(|entry| {
        let is_of_rule = match rule {
            Some(rule) => entry.case == rule,
            None => entry.finding.is_some(),
        };
        is_of_rule && entry.covers(&seen)
    });
    entry.map(|entry| format!("{}, {}", entry.case, entry.explanation()))
}

fn undecided(outcome: &Outcome) -> Option<Finding> {
    if outcome.is_invariant() || outcome.verdict != Verdict::Error {
        return None;
    }
    let reason = outcome.reason.clone().unwrap_or_default();
    Some(Finding {
        key: Key::Undecided(stable(&reason)),
        level: Level::Must,
        name: String::new(),
        sentence: String::new(),
        words: (String::new(), reason),
        known: None,
    })
}

/// A reason without the parts that differ from run to run: ids, names and numbers.
fn stable(reason: &str) -> String {
    /// Enough to tell reasons apart.
    const WORDS: usize = 12;
    let is_stable = |word: &&str| {
        let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
        !has_digit && word.len() < 40
    };
    let words: Vec<&str> = reason
        .split_whitespace()
        .filter(is_stable)
        .take(WORDS)
        .collect();
    words.join(" ")
}

/// Runs in which something was found, and all runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// It was found in so many runs,
    pub found: u32,
    pub runs: u32,
}

/// When a candidate counts as failing: so many findings in so many runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Threshold {
    pub(super) found: u32,
    pub(super) runs: u32,
}

/// The most runs of one candidate.
const MOST_RUNS: u32 = 50;

impl Rate {
    /// The probability, as the rule of succession has it.
    pub(super) fn probability(self) -> f64 {
        f64::from(self.found + 1) / f64::from(self.runs + 2)
    }

    /// The threshold for a finding with this rate: two findings in as many runs as should bring
    /// five. A candidate with the same rate passes it nearly always, one with a third of it every
    /// second time. A finding of all runs has to come in one of two.
    pub(super) fn threshold(self) -> Threshold {
        if self.found == self.runs {
            return Threshold { found: 1, runs: 2 };
        }
        let runs = (5.0 / self.probability()).ceil().min(f64::from(MOST_RUNS));
        Threshold {
            found: 2,
            runs: whole(runs),
        }
    }

    /// How often a case is repeated to show it with a probability of 95 percent.
    pub(super) fn repetitions(self) -> u32 {
        if self.found == self.runs {
            return 1;
        }
        let missed = 1.0 - self.probability();
        whole((0.05_f64.ln() / missed.ln()).ceil().clamp(1.0, 100.0))
    }
}

impl Threshold {
    /// The threshold for a finding of every run or of none, as on the model.
    pub(super) const SURE: Self = Self { found: 1, runs: 1 };
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} runs", self.found, self.runs)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is whole, positive and small"
)]
fn whole(number: f64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{EventKind, ExpectationFile};
    use crate::outcome::{Fact, Mismatch};

    /// A check of a walk and an invariant may share an entry; two invariants are two rules.
    #[test]
    fn an_entry_of_an_invariant_explains_findings_of_checks() {
        let known = Known::parse(&ExpectationFile {
            path: "known.yaml".to_owned(),
            text: "runtime: any\n\
                   known:\n\
                   - {case: INV-09, reason: why, link: there, in: [ORD-01],\n   \
                   finding: {kind: own-container-missing, event: STOPPED}}\n\
                   - {case: INV-08, reason: why, link: there}\n"
                .to_owned(),
        });
        let known = known.expect("it is right");
        let is_known = |rule, kind, event| {
            let missing = Mismatch::new(kind, [], [Fact::Event(event)]);
            explanation(rule, missing.signature(), &known).is_some()
        };
        let missing = Kind::OwnContainerMissing;
        assert!(is_known(None, missing, EventKind::Stopped));
        assert!(is_known(Some("INV-09"), missing, EventKind::Stopped));
        assert!(!is_known(None, missing, EventKind::Started));
        assert!(!is_known(None, Kind::ContainerRepeated, EventKind::Stopped));
        assert!(!is_known(Some("INV-15"), missing, EventKind::Stopped));
    }

    #[test]
    fn a_reason_is_the_same_for_all_subjects() {
        let one = stable("RemoveContainer failed: cannot delete running task 3fa8 after 12 ms");
        let other = stable("RemoveContainer failed: cannot delete running task 9b01 after 7 ms");
        assert_eq!(one, other);
        assert_eq!(
            one,
            "RemoveContainer failed: cannot delete running task after ms"
        );
    }

    #[test]
    fn a_rare_finding_has_more_runs() {
        let threshold = |found, runs| Rate { found, runs }.threshold().runs;
        assert_eq!(threshold(5, 5), 2);
        assert_eq!(threshold(4, 5), 7);
        assert_eq!(threshold(1, 5), 18);
        assert_eq!(threshold(1, 1_000), MOST_RUNS);
    }

    #[test]
    fn a_certain_finding_is_not_repeated() {
        let repetitions = |found, runs| Rate { found, runs }.repetitions();
        assert_eq!(repetitions(5, 5), 1);
        assert_eq!(repetitions(3, 5), 4);
        assert_eq!(repetitions(1, 20), 32);
    }
}
