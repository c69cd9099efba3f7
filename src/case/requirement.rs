//! What a consumer requires of a runtime: the list that cases, invariants and defects name parts
//! of, `cases/requirements.yaml`. Knows nothing of who does.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::diagnose::{self, Diagnostic, Problem};
use super::locate::{Part, Segment};
use crate::outcome::Levels;
use crate::yaml;

/// The name of the file, which is no case.
pub(super) const FILE: &str = "requirements.yaml";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a requirement: a mapping with `id`, `sentence`, `sources`, `breaks` and `levels`"
)]
pub struct Requirement {
    /// Such as `R9`, or `C1` for one of the CRI's own. Never reused.
    pub id: String,
    /// What a runtime does, as one sentence.
    pub sentence: String,
    /// Where it comes from: a file and function, a section of the KEP, an issue.
    pub sources: Vec<String>,
    /// What goes wrong for a consumer if a runtime does otherwise.
    pub breaks: String,
    pub levels: Levels,
    /// Why nothing checks it yet, or not for every profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<String>,
}

#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a mapping with a list under `requirements`"
)]
struct RequirementsFile {
    requirements: Vec<Requirement>,
}

/// Whether this is an id such as `R9`.
pub(super) fn is_id(id: &str) -> bool {
    let number = id.strip_prefix(|letter: char| letter.is_ascii_uppercase());
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Reads the text of the file at `path`.
pub(super) fn parse(path: &Path, text: &str) -> Result<Vec<Requirement>, Vec<Diagnostic>> {
    let file: RequirementsFile =
        yaml::read(text).map_err(|fault| vec![diagnose::of_yaml(path, text, &fault)])?;
    let problems = problems(&file.requirements);
    if problems.is_empty() {
        Ok(file.requirements)
    } else {
        Err(diagnose::locate_all(problems, path, text))
    }
}

fn problems(requirements: &[Requirement]) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for (place, requirement) in requirements.iter().enumerate() {
        let mut object = |key, message: String, help: Option<&str>| {
            let path = ["requirements", key].map(Segment::Key);
            found.push(Problem {
                path: vec![path[0], Segment::Index(place), path[1]],
                part: Part::Value,
                message,
                help: help.map(str::to_owned),
            });
        };
        let id = requirement.id.as_str();
        if !known.insert(id) {
            object("id", format!("`{id}` is there already"), None);
        }
        for (key, is_right, message, help) in requirement.rules() {
            if !is_right {
                object(key, message.to_owned(), Some(help));
            }
        }
    }
    found
}

impl Requirement {
    /// What has to hold of each key, whether it does, and what to say and advise if not.
    fn rules(&self) -> [(&'static str, bool, &'static str, &'static str); 6] {
        let is_text = |text: &str| !text.trim().is_empty() && !text.trim().contains('\n');
        let has_sources = !self.sources.is_empty();
        [
            (
                "id",
                is_id(&self.id),
                "this is no id such as `R9`",
                "an id is a capital letter and a number",
            ),
            (
                "sentence",
                is_text(&self.sentence) && self.sentence.ends_with('.'),
                "a requirement is one sentence, which ends with a period",
                "say what a conformant runtime does",
            ),
            (
                "sources",
                has_sources && self.sources.iter().all(|source| is_text(source)),
                "nothing says where the requirement comes from",
                "name a file and its function, a section of the KEP, or an issue",
            ),
            (
                "breaks",
                is_text(&self.breaks),
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
                self.later.as_deref().is_none_or(is_text),
                "nothing says what is waited for",
                "say what has to be there first, or leave the key out",
            ),
        ]
    }
}

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::case::Diagnostics;

    #[track_caller]
    fn check(text: &str, expect: &Expect) {
        let found = parse(Path::new("requirements.yaml"), text).expect_err("it is wrong");
        let found = Diagnostics::from_found(found).expect_err("something is wrong");
        expect.assert_eq(&format!("{found}\n"));
    }

