//! The defects that the suite must notice: the list `cases/defects.yaml`. What a defect does is a
//! hook of the model, which has the same name.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use super::diagnose::{self, Diagnostic, Problem};
use super::locate::{Part, Segment};
use crate::outcome::is_invariant;
use crate::yaml;

/// The name of the file, which is no case.
pub(super) const FILE: &str = "defects.yaml";

/// A way of being wrong, and what must notice it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a defect: a mapping with `name`, `description`, `similar-to`, `requirements` and \
                 `noticed-by`"
)]
pub struct Defect {
    /// What it is called on the command line.
    pub name: String,
    /// What a runtime that has it does, as a sentence.
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
#[serde(
    deny_unknown_fields,
    expecting = "a mapping with a list under `defects`"
)]
struct DefectsFile {
    defects: Vec<Defect>,
}

impl Defect {
    /// The ids of the cases that provoke it, on which it is tried: those in which only an invariant
    /// notices it, and then those that must fail.
    pub fn shown_in(&self) -> impl Iterator<Item = &str> {
        let failing = self.noticed_by.iter().filter(|id| !is_invariant(id));
        self.also_shown_in.iter().chain(failing).map(String::as_str)
    }

    /// Each key that is wrong, with what is wrong with it.
    fn problems(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let is_typed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_text = |text: &str| !text.trim().is_empty() && !text.trim().contains('\n');
        let rules = [
            (
                "name",
                !self.name.is_empty() && self.name.chars().all(is_typed),
                "a name has small letters, digits and hyphens alone",
            ),
            (
                "description",
                is_text(&self.description) && self.description.ends_with('.'),
                "a description is one sentence, which ends with a period",
            ),
            (
                "similar-to",
                is_text(&self.similar_to),
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
        ];
        rules
            .into_iter()
            .filter(|(_, holds, _)| !holds)
            .map(|(key, _, message)| (key, message))
    }
}

/// Reads the text of the file at `path`.
pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<Defect>, Vec<Diagnostic>> {
    let file: DefectsFile =
        yaml::read(text).map_err(|fault| vec![diagnose::of_yaml(path, text, &fault)])?;
    let problems = problems(&file.defects);
    if problems.is_empty() {
        Ok(file.defects)
    } else {
        Err(diagnose::locate_all(problems, path, text))
    }
}

fn problems(defects: &[Defect]) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut names = BTreeSet::new();
    for (place, defect) in defects.iter().enumerate() {
        let twice = !names.insert(&defect.name);
        let twice = twice.then_some(("name", "another defect has this name"));
        for (key, message) in defect.problems().chain(twice) {
            found.push(Problem {
                path: vec![
                    Segment::Key("defects"),
                    Segment::Index(place),
                    Segment::Key(key),
                ],
                part: Part::Value,
                message: format!("`{}`: {message}", defect.name),
                help: None,
            });
        }
    }
    found
}

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::case::{Diagnostics, load};

    #[track_caller]
    fn check(text: &str, expect: &Expect) {
        let found = parse(Path::new("defects.yaml"), text).expect_err("it is wrong");
        let found = Diagnostics::from_found(found).expect_err("something is wrong");
        expect.assert_eq(&format!("{found}\n"));
    }

    #[test]
    fn the_built_in_ones_are_valid() {
        let defects = load::defects().unwrap_or_else(|fault| panic!("{fault}"));
        assert!(!defects.is_empty());
    }

    #[test]
    fn shown_in_are_the_named_cases_and_no_invariants() {
        let text = "defects: [{name: a, description: A., similar-to: b, requirements: [R1], \
                    noticed-by: [INV-01, ORD-02, ORD-03], also-shown-in: [ORD-04]}]";
        let defects = parse(Path::new("defects.yaml"), text).expect("it is right");
        let shown_in: Vec<&str> = defects[0].shown_in().collect();
        assert_eq!(shown_in, ["ORD-04", "ORD-02", "ORD-03"]);
    }

    #[test]
    fn each_problem_names_the_defect_and_its_place() {
        let wrong = "defects:
  - name: drop_stopped
    description: No period
    similar-to: ''
    requirements: []
    noticed-by: []
    also-shown-in: [ORD-01]
  - name: cut
    description: It is cut.
    similar-to: a/b#1
    requirements: [R1]
    noticed-by: [INV-01]
  - name: cut
    description: It is cut.
    similar-to: a/b#1
    requirements: [R1]
    noticed-by: [ORD-01]
";
        check(
            wrong,
            &expect![[r#"
            error: `drop_stopped`: a name has small letters, digits and hyphens alone
             --> defects.yaml:2:11
              |
            2 |   - name: drop_stopped
              |           ^^^^^^^^^^^^

            error: `drop_stopped`: a description is one sentence, which ends with a period
             --> defects.yaml:3:18
              |
            3 |     description: No period
              |                  ^^^^^^^^^

            error: `drop_stopped`: nothing says which bug this imitates
             --> defects.yaml:4:17
              |
            4 |     similar-to: ''
              |                 ^^

            error: `drop_stopped`: nothing says which requirements this violates
             --> defects.yaml:5:19
              |
            5 |     requirements: []
              |                   ^^

            error: `drop_stopped`: nothing says what must notice this
             --> defects.yaml:6:17
              |
            6 |     noticed-by: []
              |                 ^^

            error: `cut`: only invariants notice this: `also-shown-in` has to name a case
              --> defects.yaml:12:17
               |
            12 |     noticed-by: [INV-01]
               |                 ^^^^^^^^

            error: `cut`: another defect has this name
              --> defects.yaml:13:11
               |
            13 |   - name: cut
               |           ^^^
        "#]],
        );
    }

    #[test]
    fn a_missing_or_mistyped_key_is_an_error() {
        check(
            "defects:\n  - name: cut\n",
            &expect![[r#"
            error: missing key `description`
             --> defects.yaml:2:5
              |
            2 |   - name: cut
              |     ^^^^
        "#]],
        );
        check(
            "defects:\n  - {name: cut, describtion: It is cut.}\n",
            &expect![[r#"
                error: unknown key `describtion`
                 --> defects.yaml:2:17
                  |
                2 |   - {name: cut, describtion: It is cut.}
                  |                 ^^^^^^^^^^^
                  |
                  = help: did you mean `description`?
            "#]],
        );
        check(
            "- cut\n",
            &expect![[r#"
            error: invalid type: sequence, expected a mapping with a list under `defects`
             --> defects.yaml:1:1
              |
            1 | - cut
              | ^^^^^
        "#]],
        );
    }
}
