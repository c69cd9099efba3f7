//! The rules of a case file beyond the types of its values. Pure; reports all problems, not only
//! the first, each at its path in the file.

mod steps;

use super::diagnose::{Problem, did_you_mean};
use super::file::{CaseFile, Place};
use super::locate::{Part, Segment};
use super::{Need, Step, lists};
use crate::checks::{CallEdge, Check, Kind, Scope, Wanted, is_invariant};
use crate::history::Holder;

pub(super) use steps::{Context, Implied, Walk};
use steps::{Names, check_steps};

/// Checks a case. Returns the facts that follow from its steps, or all its problems.
pub(super) fn validate(file: &CaseFile, place: Place<'_>) -> Result<Implied, Vec<Problem>> {
    let mut found = Findings::default();
    check_header(file, place, &mut found);
    let (names, implied) = check_steps(file, &mut found);
    check_expectations(file, &names, &mut found);
    if found.problems.is_empty() {
        Ok(implied)
    } else {
        Err(found.problems)
    }
}

/// The needs of a step beyond the socket, with those of the steps inside it.
pub(crate) fn needs(step: Step) -> Vec<Need> {
    let file = CaseFile {
        steps: vec![step],
        ..CaseFile::default()
    };
    let (_, implied) = check_steps(&file, &mut Findings::default());
    implied.needs
}

/// The problems of a case so far, and the path of the value that is checked now.
#[derive(Default)]
pub(super) struct Findings {
    path: Vec<Segment>,
    problems: Vec<Problem>,
}

impl Findings {
    /// Enters the value of a key.
    fn enter(&mut self, key: &'static str) {
        self.path.push(Segment::Key(key));
    }

    /// Enters an element of a list.
    fn enter_element(&mut self, index: usize) {
        self.path.push(Segment::Index(index));
    }

    fn leave(&mut self) {
        self.path.pop();
    }

    /// Reports a problem of the value of a key.
    fn error_at(&mut self, key: &'static str, message: impl Into<String>) -> &mut Self {
        self.enter(key);
        self.push(Part::Value, message.into());
        self.leave();
        self
    }

    /// Reports a problem of an element in the list of a key.
    fn error_at_element(
        &mut self,
        key: &'static str,
        index: usize,
        message: impl Into<String>,
    ) -> &mut Self {
        self.enter(key);
        self.enter_element(index);
        self.push(Part::Value, message.into());
        self.leave();
        self.leave();
        self
    }

    /// Reports a problem of the entered value, at its key.
    fn error(&mut self, message: impl Into<String>) -> &mut Self {
        self.push(Part::Key, message.into());
        self
    }

    /// Adds a suggestion to the latest problem.
    pub(super) fn help(&mut self, help: impl Into<String>) {
        if let Some(problem) = self.problems.last_mut() {
            problem.help = Some(help.into());
        }
    }

    fn push(&mut self, part: Part, message: String) {
        self.problems.push(Problem {
            path: self.path.clone(),
            part,
            message,
            help: None,
        });
    }
}

/// The catalogue's areas: the beginning of ids, and the folder.
const AREAS: &[(&str, &str)] = &[
    ("FEA", "feature"),
    ("STR", "stream"),
    ("ORD", "order"),
    ("CMP", "completeness"),
    ("SNP", "snapshot"),
    ("REL", "relist"),
    ("TIM", "time"),
    ("REC", "reconnect"),
    ("RST", "restart"),
    ("SHM", "monitor"),
    ("OOM", "oom"),
    ("EXT", "exit"),
    ("STP", "stop"),
    ("SBX", "sandbox"),
    ("MUL", "several"),
    ("FLR", "failure"),
    ("NEG", "negative"),
    ("CKP", "checkpoint"),
    ("SCL", "scale"),
    ("LEK", "leak"),
    ("EXP", "explore"),
];

/// The number of letters of an area of the catalogue. Those of users have more, or are in folders
/// of other names.
const AREA: usize = 3;

const LONGEST_AREA: usize = 12;

