//! A failure in full: the expected and the actual state, the evidence as a diagram and as text, the
//! effect, the source of the requirement with its links, and how to run it again.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::cases::{Tested, badge};
use super::diagram::{Diagram, draw};
use crate::case::Requirement;
use crate::escape::printable;
use crate::history::MODEL;
use crate::outcome::{Outcome, RunReport, Verdict, Violation};
use crate::report::Document;
use crate::report::evidence::Evidence;
use crate::report::printable::{cut, short_ids, span};
use crate::report::text::judgement;

/// The maximum length of a text, in characters.
const TEXT: usize = 2_000;

/// The maximum number of cases in a command.
const NAMED: usize = 20;

/// The maximum length of a source, in characters.
const SOURCE: usize = 2_000;

/// Repositories that a source names without their owners.
const OWNERS: [(&str, &str); 3] = [
    ("kubernetes", "kubernetes"),
    ("containerd", "containerd"),
    ("cri-o", "cri-o"),
];

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
        article .failure id=(tested.anchor()) {
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
                @for page in &outcome.pages {
                    " " code { "explain " (cut(page, TEXT)) } " has more."
                }
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
                (rule) " " (violation.level.keyword()) " "
                "broke " (outcome.breaks(violation)) " "
                code { (violation.mismatch.kind) }
            }
            @if *violation.sentence != *outcome.title {
                p { (cut(&violation.sentence, TEXT)) }
            }
            p .subject { "Subject: " (cut(&short_ids(&violation.subject), TEXT)) }
            (versus(&expected, &actual))
            @if let Some(diagram) = &diagram {
                div .scroll tabindex="0" role="region" aria-label={ "Diagram of " (rule) } {
                    (draw(diagram, &cut(&description, TEXT)))
                }
            }
            (lines("Timeline as text", evidence.lines(violation).into_iter()))
        }
    }
}

pub(super) fn versus(expected: &str, actual: &str) -> Markup {
    html! {
        dl .versus {
            div { dt { "Expected" } dd { (expected) } }
            div .actual { dt { "Actual" } dd { (actual) } }
        }
    }
}

pub(super) fn lines(title: &str, lines: impl Iterator<Item = String>) -> Markup {
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

/// The command that runs it again; `None` for a watch, which does not own the pods, and for the
/// model, whose report does not name its defects.
fn command(report: &RunReport, outcome: &Outcome) -> Option<String> {
    let info = &report.info;
    if report.watch.is_some() || info.endpoint == MODEL {
        return None;
    }
    let (endpoint, injected) = match info.endpoint.split_once(Document::INJECTS) {
        Some((endpoint, defects)) => (endpoint, format!(" --inject {}", quoted(defects))),
        None => (&*info.endpoint, String::new()),
    };
    let ids: Vec<String> = if outcome.is_invariant() {
        let cases = outcome.broken_in.iter();
        cases.take(NAMED).map(|id| quoted(id)).collect()
    } else {
        vec![quoted(&outcome.id)]
    };
    // The ids of a user's own cases have four letters or more.
    let is_own = |id: &String| id.split_once('-').is_some_and(|(area, _)| area.len() > 3);
    let cases = if ids.iter().any(is_own) {
        " --cases FILE"
    } else {
        ""
    };
    let endpoint = quoted(endpoint);
    let command = format!("cri-event-conformance --runtime-endpoint {endpoint}{injected}{cases}");
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

/// A source, in which addresses, issues such as `cri-o/cri-o#7164`, KEPs and files of Kubernetes
/// are links.
pub(super) fn linked(text: &str) -> Markup {
    let text = cut(text, SOURCE);
    let parts: Vec<&str> = text.split_inclusive(' ').collect();
    let before = [""].into_iter().chain(parts.iter().copied());
    html! {
        @for (part, before) in parts.iter().zip(before) { (word(part, before)) }
    }
}

/// A word with the punctuation and the space around it.
fn word(part: &str, before: &str) -> Markup {
    let is_around = |letter: char| "()[],;:. \"'".contains(letter);
    let name = part.trim_matches(is_around);
    let Some(address) = address(name, before.trim()) else {
        return html! { (part) };
    };
    let (start, end) = part.split_once(name).unwrap_or_default();
    html! { (start) a href=(address) { (name) } (end) }
}

/// The address of a source in a word; `None` if it has none.
fn address(word: &str, before: &str) -> Option<String> {
    if word.starts_with("https://") {
        return Some(printable(word).into_owned());
    }
    if let Some(number) = word.strip_prefix("KEP-").filter(|it| is_number(it)) {
        return Some(format!(
            "https://github.com/kubernetes/enhancements/issues/{number}"
        ));
    }
    if before == "kubernetes" && word.starts_with("pkg/") && is_path(word) {
        return Some(format!(
            "https://github.com/kubernetes/kubernetes/blob/master/{word}"
        ));
    }
    let (repository, number) = word.split_once('#')?;
    let (owner, name) = match repository.split_once('/') {
        Some(both) => both,
        None => *OWNERS.iter().find(|(_, name)| *name == repository)?,
    };
    let is_issue = is_number(number) && is_name(owner) && is_name(name);
    is_issue.then(|| format!("https://github.com/{owner}/{name}/issues/{number}"))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    !text.is_empty() && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn is_path(text: &str) -> bool {
    text.strip_suffix(".go").is_some() && text.split('/').all(|part| is_name(part) && part != "..")
}

#[cfg(test)]
mod tests {
    use super::linked;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(linked(text).into_string(), expected);
    }

    #[test]
    fn what_is_on_the_web_is_a_link() {
        check(
            "cri-o/cri-o#9738 (twice)",
            "<a href=\"https://github.com/cri-o/cri-o/issues/9738\">cri-o/cri-o#9738</a> (twice)",
        );
        check(
            "as kubernetes#114371;",
            "as <a href=\"https://github.com/kubernetes/kubernetes/issues/114371\">\
             kubernetes#114371</a>;",
        );
        check(
            "KEP-3386, Monitoring",
            "<a href=\"https://github.com/kubernetes/enhancements/issues/3386\">KEP-3386</a>, \
             Monitoring",
        );
        check(
            "kubernetes pkg/kubelet/pleg/evented.go, watchEventsChannel",
            "kubernetes <a href=\"https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet\
             /pleg/evented.go\">pkg/kubelet/pleg/evented.go</a>, watchEventsChannel",
        );
        check(
            "(https://example.com/a#L1-L2)",
            "(<a href=\"https://example.com/a#L1-L2\">https://example.com/a#L1-L2</a>)",
        );
    }

    #[test]
    fn all_else_is_text() {
        for text in [
            "c#4",
            "CRI api.proto, StopContainer",
            "http://example.com",
            "javascript:alert(1)",
            "KEP-x",
            "a/b#1x",
            "kubernetes pkg/../x.go",
        ] {
            check(text, text);
        }
        check("<b>https://x", "&lt;b&gt;https://x");
        check(
            "https://x\"onclick=\"a",
            "<a href=\"https://x&quot;onclick=&quot;a\">https://x&quot;onclick=&quot;a</a>",
        );
    }
}
