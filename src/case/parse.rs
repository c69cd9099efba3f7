//! From the text of a case file to a case, or to all that is wrong with it. Knows no file system: a
//! path is only the name of a text.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use serde::Deserialize;

use super::diagnose::{self, Diagnostic};
use super::validate::validate;
use super::{Case, Check, Expectation, Levels, Need, Situation, Step};
use crate::outcome::Level;

/// A case file, key by key.
#[derive(Clone, Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a case: a mapping with `id`, `title`, `why` and so on"
)]
pub(super) struct CaseFile {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) why: String,
    pub(super) sources: Vec<String>,
    pub(super) levels: Levels,
    #[serde(default)]
    pub(super) needs: Vec<Need>,
    #[serde(default)]
    pub(super) exclusive: bool,
    pub(super) provokes: Option<Situation>,
    pub(super) steps: Vec<Step>,
    #[serde(default)]
    pub(super) expect: Vec<Check>,
    #[serde(default)]
    pub(super) expect_should: Vec<Check>,
}

/// Where a case file lies, as far as it names the case: `<area>::<name>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    /// The folder's name.
    pub(super) area: &'a str,
    /// The file's name without `.yaml`.
    pub(super) name: &'a str,
}

/// What could be read of one case file.
pub(super) struct Reading {
    /// The id that it claims, if it could be parsed that far.
    pub(super) id: Option<String>,
    /// The case, or all that is wrong with it.
    pub(super) case: Result<Case, Vec<Diagnostic>>,
}

/// Reads a case from the text of the file at `path`, whose last two parts name the case:
/// `order/stopped-before-deleted.yaml` is `order::stopped-before-deleted`.
///
/// # Errors
///
/// All that is wrong with the case; but after an error of YAML, or of a type, that one alone.
pub fn parse(path: &Path, text: &str) -> Result<Case, Vec<Diagnostic>> {
    read(path, Place::of(path), text).case
}

/// Reads a case from the text of the file at `path`, which `place` names.
pub(super) fn read(path: &Path, place: Place<'_>, text: &str) -> Reading {
    let from = serde_yaml::Deserializer::from_str(text);
    let file: CaseFile = match serde_yaml::with::singleton_map_recursive::deserialize(from) {
        Ok(file) => file,
        Err(fault) => {
            return Reading {
                id: None,
                case: Err(vec![diagnose::of_yaml(path, text, &fault)]),
            };
        }
    };
    let problems = validate(&file, place);
    Reading {
        id: Some(file.id.clone()),
        case: if problems.is_empty() {
            Ok(file.into_case(place, text))
        } else {
            Err(diagnose::locate_all(problems, path, text))
        },
    }
}

impl<'a> Place<'a> {
    pub(super) fn of(path: &'a Path) -> Self {
        let text = |part: Option<&'a OsStr>| part.and_then(OsStr::to_str).unwrap_or_default();
        Self {
            area: text(path.parent().and_then(Path::file_name)),
            name: text(path.file_stem()),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.area, self.name)
    }
}

impl CaseFile {
    fn into_case(self, place: Place<'_>, text: &str) -> Case {
        let expectation = |level| move |check| Expectation { level, check };
        let musts = self.expect.into_iter().map(expectation(Level::Must));
        let shoulds = self
            .expect_should
            .into_iter()
            .map(expectation(Level::Should));
        Case {
            name: place.to_string(),
            id: self.id,
            title: self.title,
            why: self.why,
            sources: self.sources,
            levels: self.levels,
            needs: self.needs,
            exclusive: self.exclusive,
            provokes: self.provokes,
            steps: self.steps,
            expect: musts.chain(shoulds).collect(),
            definition: text.to_owned(),
        }
    }
}