    #[test]
    fn an_id_is_a_letter_and_a_number() {
        for id in ["R1", "C10"] {
            assert!(is_id(id), "{id}");
        }
        for id in ["", "R", "9", "r9", "RR9", "R9a", "R-9"] {
            assert!(!is_id(id), "{id}");
        }
    }

    #[test]
    fn all_faults_are_reported_at_their_places() {
        let wrong = "requirements:
  - id: R1
    sentence: No period
    sources: []
    breaks: ''
    levels: {}
    later: ''
";
        check(
            wrong,
            &expect![[r#"
            error: a requirement is one sentence, which ends with a period
             --> requirements.yaml:3:15
              |
            3 |     sentence: No period
              |               ^^^^^^^^^
              |
              = help: say what a conformant runtime does

            error: nothing says where the requirement comes from
             --> requirements.yaml:4:14
              |
            4 |     sources: []
              |              ^^
              |
              = help: name a file and its function, a section of the KEP, or an issue

            error: nothing says what goes wrong otherwise
             --> requirements.yaml:5:13
              |
            5 |     breaks: ''
              |             ^^
              |
              = help: say who is harmed, and how

            error: nothing says whom the requirement binds
             --> requirements.yaml:6:13
              |
            6 |     levels: {}
              |             ^^
              |
              = help: name a profile and how binding it is there, such as `{cache: must}`

            error: nothing says what is waited for
             --> requirements.yaml:7:12
              |
            7 |     later: ''
              |            ^^
              |
              = help: say what has to be there first, or leave the key out
        "#]],
        );
    }

    #[test]
    fn invalid_and_duplicate_ids_are_reported() {
        let wrong = "requirements:
  - {id: R1, sentence: One., sources: [me], breaks: It breaks., levels: {hint: may}}
  - {id: R1, sentence: One., sources: [me], breaks: It breaks., levels: {hint: may}}
  - {id: r2, sentence: Two., sources: [''], breaks: It breaks., levels: {hint: may}}
";
        check(
            wrong,
            &expect![[r#"
            error: `R1` is there already
             --> requirements.yaml:3:10
              |
            3 |   - {id: R1, sentence: One., sources: [me], breaks: It breaks., levels: {hint: may}}
              |          ^^

            error: this is no id such as `R9`
             --> requirements.yaml:4:10
              |
            4 |   - {id: r2, sentence: Two., sources: [''], breaks: It breaks., levels: {hint: may}}
              |          ^^
              |
              = help: an id is a capital letter and a number

            error: nothing says where the requirement comes from
             --> requirements.yaml:4:39
              |
            4 |   - {id: r2, sentence: Two., sources: [''], breaks: It breaks., levels: {hint: may}}
              |                                       ^^^^
              |
              = help: name a file and its function, a section of the KEP, or an issue
        "#]],
        );
    }

    #[test]
    fn a_mistyped_key_or_level_is_reported() {
        check(
            "requirements:\n  - {id: R1, sentense: S.}\n",
            &expect![[r#"
                error: unknown key `sentense`
                 --> requirements.yaml:2:14
                  |
                2 |   - {id: R1, sentense: S.}
                  |              ^^^^^^^^
                  |
                  = help: did you mean `sentence`?
            "#]],
        );
        check(
            "requirements:\n  - {id: R1, sentence: S., levels: {cache: most}}\n",
            &expect![[r#"
                error: unknown word `most`
                 --> requirements.yaml:2:44
                  |
                2 |   - {id: R1, sentence: S., levels: {cache: most}}
                  |                                            ^^^^
                  |
                  = help: did you mean `must`?
            "#]],
        );
        check(
            "- R1\n",
            &expect![[r#"
            error: invalid type: sequence, expected a mapping with a list under `requirements`
             --> requirements.yaml:1:1
              |
            1 | - R1
              | ^^^^
        "#]],
        );
    }
}
