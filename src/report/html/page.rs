//! A run on one page.

use std::collections::BTreeSet;

use maud::{Markup, PreEscaped, html};

use super::super::printable::cut;
use super::cases::{self, Tested};
use super::failure::{Extent, failure};
use super::{about, grid, histogram, requirements, shell};
use crate::case::Requirement;
use crate::outcome::{Profile, RunReport};

/// The maximum size of all failures in bytes; the others appear only in the table.
const FAILURES: usize = 700_000;

const CASES: usize = 600;

/// The maximum length of a remark in characters, and number of remarks of a kind.
const REMARK: usize = 600;
const REMARKS: usize = 50;

/// A run: its verdicts, its cases, its failures with their evidence, its latencies, and the
/// requirements it covers.
pub fn page(report: &RunReport, requirements: &[Requirement]) -> String {
    let mut tested = cases::tested(report);
    let left_out = tested.len().saturating_sub(CASES);
    tested.truncate(CASES);
    let profiles = concerned(&tested);
    let body = html! {
        a .jump href="#cases" { "To the cases" }
        header { (about::head(report)) (contents(report)) }
        main {
            section #profiles {
                h2 { "Verdict per profile" }
                (about::standings(report))
                (remarks(report))
            }
            section #grid {
                h2 { "Cases by profile" }
                (grid::grid(&tested, &profiles))
            }
            section #failures {
                h2 { "Failures" }
                (failures(report, &tested, requirements))
            }
            section #cases {
                h2 { "Cases and invariants" }
                @if left_out > 0 { p { (left_out) " more, which the JSON report has." } }
                (cases::table(&tested, &profiles))
            }
            @if !report.latencies.is_empty() {
                section #latencies {
                    h2 { "Latencies" }
                    (histogram::latencies(report))
                }
            }
            section #requirements {
                h2 { "Requirements" }
                (requirements::covered(&tested, requirements))
            }
        }
        footer { p { "Made by cri-event-conformance " (cut(&report.info.suite, REMARK)) "." } }
    };
    shell::document(&about::title(report), &body)
}

/// The profiles with any requirement here.
fn concerned(tested: &[Tested<'_>]) -> Vec<Profile> {
    let concerns = |profile: &Profile| {
        let mut levels = tested.iter().map(|it| it.worst.levels);
        levels.any(|levels| levels.of(*profile).is_some())
    };
    Profile::ALL.into_iter().filter(concerns).collect()
}

fn contents(report: &RunReport) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                li { a href="#profiles" { "Profiles" } }
                li { a href="#grid" { "Grid" } }
                li { a href="#failures" { "Failures" } }
                li { a href="#cases" { "Cases" } }
                @if !report.latencies.is_empty() { li { a href="#latencies" { "Latencies" } } }
                li { a href="#requirements" { "Requirements" } }
            }
        }
    }
}

fn remarks(report: &RunReport) -> Markup {
    html! {
        @if let Some(reason) = report.undecided() { p { "Exit code 3: " (reason) "." } }
        @for (title, remarks) in [("Faults", &report.faults), ("Remarks", &report.notes)] {
            @if !remarks.is_empty() {
                h3 { (title) }
                ul {
                    @for remark in remarks.iter().take(REMARKS) { li { (cut(remark, REMARK)) } }
                }
            }
        }
    }
}

/// All outcomes other than plain passes, as far as there is room, failures first.
fn failures(report: &RunReport, tested: &[Tested<'_>], requirements: &[Requirement]) -> Markup {
    let mut shown: Vec<&Tested<'_>> = tested.iter().filter(|it| it.has_details()).collect();
    shown.sort_by_key(|it| std::cmp::Reverse(cases::rank(it.worst.verdict)));
    let extent = Extent::of(shown.len());
    let mut room = FAILURES;
    let mut omitted = BTreeSet::new();
    let mut text = String::new();
    for tested in &shown {
        let article = failure(report, tested, requirements, extent).into_string();
        if article.len() <= room {
            room -= article.len();
            text.push_str(&article);
        } else {
            omitted.insert(&tested.anchor);
        }
    }
    html! {
        @if shown.is_empty() { p { "There are none." } }
        (PreEscaped(text))
        @if !omitted.is_empty() {
            p { "No room on this page, see the JSON report: " }
            ul { @for anchor in omitted { li id=(anchor) { (anchor) } } }
        }
    }
}
