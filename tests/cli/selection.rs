//! `--list` and the filters; none of it needs a runtime.

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
        assert_eq!(lines, ids, "{format}");
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
fn json_tells_what_pretty_does_not() {
    let text = suite(["--list", "--format", "json", "ORD-01"])
        .run()
        .succeeds();
    let listed: Value = serde_json::from_str(&text).unwrap();
    let told = |list: &str, keys: &[&str]| {
        for key in keys {
            assert!(!listed[list][0][key].is_null(), "{list} {key}: {text}");
        }
    };
    let keys = ["id", "name", "title", "levels", "requirements", "sources"];
    told("cases", &keys);
    told("cases", &["tier", "tags", "needs", "exclusive"]);
    told("invariants", &keys);
    told("requirements", &["id", "sentence", "sources", "breaks"]);
    told("requirements", &["levels", "checked_by"]);
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
    let case = "id: ORD-99\ntitle: It runs.\nwhy: It does.\nsources: [none]\nrequirements: [X1]\n\
                levels: {cache: must}\nsteps:\n  - sandbox: {as: pod}\nexpect:\n  - includes: \
                {of: pod, in-order: [started]}\n";
    fs::write(area.join("runs.yaml"), case).unwrap();
    let cases = folder.path().to_str().unwrap();
    assert_eq!(listed(&["--cases", cases]), ["ORD-99"]);
    let explained = suite(["--cases", cases, "explain", "R9"]).run().succeeds();
    assert!(explained.starts_with("R9\n"), "{explained}");
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
fn what_cannot_be_explained_is_told() {
    let explained = suite(["explain", "ord-01"]).run().succeeds();
    assert!(explained.starts_with("ORD-01 order::"), "{explained}");
    let unknown = suite(["explain", "ORD-111"]).run();
    assert_eq!(
        unknown
            .fails(2, &["error: there is no case", "did you mean `ORD-01`?"])
            .out,
        ""
    );
    suite(["explain"]).run().fails(2, &["error:", "<ID>"]);
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
    assert_eq!(listed(&["ORD-01", "no such case"]), ["ORD-01"]);
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
    let rest = listed(&["ORD", "--skip", "ORD-01", "--skip", "ORD-05"]);
    assert_eq!(all.len(), rest.len() + 2);
    assert!(!rest.contains(&"ORD-01".to_owned()));
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
fn a_selection_of_nothing_is_told_before_the_runtime_is_looked_for() {
    suite(["no-such-case", "-r", "/no/such/socket"])
        .run()
        .fails(4, &["`no-such-case`"]);
}