const OWN_IDS: &str = "ids of your own cases have four letters or more, such as `MINE-01`";

/// The needs that a case states; all others follow from its steps and its situation.
const STATED: [Need; 3] = [Need::Broadcast, Need::NoEvents, Need::Timestamp];

fn check_header(file: &CaseFile, place: Place<'_>, found: &mut Findings) {
    check_id(&file.id, place, found);
    check_texts(file, found);
    check_labels(file, found);
    if file.silent && !file.exclusive {
        found
            .error_at("silent", "other cases would ask the runtime meanwhile")
            .help("add `exclusive: true`");
    }
}

fn check_id(id: &str, place: Place<'_>, found: &mut Findings) {
    if !is_kebab(place.name) {
        found
            .error_at("id", format!("a case cannot be named `{}`", place.name))
            .help("name the file with small letters, digits and hyphens");
    }
    if !is_id(id) {
        found
            .error_at("id", format!("`{id}` is no id"))
            .help("an id is an area, a hyphen and two digits, such as `ORD-01` or `MINE-01`");
        return;
    }
    let (prefix, _) = id.split_once('-').expect("an id has a hyphen");
    if prefix.len() > AREA {
        return;
    }
    match AREAS.iter().find(|(known, _)| *known == prefix) {
        Some((_, folder)) if *folder == place.area => {}
        Some((_, folder)) => found
            .error_at(
                "id",
                format!("`{id}` is no id for a case in `{}`", place.area),
            )
            .help(format!("put the file into a folder `{folder}`; {OWN_IDS}")),
        // A later version may have an area with this prefix.
        None if !AREAS.iter().any(|(_, folder)| *folder == place.area) => found
            .error_at(
                "id",
                format!("`{id}` has three letters, as the ids of the suite"),
            )
            .help(OWN_IDS),
        None => {
            let known = AREAS.iter().map(|(prefix, _)| *prefix);
            let help = did_you_mean(prefix, known.clone()).unwrap_or_else(|| {
                format!("the areas are {}", known.collect::<Vec<_>>().join(", "))
            });
            found
                .error_at("id", format!("there is no area `{prefix}`"))
                .help(format!("{help}; {OWN_IDS}"));
        }
    }
}

fn check_texts(file: &CaseFile, found: &mut Findings) {
    if !file.title.ends_with('.') || file.title.trim().contains('\n') {
        found
            .error_at("title", "a title is one sentence, which ends with a period")
            .help("say what a conformant runtime does");
    }
    if file.why.trim().is_empty() {
        found
            .error_at("why", "nothing says why this matters")
            .help("say who is harmed by a runtime that fails here, and how");
    }
    if file.sources.is_empty() {
        found
            .error_at("sources", "nothing says where the requirement comes from")
            .help("name the part of the CRI or the KEP, or the bug that it was learnt from");
    }
    for (index, source) in file.sources.iter().enumerate() {
        if source.trim().is_empty() {
            found.error_at_element("sources", index, "this source names nothing");
        }
    }
}

fn check_labels(file: &CaseFile, found: &mut Findings) {
    if file.levels.highest().is_none() {
        found
            .error_at("levels", "nothing says whom the case binds")
            .help("name a profile and how binding it is there, such as `{cache: must}`");
    }
    for (index, id) in file.requirements.iter().enumerate() {
        if !lists::is_requirement(id) {
            found.error_at_element("requirements", index, "this is no id such as `R9`");
        }
    }
    for (index, exempt) in file.exempt.iter().enumerate() {
        let unknown = exempt.rules.iter().find(|id| !is_invariant(id));
        if let Some(id) = unknown {
            found.error_at_element("exempt", index, format!("there is no invariant {id}"));
        } else if exempt.rules.is_empty() || exempt.because.trim().is_empty() {
            found.error_at_element("exempt", index, "this exempts nothing or gives no reason");
        }
    }
    for (index, need) in file.needs.iter().enumerate() {
        if !STATED.contains(need) {
            found
                .error_at_element("needs", index, "this need follows from the steps")
                .help("leave it out");
        }
    }
    for (index, tag) in file.tags.iter().enumerate() {
        if !is_kebab(tag) {
            let problem = "a tag is small letters, digits and hyphens";
            found.error_at_element("tags", index, problem);
        }
    }
}

