//! Reading the expectation file that the user names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::history::ExpectationFile;
use crate::verdicts::Known;

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
         and `link`, and may have `sometimes`, `rate`, `expires` and `actual`; each under `faults:` has \
         `message`, `reason` and `link`"
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
    let mut listed = known.known.iter().map(|entry| &entry.case);
    match listed.find(|id| !ids.contains(id.as_str())) {
        Some(id) => Err(KnownError::Unknown {
            path: path(),
            id: id.clone(),
        }),
        None => Ok((file, known)),
    }
}
