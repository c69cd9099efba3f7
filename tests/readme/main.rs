//! What the README tells of the suite in numbers and tables: what real runtimes fail, which is made
//! of `ci/expectations`, and how the suite proves itself.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use cri_event_conformance::case::load;
use cri_event_conformance::catalogue::Catalogue;
use cri_event_conformance::history::ExpectationFile;
use cri_event_conformance::model::{VARIATIONS, defects};
use cri_event_conformance::verdicts::{Known, KnownFailure};
use expect_test::expect_file;

const BEGIN: &str = "<!-- made of ci/expectations; UPDATE_EXPECT=1 cargo test --test readme -->\n";
const END: &str = "<!-- the table ends -->\n";

/// The columns, and the files that they are made of.
const RUNTIMES: [(&str, [&str; 2]); 2] = [
    ("containerd 1.7", ["containerd-1.7", "containerd-1.7-crun"]),
    ("containerd 2.1", ["containerd-2.1", "containerd-2.1-crun"]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn known(name: &str) -> Known {
    let path = format!("ci/expectations/{name}.yaml");
    let text = fs::read_to_string(root().join(&path)).expect("the file is there");
    Known::parse(&ExpectationFile { path, text }).expect("it is right")
}

/// What a cell says of a runtime with runc and with crun.
fn cell(runc: Option<&KnownFailure>, crun: Option<&KnownFailure>) -> String {
    let word = |failure: &KnownFailure| match failure.rate {
        Some(rate) => format!("in {rate}"),
        None if failure.sometimes => "sometimes".to_owned(),
        None => "always".to_owned(),
    };
    match (runc.map(word), crun.map(word)) {
        (None, None) => "–".to_owned(),
        (Some(runc), Some(crun)) if runc == crun => runc,
        (Some(runc), Some(crun)) => format!("{runc}; crun: {crun}"),
        (Some(runc), None) => format!("{runc}, runc"),
        (None, Some(crun)) => format!("{crun}, crun"),
    }
}

fn table() -> String {
    let cases = load::embedded().expect("the cases are valid");
    let requirements = load::requirements(None).expect("the requirements are valid");
    let suffers: BTreeMap<&str, &str> = requirements
        .iter()
        .map(|requirement| (requirement.id.as_str(), requirement.breaks.as_str()))
        .collect();
    let files = RUNTIMES.map(|(_, names)| names.map(known));
    let mut text = String::from("| fails |");
    for (runtime, _) in RUNTIMES {
        let _ = write!(text, " {runtime} |");
    }
    text.push_str(" what a kubelet suffers | told at |\n|---|---|---|---|---|\n");
    let catalogue = Catalogue::new(cases, requirements.clone());
    for checker in catalogue.checkers() {
        let of = |known: &Known| {
            let mut entries = known.known.iter();
            entries.find(|entry| entry.case == checker.id).cloned()
        };
        let found = files.each_ref().map(|files| files.each_ref().map(of));
        let Some(link) = found
            .iter()
            .flatten()
            .flatten()
            .map(|it| &it.link)
            .next_back()
        else {
            continue;
        };
        // The most particular of them stands last.
        let mut breaks = checker.requirements.iter().rev();
        let breaks = breaks.find_map(|id| suffers.get(id));
        let breaks = breaks.unwrap_or(&checker.title);
        let (id, title) = (checker.id, checker.title);
        let short = link.rsplit('/').next().unwrap_or(link);
        let cells = found
            .iter()
            .map(|[runc, crun]| cell(runc.as_ref(), crun.as_ref()));
        let cells = cells.collect::<Vec<_>>().join(" | ");
        let _ = writeln!(
            text,
            "| {id}: {title} | {cells} | {breaks} | [{short}]({link}) |"
        );
    }
    text
}

#[test]
fn the_table_of_the_readme_is_that_of_the_expectations() {
    let readme = fs::read_to_string(root().join("README.md")).expect("it is there");
    let (before, rest) = readme.split_once(BEGIN).expect("it has the table");
    let (_, after) = rest.split_once(END).expect("the table has an end");
    let made = format!("{before}{BEGIN}{}{END}{after}", table());
    expect_file!["../../README.md"].assert_eq(&made);
}

#[test]
fn every_listed_failure_stands_in_the_table() {
    let table = table();
    let mut listed = 0;
    for known in RUNTIMES.iter().flat_map(|(_, names)| names.map(known)) {
        for entry in known.known {
            let row = table
                .lines()
                .find(|line| line.starts_with(&format!("| {}: ", entry.case)));
            assert!(
                row.is_some_and(|row| row.matches('|').count() == 6),
                "{}",
                entry.case
            );
            listed += 1;
        }
    }
    assert!(listed > 10, "{listed}");
}

#[test]
fn cells_tell_runc_from_crun() {
    let entry = |keys: &str| {
        let text = format!("runtime: a\nknown: [{{case: X, reason: r, link: l{keys}}}]");
        let path = String::new();
        let known = Known::parse(&ExpectationFile { path, text }).expect("it is right");
        known.known[0].clone()
    };
    let (always, rate) = (entry(""), entry(", rate: 2/20"));
    let sometimes = entry(", sometimes: true");
    assert_eq!(cell(None, None), "–");
    assert_eq!(cell(Some(&always), Some(&always)), "always");
    assert_eq!(cell(Some(&always), None), "always, runc");
    assert_eq!(cell(None, Some(&rate)), "in 2 of 20 runs, crun");
    assert_eq!(
        cell(Some(&always), Some(&sometimes)),
        "always; crun: sometimes"
    );
}

#[test]
fn the_proof_is_as_large_as_it_says() {
    let readme = fs::read_to_string(root().join("README.md")).expect("there is one");
    let (defects, cases) = (defects().count(), load::embedded().expect("valid").len());
    for sentence in [
        format!("gives the model each of {defects} defects"),
        format!("{defects} defects, {defects} noticed; {cases} cases, {cases} can fail; 0 false"),
        format!("0 false alarms in {} clean runs", 2 * VARIATIONS.len()),
    ] {
        assert!(readme.contains(&sentence), "README.md: {sentence}");
    }
}
