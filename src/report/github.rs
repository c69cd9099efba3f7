//! A run as GitHub shows it: on one page of Markdown, in a pull request or a job's summary, and as
//! annotations, commands that a workflow's step prints. See
//! <https://docs.github.com/actions/reference/workflow-commands-for-github-actions>.

use std::collections::BTreeSet;
use std::iter;

use super::causes::{Group, by_cause, ids};
use super::markdown::Markdown;
use super::printable::printable;
use super::rate::{Rate, by_id};
use super::standings::{is_tried, quotable, words};
use super::summary::{counts, known_of_the_runtime, title};
use super::text::{cause, whole_cause, word};
use crate::outcome::{Guarantee, Outcome, RunReport, Verdict};

/// An error for each case and invariant that failed unexpectedly, or that passed and is listed as
/// failing; one line each. Otherwise one with the reason for exit code 3, if any.
pub fn annotations(report: &RunReport) -> String {
    let new = [Verdict::Fail, Verdict::UnexpectedPass];
    let new = new.map(|verdict| with_verdict(report, verdict));
    let lines = new.into_iter().flatten().map(|(outcome, rate)| {
        let title = format!("{} {}", outcome.id, outcome.name);
        let often = often(rate);
        let kind = outcome.violations.first();
        let kind = kind.map_or_else(String::new, |first| format!("{}: ", first.mismatch.kind));
        let message = format!("{kind}{}{often}", cause(outcome));
        format!("::error title={}::{}\n", property(&title), data(&message))
    });
    let undecided = report.undecided();
    let undecided = undecided.map(|reason| format!("::error title=exit code 3::{reason}\n"));
    lines.chain(undecided).collect()
}

/// Output in which GitHub interprets no line as a command, independent of a runtime's text; `token`
/// must be unpredictable.
pub fn without_commands(output: &str, token: &str) -> String {
    [&stop(token), output, &resume(token)].concat()
}

/// The line that disables commands.
pub fn stop(token: &str) -> String {
    format!("::stop-commands::{token}\n")
}

/// The line that enables them again.
pub fn resume(token: &str) -> String {
    format!("::{token}::\n")
}

