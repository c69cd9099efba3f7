//! Every mistake in case files, and its diagnostic.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "expect-test writes them so"
)]

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::load::LoadError;
use super::{Diagnostics, load, parse};
use crate::golden::assert_file;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/bad-cases")
        .join(name)
}

/// Reads `fixtures/bad-cases/NAME.yaml` as if it lay in `order/`.
#[track_caller]
fn check(name: &str) {
    let text =
        fs::read_to_string(fixture(name).with_extension("yaml")).expect("the fixture exists");
    let path = PathBuf::from(format!("order/{name}.yaml"));
    let found = parse(&path, &text).expect_err("the case is wrong");
    let found = Diagnostics::from_found(found).expect_err("something is wrong");
    assert_file(
        fixture(name).with_extension("stderr"),
        &format!("{found}\n"),
    );
}

#[test]
fn a_user_has_ids_of_four_letters_in_any_folder() {
    let fixture = fixture("unknown-area.yaml");
    let text = fs::read_to_string(fixture).expect("the fixture exists");
    let parsed = |path: &str| parse(&PathBuf::from(path), &text).is_ok();
    assert!(!parsed("minerals/a-claim.yaml") && !parsed("order/a-claim.yaml"));
    let text = text.replace("ORE-01", "MINE-01");
    let parsed = |path: &str| parse(&PathBuf::from(path), &text).is_ok();
    assert!(parsed("minerals/a-claim.yaml") && parsed("order/a-claim.yaml"));
}

macro_rules! bad_cases {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check(&stringify!($name).replace('_', "-"));
            }
        )*

        #[test]
        fn every_bad_case_is_a_test() {
            let mut listed = vec![$(stringify!($name).replace('_', "-")),*];
            let mut found: Vec<_> = fs::read_dir(fixture(""))
                .expect("the folder exists")
                .map(|entry| entry.expect("it can be read").path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
                .map(|path| path.file_stem().expect("it has one").to_string_lossy().into_owned())
                .collect();
            listed.sort();
            found.sort();
            assert_eq!(listed, found);
        }
    };
}

bad_cases! {
    area_of_another_folder
    bad_duration
    bad_grace
    bad_id
    bad_indentation
    bad_name
    billion_laughs
    billion_laughs_in_a_list
    bound_twice
    calls_that_cannot_be
    checkpoint_that_is_not_made
    claim_without_a_value
    claim_without_meaning
    clock_set_without_asking
    duration_as_a_number
    empty
    empty_repeat
    events_where_there_are_none
    exit_code_as_a_number
    expects_nothing
    expects_what_cannot_fail
    faulty_handler_and_another
    item_in_a_repeat_with_times
    item_outside_of_a_repeat
    key_given_twice
    keyword_alone
    memory_limit_above_the_appetite
    missing_key
    missing_key_in_a_step
    need_without_a_list
    needs_that_follow
    no_reasons
    not_a_mapping
    not_only_ascii
    null_steps
    number_for_a_step
    only_a_comment
    oom_group_without_a_limit
    oom_without_memory_limits
    quiet_beside_others
    repeat_out_of_bounds
    repeat_with_two_counts
    repeat_within_repeats
    repeat_without_a_count
    restart_beside_others
    resubscribe_beside_others
    sandbox_for_a_container
    silent_beside_others
    status_that_cannot_be
    subscription_claims_that_cannot_be
    tab
    timing_that_cannot_be
    title_without_a_period
    too_long
    too_many_steps
    top_level_key_given_twice
    two_documents
    two_keywords_in_a_step
    two_problems
    typo_in_a_keyword
    typo_in_a_step
    unclosed_bracket
    undefined_container
    undefined_in_an_expectation
    unknown_area
    unknown_event
    unknown_key
    unknown_level
    unknown_method
    unknown_subscription_claim
    unknown_workload
    used_after_its_repeat
    used_before_bound
    very_many_problems
    wrong_type
    wrong_type_of_number
}

/// Reads a folder and compares its problems, with the folder's own path left out.
#[track_caller]
fn check_folder(folder: &Path, expected: &Expect) {
    let found = load::from_path(folder).expect_err("something is wrong");
    let prefix = format!("{}/", folder.display());
    expected.assert_eq(&found.to_string().replace(&prefix, ""));
}