/// Three capital letters, a hyphen, two digits, and perhaps a small letter.
fn is_id(id: &str) -> bool {
    let ([area @ .., b'-', tens, ones] | [area @ .., b'-', tens, ones, b'a'..=b'z']) =
        id.as_bytes()
    else {
        return false;
    };
    (AREA..=LONGEST_AREA).contains(&area.len())
        && area.iter().all(u8::is_ascii_uppercase)
        && [tens, ones].iter().all(|digit| digit.is_ascii_digit())
}

/// Words of small letters and digits with hyphens between them.
fn is_kebab(name: &str) -> bool {
    let is_word = |word: &str| {
        let mut bytes = word.bytes();
        !word.is_empty() && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.split('-').all(is_word)
}

fn check_expectations(file: &CaseFile, names: &Names<'_>, found: &mut Findings) {
    if file.expect.is_empty() && file.expect_should.is_empty() {
        found
            .error("a case that expects nothing cannot fail")
            .help("add `expect:` with what must be seen once the steps are over");
    }
    let mut bound = Bound { names, found };
    bound.list("expect", &file.expect);
    bound.list("expect-should", &file.expect_should);
}

/// The scope of the checks: the names of the case, and the problems so far.
struct Bound<'a, 'f> {
    names: &'a Names<'a>,
    found: &'f mut Findings,
}

impl Bound<'_, '_> {
    fn list(&mut self, key: &'static str, checks: &[Check]) {
        self.found.enter(key);
        for (index, check) in checks.iter().enumerate() {
            self.found.enter_element(index);
            self.found.enter(check.word());
            check.validate(self);
            self.found.leave();
            self.found.leave();
        }
        self.found.leave();
    }
}

impl<'a> Scope<'a> for Bound<'a, '_> {
    fn resolve_unsure(
        &mut self,
        key: &'static str,
        name: &str,
        wanted: Wanted,
    ) -> Option<Kind<'a>> {
        let binding = self.names.resolve((key, name), wanted, self.found)?;
        Some(binding.kind)
    }

    fn is_unsure(&self, name: &str) -> bool {
        self.names.is_unsure(name)
    }

    fn is_called(&self, name: &str, edge: CallEdge) -> bool {
        self.names.is_called(name, edge)
    }

    fn is_relisted(&self, sandbox: &str) -> bool {
        self.names.is_relisted(sandbox)
    }

    fn measurements(&self, holder: Holder) -> u64 {
        self.names.measurements(holder)
    }

    fn enter(&mut self, key: &'static str) {
        self.found.enter(key);
    }

    fn leave(&mut self) {
        self.found.leave();
    }

    fn report(&mut self, key: Option<&'static str>, message: String) {
        match key {
            Some(key) => self.found.error_at(key, message),
            None => self.found.error(message),
        };
    }

    fn add_help(&mut self, help: String) {
        self.found.help(help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_three_letters_or_more_two_digits_and_perhaps_one_letter() {
        for id in ["ORD-01", "OOM-99", "ORD-01a", "ORDE-01", "TWELVELETTER-01"] {
            assert!(is_id(id), "{id}");
        }
        for id in [
            "",
            "ORD",
            "ORD-1",
            "ORD-001",
            "ord-01",
            "OR-01",
            "THIRTEENCHARS-01",
            "ORD-01A",
            "ORD-0a",
            "ÖRD-01",
        ] {
            assert!(!is_id(id), "{id}");
        }
    }

    #[test]
    fn a_name_is_words_with_hyphens() {
        for name in ["c", "pod-1", "exit-without-a-call"] {
            assert!(is_kebab(name), "{name}");
        }
        for name in ["", "-", "a--b", "a-", "A", "a_b", "ä"] {
            assert!(!is_kebab(name), "{name}");
        }
    }
}