/// Escapes the message of a command.
fn data(text: &str) -> String {
    let text = printable(text);
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// The run on one page: the verdict per profile, the failures, the undecided cases, and collapsed
/// the known failures, skipped and inconclusive cases.
pub fn page(report: &RunReport) -> String {
    let mut page = Markdown::default();
    page.heading(3, &title(report));
    page.paragraph(&counts(report));
    if let Some(reason) = report.undecided() {
        page.paragraph(&format!("Exit code 3: {reason}."));
    }
    if let Some(known) = known_of_the_runtime(report) {
        page.items([known]);
    }
    standings(&mut page, report);
    for verdict in [Verdict::Fail, Verdict::UnexpectedPass, Verdict::Error] {
        let rows = rows(report, verdict);
        if !rows.is_empty() {
            page.heading(4, &format!("{} {}", rows.len(), word(verdict)));
            if rows.len() > ROWS {
                let these = report.outcomes.iter().filter(|it| it.verdict == verdict);
                page.items(by_cause(these).iter().map(in_one_line));
                page.folded("Each of them", |page| page.table(&HEADER, rows));
            } else {
                page.table(&HEADER, rows);
            }
        }
    }
    for verdict in [Verdict::Known, Verdict::Inconclusive, Verdict::Skip] {
        let rows = rows(report, verdict);
        if !rows.is_empty() {
            let title = format!("{} {}", rows.len(), word(verdict));
            page.folded(&title, |page| page.table(&HEADER, rows));
        }
    }
    let remarks = report.faults.iter().chain(&report.notes);
    page.items(remarks);
    page.into_text()
}

/// `missing-stopped: 84: CMP-01 ORD-01 …` for failures with one cause.
fn in_one_line(group: &Group<'_>) -> String {
    let Group { kind, outcomes } = group;
    let kind = kind.map_or_else(|| cause(outcomes[0]), |kind| kind.to_string());
    format!("{kind}: {}: {}", group.ids().len(), ids(outcomes))
}

/// The maximum number of rows that are not collapsed.
const ROWS: usize = 10;

/// The columns of all tables of outcomes.
const HEADER: [&str; 3] = ["case", "finding", "reason"];

fn standings(page: &mut Markdown, report: &RunReport) {
    let header = [
        "profile",
        "verdict",
        "MUST kept",
        "broken",
        "known",
        "open",
        "SHOULD kept",
        "broken",
    ];
    let rows = report.standings().into_iter().map(|standing| {
        let verdict = words(&standing, report);
        let words = [standing.profile.to_string(), verdict];
        words
            .into_iter()
            .chain(standing.counts().map(|it| it.to_string()))
            .collect()
    });
    page.table(&header, rows);
    guarantees(page, report);
}

/// A line to quote for each profile, and folded a table of the guarantees.
fn guarantees(page: &mut Markdown, report: &RunReport) {
    page.items(quotable(report));
    let mut standings = report.standings();
    standings.retain(is_tried);
    let profiles = standings.iter().map(|it| it.profile.to_string());
    let header: Vec<String> = iter::once("guarantee".to_owned()).chain(profiles).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let rows = Guarantee::ALL.map(|guarantee| {
        let kept = standings
            .iter()
            .map(|it| it.guarantees[&guarantee].to_string());
        iter::once(guarantee.to_string()).chain(kept).collect()
    });
    page.folded("Guarantees", |page| page.table(&header, rows.to_vec()));
}

/// A row for each case or invariant with this verdict, with the first of its reasons.
fn rows(report: &RunReport, verdict: Verdict) -> Vec<Vec<String>> {
    with_verdict(report, verdict)
        .into_iter()
        .map(|(outcome, rate)| {
            let kinds = outcome.violations.first();
            let kind = kinds.map_or_else(String::new, |first| first.mismatch.kind.to_string());
            let name = format!("{} {}{}", outcome.id, outcome.name, often(rate));
            vec![name, kind, reason(outcome)]
        })
        .collect()
}

/// The first outcome with this verdict of each case and invariant, with its failure rate.
fn with_verdict(report: &RunReport, verdict: Verdict) -> Vec<(&Outcome, Rate)> {
    let tested = by_id(&report.outcomes);
    let mut seen = BTreeSet::new();
    let these = report.outcomes.iter();
    let these = these.filter(|it| it.verdict == verdict && seen.insert(&it.id));
    these.map(|it| (it, tested[&*it.id].rate)).collect()
}

/// `, failed 2 of 3 times` of a repeated case.
fn often(rate: Rate) -> String {
    if rate.is_of_several() {
        format!(", failed {rate} times")
    } else {
        String::new()
    }
}

/// The reason for its verdict, and whether that is known for the runtime.
fn reason(outcome: &Outcome) -> String {
    match &outcome.hint {
        Some(hint) => format!("{}\nknown of this runtime: {hint}", whole_cause(outcome)),
        None => whole_cause(outcome),
    }
}

#[cfg(test)]
mod tests {

    use super::{page, *};
    use crate::golden::assert_file;
    use crate::outcome::{Outcome, Verdict};
    use crate::report::fixture::{AWKWARD, failed, fixture, outcome, violation};

    fn annotated(outcomes: Vec<Outcome>) -> String {
        annotations(&RunReport {
            outcomes,
            ..fixture()
        })
    }

    #[test]
    fn each_new_failure_is_one_annotation() {
        let all = annotations(&fixture());
        let titles: Vec<_> = all.lines().map(|line| line.split("::").nth(1)).collect();
        assert_eq!(
            titles,
            [
                Some("error title=ORD-01 order%3A%3Afour-events-in-order"),
                Some("error title=ORD-02 order%3A%3Astarted-before-stopped"),
            ]
        );
        let old = Verdict::ALL.into_iter();
        let old = old.filter(|it| !matches!(it, Verdict::Fail | Verdict::UnexpectedPass));
        let old = old.map(|verdict| outcome("ORD-01", "order::one", verdict));
        let undecided = "::error title=exit code 3::not all is decided\n";
        assert_eq!(annotated(old.collect()), undecided);
    }

    #[test]
    fn a_repeated_failure_is_one_annotation() {
        let passed = outcome("ORD-01", "order::four-events-in-order", Verdict::Pass);
        let text = annotated(vec![failed(), passed, failed()]);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.ends_with(", failed 2 of 3 times\n"), "{text}");
    }

    #[test]
    fn nothing_of_a_runtime_ends_a_property_or_a_line() {
        for text in [AWKWARD, "50%, a:b,c\r\n::error title=x::y", "%0A%3A"] {
            let mut outcome = failed();
            outcome.name = text.into();
            outcome.violations = vec![violation(text)];
            let all = annotated(vec![outcome]);
            assert_eq!(all.lines().count(), 1, "{all}");
            let (head, message) = all["::".len()..].split_once("::").unwrap();
            let title = head.strip_prefix("error title=").unwrap();
            assert!(!title.contains([',', ':', '\u{1b}']), "{all}");
            let escapes = message.matches('%').count();
            assert_eq!(message.matches("%25").count(), escapes, "{all}");
        }
    }

    #[test]
    fn a_percent_sign_arrives_as_one() {
        assert_eq!(data("100%\r\n"), r"100%25\r\n");
        assert_eq!(property("a::b, 5%"), "a%3A%3Ab%2C 5%25");
    }

    #[test]
    fn the_page_is_as_it_was() {
        assert_file("fixtures/reports/page.md", &page(&fixture()));
    }

    #[test]
    fn many_failures_are_listed_by_cause() {
        let mut report = fixture();
        let failed = |nth| Outcome {
            id: format!("ORD-{nth:02}").into(),
            ..failed()
        };
        report.outcomes = (0..11).map(failed).collect();
        let causes = "#### 11 failed\n\n* refuted-wait: 11: ORD-00 ORD-01 ";
        assert!(page(&report).contains(causes), "{}", page(&report));
        report.outcomes.pop();
        assert!(!page(&report).contains("\n* refuted-wait"));
    }

    #[test]
    fn a_repeated_case_has_one_row() {
        let mut report = fixture();
        let passed = outcome("ORD-01", "order::four-events-in-order", Verdict::Pass);
        let all = [failed(), passed.clone(), failed(), passed];
        let numbered = (1..).zip(all).map(|(nth, outcome)| Outcome {
            repetition: Some(nth),
            ..outcome
        });
        report.outcomes = numbered.collect();
        let page = page(&report);
        assert_eq!(page.matches("ORD-01 order::").count(), 1, "{page}");
        assert!(
            page.contains(", failed 2 of 4 times | refuted-wait |"),
            "{page}"
        );
        assert!(page.contains("#### 1 failed\n"), "{page}");
    }
}
