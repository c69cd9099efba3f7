//! What a walk has found, and whether it is the same as something that was found before.

use std::collections::BTreeMap;

use crate::outcome::{Kind, Level, Outcome, RunReport, Seen, Signature, Verdict, Violation};
use crate::verdicts::{Known, KnownFault};

/// What makes two findings the same: the rule and the kind of what is wrong; or why a walk could
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
    /// What it is the same as.
    pub key: Key,
    pub level: Level,
    /// The name in the walk of what it is about.
    pub name: String,
    /// The claim, as a sentence; empty of what is undecided.
    pub sentence: String,
    /// What should have been, and what was.
    pub words: (String, String),
    /// Why it is known of the runtime, if it is.
    pub known: Option<String>,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
        if let Some(finding) = undecided(outcome, known) {
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

/// Why a finding is known: the entry is of the same invariant in whatever case; or, of what a check
/// of the walk itself has found, of any case or invariant with the same finding.
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

fn undecided(outcome: &Outcome, known: &Known) -> Option<Finding> {
    if outcome.is_invariant() || outcome.verdict != Verdict::Error {
        return None;
    }
    let reason = outcome.reason.clone().unwrap_or_default();
    let mut faults = known.faults_here();
    let fault = faults.find(|fault| {
        let any_case = KnownFault {
            cases: None,
            ..KnownFault::clone(fault)
        };
        any_case.explains(&outcome.id, &reason)
    });
    Some(Finding {
        key: Key::Undecided(stable(&reason)),
        level: Level::Must,
        name: String::new(),
        sentence: String::new(),
        words: (String::new(), reason),
        known: fault.map(|fault| format!("{} ({})", fault.reason.trim(), fault.link)),
    })
}

/// A reason without what differs from run to run: ids, names and numbers.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{EventKind, ExpectationFile};
    use crate::outcome::{Fact, Mismatch};

    /// A check of a walk finds what an invariant finds, too; two invariants are two rules.
    #[test]
    fn what_an_entry_of_an_invariant_explains() {
        let known = Known::parse(&ExpectationFile {
            path: "known.yaml".to_owned(),
            text: "runtime: any\n\
                   known:\n\
                   - {case: INV-14, reason: why, link: there, in: [ORD-01],\n   \
                   finding: {kind: own-container-missing, event: STOPPED}}\n\
                   - {case: INV-09, reason: why, link: there}\n"
                .to_owned(),
        });
        let known = known.expect("it is right");
        let is_known = |rule, kind, event| {
            let missing = Mismatch::new(kind, [], [Fact::Event(event)]);
            explanation(rule, missing.signature(), &known).is_some()
        };
        let missing = Kind::OwnContainerMissing;
        assert!(is_known(None, missing, EventKind::Stopped));
        assert!(is_known(Some("INV-14"), missing, EventKind::Stopped));
        assert!(!is_known(None, missing, EventKind::Started));
        assert!(!is_known(
            None,
            Kind::OwnContainerRepeated,
            EventKind::Stopped
        ));
        assert!(!is_known(Some("INV-15"), missing, EventKind::Stopped));
    }

    #[test]
    fn a_reason_is_the_same_whatever_it_is_about() {
        let one = stable("RemoveContainer failed: cannot delete running task 3fa8 after 12 ms");
        let other = stable("RemoveContainer failed: cannot delete running task 9b01 after 7 ms");
        assert_eq!(one, other);
        assert_eq!(
            one,
            "RemoveContainer failed: cannot delete running task after ms"
        );
    }
}
