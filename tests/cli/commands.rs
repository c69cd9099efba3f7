//! Help, completions, the image, colours, and a closed output.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::suite::suite;

const WRONG_CASE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/fixtures/bad-cases/typo-in-a-step.yaml"
);

#[test]
fn help_lists_every_exit_code() {
    let help = suite(["--help"]).run().succeeds();
    for code in [
        "0  conformant",
        "1  non-conf",
        "2  wrong",
        "3  undec",
        "4  nothing",
    ] {
        assert!(help.contains(code), "{code}: {help}");
    }
}

#[test]
fn short_help_is_short() {
    let lines = |args: &[&str]| suite(args).run().succeeds().lines().count();
    let (short, long) = (lines(&["-h"]), lines(&["--help"]));
    assert!(short < 80 && short < long / 2, "{short} {long}");
    let which = suite(["schema"]).run();
    which.fails(
        2,
        &[
            "arguments were not provided:",
            "<case|expectations|policy|report|doctor>",
        ],
    );
    let schema = suite(["schema", "--help"]).run().succeeds();
    assert!(!schema.contains("--runtime-endpoint"), "{schema}");
    let cleanup = suite(["cleanup", "--help"]).run().succeeds();
    assert!(cleanup.contains("--runtime-endpoint"), "{cleanup}");
}

#[test]
fn help_does_not_tell_the_hooks_of_our_own_tests() {
    assert!(!suite(["--help"]).run().succeeds().contains("panic"));
}

#[test]
fn the_version_names_the_commit() {
    let version = suite(["--version"]).run().succeeds();
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
    let (_, commit) = version.trim().split_once('(').unwrap();
    let commit = commit.trim_end_matches([')']).trim_end_matches("-dirty");
    let known = commit == "unknown" || commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(known && commit.len() >= 7, "{version}");
}

#[test]
fn wrong_usage_is_exit_code_2() {
    for wrong in [
        &["--no-such-flag"][..],
        &["--test-threads", "0"],
        &["--test-threads", "many"],
        &["--repeat", "0"],
        &["--timeout", "soon"],
        &["--timeout-scale", "-1"],
        &["--format", "xml"],
        &["--color", "blue"],
        &["--junit"],
        &["show"],
        &["completions", "tcl"],
    ] {
        let ended = suite(wrong).run().fails(2, &["error:", "--help"]);
        assert_eq!(ended.out, "", "{wrong:?}");
    }
}

#[test]
fn the_right_flag_is_suggested_for_a_misspelt_one() {
    suite(["--junti", "x"]).run().fails(2, &["--junit"]);
}

#[test]
fn a_misspelt_command_is_neither_a_filter_nor_a_word_for_help() {
    for (wrong, expected) in [
        (&["hlep"][..], "did you mean `help`?"),
        (&["verion"], "did you mean `version`?"),
        (
            &["help", "wacth"],
            "there is no command `wacth`; did you mean `watch`?",
        ),
        (
            &["help", "nosuch"],
            "there is no command `nosuch`; `--help` lists all",
        ),
    ] {
        suite(wrong).run().fails(2, &[expected]);
    }
    suite(["help", "watch"]).run().fails(0, &[]);
}

#[test]
fn no_command_ignores_the_options_of_a_run() {
    suite(["--json", "x", "check", "h.binpb"])
        .run()
        .fails(2, &["put it after `check`", "--json <FILE>"]);
    suite(["--expectations", "x", "matrix"])
        .run()
        .fails(2, &["put it after `matrix`", "--expectations <FILE>"]);
    suite(["--keep", "cleanup"])
        .run()
        .fails(2, &["`cleanup` does not accept `--keep`"]);
    for before_and_after in [
        &["-t", "5", "schema", "case"],
        &["schema", "case", "-t", "5"],
    ] {
        suite(before_and_after)
            .run()
            .fails(2, &["`schema` does not accept `--timeout <TIMEOUT>`"]);
    }
    // Every command heeds the one, and this command the other.
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
    suite(["--color", "never", "--cases", cases, "explain", "R9"])
        .run()
        .succeeds();
}

