//! Expectation files: the failures that are known of a runtime, each with its reason and evidence.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::outcome::{Outcome, Verdict};

/// A file larger than this is no expectation file.
const LARGEST_BYTES: u64 = 1 << 20;

/// The known failures of one runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// What this is the file of, for people.
    pub runtime: String,
    /// The failures.
    pub known: Vec<KnownFailure>,
    #[serde(skip)]
    path: PathBuf,
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
    /// What the failure says was seen; any other failure of the case is no known one. All are, if
    /// this is absent.
    #[serde(default)]
    pub actual: Option<String>,
}

/// Why an expectation file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KnownError {
    /// It cannot be read.
    #[error("read the expectation file {path}: {fault}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        fault: std::io::Error,
    },
    /// It is not what it should be.
    #[error(
        "the expectation file {path}: {fault}; each entry under `known:` has `case`, `reason` \
         and `link`, and may have `sometimes` and `actual`"
    )]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and what.
        fault: serde_yaml::Error,
    },
    /// It lists something that does not exist.
    #[error("the expectation file {path} lists `{id}`, which is no case and no invariant")]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The id.
        id: String,
    },
}

impl Known {
    /// Reads an expectation file; `ids` are all that there are.
    ///
    /// # Errors
    /// If it cannot be read, is malformed, or lists an id that does not exist.
    pub fn read(path: &Path, ids: &BTreeSet<&str>) -> Result<Self, KnownError> {
        let path = || path.to_owned();
        let read = |fault| KnownError::Read {
            path: path(),
            fault,
        };
        if std::fs::metadata(path()).map_err(read)?.len() > LARGEST_BYTES {
            return Err(read(std::io::Error::other("it is larger than 1 MiB")));
        }
        let text = std::fs::read_to_string(path()).map_err(read)?;
        let known: Self = serde_yaml::from_str(&text).map_err(|fault| KnownError::Parse {
            path: path(),
            fault,
        })?;
        let unknown = known
            .known
            .iter()
            .find(|entry| !ids.contains(entry.case.as_str()));
        if let Some(entry) = unknown {
            return Err(KnownError::Unknown {
                path: path(),
                id: entry.case.clone(),
            });
        }
        Ok(Self {
            path: path(),
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
        let Some(entry) = self.known.iter().find(|entry| entry.case == outcome.id) else {
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
            .is_none_or(|actual| seen.iter().all(|seen| seen == actual));
        match outcome.verdict {
            Verdict::Fail if covered => {
                outcome.verdict = Verdict::Known;
                outcome.reason = Some(format!("{reason} ({link})"));
            }
            Verdict::Pass if !(*sometimes || self.partial && outcome.is_invariant()) => {
                outcome.verdict = Verdict::UnexpectedPass;
                outcome.reason = Some(format!(
                    "{} lists it as failing: {reason}; if it is mended, remove the entry",
                    self.path.display(),
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
