//! What the console shows: a failed case in full, and the closing lines of a run.
//!
//! Both are plain text of at most [`WIDTH`] columns where words allow it; lines of a timeline may
//! be longer. What was written where is added by whoever wrote it.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use crate::outcome::{Level, Outcome, RunReport, Standing, Verdict, Violation};

use super::calendar::span;
use super::evidence::Evidence;
use super::printable::{cut, printable, wrap};

/// Columns that text is wrapped at.
const WIDTH: usize = 96;

/// Violations of one outcome that are shown in full. The reports in files have all of them.
const IN_FULL: usize = 5;

/// Characters kept of a value in the details. A runtime's message may have megabytes.
const VALUE: usize = 2_000;

/// Lines of one kind in the closing lines, such as failed outcomes.
const LISTED: usize = 50;

/// Characters kept of a reason in the closing lines, where each outcome has one line.
const REASON: usize = 200;

/// What stands before the cases that break an invariant.
pub(super) const BROKEN_IN: &str = "broken in";

/// What is printed below a case that did not simply pass: the word on it, every broken rule with
/// what was expected, what was seen and the entries that prove it, advice, and leftovers.
#[must_use]
pub fn failure(outcome: &Outcome) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_outcome(&mut text, outcome, IN_FULL);
    text
}

/// The same with every violation in full, for reports that are read later.
pub(super) fn failure_in_full(outcome: &Outcome) -> String {
    let mut text = String::new();
    let _ = write_outcome(&mut text, outcome, usize::MAX);
    text
}

/// The closing lines of a run: what ran, the count of each verdict, and one line for everything
/// that a reader must look at.
#[must_use]
pub fn summary(report: &RunReport) -> String {
    let mut text = String::new();
    let _ = write_summary(&mut text, report);
    text
}

/// Why the outcome is what it is, on one line: its reason, or the first rule that it breaks.
pub(super) fn cause(outcome: &Outcome) -> String {
    match (&outcome.reason, outcome.violations.first()) {
        (Some(reason), _) => cut(reason, REASON),
        (None, Some(violation)) => {
            let more = match outcome.violations.len() {
                1 => String::new(),
                count => format!(" (and {} more)", count - 1),
            };
            let rule = if *violation.rule == *outcome.id {
                String::new()
            } else {
                format!("{}, ", printable(&violation.rule))
            };
            let (subject, actual) = (
                cut(&violation.subject, REASON),
                cut(&violation.actual, REASON),
            );
            format!("{rule}{subject}: {actual}{more}")
        }
        (None, None) => "no reason was given".to_owned(),
    }
}

/// The sentence on a verdict that stands above the details.
fn judgement(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passed",
        Verdict::Fail => "failed: the runtime broke a rule",
        Verdict::Known => "failed, as an expectation file says it does",
        Verdict::UnexpectedPass => "passed, though an expectation file lists it as failing",
        Verdict::Error => "could not be decided",
        Verdict::Skip => "was not run",
        Verdict::Inconclusive => "the situation that it is about did not arise",
    }
}

fn write_outcome(text: &mut String, outcome: &Outcome, in_full: usize) -> fmt::Result {
    text.push_str(&printable(&outcome.id));
    text.push_str("  ");
    wrap(text, &outcome.title, WIDTH, outcome.id.chars().count() + 2);
    text.push('\n');
    match &outcome.reason {
        Some(reason) => field(text, judgement(outcome.verdict), reason, 0),
        None => writeln!(text, "{}", judgement(outcome.verdict))?,
    }
    let broken = !outcome.violations.is_empty() || !outcome.advice.is_empty();
    if broken && !outcome.why.is_empty() {
        field(text, "why it matters", &outcome.why, 0);
    }
    if broken && !outcome.sources.is_empty() {
        field(text, "sources", &outcome.sources.join("; "), 0);
    }
    if !outcome.broken_in.is_empty() {
        field(text, BROKEN_IN, &outcome.broken_in.join(" "), 0);
    }
    let evidence = Evidence::of(outcome);
    write_violations(text, outcome, &evidence, &outcome.violations, in_full)?;
    if !outcome.advice.is_empty() {
        writeln!(text, "\nadvice, which fails nothing:")?;
        write_violations(text, outcome, &evidence, &outcome.advice, in_full)?;
    }
    for leftover in &outcome.leftovers {
        field(text, "left over", leftover, 0);
    }
    Ok(())
}

