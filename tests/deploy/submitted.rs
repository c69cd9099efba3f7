//! The reports on runtimes in `ci/reports`, submitted by users; its README has the rules.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cri_event_conformance::testing::outcome::{Conformance, Verdict};
use cri_event_conformance::testing::report::{Document, json};
use serde_json::{Value, json};

const REPORT: &str = "report.json";
const README: &str = "README.md";
/// The heading above the command.
const HOW: &str = "\n## How it was run\n";
/// The other files in the directory of reports.
const OTHERS: [&str; 2] = [README, "check"];

pub(crate) fn every_submitted_report_follows_the_rules() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("ci/reports");
    let problems = check(&folder);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The problems of the reports in a directory, one line each.
fn check(folder: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for runtime in names(folder) {
        if OTHERS.contains(&runtime.as_str()) {
            continue;
        }
        for version in names(&folder.join(&runtime)) {
            let place = format!("{runtime}/{version}");
            let found = check_one(&folder.join(&place), &runtime, &version);
            problems.extend(found.iter().map(|problem| format!("{place}: {problem}")));
        }
    }
    problems
}

fn check_one(folder: &Path, runtime: &str, version: &str) -> Vec<String> {
    if !folder.is_dir() {
        return vec!["this is no folder RUNTIME/VERSION".to_owned()];
    }
    let mut problems = Vec::new();
    let files = names(folder);
    if files != [README, REPORT] {
        problems.push(format!(
            "the files are {files:?}, not {README} and {REPORT}"
        ));
    }
    let readme = fs::read_to_string(folder.join(README)).unwrap_or_default();
    let how = readme.split_once(HOW).map_or("", |(_, how)| how);
    let how = how.split("\n## ").next().unwrap_or_default();
    let command = how
        .split("```")
        .nth(1)
        .is_some_and(|block| block.contains("cri-event-conformance"));
    if !command {
        problems.push(format!(
            "{README} has no command under the heading `{}`",
            HOW.trim()
        ));
    }
    match fs::read_to_string(folder.join(REPORT)) {
        Ok(text) => check_report(&text, runtime, version, &mut problems),
        Err(fault) => problems.push(format!("{REPORT}: {fault}")),
    }
    problems
}

