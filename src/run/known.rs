//! The expectations that the user names: a file, or those that are built in.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::history::{ExpectationFile, RunInfo};
use crate::terminal;
use crate::verdicts::{Known, builtin_of};

/// Which known failures fail no run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectations {
    /// Those of this repository for the runtime.
    Builtin,
    /// Those of a file.
    File(PathBuf),
}

/// The same, as far as it is known before the runtime is.
#[derive(Clone, Debug)]
pub(super) enum Listed {
    /// Those of a file, or none.
    In(Option<ExpectationFile>),
    /// Those of this repository.
    Builtin,
}

impl Listed {
    /// Those of a run's runtime; says so if there are none.
    pub(super) fn of(self, info: &RunInfo) -> Option<ExpectationFile> {
        let runtime = &info.runtime.runtime_name;
        match self {
            Self::In(file) => file,
            Self::Builtin => {
                let file = builtin_of(runtime);
                if file.is_none() {
                    terminal::say(&none_for(runtime));
                }
                file
            }
        }
    }
}

/// That no expectations are built in for a runtime.
pub(super) fn none_for(runtime: &str) -> String {
    format!("no expectations are built in for {runtime}: none of its failures is accepted")
}

/// A file larger than this is no expectation file.
const LARGEST_BYTES: u64 = 1 << 20;

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
         and `link`, and may have `when`, `in`, `actual`, `sometimes`, `rate`, `at-most`, `fixed-in` \
         and `expires`; each under `faults:` has `message`, `reason` and `link`, and may have `when` \
         and `in`"
    )]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and what.
        fault: String,
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

/// Reads an expectation file; `ids` are all that there are.
///
/// # Errors
/// If it cannot be read, is malformed, or lists an id that does not exist.
pub(super) fn read(
    path: &Path,
    ids: &BTreeSet<&str>,
) -> Result<(ExpectationFile, Known), KnownError> {
    let path = || path.to_owned();
    let read = |fault| KnownError::Read {
        path: path(),
        fault,
    };
    if std::fs::metadata(path()).map_err(read)?.len() > LARGEST_BYTES {
        return Err(read(std::io::Error::other("it is larger than 1 MiB")));
    }
    let file = ExpectationFile {
        path: path().display().to_string(),
        text: std::fs::read_to_string(path()).map_err(read)?,
    };
    let known = Known::parse(&file).map_err(|fault| KnownError::Parse {
        path: path(),
        fault,
    })?;
    let unknown = known.ids().find(|id| !ids.contains(id)).map(str::to_owned);
    match unknown {
        Some(id) => Err(KnownError::Unknown { path: path(), id }),
        None => Ok((file, known)),
    }
}
