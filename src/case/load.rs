//! Reads cases: those that are compiled in, or the files that a user names. The only part of `case`
//! that touches the file system.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use rust_embed::RustEmbed;

use super::diagnose::{Diagnostic, Diagnostics, Problem};
use super::file::{Place, read};
use super::locate::{Part, Segment};
use super::{Case, Defect, Requirement, limits, lists};
use crate::files::{self, FileId, Folder};

/// The files of `cases` of this repository, as they were when the program was built. A debug build
/// reads them as they are now, so that a changed case costs no build.
#[derive(RustEmbed)]
#[folder = "cases"]
#[include = "*.yaml"]
struct Embedded;

impl Embedded {
    /// The text of a file, by its path below `cases`.
    fn text(path: &Path) -> Result<String, Diagnostics> {
        let file = path.to_str().and_then(Self::get);
        let text = file.and_then(|file| String::from_utf8(file.data.into_owned()).ok());
        let missing = "the file of this repository is missing, or is not UTF-8";
        let found = || Diagnostics::new(vec![Diagnostic::of_file(path, missing)]);
        text.ok_or_else(found)
    }
}

/// Files in a folder of cases that are ignored.
const NO_CASES: [&str; 2] = [lists::REQUIREMENTS, lists::DEFECTS];

/// Why no cases could be read from a path.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The path does not exist, or cannot be read.
    #[error("read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("find a case: no `.yaml` file in {}", path.display())]
    Empty { path: PathBuf },
    #[error(
        "read {} as a case: it is a list that goes with cases; name a case file or the folder",
        path.display()
    )]
    NoCase { path: PathBuf },
    /// There are too many files for a folder of cases.
    #[error("find the cases: more files than cases can be in {}", path.display())]
    TooMany { path: PathBuf },
    /// Some files are not valid.
    #[error(transparent)]
    Invalid(#[from] Diagnostics),
}

/// The cases of this repository, ordered by id.
pub fn embedded() -> Result<Vec<Case>, Diagnostics> {
    let mut reader = Reader::for_cases_of(None)?;
    for name in Embedded::iter().filter(|name| name.contains('/')) {
        let path = Path::new("cases").join(&*name);
        reader.text(&path, &path, &Embedded::text(Path::new(&*name))?);
    }
    reader.finish()
}

/// The case in a file, or the cases in a folder and those below it, ordered by id.
pub fn from_path(path: &Path) -> Result<Vec<Case>, LoadError> {
    let mut walk = Walk::default();
    let root = files::stat(path).map_err(|source| LoadError::Read {
        path: path.to_owned(),
        source,
    })?;
    if files::kind(&root).is_dir() {
        walk.folder(path, 0);
    } else if is_no_case(path) {
        let path = path.to_owned();
        return Err(LoadError::NoCase { path });
    } else {
        walk.files.push(path.to_owned());
    }
    let (root, path) = (path, path.to_owned());
    if walk.entries > limits::ENTRIES || walk.files.len() > limits::FILES {
        return Err(LoadError::TooMany { path });
    }
    if walk.files.is_empty() && walk.found.is_empty() {
        return Err(LoadError::Empty { path });
    }
    let mut reader = Reader {
        found: walk.found,
        ..Reader::for_cases_of(Some(root))?
    };
    for file in &walk.files {
        reader.file(file);
    }
    Ok(reader.finish()?)
}

/// The requirements of a folder of cases, or those of this repository.
pub fn requirements(cases: Option<&Path>) -> Result<Vec<Requirement>, Diagnostics> {
    let own = cases.map(|folder| folder.join(lists::REQUIREMENTS));
    let Some(path) = own.filter(|path| path.exists()) else {
        let path = Path::new("cases").join(lists::REQUIREMENTS);
        let text = Embedded::text(Path::new(lists::REQUIREMENTS))?;
        return lists::requirements(&path, &text).map_err(Diagnostics::new);
    };
    let read = match text_of(&path) {
        Ok(text) => lists::requirements(&path, &text),
        Err(message) => Err(vec![Diagnostic::of_file(&path, message)]),
    };
    read.map_err(Diagnostics::new)
}

/// The defects of this repository that the suite must notice. Their hooks are built in, so a folder
/// of cases has none of its own.
pub fn defects() -> Result<Vec<Defect>, Diagnostics> {
    let path = Path::new("cases").join(lists::DEFECTS);
    let text = Embedded::text(Path::new(lists::DEFECTS))?;
    lists::defects(&path, &text).map_err(Diagnostics::new)
}

/// The search for case files in a folder. Follows links, but enters no folder twice.
#[derive(Default)]
struct Walk {
    files: Vec<PathBuf>,
    found: Vec<Diagnostic>,
    entries: usize,
    entered: BTreeSet<FileId>,
}

impl Walk {
    fn folder(&mut self, path: &Path, depth: usize) {
        let listed = Folder::open(path).and_then(|it| Ok((it.id()?, entries_of(path, &it)?)));
        let (id, entries) = match listed {
            Ok(listed) => listed,
            Err(fault) => {
                return self.object(path, format!("the folder cannot be listed: {fault}"));
            }
        };
        if !self.entered.insert(id) {
            return self.object(
                path,
                "the link leads to a folder that has been read already",
            );
        }
        if depth > limits::FOLDER_DEPTH {
            return self.object(path, "the folder lies too deep for a folder of cases");
        }
        for entry in entries {
            self.entries += 1;
            if self.entries > limits::ENTRIES {
                return;
            }
            self.entry(entry, depth);
        }
    }

