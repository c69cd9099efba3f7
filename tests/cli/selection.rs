//! `--list` and filters, which need no runtime.

use std::fs;

use serde_json::Value;

use crate::suite::suite;

/// The ids that these arguments select.
#[track_caller]
fn listed(args: &[&str]) -> Vec<String> {
    let args = ["--list", "--format", "json"].iter().chain(args);
    let text = suite(args).run().succeeds();
    let listed: Value = serde_json::from_str(&text).unwrap();
    let ids = listed["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

#[test]
fn all_formats_list_the_same_cases_in_the_same_order() {
    let ids = listed(&[]);
    assert!(ids.len() > 10 && ids.is_sorted(), "{ids:?}");
    for format in ["pretty", "terse"] {
        let text = suite(["--list", "--format", format]).run().succeeds();
        let first = |line: &str| line.split(' ').next().unwrap().to_owned();
        let lines: Vec<_> = text.lines().map(first).collect();
        let (cases, invariants) = lines.split_at(ids.len());
        assert_eq!(cases, ids, "{format}");
        assert!(
            invariants.iter().all(|id| id.starts_with("INV-")),
            "{format}"
        );
        assert!(invariants.len() > 10 && invariants.is_sorted(), "{format}");
    }
}

#[test]
fn terse_lists_as_libtest_does() {
    let text = suite(["--list", "--format", "terse", "ORD-01"])
        .run()
        .succeeds();
    assert_eq!(
        text,
        "ORD-01 order::created-started-stopped-deleted: test\n"
    );
}

#[test]
fn what_restarts_the_runtime_runs_last_but_for_what_sets_the_clock() {
    let args = [
        "-r", "model", "--tier", "full", "RST-07", "STR-01", "TIM-0", "ORD-0",
    ];
    let ended = suite(args).run();
    let ids = ended
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("test "));
    let ids: Vec<_> = ids.filter(|line| !line.starts_with("INV-")).collect();
    assert!(ids.len() > 5, "{ended:#?}");
    let [.., restarts, sets_clock] = &ids[..] else {
        unreachable!("there are more than five");
    };
    assert!(restarts.starts_with("RST-07"), "{ids:?}");
    assert!(sets_clock.starts_with("TIM-07"), "{ids:?}");
    assert_eq!(ended.code, 0, "{ended:#?}");
}

#[test]
fn a_unit_is_no_word_for_a_shell() {
    for unit in ["containerd; reboot", "--help", "$(id)", ""] {
        let unit = format!("--runtime-unit={unit}");
        let refused = ["a unit's name has letters"];
        suite(["-r", "model", &unit]).run().fails(2, &refused);
    }
    let alone = ["--runtime-stop-cmd", "true"];
    let refused = ["--runtime-start-cmd"];
    suite(["-r", "model", alone[0], alone[1]])
        .run()
        .fails(2, &refused);
}

#[test]
fn a_unit_wins_over_commands_of_the_environment() {
    suite([
        "-r",
        "model",
        "--list",
        "--tier",
        "full",
        "--runtime-unit",
        "containerd",
    ])
    .env("CRI_EVENT_CONFORMANCE_RUNTIME_STOP_CMD", "true")
    .env("CRI_EVENT_CONFORMANCE_RUNTIME_START_CMD", "true")
    .run()
    .succeeds();
}

#[test]
fn json_has_fields_that_pretty_has_not() {
    let text = suite(["--list", "--format", "json", "ORD-01"])
        .run()
        .succeeds();
    let listed: Value = serde_json::from_str(&text).unwrap();
    let message = |list: &str, keys: &[&str]| {
        for key in keys {
            assert!(!listed[list][0][key].is_null(), "{list} {key}: {text}");
        }
    };
    let keys = ["id", "name", "title", "levels", "requirements", "sources"];
    message("cases", &keys);
    message("cases", &["tier", "tags", "needs", "exclusive"]);
    message("invariants", &keys);
    message("requirements", &["id", "sentence", "sources", "breaks"]);
    message("requirements", &["levels", "checked_by"]);
    let mut ordered = listed["requirements"].as_array().unwrap().iter();
    let ordered = ordered.find(|known| known["id"] == "R9").unwrap();
    let by: Vec<_> = ordered["checked_by"].as_array().unwrap().iter().collect();
    assert_eq!(by, ["ORD-01", "INV-01"]);
}

#[test]
fn requirements_beside_cases_are_no_case_and_take_the_place_of_the_built_in_ones() {
    let folder = tempfile::tempdir().unwrap();
    let area = folder.path().join("order");
    fs::create_dir(&area).unwrap();
    let case = "id: ORD-99\ntitle: It runs.\nwhy: It does.\nsources: [none]\nrequirements: [R9]\n\
                levels: {cache: must}\nsteps:\n  - sandbox: {as: pod}\nexpect:\n  - includes: \
                {of: pod, in-order: [started]}\n";
    fs::write(area.join("runs.yaml"), case).unwrap();
    fs::write(folder.path().join("defects.yaml"), "no: case").unwrap();
    let cases = folder.path().to_str().unwrap();
    assert_eq!(listed(&["--cases", cases]), ["ORD-99"]);
    let explained = suite(["--cases", cases, "explain", "R9"]).run().succeeds();
    assert!(explained.starts_with("R9\n"), "{explained}");
    fs::write(area.join("runs.yaml"), case.replace("R9", "X1")).unwrap();
    let unknown = suite(["--list", "--cases", cases]).run();
    unknown.fails(2, &["runs.yaml:5:", "there is no requirement X1"]);
    let own = "requirements:\n  - {id: X1, sentence: It runs., sources: [me], breaks: All., \
               levels: {cache: must}}\n";
    fs::write(folder.path().join("requirements.yaml"), own).unwrap();
    assert_eq!(listed(&["--cases", cases]), ["ORD-99"]);
    let explained = suite(["--cases", cases, "explain", "x1"]).run().succeeds();
    assert!(
        explained.contains("ORD-99 It runs. (cache must)"),
        "{explained}"
    );
    fs::write(
        folder.path().join("requirements.yaml"),
        "requirements: [{id: X}]\n",
    )
    .unwrap();
    let wrong = suite(["--list", "--cases", cases]).run();
    wrong.fails(2, &["requirements.yaml:1:", "missing key `sentence`"]);
}

#[test]
fn all_names_of_the_output_can_be_explained() {
    for (name, start) in [
        (
            "missing-stopped",
            "missing-stopped\n  STOPPED is due, and has not come.\n",
        ),
        (
            "Cache",
            "cache\n  Kubelet 1.26 to 1.36, which trusts the content of events\n",
        ),
        ("stop", "stop\n  An area of "),
        ("stp", "stop\n  An area of "),
        ("Once", "Once\n"),
        (
            "deleted-before-stopped",
            "# containerd: DELETED overtakes STOPPED when a container",
        ),
    ] {
        let explained = suite(["explain", name]).run().succeeds();
        assert!(explained.starts_with(start), "{explained}");
    }
    let of_one = suite(["explain", "cri-o/snapshots-go-back"]).run();
    let of_one = of_one.succeeds();
    assert!(of_one.starts_with("# CRI-O: "), "{of_one}");
    assert_eq!(of_one.matches("\n## What a kubelet suffers\n").count(), 1);
    // A page of each runtime, and no link that leads nowhere in an issue.
    let pages = suite(["explain", "snapshots-go-back"]).run().succeeds();
    assert_eq!(
        pages.matches("\n## What a kubelet suffers\n").count(),
        2,
        "{pages}"
    );
    assert!(!pages.contains("](../"), "{pages}");
    assert!(pages.contains("\n* SNP-07 on containerd "), "{pages}");
}

#[test]
fn commands_of_other_programs_are_options_here() {
    let succeeds = |args: &[&str]| suite(args).run().succeeds();
    assert_eq!(succeeds(&["help"]), succeeds(&["--help"]));
    assert_eq!(succeeds(&["help", "watch"]), succeeds(&["watch", "--help"]));
    assert_eq!(succeeds(&["version"]), succeeds(&["--version"]));
    assert_eq!(
        succeeds(&["list", "ORD-01"]),
        succeeds(&["--list", "ORD-01"])
    );
    suite(["--endpoint", "model", "ORD-01"]).run().fails(0, &[]);
}

#[test]
fn what_cannot_be_explained_is_reported() {
    let explained = suite(["explain", "ord-01"]).run().succeeds();
    assert!(explained.starts_with("ORD-01 order::"), "{explained}");
    let unknown = suite(["explain", "ORD-111"]).run();
    assert_eq!(
        unknown
            .fails(
                2,
                &[
                    "error: there is nothing of the name `ORD-111`",
                    "did you mean `ORD-11`?"
                ]
            )
            .out,
        ""
    );
    suite(["explain"]).run().fails(2, &["error:", "<ID>"]);
    suite(["explain", "stp-03"])
        .run()
        .fails(2, &["it has ended", "part of STP-02"]);
    let issue = |name| suite(["explain", "--issue", name]).run();
    issue("oom-reason-lost").fails(2, &["name containerd/oom-reason-lost or cri-o/"]);
    let one = issue("cri-o/oom-reason-lost").succeeds();
    assert!(
        one.starts_with("# CRI-O: ") && !one.contains("# containerd"),
        "{one}"
    );
}

/// A mistake in the command line is reported as one, also where there is no runtime.
#[test]
fn arguments_are_checked_before_the_endpoint() {
    let nowhere = ["-r", "unix:///no/such/socket"];
    let mistaken = |args: &[&str]| suite([&nowhere[..], args].concat()).run();
    mistaken(&["STP-03"]).fails(4, &["no case matches `STP-03`; it has ended"]);
    mistaken(&["--expectations", "no-such.yaml"]).fails(2, &["read the expectation file"]);
    mistaken(&["ORD-01", "check"]).fails(2, &["a command stands before all filters"]);
    mistaken(&["ORD-01"]).fails(3, &["/no/such/socket"]);
}

#[test]
fn listing_looks_at_no_endpoint_and_no_configuration() {
    let text = suite(["--list"])
        .env("CONTAINER_RUNTIME_ENDPOINT", "tcp://nonsense")
        .env("CRI_CONFIG_FILE", "/no/such/file")
        .run()
        .succeeds();
    assert!(text.contains("ORD-01"));
}

#[test]
fn filters_take_what_any_of_them_matches() {
    assert_eq!(listed(&["ORD-01", "SBX-01"]), ["ORD-01", "SBX-01"]);
    assert_eq!(listed(&["ORD-01", "ORD-01"]), ["ORD-01"]);
    assert_eq!(listed(&["order::created-started"]), ["ORD-01"]);
    assert!(listed(&["order::"]).iter().all(|id| id.starts_with("ORD")));
}

#[test]
fn a_filter_that_takes_nothing_is_a_mistake_even_beside_others() {
    let refused = |args: &[&str], message: &str| {
        let ended = suite([&["--list"], args].concat())
            .run()
            .fails(4, &[message]);
        assert_eq!(ended.out, "", "{args:?}");
    };
    refused(
        &["ORD-01", "no such case"],
        "no case matches `no such case`; `--list` shows all",
    );
    refused(
        &["ORD-111"],
        "no case matches `ORD-111`; did you mean `ORD-11`?",
    );
    refused(&["SBX-01", "oder::"], "did you mean `order`?");
    refused(&["r9"], "did you mean `req:R9`?");
    refused(&["slow"], "did you mean `tag:slow`?");
    refused(&["tag:slwo"], "did you mean `tag:slow`?");
    refused(&["TAG:Slow-"], "did you mean `tag:slow`?");
    refused(&["req:R99"], "did you mean `req:R9`?");
    refused(&["req:x"], "no case matches `req:x`; `--list` shows all");
}

#[test]
fn a_filter_that_exact_matching_rejects_is_not_suggested_again() {
    for part in ["order", "ORD-0*"] {
        let ended = suite(["--list", "--exact", part]).run().fails(
            4,
            &[&format!(
                "no case matches `{part}`; with `--exact` a filter is a whole id or name"
            )],
        );
        assert!(!ended.err.contains("did you mean"), "{ended:#?}");
    }
    suite(["--list", "--exact", "ORD-011"])
        .run()
        .fails(4, &["did you mean `ORD-01`?"]);
}

#[test]
fn capitals_do_not_matter() {
    assert_eq!(listed(&["ord-01"]), ["ORD-01"]);
    assert_eq!(listed(&["--exact", "ord-01"]), ["ORD-01"]);
    assert_eq!(listed(&["ord-0?"]), listed(&["ORD-0?"]));
}

#[test]
fn what_is_meant_as_a_command_runs_nothing() {
    for (word, message) in [
        (
            "start",
            "use `run`; to select cases with this word in their names, write '*start*'",
        ),
        ("test", "`test` is not a command: use `run`"),
        ("list", "or use --list"),
        ("help", "use --help"),
        ("all", "all cases are run if no filter is given"),
        ("wacth", "did you mean `watch`?"),
        ("explian", "did you mean `explain`?"),
        ("runn", "did you mean `run`?"),
    ] {
        let ended = suite(["-r", "model", word]).run().fails(2, &[message]);
        assert_eq!(ended.out, "", "{word}");
    }
    assert!(!listed(&["*run*"]).is_empty());
}

#[test]
fn invariants_can_be_listed_and_selected() {
    let list = |filters: &[&str]| suite([&["--list"], filters].concat()).run().succeeds();
    let one = list(&["inv-15"]);
    assert!(
        one.starts_with("INV-15  invariant::") && one.lines().count() == 1,
        "{one}"
    );
    let both = list(&["ORD-01", "INV"]);
    assert!(
        both.starts_with("ORD-01") && both.lines().count() > 10,
        "{both}"
    );
    assert_eq!(list(&["ORD-01"]).lines().count(), 1);
    let ran = suite(["-r", "model", "ORD-01", "INV-15"]).run();
    let ran = ran.fails(0, &[]).out;
    let tests: Vec<_> = ran
        .lines()
        .filter(|line| line.starts_with("test "))
        .collect();
    assert_eq!(tests.len(), 1, "{ran}");
    assert!(ran.contains("     1 invariant ok\n"), "{ran}");
    assert!(
        ran.contains("\n1 case, judged also by 1 invariant\n"),
        "{ran}"
    );
}

#[test]
fn a_list_has_columns() {
    let text = suite(["--list"]).run().succeeds();
    let name_at = |line: &str| line.find("::").map(|at| line[..at].rfind(' ').unwrap_or(0));
    let columns: std::collections::BTreeSet<_> = text.lines().map(name_at).collect();
    assert_eq!(columns.len(), 1, "{text}");
}

#[test]
fn exact_filters_are_whole_ids_or_names() {
    assert_eq!(listed(&["--exact", "ORD-01"]), ["ORD-01"]);
    assert_eq!(
        listed(&["--exact", "order::created-started-stopped-deleted"]),
        ["ORD-01"]
    );
    suite(["--list", "--exact", "ORD-0"])
        .run()
        .fails(4, &["`ORD-0`"]);
}

#[test]
fn what_is_skipped_is_left_out_even_if_a_filter_takes_it() {
    let all = listed(&["ORD"]);
    let rest = listed(&["ORD", "--skip", "ORD-01", "--skip", "ORD-06"]);
    assert_eq!(all.len(), rest.len() + 2);
    assert!(!rest.contains(&"ORD-01".to_owned()));
}

/// A mistyped one would run the cases that it should exclude.
#[test]
fn what_is_to_be_skipped_must_exist() {
    for (skip, message) in [
        (
            "ORD-O1",
            "no case or invariant matches --skip `ORD-O1`; did you mean `ORD-",
        ),
        ("XYZ", "--skip `XYZ`; `--list` shows all cases"),
    ] {
        suite(["--list", "--skip", skip]).run().fails(2, &[message]);
    }
    suite(["--list", "--skip", "INV-02"]).run().fails(0, &[]);
}

#[test]
fn repetitions_are_listed_once() {
    assert_eq!(listed(&["--repeat", "3", "ORD-01"]), ["ORD-01"]);
}

#[test]
fn a_selection_of_nothing_is_never_green() {
    for format in ["pretty", "terse", "json"] {
        let ended = suite(["--list", "--format", format, "no-such-case"]).run();
        assert_eq!(ended.fails(4, &["`no-such-case`", "--list"]).out, "");
    }
    suite(["--list", "ORD-01", "--skip", "ORD"])
        .run()
        .fails(4, &["`ORD-01`", "`ORD`"]);
    suite(["--list", "--skip", "-"])
        .run()
        .fails(4, &["no case"]);
}

#[test]
fn an_empty_selection_is_reported_before_the_runtime_is_looked_for() {
    suite(["no-such-case", "-r", "/no/such/socket"])
        .run()
        .fails(4, &["`no-such-case`"]);
}