fn write_violations(
    text: &mut String,
    outcome: &Outcome,
    evidence: &Evidence<'_>,
    violations: &[Violation],
    in_full: usize,
) -> fmt::Result {
    for violation in violations.iter().take(in_full) {
        text.push('\n');
        write_violation(text, outcome, evidence, violation)?;
    }
    if violations.len() > in_full {
        let more = violations.len() - in_full;
        writeln!(text, "\n… {more} more, which the written reports tell")?;
    }
    Ok(())
}

fn write_violation(
    text: &mut String,
    outcome: &Outcome,
    evidence: &Evidence<'_>,
    violation: &Violation,
) -> fmt::Result {
    let level = match violation.level {
        Level::Must => "MUST",
        Level::Should => "SHOULD",
        Level::May => "MAY",
    };
    let start = text.len();
    write!(text, "{} {level}  ", printable(&violation.rule))?;
    let indent = text[start..].chars().count();
    // The case's own claim stands above.
    if *violation.sentence != *outcome.title {
        wrap(text, &violation.sentence, WIDTH, indent);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    field(text, "subject", &violation.subject, 8);
    field(text, "expected", &violation.expected, 8);
    field(text, "actual", &violation.actual, 8);
    if is_shown_already(outcome, violation) {
        return writeln!(text, "  the timeline is the one above");
    }
    for line in evidence.lines(violation) {
        writeln!(text, "{line}")?;
    }
    Ok(())
}

/// Whether this is advice that the same entries prove as one of the violations above it.
fn is_shown_already(outcome: &Outcome, violation: &Violation) -> bool {
    let is_advice = outcome
        .advice
        .iter()
        .any(|advice| std::ptr::eq(advice, violation));
    let shown = |seq| {
        outcome
            .violations
            .iter()
            .any(|shown| shown.evidence.contains(seq))
    };
    is_advice && !violation.evidence.is_empty() && violation.evidence.iter().all(shown)
}

/// `  key       value`, the value wrapped; the key is padded to `align` columns. Without alignment:
/// `key: value`.
fn field(text: &mut String, key: &str, value: &str, align: usize) {
    let indent = if align > 0 {
        let _ = write!(text, "  {key:<align$}  ");
        align + 4
    } else {
        let _ = write!(text, "{key}: ");
        2
    };
    line(text, &cut(value, VALUE), indent);
}

fn write_summary(text: &mut String, report: &RunReport) -> fmt::Result {
    let runtime = &report.info.runtime;
    let head = format!(
        "{} {} at {}, run {}",
        cut(&runtime.runtime_name, REASON),
        cut(&runtime.runtime_version, REASON),
        cut(&report.info.endpoint, REASON),
        report.info.run,
    );
    line(text, &head, 2);
    let (counts, took) = (counts(report), span(report.duration));
    line(text, &format!("{}: {counts} in {took}", scope(report)), 2);
    for verdict in [
        Verdict::Fail,
        Verdict::UnexpectedPass,
        Verdict::Error,
        Verdict::Inconclusive,
        Verdict::Known,
        Verdict::Skip,
    ] {
        let outcomes = report.outcomes.iter();
        let those = outcomes.filter(|outcome| outcome.verdict == verdict);
        listed(text, those.map(in_one_line));
    }
    // That of a failed case stands with its failure.
    let passed = report
        .outcomes
        .iter()
        .filter(|outcome| outcome.verdict != Verdict::Fail);
    listed(text, passed.flat_map(advice_in_one_line));
    let leftovers = report.outcomes.iter().flat_map(|outcome| {
        let label = outcome.label();
        let told =
            move |leftover: &String| format!("  left over by {label}: {}", cut(leftover, REASON));
        outcome.leftovers.iter().map(told)
    });
    listed(text, leftovers);
    let faults = report.faults.iter();
    listed(
        text,
        faults.map(|fault| format!("  fault: {}", cut(fault, REASON))),
    );
    let notes = report.notes.iter();
    listed(
        text,
        notes.map(|note| format!("  note: {}", cut(note, REASON))),
    );
    if report.foreign_pods > 0 {
        let pods = counted(report.foreign_pods, "pod", "pods");
        writeln!(text, "  {pods} of others on the node, left alone")?;
    }
    write_standings(text, report)
}

/// A row for each profile for which the runtime was judged.
fn write_standings(text: &mut String, report: &RunReport) -> fmt::Result {
    writeln!(
        text,
        "profile   verdict         MUST passed failed known skipped inconclusive undecided \
         SHOULD kept broken"
    )?;
    for standing in report.standings() {
        let Standing {
            profile,
            verdict,
            musts,
            shoulds,
            ..
        } = standing;
        writeln!(
            text,
            "{profile:<9} {verdict:<15}{:>11}{:>7}{:>6}{:>8}{:>13}{:>10}{:>12}{:>7}",
            musts.passed,
            musts.failed,
            musts.known,
            musts.skipped,
            musts.inconclusive,
            musts.undecided,
            shoulds.kept,
            shoulds.broken,
        )?;
    }
    if report.partial {
        writeln!(
            text,
            "cases were left out, so that no profile is more than partial"
        )?;
    }
    Ok(())
}

/// What the closing lines say of an outcome.
fn in_one_line(outcome: &Outcome) -> String {
    let (verdict, id, label) = (outcome.verdict, printable(&outcome.id), outcome.label());
    let cause = cause(outcome);
    format!("  {verdict}: {id} {label}: {cause}")
}

/// What the closing lines say of each piece of advice.
fn advice_in_one_line(outcome: &Outcome) -> impl Iterator<Item = String> {
    outcome.advice.iter().map(|advice| {
        let (id, label) = (printable(&outcome.id), outcome.label());
        let (expected, actual) = (cut(&advice.expected, REASON), cut(&advice.actual, REASON));
        let subject = cut(&advice.subject, REASON);
        format!("  advice: {id} {label}: {subject}: should be {expected}, but {actual}")
    })
}

/// One paragraph each, up to a limit.
fn listed(text: &mut String, items: impl Iterator<Item = String>) {
    let mut more = 0_usize;
    for (nth, item) in items.enumerate() {
        if nth < LISTED {
            line(text, &item, 4);
        } else {
            more += 1;
        }
    }
    if more > 0 {
        line(text, &format!("  … {more} more like these"), 4);
    }
}

/// `20 cases up to tier extended, run 40 times, and 8 invariants`.
fn scope(report: &RunReport) -> String {
    let (invariants, cases): (Vec<_>, Vec<_>) = report
        .outcomes
        .iter()
        .partition(|outcome| outcome.is_invariant());
    let names: BTreeSet<_> = cases.iter().map(|outcome| &outcome.name).collect();
    let repeated = if names.len() < cases.len() {
        format!(", run {} times,", cases.len())
    } else {
        String::new()
    };
    let tier = report.tier.as_ref();
    let tier = tier.map_or_else(String::new, |tier| {
        format!(" up to tier {}", cut(tier, REASON))
    });
    let cases = counted(names.len(), "case", "cases");
    let invariants = counted(invariants.len(), "invariant", "invariants");
    format!("{cases}{tier}{repeated} and {invariants}")
}

/// `26 passed, 1 failed, 1 known`: passes and failures always, the rest only where there are any.
fn counts(report: &RunReport) -> String {
    let all = [
        (Verdict::Pass, "passed"),
        (Verdict::Fail, "failed"),
        (Verdict::UnexpectedPass, "unexpectedly passed"),
        (Verdict::Known, "known to fail"),
        (Verdict::Error, "undecided by an error"),
        (Verdict::Inconclusive, "inconclusive"),
        (Verdict::Skip, "skipped"),
    ];
    let counts: Vec<_> = all
        .into_iter()
        .map(|(verdict, word)| (report.count(verdict), verdict, word))
        .filter(|(count, verdict, _)| {
            *count > 0 || matches!(verdict, Verdict::Pass | Verdict::Fail)
        })
        .map(|(count, _, word)| format!("{count} {word}"))
        .collect();
    counts.join(", ")
}

/// A wrapped line.
fn line(text: &mut String, content: &str, indent: usize) {
    wrap(text, content, WIDTH, indent);
    text.push('\n');
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
mod tests {
    use expect_test::{expect, expect_file};

    use super::{failure, summary};
    use crate::outcome::Verdict;
    use crate::report::fixture::{failed, fixture, outcome, violation};

    #[test]
    fn a_failure_shows_what_proves_it() {
        expect_file!["../../fixtures/reports/failure.txt"].assert_eq(&failure(&failed()));
    }

    #[test]
    fn every_verdict_has_its_words() {
        let all = fixture().outcomes;
        let texts: Vec<_> = all
            .iter()
            .map(|o| format!("[{}]\n{}", o.verdict, failure(o)))
            .collect();
        expect_file!["../../fixtures/reports/outcomes.txt"].assert_eq(&texts.join("\n"));
    }

    #[test]
    fn the_summary_names_all_that_needs_a_look() {
        expect_file!["../../fixtures/reports/summary.txt"].assert_eq(&summary(&fixture()));
    }

    #[test]
    fn a_good_run_is_summed_up_in_a_few_lines() {
        let mut report = fixture();
        report.outcomes = vec![outcome("ORD-01", "order::four-events", Verdict::Pass)];
        report.faults.clear();
        report.foreign_pods = 0;
        expect![[r#"
            containerd 2.1.9 at unix:///run/containerd/containerd.sock, run
              0f6a1c1e-3f0b-4b52-9a25-6f2f3c1d7e11
            1 case up to tier extended and 0 invariants: 1 passed, 0 failed in 9.170 s
              note: known.yaml: the entry of ORD-02 has expired on 2026-01-31
            profile   verdict         MUST passed failed known skipped inconclusive undecided SHOULD kept broken
            cache     conformant               1      0     0       0            0         0           0      0
            hint      not judged               0      0     0       0            0         0           1      0
            observer  not judged               0      0     0       0            0         0           0      0
        "#]]
        .assert_eq(&summary(&report));
    }

    #[test]
    fn a_case_run_several_times_counts_once() {
        let mut report = fixture();
        report.outcomes = (1..4)
            .map(|repetition| crate::outcome::Outcome {
                repetition: Some(repetition),
                ..outcome("ORD-01", "order::four-events", Verdict::Pass)
            })
            .collect();
        let summary = summary(&report);
        assert!(summary.contains(
            "1 case up to tier extended, run 3 times, and 0 invariants: 3 passed, 0 failed in"
        ));
    }

    #[test]
    fn a_node_where_all_fails_is_summed_up_on_two_screens() {
        let mut report = fixture();
        report.outcomes = vec![failed(); 10_000];
        let summary = summary(&report);
        assert!(
            summary.contains("\n  … 9950 more like these\n"),
            "{summary}"
        );
        assert!(summary.lines().count() < 120, "{summary}");
    }

    #[test]
    fn a_message_of_megabytes_is_cut() {
        let mut outcome = failed();
        outcome.violations = vec![violation(&"word ".repeat(1_000_000))];
        outcome.reason = Some("word ".repeat(1_000_000));
        assert!(failure(&outcome).len() < 8_000);
    }

    #[test]
    fn a_subject_of_megabytes_is_cut() {
        let mut report = fixture();
        for outcome in &mut report.outcomes {
            for violation in outcome.violations.iter_mut().chain(&mut outcome.advice) {
                violation.subject = "c (an-id)".repeat(100_000);
            }
            outcome.reason = None;
        }
        assert!(summary(&report).len() < 8_000);
    }

    #[test]
    fn many_violations_are_counted_not_shown() {
        let mut outcome = failed();
        outcome.violations = vec![violation("STARTED"); 1_000];
        let text = failure(&outcome);
        assert!(text.ends_with("\n… 995 more, which the written reports tell\n"));
        assert!(text.lines().count() < 100);
    }
}
