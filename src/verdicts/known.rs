//! Expectation files: the failures that are known of a runtime, each with its reason and evidence.

mod terms;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use terms::{Day, Rate};

use crate::history::{ExpectationFile, HostInstant};
use crate::outcome::{Outcome, Verdict};

/// The shortest part of a message that may tell a fault, in bytes.
const SHORTEST_MESSAGE: usize = 12;

/// The known failures of one runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// What this is the file of, for people.
    pub runtime: String,
    /// The failures.
    pub known: Vec<KnownFailure>,
    /// What goes wrong with it now and then, so that a case cannot be decided.
    #[serde(default)]
    pub faults: Vec<KnownFault>,
    #[serde(skip)]
    path: String,
    /// Not all cases run: an invariant may hold because the case that breaks it is left out.
    #[serde(skip)]
    partial: bool,
    /// When the run began that is judged by it.
    #[serde(skip)]
    began: HostInstant,
}

/// One known failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KnownFailure {
    /// The id of the case or invariant that fails.
    pub case: String,
    /// Why it does.
    pub reason: String,
    /// Where more is told of it: an issue, or the runtime's source.
    pub link: String,
    /// A race: it fails in some runs and passes in others, and both are as expected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sometimes: bool,
    /// The same, with how often it was seen to fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The last day on which the entry counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Day>,
    /// What the failure says was seen, one text or several; any other failure of the case is no
    /// known one. All are, if this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<Actual>,
}

/// A call that fails now and then, though the case has done nothing to make it fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownFault {
    /// A part of what the call's failure says.
    pub message: String,
    /// Why it fails.
    pub reason: String,
    /// Where more is told of it.
    pub link: String,
}

impl KnownFailure {
    /// Whether it has expired at a moment.
    #[must_use]
    pub fn is_over(&self, at: HostInstant) -> bool {
        self.expires.as_ref().is_some_and(|day| day.is_over(at))
    }

    /// Whether it is of a failure that says that this was seen.
    fn covers(&self, seen: &str) -> bool {
        let actual = self.actual.as_ref();
        actual.is_none_or(|actual| actual.texts().any(|actual| actual == seen))
    }

    /// Whether its case may pass as well.
    fn is_race(&self) -> bool {
        self.sometimes || self.rate.is_some()
    }
}

/// One text, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Actual {
    /// Always the same.
    One(String),
    /// Any of these.
    AnyOf(Vec<String>),
}

impl Actual {
    /// All the texts.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let texts = match self {
            Self::One(actual) => std::slice::from_ref(actual),
            Self::AnyOf(any) => any,
        };
        texts.iter().map(String::as_str)
    }
}

impl Known {
    /// Reads the text of an expectation file.
    ///
    /// # Errors
    /// If it is malformed: where, and how.
    pub fn parse(file: &ExpectationFile) -> Result<Self, String> {
        let known: Self = serde_yaml::from_str(&file.text).map_err(|fault| fault.to_string())?;
        let mut messages = known.faults.iter().map(|fault| &fault.message);
        if let Some(message) = messages.find(|message| message.len() < SHORTEST_MESSAGE) {
            return Err(format!(
                "faults: `{message}` would excuse too much: a message has at least \
                 {SHORTEST_MESSAGE} bytes"
            ));
        }
        Ok(Self {
            path: file.path.clone(),
            ..known
        })
    }

    /// The same for a run that began then, and may have left cases out.
    #[must_use]
    pub fn for_a_run(self, began: HostInstant, partial: bool) -> Self {
        Self {
            partial,
            began,
            ..self
        }
    }

    /// What is to be told of entries that count no more, and of faults that none of the run's
    /// outcomes has met, one sentence each.
    #[must_use]
    pub fn notes(&self, outcomes: &[Outcome]) -> Vec<String> {
        let over = self.known.iter().filter(|entry| entry.is_over(self.began));
        let told = over.filter_map(|entry| {
            let (path, case, day) = (&self.path, &entry.case, entry.expires.as_ref()?);
            Some(format!(
                "{path}: the entry of {case} has expired on {day} and counts no more; see whether \
                 {case} is mended, and remove it or give it another day"
            ))
        });
        told.chain(self.stale_faults(outcomes)).collect()
    }

    /// A part of the cases need not meet them all.
    fn stale_faults<'a>(&'a self, outcomes: &'a [Outcome]) -> impl Iterator<Item = String> + 'a {
        let is_met = |fault: &KnownFault| {
            let mut excused = outcomes.iter().filter_map(|outcome| {
                let is_open = outcome.verdict == Verdict::Inconclusive;
                outcome.reason.as_deref().filter(|_| is_open)
            });
            excused.any(|reason| reason.contains(&fault.message))
        };
        let listed = self.faults.iter().filter(|_| !self.partial);
        let stale = listed.filter(move |fault| !is_met(fault));
        stale.map(|KnownFault { message, .. }| {
            format!(
                "{}: the fault `{message}` has not come in this run; if it is mended, remove the \
                 entry",
                self.path
            )
        })
    }

    /// Whether a failure of this case or invariant, which says that this was seen, is listed.
    #[must_use]
    pub fn lists(&self, id: &str, seen: &str) -> bool {
        self.entry_of(id).is_some_and(|entry| entry.covers(seen))
    }

    /// The entry that counts for a case or an invariant.
    fn entry_of(&self, id: &str) -> Option<&KnownFailure> {
        let entry = self.known.iter().find(|entry| entry.case == id)?;
        (!entry.is_over(self.began)).then_some(entry)
    }

    /// Takes a listed failure for known, and a listed case that passed for unexpected; and an error
    /// of which a listed fault is the reason for inconclusive.
    pub fn apply(&self, outcome: &mut Outcome) {
        if outcome.verdict == Verdict::Error {
            self.excuse(outcome);
        }
        let Some(entry) = self.entry_of(&outcome.id) else {
            return;
        };
        let KnownFailure {
            reason, link, rate, ..
        } = entry;
        let covered = outcome.seen.iter().all(|seen| entry.covers(seen));
        match outcome.verdict {
            Verdict::Fail if covered => {
                let rate = rate.map(|rate| format!(", seen in {rate}"));
                let rate = rate.unwrap_or_default();
                outcome.verdict = Verdict::Known;
                outcome.reason = Some(format!("{reason}{rate} ({link})"));
            }
            Verdict::Pass if !(entry.is_race() || self.partial && outcome.is_invariant()) => {
                outcome.verdict = Verdict::UnexpectedPass;
                outcome.reason = Some(format!(
                    "{} lists it as failing: {reason}; if it is mended, remove the entry",
                    self.path,
                ));
            }
            Verdict::Fail
            | Verdict::Pass
            | Verdict::Known
            | Verdict::UnexpectedPass
            | Verdict::Error
            | Verdict::Skip
            | Verdict::Inconclusive => {}
        }
    }

    fn excuse(&self, outcome: &mut Outcome) {
        let found = outcome.reason.as_deref().unwrap_or_default();
        let mut faults = self.faults.iter();
        if let Some(fault) = faults.find(|fault| found.contains(&fault.message)) {
            let KnownFault { reason, link, .. } = fault;
            let reason = format!("a known fault, {reason} ({link}): {found}");
            (outcome.verdict, outcome.reason) = (Verdict::Inconclusive, Some(reason));
        }
    }
}
