//! A case file as it is written, before anything is known of its sense.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use serde::Deserialize;

use super::{Case, Check, Expectation, Need, Situation, Step, Tier};
use crate::outcome::{Level, Levels};

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
    #[serde(default)]
    pub(super) requirements: Vec<String>,
    #[serde(default)]
    pub(super) tier: Tier,
    #[serde(default)]
    pub(super) tags: Vec<String>,
    pub(super) levels: Levels,
    #[serde(default)]
    pub(super) needs: Vec<Need>,
    #[serde(default)]
    pub(super) exclusive: bool,
    #[serde(default)]
    pub(super) silent: bool,
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
    pub(super) fn into_case(self, place: Place<'_>, text: &str) -> Case {
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
            requirements: self.requirements,
            tier: self.tier,
            tags: self.tags,
            levels: self.levels,
            needs: self.needs,
            exclusive: self.exclusive,
            silent: self.silent,
            provokes: self.provokes,
            steps: self.steps,
            expect: musts.chain(shoulds).collect(),
            definition: text.to_owned(),
        }
    }
}
