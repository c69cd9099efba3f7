//! File names: each describes the content, and is easily distinguished from others.

use std::collections::{BTreeMap, BTreeSet};

use super::{everything, finding, none, product};

/// File names without meaning.
const DRAWERS: &[&str] = &[
    "beside", "common", "details", "helpers", "misc", "mod", "more", "rest", "util", "utils",
];

/// Endings of words: two files of a folder must differ by more than these.
const ENDINGS: &[&str] = &["ings", "ing", "ers", "er", "ed", "es", "s", "e"];

#[test]
fn no_module_is_a_drawer() {
    let mut findings = Vec::new();
    for source in everything() {
        let parts = source.module().split('/');
        let drawers = parts.filter(|part| DRAWERS.contains(part));
        findings.extend(drawers.map(|part| finding(&source, part)));
    }
    none("A file has one concept, and its name.", &findings);
}

/// As `relist`, `relister` and `relists` would.
#[test]
fn names_of_files_differ_by_more_than_their_endings() {
    let mut stems: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for source in product() {
        let Some((folder, name)) = source.module().rsplit_once('/') else {
            continue;
        };
        let stem = (folder.to_owned(), stem(name).to_owned());
        stems.entry(stem).or_default().insert(name.to_owned());
    }
    let findings: Vec<String> = stems
        .iter()
        .filter(|(_, names)| names.len() > 1)
        .map(|((folder, _), names)| format!("{folder}: {names:?}"))
        .collect();
    none("Names of files are easily distinguished.", &findings);
}

/// So that the file of a rule is found by the id in a report.
#[test]
fn a_file_of_invariants_begins_with_their_ids() {
    let mut findings = Vec::new();
    let mut invariants = 0;
    for source in product() {
        if !source.path.starts_with("src/oracle/rules/") {
            continue;
        }
        let head = source
            .text
            .lines()
            .take_while(|line| line.starts_with("//!"));
        let head: String = head.collect();
        for row in source.text.split("    id: \"").skip(1) {
            invariants += 1;
            let (id, _) = row.split_once('"').unwrap_or_default();
            if !head.contains(id) {
                findings.push(finding(&source, id));
            }
        }
    }
    assert!(invariants > 20, "they are found: {invariants}");
    none("A file of invariants begins with their ids.", &findings);
}

fn stem(name: &str) -> &str {
    ENDINGS
        .iter()
        .find_map(|ending| name.strip_suffix(ending).filter(|stem| stem.len() > 2))
        .unwrap_or(name)
}