fn check_report(text: &str, runtime: &str, version: &str, problems: &mut Vec<String>) {
    let report = match Document::parse(text) {
        Ok(report) => report,
        Err(fault) => return problems.push(format!("{REPORT}: {fault}")),
    };
    // An older version wrote fewer fields.
    if report.suite.split(' ').next() == Some(env!("CARGO_PKG_VERSION")) {
        let schema = serde_json::to_value(json::schema()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        problems.extend(validator.iter_errors(&value).map(|error| error.to_string()));
    }
    let reported = report.runtime.version.trim_start_matches('v');
    let named = version.split('+').next().unwrap_or_default();
    let named_whole = [named, version].contains(&reported);
    let rules = [
        (
            report.runtime.name == runtime,
            "its runtime has another name than its folder",
        ),
        (
            named_whole,
            "its runtime has another version than its folder",
        ),
        (
            !report.endpoint.starts_with("model"),
            "it is of a run on the model",
        ),
        (report.watch.is_none(), "it is of a watch, not of a run"),
        (
            !report.partial,
            "it is of a selection of cases: run without a filter",
        ),
        (
            report.tier.as_deref().is_none_or(|tier| tier != "core"),
            "it is of the tier core: run the tier extended or full",
        ),
        (
            report.faults.is_empty(),
            "there were faults outside the cases: run again",
        ),
        (
            report.totals.error == 0,
            "something is undecided: run again",
        ),
        (!report.outcomes.is_empty(), "it has no cases"),
    ];
    let broken = rules.iter().filter(|(holds, _)| !holds);
    problems.extend(broken.map(|(_, problem)| (*problem).to_owned()));
    problems.extend(hidden(&report));
}

/// Statements about the whole run that do not follow from its cases.
fn hidden(report: &Document) -> Vec<String> {
    let mut problems = Vec::new();
    let totals = &report.totals;
    for (verdict, total) in [
        (Verdict::Pass, totals.pass),
        (Verdict::Fail, totals.fail),
        (Verdict::Known, totals.known),
        (Verdict::UnexpectedPass, totals.unexpected_pass),
        (Verdict::Error, totals.error),
        (Verdict::Skip, totals.skip),
        (Verdict::Inconclusive, totals.inconclusive),
    ] {
        let of_verdict = report
            .outcomes
            .iter()
            .filter(|case| case.verdict == verdict);
        let cases = of_verdict.count();
        if cases != total {
            problems.push(format!(
                "`totals` has {total} of the verdict {verdict}, the cases {cases}"
            ));
        }
    }
    let failed = report.outcomes.iter();
    let failed = failed.filter(|case| matches!(case.verdict, Verdict::Fail | Verdict::Known));
    let mut ids = BTreeSet::new();
    for case in failed {
        ids.insert(case.id.as_str());
        if case.violations.is_empty() {
            problems.push(format!("{} failed, and nothing shows why", case.id));
        }
    }
    let profiles = report.profiles.iter();
    let listed: BTreeSet<&str> = profiles
        .flat_map(|one| &one.broken)
        .map(|id| &**id)
        .collect();
    let differ = ids.symmetric_difference(&listed);
    problems
        .extend(differ.map(|id| format!("{id} failed in the cases or in `broken`, not in both")));
    for profile in &report.profiles {
        let clean = matches!(
            profile.verdict,
            Conformance::Conformant | Conformance::Partial
        );
        if clean && !profile.broken.is_empty() {
            problems.push(format!(
                "{} is {}, and a MUST is broken",
                profile.profile, profile.verdict
            ));
        }
    }
    problems
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// A report that follows the rules: that of `fixtures` without its undecided outcomes.
fn good() -> Value {
    let fixture = include_str!("../../fixtures/reports/report.json");
    let mut report: Value = serde_json::from_str(fixture).unwrap();
    let outcomes = report["outcomes"].as_array_mut().unwrap();
    outcomes.retain(|outcome| outcome["verdict"] != "error");
    report["totals"]["error"] = json!(0);
    report["faults"] = json!([]);
    report
}

const GOOD_README: &str = "# containerd 2.1.9\n\n## How it was run\n\n```console\n\
     # cri-event-conformance --json report.json\n```\n";

/// Writes one report, and returns its problems.
fn checked(place: &str, report: &Value, readme: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join(place);
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join(REPORT), report.to_string()).unwrap();
    fs::write(own.join(README), readme).unwrap();
    check(folder.path())
}

pub(crate) fn a_report_that_follows_the_rules_is_accepted() {
    for place in ["containerd/2.1.9", "containerd/2.1.9+systemd"] {
        let problems = checked(place, &good(), GOOD_README);
        assert!(problems.is_empty(), "{problems:?}");
    }
    let mut older = good();
    older["suite"] = json!("0.0.9");
    older.as_object_mut().unwrap().remove("watch");
    let problems = checked("containerd/2.1.9", &older, GOOD_README);
    assert!(problems.is_empty(), "{problems:?}");
}

/// Each is rejected by one rule: the pointer is set to the value.
const REFUSED: &[(&str, &str, &str)] = &[
    ("/runtime/name", r#""cri-o""#, "another name"),
    ("/runtime/version", r#""2.1.8""#, "another version"),
    ("/endpoint", r#""model""#, "on the model"),
    ("/partial", "true", "a selection"),
    ("/tier", r#""core""#, "the tier core"),
    ("/faults", r#"["disk full"]"#, "faults outside"),
    (
        "/totals/fail",
        "0",
        "`totals` has 0 of the verdict fail, the cases 1",
    ),
    (
        "/outcomes/1/verdict",
        r#""pass""#,
        "the verdict pass, the cases 3",
    ),
    (
        "/outcomes/1/violations",
        "[]",
        "ORD-01 failed, and nothing shows why",
    ),
    (
        "/profiles/0/broken",
        r#"["SBX-04"]"#,
        "ORD-01 failed in the cases",
    ),
    (
        "/profiles/0/verdict",
        r#""conformant""#,
        "cache is conformant, and a MUST",
    ),
    ("/duration_s", r#""long""#, "it is no JSON report"),
    ("/format", "2", "it is of format 2"),
];

pub(crate) fn a_report_that_breaks_a_rule_is_refused() {
    for (pointer, value, problem) in REFUSED {
        let mut report = good();
        let place = report.pointer_mut(pointer);
        *place.unwrap_or_else(|| panic!("{pointer}")) = serde_json::from_str(value).unwrap();
        refused(&checked("containerd/2.1.9", &report, GOOD_README), problem);
    }
    let mut lacking = good();
    lacking.as_object_mut().unwrap().remove("watch");
    refused(&checked("containerd/2.1.9", &lacking, GOOD_README), "watch");
    let without = GOOD_README.replace("cri-event-conformance", "critest");
    refused(
        &checked("containerd/2.1.9", &good(), &without),
        "no command",
    );
    let elsewhere = GOOD_README.replace("How it was run", "Notes");
    refused(
        &checked("containerd/2.1.9", &good(), &elsewhere),
        "no command",
    );
    refused(&checked("containerd", &good(), GOOD_README), "no folder");
    refused(
        &checked("containerd/2.1.9/a", &good(), GOOD_README),
        "the files are",
    );
}

#[track_caller]
fn refused(problems: &[String], problem: &str) {
    let found = problems.iter().any(|found| found.contains(problem));
    assert!(found, "`{problem}` is not among {problems:?}");
}
