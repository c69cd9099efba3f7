//! The files that a run writes. Each is opened before anything runs, so that a path which cannot be
//! written is told at once; a report replaces its predecessor only when it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::outcome::RunReport;
use crate::report;

/// A file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("write the {what} to {}: {fault}", path.display())]
pub struct OutputError {
    what: &'static str,
    path: PathBuf,
    fault: io::Error,
}

/// The files that the user asked for.
#[derive(Debug)]
pub(super) struct Outputs {
    junit: Option<Draft>,
    json: Option<Draft>,
    pub(super) history: Option<File>,
}

/// A file that is written beside its place and moved there once it is complete.
#[derive(Debug)]
struct Draft {
    what: &'static str,
    path: PathBuf,
    file: File,
    /// None where the place is no regular file, such as a pipe: that is written directly.
    beside: Option<PathBuf>,
}

impl Outputs {
    pub(super) fn open(
        junit: Option<&Path>,
        json: Option<&Path>,
        history: Option<&Path>,
    ) -> Result<Self, OutputError> {
        let open = |what, path: Option<&Path>| path.map(|path| Draft::open(what, path)).transpose();
        Ok(Self {
            junit: open("JUnit report", junit)?,
            json: open("JSON report", json)?,
            history: history.map(create_history).transpose()?,
        })
    }

    /// Writes the reports and says which.
    pub(super) fn write(self, report: &RunReport) -> Result<Vec<String>, OutputError> {
        let mut written = Vec::new();
        for (draft, write) in [
            (
                self.junit,
                junit as fn(&RunReport, &mut dyn Write) -> io::Result<()>,
            ),
            (self.json, json),
        ] {
            let Some(draft) = draft else { continue };
            written.push(format!("{}: {}", draft.what, draft.path.display()));
            draft.complete(|out| write(report, out))?;
        }
        Ok(written)
    }

    /// Removes what was begun, for a run that did not come to a report.
    pub(super) fn discard(self) {
        for draft in [self.junit, self.json].into_iter().flatten() {
            if let Some(beside) = draft.beside {
                // Empty and ours; if it stays, it harms nobody.
                let _ = fs::remove_file(beside);
            }
        }
    }
}

fn junit(report: &RunReport, out: &mut dyn Write) -> io::Result<()> {
    report::junit::write(report, out)
}

fn json(report: &RunReport, out: &mut dyn Write) -> io::Result<()> {
    report::json::write(report, out)
}

fn create_history(path: &Path) -> Result<File, OutputError> {
    File::create(path).map_err(|fault| OutputError {
        what: "history",
        path: path.to_owned(),
        fault,
    })
}

impl Draft {
    fn open(what: &'static str, path: &Path) -> Result<Self, OutputError> {
        let failed = |fault| OutputError {
            what,
            path: path.to_owned(),
            fault,
        };
        let special = match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {
                return Err(failed(io::Error::other("it is a directory; name a file")));
            }
            Ok(meta) => !meta.is_file(),
            Err(_) => false,
        };
        if special {
            let file = File::options().write(true).open(path).map_err(failed)?;
            return Ok(Self {
                what,
                path: path.to_owned(),
                file,
                beside: None,
            });
        }
        let mut beside = path.to_owned().into_os_string();
        beside.push(format!(".{}.part", std::process::id()));
        let beside = PathBuf::from(beside);
        let file = File::create(&beside).map_err(failed)?;
        Ok(Self {
            what,
            path: path.to_owned(),
            file,
            beside: Some(beside),
        })
    }

    fn complete(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let Self {
            what,
            path,
            file,
            beside,
        } = self;
        let mut out = BufWriter::new(file);
        let written = write(&mut out).and_then(|()| out.flush());
        let moved = written.and_then(|()| match &beside {
            Some(beside) => fs::rename(beside, &path),
            None => Ok(()),
        });
        moved.map_err(|fault| OutputError { what, path, fault })
    }
}
