//! Expectation files: the failures that are known of a runtime, each with its reason and evidence.

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
}

/// One known failure.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownFailure {
    /// The id of the case or invariant that fails.
    pub case: String,
    /// Why it does.
    pub reason: String,
    /// Where more is told of it: an issue, or the runtime's source.
    pub link: String,
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
        "the expectation file {path}: {fault}; each entry under `known:` has `case`, `reason` and \
         `link`"
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
    pub fn read<'a>(
        path: &Path,
        ids: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<Self, KnownError> {
        let read = |fault| KnownError::Read {
            path: path.to_owned(),
            fault,
        };
        if std::fs::metadata(path).map_err(read)?.len() > LARGEST_BYTES {
            return Err(read(std::io::Error::other("it is larger than 1 MiB")));
        }
        let text = std::fs::read_to_string(path).map_err(read)?;
        let parsed: Result<Self, _> = serde_yaml::from_str(&text);
        let mut known = parsed.map_err(|fault| KnownError::Parse {
            path: path.to_owned(),
            fault,
        })?;
        known.path = path.to_owned();
        let unknown = known
            .known
            .iter()
            .find(|entry| !ids.clone().any(|id| id == entry.case));
        match unknown {
            Some(entry) => Err(KnownError::Unknown {
                path: path.to_owned(),
                id: entry.case.clone(),
            }),
            None => Ok(known),
        }
    }

    /// Takes a listed failure for known, and a listed case that passed for unexpected.
    pub fn apply(&self, outcome: &mut Outcome) {
        let Some(entry) = self.known.iter().find(|entry| entry.case == outcome.id) else {
            return;
        };
        match outcome.verdict {
            Verdict::Fail => {
                outcome.verdict = Verdict::Known;
                outcome.reason = Some(format!("{} ({})", entry.reason, entry.link));
            }
            Verdict::Pass => {
                outcome.verdict = Verdict::UnexpectedPass;
                outcome.reason = Some(format!(
                    "{} lists it as failing: {}; if it is mended, remove the entry",
                    self.path.display(),
                    entry.reason
                ));
            }
            Verdict::Known
            | Verdict::UnexpectedPass
            | Verdict::Error
            | Verdict::Skip
            | Verdict::Inconclusive => {}
        }
    }
}