#[test]
fn duplicate_ids() {
    check_folder(
        &fixture("duplicate-ids"),
        &expect![[r#"
        error: another case has the id `ORD-01` already
         --> order/second.yaml:1:5
          |
        1 | id: ORD-01
          |     ^^^^^^
          |
          = help: the other one is order/first.yaml"#]],
    );
}

#[test]
fn several_files_with_several_problems() {
    check_folder(
        &fixture("several-files"),
        &expect![[r#"
            error: the file is not read, for cases end in `.yaml`
            --> stop/another.yml
             = help: rename it

            error: unknown word `strat`
             --> order/one.yaml:9:5
              |
            9 |   - strat: {container: c}
              |     ^^^^^
              |
              = help: did you mean `start`?

            error: no sandbox is called `pot` so far
             --> stop/two.yaml:8:25
              |
            8 |   - create: {as: c, in: pot, workload: until-term}
              |                         ^^^
              |
              = help: did you mean `pod`?

            error: no container is called `d` so far
             --> stop/two.yaml:9:24
              |
            9 |   - start: {container: d}
              |                        ^
              |
              = help: did you mean `c`?"#]],
    );
}

#[test]
fn a_file_that_is_too_large_is_refused_by_its_size() {
    let folder = tempfile::tempdir().expect("a folder");
    write(&folder, "order/large.yaml", &vec![b'#'; 10 << 20]);
    check_folder(
        folder.path(),
        &expect![[r#"
            error: the file cannot be read: it is larger than 64 KiB
            --> order/large.yaml"#]],
    );
}

#[test]
fn a_file_that_is_not_utf_8_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    write(
        &folder,
        "order/latin-1.yaml",
        b"id: ORD-01\ntitle: na\xefve\n",
    );
    check_folder(
        folder.path(),
        &expect![[r#"
            error: the file is not UTF-8: byte 0xef in line 2
            --> order/latin-1.yaml"#]],
    );
}

#[test]
fn a_folder_without_cases_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    write(&folder, "README.md", b"Nothing yet.");
    write(&folder, ".hidden.yaml", b"Not looked at.");
    let found = load::from_path(folder.path()).expect_err("it is empty");
    assert!(matches!(found, LoadError::Empty { .. }), "{found}");
}

#[test]
fn a_path_that_leads_nowhere_is_refused() {
    let found = load::from_path(Path::new("no/such/cases")).expect_err("it does not exist");
    assert!(matches!(found, LoadError::Read { .. }), "{found}");
}

#[test]
fn links_that_lead_in_circles_are_refused() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().expect("a folder");
    write(&folder, "order/README.md", b"");
    symlink("..", folder.path().join("order/back")).expect("a link");
    symlink("itself.yaml", folder.path().join("order/itself.yaml")).expect("a link");
    symlink("gone.yaml", folder.path().join("order/nowhere.yaml")).expect("a link");
    check_folder(
        folder.path(),
        &expect![[r#"
            error: the link leads to a folder that has been read already
            --> order/back

            error: this cannot be read: Too many levels of symbolic links (os error 40)
            --> order/itself.yaml

            error: this cannot be read: No such file or directory (os error 2)
            --> order/nowhere.yaml"#]],
    );
}

#[test]
fn a_pipe_is_refused_without_waiting_for_a_writer() {
    let folder = tempfile::tempdir().expect("a folder");
    write(&folder, "order/README.md", b"");
    let pipe = folder.path().join("order/pipe.yaml");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("a pipe");
    check_folder(
        folder.path(),
        &expect![[r#"
            error: the file cannot be read: it is not a regular file
            --> order/pipe.yaml"#]],
    );
}

#[test]
fn a_folder_with_too_many_files_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for number in 0..=1_000 {
        write(&folder, &format!("order/case-{number}.yaml"), b"");
    }
    let found = load::from_path(folder.path()).expect_err("there are too many");
    assert!(matches!(found, LoadError::TooMany { .. }), "{found}");
}

#[test]
fn one_file_can_be_read_by_its_path() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/stop/obeyed.yaml");
    let cases = load::from_path(&path).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(cases[0].name, "stop::obeyed");
}

#[test]
fn an_unknown_requirement_is_refused_unless_the_folder_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let case = include_str!("../../cases/stop/obeyed.yaml");
    let (before, _) = case.split_once("requirements:").expect("it names some");
    let (_, after) = case.split_once("levels:").expect("it has levels");
    let case = format!("{before}requirements: [R1, R999]\nlevels:{after}");
    write(&folder, "stop/obeyed.yaml", case.as_bytes());
    check_folder(
        folder.path(),
        &expect![[r#"
            error: there is no requirement R999
             --> stop/obeyed.yaml:9:20
              |
            9 | requirements: [R1, R999]
              |                    ^^^^
              |
              = help: cases/requirements.yaml lists them, unless the folder has one of its own"#]],
    );
    let own = include_str!("../../cases/requirements.yaml").replace("id: R2\n", "id: R999\n");
    write(&folder, "requirements.yaml", own.as_bytes());
    load::from_path(folder.path()).unwrap_or_else(|found| panic!("{found}"));
}

#[test]
fn a_list_of_requirements_is_no_case() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/requirements.yaml");
    let found = load::from_path(&path).expect_err("it has no case");
    assert!(matches!(found, LoadError::NoCase { .. }), "{found}");
}

#[test]
fn the_example_of_the_readme_is_right() {
    let text = include_str!("../../cases/README.md");
    let (_, rest) = text.split_once("```yaml\n").expect("it has an example");
    let (example, _) = rest.split_once("```").expect("which ends");
    let case = parse(Path::new("sandbox/example.yaml"), example);
    assert_eq!(case.map(|case| case.steps.len()), Ok(3));
}

#[test]
fn the_cases_on_disk_are_those_that_are_embedded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let on_disk = load::from_path(&path).unwrap_or_else(|found| panic!("{found}"));
    let embedded = load::embedded().unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(on_disk, embedded);
    assert!(embedded.is_sorted_by(|one, other| one.id < other.id));
    // Longer ones are of users.
    assert!(embedded.iter().all(|case| case.id.find('-') == Some(3)));
}

#[test]
fn deep_nesting_is_harmless() {
    for bracket in ["[", "{", "- ", "{a: ", "? "] {
        let text = bracket.repeat((64 << 10) / bracket.len());
        parse(Path::new("order/deep.yaml"), &text).expect_err("it is no case");
    }
}

fn write(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
    fs::write(path, bytes).expect("a file");
}

/// Pieces of cases and of YAML, from which random texts get further than from letters alone.
const PIECES: &[&str] = &[
    "id: ORD-01\n",
    "title: A.\n",
    "why: w\n",
    "sources: [s]\n",
    "steps:\n",
    "expect:\n",
    "levels: {cache: must, hint: may}\n",
    "  - sandbox: {as: pod}\n",
    "  - repeat:\n",
    "      ",
    "  - create: {as: c, in: pod, workload: until-term}\n",
    "times: 2\n",
    "steps:\n",
    "  - never: ",
    "{of: c, event: deleted}",
    "\n",
    "\t",
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    "&a ",
    "*a",
    "!t ",
    "'",
    "\"",
    "# ",
    "|\n",
    ">-\n",
    "---\n",
    "%YAML 1.2\n",
    "<<: ",
    "\u{feff}",
    "é",
    "\r",
    "\0",
    "? ",
];

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>()) {
        let _ = parse(Path::new("order/any.yaml"), &text).map_err(rendered);
    }

    #[test]
    fn no_pieces_of_yaml_make_the_parser_panic(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40),
    ) {
        let _ = parse(Path::new("order/any.yaml"), &pieces.concat()).map_err(rendered);
    }

    #[test]
    fn no_cut_or_edit_of_a_case_makes_the_parser_panic(
        at in any::<prop::sample::Index>(),
        until in any::<prop::sample::Index>(),
        piece in prop::sample::select(PIECES),
    ) {
        let text = include_str!("../../cases/exit/exit-codes.yaml");
        let (at, until) = (at.index(text.len()), until.index(text.len()));
        let edited = format!("{}{piece}{}", &text[..at.min(until)], &text[at.max(until)..]);
        let _ = parse(Path::new("exit/any.yaml"), &edited).map_err(rendered);
    }
}

#[test]
fn a_very_long_line_or_word_is_cut_around_what_is_wrong() {
    let steps = "{sandbox: {as: pod}}, ".repeat(1_000);
    let text = format!("id: ORD-01\nsteps: [{steps}{{sandbx: {{as: pod}}}}, {steps}]\n");
    let word = format!(
        "id: ORD-01\nsteps:\n  - sandbox: {{as: pod, {}: 1}}\n",
        "x".repeat(900)
    );
    for (text, expect) in [
        (text, "unknown word `sandbx`"),
        (word, "unknown key `xxxxxxxx"),
        ("{".repeat(10_000), "expected a key"),
    ] {
        let found = parse(Path::new("order/any.yaml"), &text).expect_err("it is wrong");
        let found = Diagnostics::from_found(found)
            .expect_err("so it is")
            .render(false);
        assert!(found.contains(expect), "{found}");
        let widest = found.lines().map(|line| line.chars().count()).max();
        assert!(
            widest.is_some_and(|widest| widest < 300),
            "{widest:?}: {found}"
        );
    }
}

fn rendered(found: Vec<super::diagnose::Diagnostic>) -> String {
    Diagnostics::from_found(found).map_or_else(|found| found.render(true), |()| String::new())
}
