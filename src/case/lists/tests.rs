//! Mistakes in the lists, and the diagnostics of each.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use expect_test::{Expect, expect};

use super::*;
use crate::case::{Diagnostics, load};

#[track_caller]
fn check<T: std::fmt::Debug>(found: Result<Vec<T>, Vec<Diagnostic>>, expect: &Expect) {
    let found = Diagnostics::from_found(found.expect_err("it is wrong"));
    let found = found.expect_err("something is wrong");
    expect.assert_eq(&format!("{found}\n"));
}

#[track_caller]
fn check_requirements(text: &str, expect: &Expect) {
    check(requirements(Path::new(REQUIREMENTS), text), expect);
}

#[track_caller]
fn check_defects(text: &str, expect: &Expect) {
    check(defects(Path::new(DEFECTS), text), expect);
}

#[test]
fn an_id_is_a_letter_and_a_number() {
    for id in ["R1", "C10"] {
        assert!(is_requirement(id), "{id}");
    }
    for id in ["", "R", "9", "r9", "RR9", "R9a", "R-9"] {
        assert!(!is_requirement(id), "{id}");
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
    check_requirements(
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
    check_requirements(
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
    check_requirements(
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
    check_requirements(
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
    check_requirements(
        "- R1\n",
        &expect![[r#"
        error: expected a mapping with a list under `requirements`, found a list
         --> requirements.yaml:1:1
          |
        1 | - R1
          | ^^^^
    "#]],
    );
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
    let defects = defects(Path::new("defects.yaml"), text).expect("it is right");
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
    check_defects(
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
    check_defects(
        "defects:\n  - name: cut\n",
        &expect![[r#"
        error: missing key `description`
         --> defects.yaml:2:5
          |
        2 |   - name: cut
          |     ^^^^
    "#]],
    );
    check_defects(
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
    check_defects(
        "- cut\n",
        &expect![[r#"
        error: expected a mapping with a list under `defects`, found a list
         --> defects.yaml:1:1
          |
        1 | - cut
          | ^^^^^
    "#]],
    );
}