#[test]
fn run_is_what_happens_without_a_command() {
    let listed = |args: &[&str]| suite(args).run().succeeds();
    let (with, without) = (["run", "--list", "ORD"], ["--list", "ORD"]);
    assert_eq!(listed(&with), listed(&without));
    for args in [
        ["run", "ORD-01", "--tier", "core", "-r", "model"],
        ["-r", "model", "run", "ORD-01", "--tier", "core"],
    ] {
        let ended = suite(args).run().fails(0, &[]);
        assert!(ended.out.contains("test ORD-01 "), "{ended:#?}");
    }
    suite(["--tier", "full", "run", "-r", "model"])
        .run()
        .fails(2, &["`--tier <TIER>`", "put it after `run`"]);
    for late in ["run", "matrix"] {
        suite(["ORD-01", late, "-r", "model"]).run().fails(
            2,
            &["is not a command: a command stands before all filters"],
        );
    }
    for own in ["run", "check"] {
        suite(["--color", "never", own, "h"])
            .run()
            .fails(2, &["`--color <COLOR>`", &format!("put it after `{own}`")]);
    }
    suite(["run", "--color", "blue"]).run().fails(2, &["blue"]);
}

#[test]
fn completions_are_printed_for_each_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = suite(["completions", shell]).run().succeeds();
        assert!(script.contains("runtime-endpoint"), "{shell}");
    }
}

#[test]
fn bash_completes_commands_ids_and_defects() {
    let script = suite(["completions", "bash"]).run().succeeds();
    for (words, expected) in [
        (["", "expl"], "explain"),
        (["", "ORD-0"], "ORD-01"),
        (["run", "ORD-0"], "ORD-01"),
        (["explain", "drop-stop"], "drop-stopped"),
        (["explain", "wrong-or"], "wrong-order"),
        (["--defect", "drop-stop"], "drop-stopped"),
    ] {
        let words = words.join(" ");
        let words = words.trim();
        let call = format!(
            "{script}\nname=cri-event-conformance; COMP_WORDS=($name {words});\
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1));\
             _cri__event__conformance $name ${{COMP_WORDS[-1]}} ${{COMP_WORDS[-2]}};\
             echo \"${{COMPREPLY[@]}}\""
        );
        let mut bash = Command::new("bash");
        bash.arg("-s").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut bash = bash.spawn().unwrap();
        bash.stdin
            .take()
            .unwrap()
            .write_all(call.as_bytes())
            .unwrap();
        let ended = bash.wait_with_output().unwrap();
        let offered = String::from_utf8_lossy(&ended.stdout);
        assert!(
            offered.split_whitespace().any(|it| it == expected),
            "{words}: {offered}"
        );
    }
}

#[test]
fn a_manual_page_is_written_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let into = |folder: &Path| {
        let arguments = ["man", "--output-dir"].map(Into::into).into_iter();
        suite(arguments.chain([folder.as_os_str().to_owned()])).run()
    };
    into(folder.path()).succeeds();
    let page = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(page("cri-event-conformance.1").contains("exit code"));
    assert!(page("cri-event-conformance-check.1").contains("expectations"));
    // The page of a command lists the options of `--help`.
    assert!(!page("cri-event-conformance-check.1").contains("runtime\\-endpoint"));
    assert!(page("cri-event-conformance-watch.1").contains("runtime\\-endpoint"));
    into(&folder.path().join("cri-event-conformance.1/a"))
        .fails(2, &["write the manual pages", "Not a directory"]);
}

#[test]
fn a_program_that_needs_libraries_has_no_image() {
    suite(["image", "--suite", "--output", "/dev/null"])
        .run()
        .fails(2, &["linked dynamically", "crt-static"]);
}

