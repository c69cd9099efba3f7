//! The files that a run writes. Each is opened before anything runs, so that a path which cannot be
//! written is told at once; a report replaces its predecessor only when it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::outcome::RunReport;
use crate::report;
use crate::verdicts::{self, Known};

/// A file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("write the {what} to {}: {fault}", path.display())]
pub struct OutputError {
    what: &'static str,
    path: PathBuf,
    fault: io::Error,
}

/// Where the user wants what.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places<'a> {
    pub(super) junit: Option<&'a Path>,
    pub(super) json: Option<&'a Path>,
    pub(super) expectations: Option<&'a Path>,
    pub(super) history: Option<&'a Path>,
}

/// The files that the user asked for.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    junit: Option<Draft>,
    json: Option<Draft>,
    expectations: Option<Draft>,
    history: Option<NewHistory>,
}

/// A history's file before its run has begun: an older one at its place is still whole.
#[derive(Debug)]
struct NewHistory {
    path: PathBuf,
    file: File,
    /// Whether there was none before.
    made: bool,
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
    pub(super) fn open(places: Places<'_>) -> Result<Self, OutputError> {
        let mut outputs = Self::default();
        match outputs.open_each(places) {
            Ok(()) => Ok(outputs),
            Err(fault) => {
                outputs.discard();
                Err(fault)
            }
        }
    }

    fn open_each(&mut self, places: Places<'_>) -> Result<(), OutputError> {
        let open = |what, path: Option<&Path>| path.map(|path| Draft::open(what, path)).transpose();
        self.junit = open("JUnit report", places.junit)?;
        self.json = open("JSON report", places.json)?;
        self.expectations = places
            .expectations
            .map(Draft::of_expectations)
            .transpose()?;
        self.history = places.history.map(NewHistory::open).transpose()?;
        Ok(())
    }

    /// The history's file, emptied for the run that now begins.
    pub(super) fn begin_history(&mut self) -> Result<Option<File>, OutputError> {
        self.history.take().map(NewHistory::begin).transpose()
    }

    /// The files that are of no use unless the run comes to a report.
    pub(super) fn unfinished(&self) -> Vec<PathBuf> {
        let drafts = [&self.junit, &self.json, &self.expectations];
        let drafts = drafts.into_iter().flatten();
        drafts.filter_map(|draft| draft.beside.clone()).collect()
    }

    /// Writes the reports and says which. `known` is what the run was judged by.
    pub(super) fn write(
        self,
        report: &RunReport,
        known: &Known,
    ) -> Result<Vec<String>, OutputError> {
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
        if let Some(draft) = self.expectations {
            written.push(format!("{}: {}", draft.what, draft.path.display()));
            let text = verdicts::expectations(report, known);
            draft.complete(|out| out.write_all(text.as_bytes()))?;
        }
        Ok(written)
    }

    /// Removes what was begun, for a run that did not come to a report.
    pub(super) fn discard(self) {
        let mut useless = self.unfinished();
        useless.extend(self.history.filter(|new| new.made).map(|new| new.path));
        remove(&useless);
    }
}

fn junit(report: &RunReport, out: &mut dyn Write) -> io::Result<()> {
    report::junit::write(report, out)
}

fn json(report: &RunReport, out: &mut dyn Write) -> io::Result<()> {
    report::json::write(report, out)
}

/// Removes files that are empty and ours; if one stays, it harms nobody.
pub(super) fn remove(files: &[PathBuf]) {
    for file in files {
        let _ = fs::remove_file(file);
    }
}

impl NewHistory {
    fn open(path: &Path) -> Result<Self, OutputError> {
        let made = !path.exists();
        let mut options = File::options();
        options.write(true).create(true).truncate(false);
        let file = options
            .open(path)
            .map_err(|fault| Self::fault(path, fault))?;
        Ok(Self {
            path: path.to_owned(),
            file,
            made,
        })
    }

    fn begin(self) -> Result<File, OutputError> {
        // A pipe or a device has no length to set.
        if self.file.metadata().is_ok_and(|meta| meta.is_file()) {
            let emptied = self.file.set_len(0);
            emptied.map_err(|fault| Self::fault(&self.path, fault))?;
        }
        Ok(self.file)
    }

    fn fault(path: &Path, fault: io::Error) -> OutputError {
        OutputError {
            what: "history",
            path: path.to_owned(),
            fault,
        }
    }
}

impl Draft {
    /// A file that people edit, so that there must be none yet.
    fn of_expectations(path: &Path) -> Result<Self, OutputError> {
        let what = "expectation file";
        if path.exists() {
            let fault = "it is there already, and what people wrote into it would be lost; name a \
                         new file, and compare the two";
            return Err(OutputError {
                what,
                path: path.to_owned(),
                fault: io::Error::other(fault),
            });
        }
        Self::open(what, path)
    }

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
