//! A case file as it is written, before anything is known of its sense.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::validate::Implied;
use super::{Case, Need, Step, Tier};
use crate::checks::{Check, Expectation, Situation};
use crate::outcome::{Level, Levels};

/// A case of cri-event-conformance: what to do with a container runtime, and what must be seen.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a case: a mapping with `id`, `title`, `why` and so on"
)]
#[schemars(title = "case")]
pub(super) struct CaseFile {
    /// The area and a number, such as `ORD-01`. Never reused.
    pub(super) id: String,
    /// The claim, as one sentence.
    pub(super) title: String,
    /// Whom a runtime harms that fails here.
    pub(super) why: String,
    /// Where the requirement comes from.
    pub(super) sources: Vec<String>,
    /// What it checks, by the ids of `requirements.yaml`, such as `R9`.
    #[serde(default)]
    pub(super) requirements: Vec<String>,
    /// How large a run has to be to take it along.
    #[serde(default)]
    pub(super) tier: Tier,
    /// Words to select it by.
    #[serde(default)]
    pub(super) tags: Vec<String>,
    /// How binding it is, for whom.
    pub(super) levels: Levels,
    /// What it needs beyond the socket and does not follow from its steps: `broadcast`,
    /// `no-events` or `timestamp`.
    #[serde(default)]
    pub(super) needs: Vec<Need>,
    /// No other case may run meanwhile.
    #[serde(default)]
    pub(super) exclusive: bool,
    /// The runtime is asked nothing but what the steps ask.
    #[serde(default)]
    pub(super) silent: bool,
    /// The situation without which the case proves nothing.
    pub(super) provokes: Option<Situation>,
    /// What to do.
    pub(super) steps: Vec<Step>,
    /// What must then be seen; broken, the case fails.
    #[serde(default)]
    pub(super) expect: Vec<Check>,
    /// What should be seen; broken, it is advice.
    #[serde(default)]
    pub(super) expect_should: Vec<Check>,
}

/// Where a case file lies, as far as it names the case: `<area>::<name>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
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
    pub(super) fn into_case(self, place: Place<'_>, text: &str, implied: Implied) -> Case {
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
            needs: implied.needs,
            exclusive: self.exclusive,
            silent: self.silent,
            provokes: self.provokes,
            steps: self.steps,
            stalls_a_subscriber: implied.stalls_a_subscriber,
            expect: musts.chain(shoulds).collect(),
            definition: text.to_owned(),
        }
    }
}
