//! Expectation files: the failures that are known of a runtime, each with its reason and evidence.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::history::ExpectationFile;
use crate::outcome::{Outcome, Verdict};

/// The known failures of one runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// What this is the file of, for people.
    pub runtime: String,
    /// The failures.
    pub known: Vec<KnownFailure>,
    #[serde(skip)]
    path: String,
    /// Not all cases run: an invariant may hold because the case that breaks it is left out.
    #[serde(skip)]
    partial: bool,
}

/// One known failure.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KnownFailure {
    /// The id of the case or invariant that fails.
    pub case: String,
    /// Why it does.
    pub reason: String,
    /// Where more is told of it: an issue, or the runtime's source.
    pub link: String,
    /// A race: it fails in some runs and passes in others, and both are as expected.
    #[serde(default)]
    pub sometimes: bool,
    /// What the failure says was seen, one text or several; any other failure of the case is no
    /// known one. All are, if this is absent.
    #[serde(default)]
    pub actual: Option<Actual>,
}

/// One text, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Actual {
    /// Always the same.
    One(String),
    /// Any of these.
    AnyOf(Vec<String>),
}

impl Actual {
    fn covers(&self, seen: &str) -> bool {
        match self {
            Self::One(actual) => actual == seen,
            Self::AnyOf(any) => any.iter().any(|actual| actual == seen),
        }
    }
}

impl Known {
    /// Reads the text of an expectation file.
    ///
    /// # Errors
    /// If it is malformed: where, and how.
    pub fn parse(file: &ExpectationFile) -> Result<Self, String> {
        let known: Self = serde_yaml::from_str(&file.text).map_err(|fault| fault.to_string())?;
        Ok(Self {
            path: file.path.clone(),
            ..known
        })
    }

    /// The same for a run that leaves cases out.
    #[must_use]
    pub fn for_a_part(self, partial: bool) -> Self {
        Self { partial, ..self }
    }

    /// Takes a listed failure for known, and a listed case that passed for unexpected. `seen` is
    /// what all its violations say was seen.
    pub fn apply(&self, outcome: &mut Outcome, seen: &BTreeSet<String>) {
        let Some(entry) = self.known.iter().find(|entry| *entry.case == *outcome.id) else {
            return;
        };
        let KnownFailure {
            reason,
            link,
            actual,
            sometimes,
            ..
        } = entry;
        let covered = actual
            .as_ref()
            .is_none_or(|actual| seen.iter().all(|seen| actual.covers(seen)));
        match outcome.verdict {
            Verdict::Fail if covered => {
                outcome.verdict = Verdict::Known;
                outcome.reason = Some(format!("{reason} ({link})"));
            }
            Verdict::Pass if !(*sometimes || self.partial && outcome.is_invariant()) => {
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
}