#[test]
fn the_image_is_written_in_both_formats_under_the_name_that_a_run_looks_for() {
    let folder = tempfile::tempdir().unwrap();
    for (format, index) in [
        ("oci-archive", "index.json"),
        ("docker-archive", "manifest.json"),
    ] {
        let path = folder.path().join(format);
        let message = suite(
            ["image", "--format", format, "--output"]
                .map(Into::into)
                .into_iter()
                .chain([path.clone().into_os_string()]),
        )
        .run()
        .succeeds();
        assert!(
            message.contains("localhost/cri-event-conformance/workload:"),
            "{message}"
        );
        let mut archive = tar::Archive::new(fs::File::open(&path).unwrap());
        let mut entries = archive.entries().unwrap();
        let has_index = entries.any(|entry| entry.unwrap().path().unwrap().as_os_str() == index);
        assert!(has_index, "{format}");
    }
}

#[test]
fn an_image_is_written_under_the_names_that_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let tags = ["--tag", "localhost/a:1", "--tag", "localhost/b:2"];
    let message = suite(["image", "--output", "image.tar"].into_iter().chain(tags))
        .inside(folder.path())
        .run()
        .succeeds();
    assert_eq!(message, "image.tar: localhost/a:1, localhost/b:2\n");
}

#[test]
fn an_image_that_cannot_be_written_is_reported() {
    let missing = "/no/such/folder/image.tar";
    suite(["image", "--output", missing])
        .run()
        .fails(2, &[missing, "No such file"]);
    suite(["image", "--output", "/"])
        .run()
        .fails(2, &["to /:", "directory"]);
    suite(["image", "--output", "/dev/full"])
        .run()
        .fails(2, &["/dev/full", "No space left"]);
}

#[test]
fn a_reader_that_goes_away_is_no_fault() {
    for args in [
        &["--list"][..],
        &["--list", "--format", "json"],
        &["--list", "--format", "terse"],
        &["--help"],
        &["completions", "bash"],
    ] {
        suite(args).run_unread().succeeds();
        suite(args).run_for_a_line().succeeds();
    }
}

#[test]
fn an_output_that_is_full_is_a_fault() {
    for args in [&["--list"][..], &["--help"], &["-V"], &["explain", "-h"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let ended = suite(args).out(full).run();
        ended.fails(3, &["print", "No space left"]);
    }
}

#[test]
fn diagnostics_are_coloured_when_it_is_asked_for_and_only_then() {
    const ESCAPE: char = '\x1b';
    let list = |color: &[&'static str]| {
        let args = ["--list", "--cases", WRONG_CASE].into_iter();
        suite(args.chain(color.iter().copied()))
    };
    let always = list(&["--color", "always"]).run().fails(2, &["cuntainer"]);
    assert!(always.err.contains(ESCAPE), "{always:#?}");
    let always = list(&["--color", "always"]).env("NO_COLOR", "1").run();
    assert!(
        always.err.contains(ESCAPE),
        "the flag is nearer than the variable: {always:#?}"
    );
    for plain in [
        list(&[]),
        list(&["--color", "auto"]),
        list(&["--color", "never"]),
        list(&["--color", "never"]).env("CLICOLOR_FORCE", "1"),
        list(&[]).env("NO_COLOR", "1").env("CLICOLOR_FORCE", "1"),
    ] {
        let plain = plain.run().fails(2, &["cuntainer"]);
        assert!(!plain.err.contains(ESCAPE), "{plain:#?}");
    }
}

#[test]
fn all_that_can_be_explained_can_be_pages() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("new/pages");
    let path = pages.to_str().unwrap();
    suite(["explain", "--pages", path]).run().succeeds();
    let page = std::fs::read_to_string(pages.join("ORD-01.md")).unwrap();
    assert!(page.starts_with("# ORD-01 order::"), "{page}");
    suite(["explain"]).run().fails(2, &["<ID>"]);
    let both = suite(["explain", "ORD-01", "--pages", path]).run();
    both.fails(2, &["cannot be used with"]);
}