    fn entry(&mut self, path: PathBuf, depth: usize) {
        let extension = path.extension().and_then(OsStr::to_str);
        match files::stat(&path) {
            Ok(entry) if files::kind(&entry).is_dir() => self.folder(&path, depth + 1),
            Ok(_) if is_no_case(&path) => {}
            Ok(_) if extension == Some("yaml") => self.files.push(path),
            Ok(_) if extension == Some("yml") => self.found.push(
                Diagnostic::of_file(&path, "the file is not read, for cases end in `.yaml`")
                    .with_help("rename it"),
            ),
            Ok(_) => {}
            Err(fault) => self.object(&path, format!("this cannot be read: {fault}")),
        }
    }

    fn object(&mut self, path: &Path, message: impl Into<String>) {
        self.found.push(Diagnostic::of_file(path, message));
    }
}

/// Whether a file in a folder of cases is ignored.
fn is_no_case(path: &Path) -> bool {
    NO_CASES.iter().any(|name| path.ends_with(name))
}

/// The entries of a folder in the order of names, without hidden ones.
fn entries_of(path: &Path, folder: &Folder) -> io::Result<Vec<PathBuf>> {
    let names = folder.names(limits::ENTRIES + 1)?.into_iter();
    let shown = names.filter(|name| !name.as_encoded_bytes().starts_with(b"."));
    Ok(shown.map(|name| path.join(name)).collect())
}

/// Collects cases and their problems.
#[derive(Default)]
struct Reader {
    cases: Vec<Case>,
    found: Vec<Diagnostic>,
    ids: BTreeMap<String, PathBuf>,
    names: BTreeMap<String, PathBuf>,
    /// The ids of the requirements that a case can name.
    requirements: BTreeSet<String>,
}

impl Reader {
    fn for_cases_of(folder: Option<&Path>) -> Result<Self, Diagnostics> {
        let known = requirements(folder)?.into_iter();
        Ok(Self {
            requirements: known.map(|requirement| requirement.id).collect(),
            ..Self::default()
        })
    }

    fn file(&mut self, path: &Path) {
        // `.` and `..` do not contain the area's name, the real path does.
        let named = match path.parent().and_then(Path::file_name) {
            Some(_) => Ok(path.to_owned()),
            None => std::fs::canonicalize(path),
        };
        let text = named
            .map_err(|fault| format!("the file cannot be read: {fault}"))
            .and_then(|named| Ok((named, text_of(path)?)));
        match text {
            Ok((named, text)) => self.text(path, &named, &text),
            Err(message) => self.found.push(Diagnostic::of_file(path, message)),
        }
    }

    /// Takes the text of a file at `path`. `named` is a path to it with its area and name.
    fn text(&mut self, path: &Path, named: &Path, text: &str) {
        let place = Place::from_path(named);
        let reading = read(path, place, text);
        match reading.case {
            Ok(case) => {
                for problem in self.unknown_requirements(&case) {
                    self.found.push(problem.locate(path, text));
                }
                self.cases.push(case);
            }
            Err(found) => self.found.extend(found),
        }
        let Some(id) = reading.id else {
            return;
        };
        let name = place.to_string();
        for (what, known, word) in [("id", &mut self.ids, id), ("name", &mut self.names, name)] {
            if let Some(first) = known.get(&word) {
                let problem = Problem {
                    path: vec![Segment::Key("id")],
                    part: Part::Value,
                    message: format!("another case has the {what} `{word}` already"),
                    help: Some(format!("the other one is {}", first.display())),
                };
                self.found.push(problem.locate(path, text));
            } else {
                known.insert(word, path.to_owned());
            }
        }
    }

    fn unknown_requirements(&self, case: &Case) -> Vec<Problem> {
        let named = case.requirements.iter().enumerate();
        let unknown = named.filter(|(_, id)| !self.requirements.contains(*id));
        let problems = unknown.map(|(index, id)| Problem {
            path: vec![Segment::Key("requirements"), Segment::Index(index)],
            part: Part::Value,
            message: format!("there is no requirement {id}"),
            help: Some(
                "cases/requirements.yaml lists them, unless the folder has one of its own"
                    .to_owned(),
            ),
        });
        problems.collect()
    }

    fn finish(mut self) -> Result<Vec<Case>, Diagnostics> {
        Diagnostics::from_found(self.found)?;
        self.cases.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(self.cases)
    }
}

/// The text of a file, or why it cannot be a case.
fn text_of(path: &Path) -> Result<String, String> {
    let read = files::read(path, limits::FILE_BYTES);
    let bytes = read.map_err(|fault| format!("the file cannot be read: {fault}"))?;
    String::from_utf8(bytes).map_err(|fault| {
        let at = fault.utf8_error().valid_up_to();
        let (before, rest) = fault.as_bytes().split_at(at);
        let line = before.split(|byte| *byte == b'\n').count();
        let byte = rest.first().copied().unwrap_or_default();
        format!("the file is not UTF-8: byte 0x{byte:02x} in line {line}")
    })
}
