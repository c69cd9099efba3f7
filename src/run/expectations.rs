//! Reads the expectations that the user names: a file, or the built-in ones.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::case::{Case, did_you_mean, wrong_value};
use crate::escape::printable;
use crate::history::{ExpectationFile, RunInfo};
use crate::verdicts::{Known, builtin_of, kinds_by_id};
use crate::{files, terminal};

/// The source of the accepted failures: the value of `--expectations`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectations {
    /// No failure is accepted, also where the recorded run accepted some.
    None,
    /// The built-in list for the runtime.
    Builtin,
    File(PathBuf),
}

impl Expectations {
    /// Parses a value of `--expectations`: `none`, `builtin` or a file.
    pub fn named(value: OsString) -> Self {
        match value.to_str() {
            Some("none") => Self::None,
            Some("builtin") => Self::Builtin,
            _ => Self::File(value.into()),
        }
    }
}

/// The source of the accepted failures, before the runtime is known.
#[derive(Clone, Debug, Default)]
pub enum ExpectationSource {
    /// No failure is accepted.
    #[default]
    None,
    /// A file that was read.
    Given(ExpectationFile),
    /// The built-in list for the runtime.
    Builtin,
}

impl ExpectationSource {
    /// Reads the file, if one is named. Its entries name only these cases.
    pub fn open(given: Option<&Expectations>, cases: &[Case]) -> Result<Self, ExpectationsError> {
        Ok(match given {
            Some(Expectations::File(path)) => Self::Given(read(path, cases)?.0),
            Some(Expectations::Builtin) => Self::Builtin,
            Some(Expectations::None) | None => Self::None,
        })
    }

    /// The expectation file for a run's runtime; prints a note if there is no built-in one.
    pub fn resolve(self, info: &RunInfo) -> Result<Option<ExpectationFile>, ExpectationsError> {
        let runtime = &info.runtime.runtime_name;
        match self {
            Self::Given(file) => {
                if let Ok(known) = Known::parse(&file) {
                    require_runtime(&known, Path::new(&file.path), info)?;
                }
                Ok(Some(file))
            }
            Self::None => Ok(None),
            Self::Builtin => {
                let file = builtin_of(runtime);
                if file.is_none() {
                    terminal::say(&none_for(runtime));
                }
                Ok(file)
            }
        }
    }
}

pub fn require_runtime(
    known: &Known,
    path: &Path,
    info: &RunInfo,
) -> Result<(), ExpectationsError> {
    let found = &info.runtime.runtime_name;
    if known.is_for(found) {
        return Ok(());
    }
    Err(ExpectationsError::OtherRuntime {
        path: path.to_owned(),
        listed: printable(&known.runtime).into_owned(),
        found: printable(found).into_owned(),
    })
}

/// The note that a runtime has no built-in expectations.
pub(super) fn none_for(runtime: &str) -> String {
    format!("there are no built-in expectations for {runtime}: no failure is accepted")
}

pub const LARGEST_EXPECTATIONS: u64 = 1 << 20;

/// The reason why an expectation file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExpectationsError {
    #[error("read the expectation file {path}: {fault}{hint}")]
    Read {
        path: PathBuf,
        fault: std::io::Error,
        /// The probable intention of the user; empty if unknown.
        hint: &'static str,
    },
    #[error("the expectation file {path}: {fault}")]
    Parse {
        path: PathBuf,
        /// The position and the problem.
        fault: String,
    },
    #[error(
        "the expectation file {path} has `runtime: {listed}`, and this runtime is {found}: name the \
         file of this one, or write `runtime: any` if all entries hold for it"
    )]
    OtherRuntime {
        path: PathBuf,
        listed: String,
        found: String,
    },
}

/// Whether a file's name is similar to the word for the built-in list.
fn is_like_builtin(path: &Path) -> bool {
    const MIN_SIMILARITY: f64 = 0.85;
    let name = path.to_string_lossy().to_ascii_lowercase();
    strsim::jaro_winkler(&name, "builtin") > MIN_SIMILARITY
}

/// Reads an expectation file for an invocation with these cases.
pub(super) fn read(
    path: &Path,
    cases: &[Case],
) -> Result<(ExpectationFile, Known), ExpectationsError> {
    let path = || path.to_owned();
    let read = |fault: std::io::Error| ExpectationsError::Read {
        path: path(),
        hint: match fault.kind() {
            std::io::ErrorKind::NotFound if is_like_builtin(&path()) => "; did you mean `builtin`?",
            _ => "",
        },
        fault,
    };
    let file = ExpectationFile {
        path: path().display().to_string(),
        text: files::read_text(&path(), LARGEST_EXPECTATIONS).map_err(read)?,
    };
    let known = Known::parse(&file).map_err(|fault| ExpectationsError::Parse {
        path: path(),
        fault,
    })?;
    let kinds = kinds_by_id(cases);
    if let Some(id) = known.ids().find(|id| !kinds.contains_key(id)) {
        let hint = did_you_mean(id, kinds.keys().copied());
        let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
        let fault = format!("`{id}` is no invariant, and no case of this run{hint}");
        let fault = wrong_value(&path(), &file.text, id, fault);
        return Err(ExpectationsError::Parse {
            path: path(),
            fault,
        });
    }
    if let Some((id, fault)) = known.impossible_finding(&kinds) {
        let fault = wrong_value(&path(), &file.text, id, fault);
        return Err(ExpectationsError::Parse {
            path: path(),
            fault,
        });
    }
    Ok((file, known))
}
