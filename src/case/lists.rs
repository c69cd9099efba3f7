//! The lists that go with the cases: the requirements, `cases/requirements.yaml`, to which cases,
//! invariants and defects refer, and the defects, `cases/defects.yaml`.

use std::collections::BTreeSet;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::diagnose::{self, Diagnostic, Problem};
use super::locate::{Part, Segment};
use crate::outcome::{Levels, is_invariant};
use crate::yaml;

/// The files of the lists, which are no cases.
pub(super) const REQUIREMENTS: &str = "requirements.yaml";
pub(super) const DEFECTS: &str = "defects.yaml";

/// A requirement of a consumer on a runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a requirement: a mapping with `id`, `sentence`, `sources`, `breaks` and `levels`"
)]
pub struct Requirement {
    /// Such as `R9`, or `C1` for one of the CRI's own. Never reused.
    pub id: String,
    /// The required behaviour, as one sentence.
    pub sentence: String,
    /// The origin: a file and function, a section of the KEP, an issue.
    pub sources: Vec<String>,
    /// The consequence for a consumer if a runtime does otherwise.
    pub breaks: String,
    pub levels: Levels,
    /// Why nothing checks it yet, or not for every profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<String>,
}

/// A way of being wrong, and the cases and invariants that must fail because of it. The hook of the
/// model with the same name implements it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a defect: a mapping with `name`, `description`, `similar-to`, `requirements` and \
                 `noticed-by`"
)]
pub struct Defect {
    /// The name on the command line.
    pub name: String,
    /// The behaviour of a runtime that has it, as a sentence.
    pub description: String,
    /// The real bug that it imitates.
    pub similar_to: String,
    /// The ids of the requirements that it violates.
    pub requirements: Vec<String>,
    /// The ids of the cases and invariants that must fail because of it, the one that explains it
    /// first.
    pub noticed_by: Vec<String>,
    /// The ids of cases in which only an invariant notices it.
    #[serde(default)]
    pub also_shown_in: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with a list under `requirements`")]
struct RequirementsFile {
    requirements: Vec<Requirement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a mapping with a list under `defects`")]
struct DefectsFile {
    defects: Vec<Defect>,
}

/// A problem of an entry: its key, the message, and the help.
type Wrong = (&'static str, String, Option<&'static str>);

/// Reads the requirements from the text of the file at `path`.
pub(super) fn requirements(path: &Path, text: &str) -> Result<Vec<Requirement>, Vec<Diagnostic>> {
    let file: RequirementsFile = read(path, text)?;
    let mut ids = BTreeSet::new();
    let wrong = |it: &Requirement| it.wrong(!ids.insert(it.id.clone()));
    checked("requirements", file.requirements, wrong, (path, text))
}

/// Reads the defects from the text of the file at `path`.
pub(super) fn defects(path: &Path, text: &str) -> Result<Vec<Defect>, Vec<Diagnostic>> {
    let file: DefectsFile = read(path, text)?;
    let mut names = BTreeSet::new();
    let wrong = |it: &Defect| it.wrong(!names.insert(it.name.clone()));
    checked("defects", file.defects, wrong, (path, text))
}

fn read<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, Vec<Diagnostic>> {
    yaml::read(text).map_err(|fault| vec![diagnose::of_yaml(path, text, &fault.0)])
}

/// The entries of a list, or their problems at their places in the text.
fn checked<T>(
    list: &'static str,
    entries: Vec<T>,
    mut wrong: impl FnMut(&T) -> Vec<Wrong>,
    (path, text): (&Path, &str),
) -> Result<Vec<T>, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        problems.extend(
            wrong(entry)
                .into_iter()
                .map(|(key, message, help)| Problem {
                    path: vec![Segment::Key(list), Segment::Index(index), Segment::Key(key)],
                    part: Part::Value,
                    message,
                    help: help.map(str::to_owned),
                }),
        );
    }
    if problems.is_empty() {
        Ok(entries)
    } else {
        Err(diagnose::locate_all(problems, path, text))
    }
}

/// Whether this is the id of a requirement, such as `R9`.
pub(super) fn is_requirement(id: &str) -> bool {
    let number = id.strip_prefix(|letter: char| letter.is_ascii_uppercase());
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn is_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.trim().contains('\n')
}

fn is_sentence(text: &str) -> bool {
    is_line(text) && text.ends_with('.')
}

impl Requirement {
    fn wrong(&self, is_repeated: bool) -> Vec<Wrong> {
        let has_sources = !self.sources.is_empty();
        let rules = [
            (
                "id",
                is_requirement(&self.id),
                "this is no id such as `R9`",
                "an id is a capital letter and a number",
            ),
            (
                "sentence",
                is_sentence(&self.sentence),
                "a requirement is one sentence, which ends with a period",
                "say what a conformant runtime does",
            ),
            (
                "sources",
                has_sources && self.sources.iter().all(|source| is_line(source)),
                "nothing says where the requirement comes from",
                "name a file and its function, a section of the KEP, or an issue",
            ),
            (
                "breaks",
                is_line(&self.breaks),
                "nothing says what goes wrong otherwise",
                "say who is harmed, and how",
            ),
            (
                "levels",
                self.levels.highest().is_some(),
                "nothing says whom the requirement binds",
                "name a profile and how binding it is there, such as `{cache: must}`",
            ),
            (
                "later",
                self.later.as_deref().is_none_or(is_line),
                "nothing says what is waited for",
                "say what has to be there first, or leave the key out",
            ),
        ];
        let twice = is_repeated.then(|| ("id", format!("`{}` is there already", self.id), None));
        let broken = rules.into_iter().filter(|(_, holds, ..)| !holds);
        let broken = broken.map(|(key, _, message, help)| (key, message.to_owned(), Some(help)));
        twice.into_iter().chain(broken).collect()
    }
}

impl Defect {
    /// The ids of the cases that provoke it, on which it is tried: those in which only an invariant
    /// notices it, and then those that must fail.
    pub fn shown_in(&self) -> impl Iterator<Item = &str> {
        let failing = self.noticed_by.iter().filter(|id| !is_invariant(id));
        self.also_shown_in.iter().chain(failing).map(String::as_str)
    }

    fn wrong(&self, is_repeated: bool) -> Vec<Wrong> {
        let is_typed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let rules = [
            (
                "name",
                !self.name.is_empty() && self.name.chars().all(is_typed),
                "a name has small letters, digits and hyphens alone",
            ),
            (
                "description",
                is_sentence(&self.description),
                "a description is one sentence, which ends with a period",
            ),
            (
                "similar-to",
                is_line(&self.similar_to),
                "nothing says which bug this imitates",
            ),
            (
                "requirements",
                !self.requirements.is_empty(),
                "nothing says which requirements this violates",
            ),
            (
                "noticed-by",
                !self.noticed_by.is_empty(),
                "nothing says what must notice this",
            ),
            (
                "noticed-by",
                self.shown_in().next().is_some(),
                "only invariants notice this: `also-shown-in` has to name a case",
            ),
            ("name", !is_repeated, "another defect has this name"),
        ];
        let broken = rules.into_iter().filter(|(_, holds, _)| !holds);
        let named = broken.map(|(key, _, message)| {
            let message = format!("`{}`: {message}", self.name);
            (key, message, None)
        });
        named.collect()
    }
}

#[cfg(test)]
mod tests;
