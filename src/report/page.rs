//! A run on one page of Markdown, as a pull request or a job's summary shows it.

use super::markdown::Markdown;
use super::rate::Rate;
use super::standings::words;
use super::summary::counts;
use super::text::{cause, word};
use crate::outcome::{Outcome, RunReport, Verdict};

/// The run on one page: the verdict per profile, the failures, the undecided cases, and collapsed
/// the known failures, skipped and inconclusive cases.
pub fn page(report: &RunReport) -> String {
    let runtime = &report.info.runtime;
    let mut page = Markdown::default();
    let (name, version) = (&runtime.runtime_name, &runtime.runtime_version);
    page.heading(3, &format!("Container events of {name} {version}"));
    page.paragraph(&counts(report));
    if let Some(reason) = report.undecided() {
        page.paragraph(&format!("Exit code 3: {reason}."));
    }
    standings(&mut page, report);
    for verdict in [Verdict::Fail, Verdict::UnexpectedPass, Verdict::Error] {
        let rows = rows(report, verdict);
        if !rows.is_empty() {
            page.heading(4, &format!("{} {}", rows.len(), word(verdict)));
            page.table(&HEADER, rows);
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
        let verdict = words(&standing, report.partial);
        let words = [standing.profile.to_string(), verdict];
        words
            .into_iter()
            .chain(standing.counts().map(|it| it.to_string()))
            .collect()
    });
    page.table(&header, rows);
}

/// A row for each case or invariant with this verdict, with the first of its reasons.
fn rows(report: &RunReport, verdict: Verdict) -> Vec<Vec<String>> {
    with_verdict(report, verdict)
        .into_iter()
        .map(|(outcome, rate)| {
            let kinds = outcome.violations.first();
            let kind = kinds.map_or_else(String::new, |first| first.mismatch.kind.to_string());
            let often = if rate.is_of_several() {
                format!(", failed {rate} times")
            } else {
                String::new()
            };
            let name = format!("{} {}{often}", outcome.id, outcome.name);
            vec![name, kind, reason(outcome)]
        })
        .collect()
}

/// The first outcome with this verdict of each case and invariant, with its failure rate.
pub(super) fn with_verdict(report: &RunReport, verdict: Verdict) -> Vec<(&Outcome, Rate)> {
    let mut found: Vec<(&Outcome, Rate)> = Vec::new();
    for outcome in &report.outcomes {
        if outcome.verdict != verdict || found.iter().any(|(it, _)| it.id == outcome.id) {
            continue;
        }
        let same = report.outcomes.iter().filter(|it| it.id == outcome.id);
        found.push((outcome, Rate::of(same.map(|it| it.verdict))));
    }
    found
}

/// The reason for its verdict, and whether that is known for the runtime.
fn reason(outcome: &Outcome) -> String {
    match &outcome.hint {
        Some(hint) => format!("{}\nknown of this runtime: {hint}", cause(outcome)),
        None => cause(outcome),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::page;
    use crate::outcome::{Outcome, Verdict};
    use crate::report::fixture::{failed, fixture, outcome};

    #[test]
    fn the_page_is_as_it_was() {
        expect_file!["../../fixtures/reports/page.md"].assert_eq(&page(&fixture()));
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
