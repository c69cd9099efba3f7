//! A case file: its shape, as a type and as a JSON Schema made of the types; and its parser, which
//! returns the case or all its problems. Knows no file system: a path is only the name of a text.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_yaml::with::singleton_map_recursive;

use super::diagnose::{self, Diagnostic};
use super::validate::{Implied, validate};
use super::{Case, Exemption, Need, Step, Tier};
use crate::checks::{Check, Expectation, Situation};
use crate::outcome::{Level, Levels};
use crate::yaml;

/// A case of cri-event-conformance: the calls to a container runtime, and the expected events.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[serde(expecting = "a case: a mapping with `id`, `title`, `why` and so on")]
#[schemars(title = "case")]
pub(super) struct CaseFile {
    /// The area and a number, such as `ORD-01`. Never reused.
    pub(super) id: String,
    /// The claim, as one sentence.
    pub(super) title: String,
    /// Who is affected when a runtime fails this case.
    pub(super) why: String,
    /// Where the requirement comes from.
    pub(super) sources: Vec<String>,
    /// The ids of the requirements that it checks, from `requirements.yaml`, such as `R9`.
    #[serde(default)]
    pub(super) requirements: Vec<String>,
    /// The smallest tier that includes this case.
    #[serde(default)]
    pub(super) tier: Tier,
    /// Words to select it by.
    #[serde(default)]
    pub(super) tags: Vec<String>,
    /// The requirement level for each consumer profile.
    pub(super) levels: Levels,
    /// Rules that hold of what kubelets do, and not of the steps: they bind no more than the case.
    #[serde(default)]
    pub(super) exempt: Vec<Exemption>,
    /// Needs beyond the socket that do not follow from the steps: `broadcast`, `no-events` or
    /// `timestamp`.
    #[serde(default)]
    pub(super) needs: Vec<Need>,
    /// No other case may run at the same time.
    #[serde(default)]
    pub(super) exclusive: bool,
    /// Only the steps make calls: no relist runs at the same time.
    #[serde(default)]
    pub(super) silent: bool,
    /// The situation without which the case proves nothing.
    pub(super) provokes: Option<Situation>,
    /// The actions, in order.
    pub(super) steps: Vec<Step>,
    /// Checks after the steps: a broken one fails the case.
    #[serde(default)]
    pub(super) expect: Vec<Check>,
    /// Checks after the steps: a broken one is reported as advice.
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
    pub(super) fn from_path(path: &'a Path) -> Self {
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
            exempt: self.exempt,
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

/// The result of reading one case file.
pub(super) struct Reading {
    /// The id of the case, if the file could be parsed.
    pub(super) id: Option<String>,
    /// The case, or all its problems.
    pub(super) case: Result<Case, Vec<Diagnostic>>,
}

/// Reads a case from the text of the file at `path`, whose last two parts name the case:
/// `order/stopped-before-deleted.yaml` is `order::stopped-before-deleted`.
pub fn parse(path: &Path, text: &str) -> Result<Case, Vec<Diagnostic>> {
    read(path, Place::from_path(path), text).case
}

/// Reads a case from the text of the file at `path`, which `place` names.
pub(super) fn read(path: &Path, place: Place<'_>, text: &str) -> Reading {
    let file = yaml::parser(text).and_then(singleton_map_recursive::deserialize);
    let file: CaseFile = match file {
        Ok(file) => file,
        Err(fault) => {
            return Reading {
                id: None,
                case: Err(vec![diagnose::of_yaml(path, text, &fault)]),
            };
        }
    };
    Reading {
        id: Some(file.id.clone()),
        case: match validate(&file, place) {
            Ok(implied) => Ok(file.into_case(place, text, implied)),
            Err(problems) => Err(diagnose::locate_all(problems, path, text)),
        },
    }
}

/// The JSON Schema (2020-12) of a case file. It takes every case of the catalogue, and refuses
/// files with unknown keys and words, wrong types, and keys that are missing.
pub fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12();
    settings.into_generator().into_root_schema_for::<CaseFile>()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use serde_json::Value;
    use serde_yaml::with::singleton_map_recursive;

    use super::{CaseFile, parse, schema};
    use crate::case::load;
    use crate::golden::assert_file;

    fn takes(text: &str) -> bool {
        let schema = serde_json::to_value(schema()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let file: Value = serde_yaml::from_str(text).unwrap();
        validator.is_valid(&file)
    }

    fn reads(text: &str) -> bool {
        let from = serde_yaml::Deserializer::from_str(text);
        singleton_map_recursive::deserialize::<CaseFile, _>(from).is_ok()
    }

    /// `UPDATE_EXPECT=1 cargo test --lib schema` writes it.
    #[test]
    fn the_schema_is_that_of_the_types() {
        let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
        assert_file("cases/schema.json", &text);
    }

    #[test]
    fn every_case_has_the_shape() {
        for case in load::embedded().unwrap() {
            assert!(takes(&case.definition), "{}", case.name);
        }
    }

    #[test]
    fn unreadable_files_do_not_match_the_schema() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/bad-cases");
        let mut refused = 0;
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|kind| kind != "yaml") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            // A schema has no say where the text is no YAML, such as where a key stands twice.
            if serde_yaml::from_str::<serde_yaml::Value>(&text).is_err() {
                continue;
            }
            let (taken, name) = (takes(&text), path.display());
            assert!(reads(&text) || !taken, "{name} cannot be read");
            assert!(taken || parse(&path, &text).is_err(), "{name} is right");
            refused += usize::from(!taken);
        }
        assert!(refused > 15, "{refused} bad cases have a wrong shape");
    }

    #[test]
    fn durations_and_numbers_are_written_as_they_are_read() {
        let case = |time: &str, code: &str| {
            format!(
                "{{id: ORD-01, title: A., why: b, sources: [c], levels: {{cache: must}}, steps: [\
                 create: {{as: c, in: pod, workload: {{exit: {{code: {code}, after: {time}}}}}}}]}}"
            )
        };
        for time in [
            "300ms", "1m 30s", "2s", "1h", "500us", "item", "0s", "2 min", "1.5s",
        ] {
            let text = case(time, "0");
            assert!(takes(&text) && reads(&text), "{time}");
        }
        for time in ["300", "'300'", "soon", "ms", "''", "2s!", "items", "-1s"] {
            let text = case(time, "0");
            assert!(!takes(&text) && !reads(&text), "{time}");
        }
        for code in ["255", "item"] {
            let text = case("1s", code);
            assert!(takes(&text) && reads(&text), "{code}");
        }
        for code in ["256", "-1", "'7'", "items", "1.5"] {
            let text = case("1s", code);
            assert!(!takes(&text) && !reads(&text), "{code}");
        }
    }
}
