//! A failure in full: the expected and the actual state, the evidence as a diagram and as text, the
//! effect, the source of the requirement, and how to run it again.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::super::calendar::span;
use super::super::evidence::Evidence;
use super::super::printable::cut;
use super::super::text::judgement;
use super::cases::Tested;
use super::diagram::{Diagram, draw};
use super::sources::linked;
use super::verdict::{badge, level};
use crate::case::Requirement;
use crate::outcome::{Outcome, RunReport, Verdict, Violation};

/// The maximum length of a text, in characters.
const TEXT: usize = 2_000;

/// The maximum number of cases in a command.
const NAMED: usize = 20;

/// The displayed extent of a failure; it decreases with the number of failures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Violations in full.
    pub(super) violations: usize,
    /// Violations with a diagram.
    pub(super) diagrams: usize,
    /// Entries in a diagram.
    pub(super) rows: usize,
}

impl Extent {
    /// The extent that a page has room for with this number of failures.
    pub(super) fn of(failures: usize) -> Self {
        /// The maximum number of entries in all diagrams of a page.
        const ENTRIES: usize = 1_300;
        let (violations, diagrams) = match failures {
            0..=20 => (5, 3),
            21..=60 => (3, 1),
            61..=110 => (2, 1),
            _ => (1, 1),
        };
        let rows = ENTRIES / (failures.max(1) * diagrams);
        Self {
            violations,
            diagrams,
            rows: rows.clamp(7, 40),
        }
    }
}

/// All details of a case that failed, is known to fail, could not be decided or breaks a SHOULD.
pub(super) fn failure(
    report: &RunReport,
    tested: &Tested<'_>,
    requirements: &[Requirement],
    extent: Extent,
) -> Markup {
    let outcome = tested.worst;
    let evidence = Evidence::of(outcome);
    let mut said = BTreeSet::new();
    let mut broken: Vec<&Violation> = outcome.violations.iter().chain(&outcome.advice).collect();
    broken.retain(|it| said.insert((&it.rule, &it.subject, &it.mismatch)));
    let count = broken.len();
    html! {
        article .failure id=(tested.anchor) {
            h3 {
                (badge(outcome.verdict)) " "
                (cut(&outcome.id, TEXT)) " "
                code { (cut(&outcome.name, TEXT)) }
            }
            p .claim { (cut(&outcome.title, TEXT)) }
            (remarks(outcome, tested))
            @for (nth, violation) in broken.into_iter().take(extent.violations).enumerate() {
                @let rows = (nth < extent.diagrams).then_some(extent.rows);
                (broken_rule(outcome, &evidence, violation, rows))
            }
            @if count > extent.violations {
                p { (count - extent.violations) " more, which the JSON report shows." }
            }
            @if outcome.verdict == Verdict::Error && !outcome.evidence.is_empty() {
                (lines("What happened last", evidence.last()))
            }
            (context(report, outcome, requirements))
        }
    }
}

/// The reason, the failure rate, and known facts.
fn remarks(outcome: &Outcome, tested: &Tested<'_>) -> Markup {
    html! {
        @if let Some(reason) = &outcome.reason {
            p { (judgement(outcome.verdict)) ": " (cut(reason, TEXT)) }
        }
        @if tested.rate.is_of_several() { p { "Failed " (tested.rate) " times." } }
        @if let Some(hint) = &outcome.hint {
            p .hint {
                "Known of this runtime: " (linked(hint)) "; "
                code { "--expectations builtin" } " accepts it."
            }
        }
        @if !outcome.broken_in.is_empty() {
            p { "Broken in " (cut(&outcome.broken_in.join(" "), TEXT)) }
        }
    }
}

fn broken_rule(
    outcome: &Outcome,
    evidence: &Evidence<'_>,
    violation: &Violation,
    rows: Option<usize>,
) -> Markup {
    let (expected, actual) = (
        cut(&violation.expected(), TEXT),
        cut(&violation.actual(), TEXT),
    );
    let rule = cut(&violation.rule, TEXT);
    let description = format!(
        "Sequence diagram of {rule}: expected {expected}, but {actual}. The timeline below has the \
         same as text."
    );
    let diagram = rows.and_then(|rows| Diagram::new(evidence, violation, rows));
    html! {
        section .violation {
            h4 {
                (rule) " " (level(violation.level)) " "
                code { (violation.mismatch.kind) }
            }
            @if *violation.sentence != *outcome.title {
                p { (cut(&violation.sentence, TEXT)) }
            }
            p .subject { "Subject: " (cut(&violation.subject, TEXT)) }
            dl .versus {
                div { dt { "Expected" } dd { (expected) } }
                div .actual { dt { "Actual" } dd { (actual) } }
            }
            @if let Some(diagram) = &diagram {
                div .scroll tabindex="0" role="region" aria-label={ "Diagram of " (rule) } {
                    (draw(diagram, &cut(&description, TEXT)))
                }
            }
            (lines("Timeline as text", evidence.lines(violation).into_iter()))
        }
    }
}

fn lines(title: &str, lines: impl Iterator<Item = String>) -> Markup {
    let lines: Vec<String> = lines.collect();
    html! {
        @if !lines.is_empty() {
            details {
                summary { (title) }
                pre tabindex="0" { (lines.join("\n")) }
            }
        }
    }
}

/// The effect, the source of the requirement, and how to run it again.
fn context(report: &RunReport, outcome: &Outcome, requirements: &[Requirement]) -> Markup {
    let checked = requirements.iter();
    let checked = checked.filter(|it| outcome.requirements.contains(&it.id));
    html! {
        dl .context {
            @if !outcome.why.is_empty() {
                div { dt { "Why it matters" } dd { (cut(&outcome.why, TEXT)) } }
            }
            @if !outcome.sources.is_empty() {
                div {
                    dt { "Sources" }
                    dd { ul { @for source in &*outcome.sources { li { (linked(source)) } } } }
                }
            }
            @if !outcome.requirements.is_empty() {
                div {
                    dt { "Requirements" }
                    dd {
                        ul {
                            @for requirement in checked {
                                li {
                                    a href={ "#requirement-" (requirement.id) } { (requirement.id) }
                                    " " (cut(&requirement.sentence, TEXT))
                                }
                            }
                        }
                    }
                }
            }
            @if !outcome.leftovers.is_empty() {
                div {
                    dt { "Left over" }
                    dd { ul { @for left in &outcome.leftovers { li { (cut(left, TEXT)) } } } }
                }
            }
            div { dt { "Took" } dd { (span(outcome.duration)) } }
            @if let Some(command) = command(report, outcome) {
                div { dt { "Run it again" } dd { code .command { (cut(&command, TEXT)) } } }
            }
        }
    }
}

/// The command that runs it again; `None` for a watch, which does not own the pods.
fn command(report: &RunReport, outcome: &Outcome) -> Option<String> {
    if report.watch.is_some() {
        return None;
    }
    let ids: Vec<String> = if outcome.is_invariant() {
        let cases = outcome.broken_in.iter();
        cases.take(NAMED).map(|id| quoted(id)).collect()
    } else {
        vec![quoted(&outcome.id)]
    };
    let endpoint = quoted(&report.info.endpoint);
    let command = format!("cri-event-conformance --runtime-endpoint {endpoint}");
    Some([vec![command], ids].concat().join(" "))
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
