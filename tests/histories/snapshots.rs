//! INV-27 requires an explanation of each snapshot, and INV-19 that it is not ahead. They cover the
//! findings of the rules about single kinds of wrong snapshots.

use std::fs;

use crate::folder;

/// Rules about snapshots. INV-23 is about the times of events.
const NARROWER: [&str; 2] = ["INV-09", "INV-15"];

/// Violations that INV-27 does not cover: events that report changes which had not happened, and a
/// status that is there twice.
const LEFT: &[&str] = &[
    "SNP-01  set own-status=twice STOPPED of exits ",
    "STP-01  insert DELETED of c behind STOPPED ",
];

#[test]
fn the_rule_about_all_snapshots_finds_what_narrower_ones_find() {
    let table = fs::read_to_string(folder().join("mutations.txt")).expect("the table is there");
    let is_found = |line: &&str| NARROWER.iter().any(|rule| line.contains(rule));
    let (by_both, by_others): (Vec<&str>, Vec<&str>) = table
        .lines()
        .filter(is_found)
        .partition(|line| line.contains("INV-27") || line.contains("INV-19"));
    assert!(by_both.len() > LEFT.len(), "{by_both:?}");
    let is_left = |line: &&&str| LEFT.iter().any(|known| line.starts_with(known));
    let missed: Vec<&&str> = by_others.iter().filter(|line| !is_left(line)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    assert_eq!(
        by_others.len(),
        LEFT.len(),
        "one of those left is found by now"
    );
}
