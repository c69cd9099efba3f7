//! What the console shows of a failed case, in full: plain text of at most [`WIDTH`] columns where
//! words allow it; lines of a timeline may be longer.

use std::fmt::{self, Write};

use crate::outcome::{Level, Outcome, Verdict, Violation};

use super::evidence::Evidence;
use super::printable::{cut, printable, wrap};

/// Columns that text is wrapped at.
const WIDTH: usize = 96;

/// Violations of one outcome that are shown in full. The reports in files have all of them.
const IN_FULL: usize = 5;

/// Characters kept of a value in the details. A runtime's message may have megabytes.
const VALUE: usize = 2_000;

/// Characters kept of a reason in the closing lines, where each outcome has one line.
pub(super) const REASON: usize = 200;

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

/// A wrapped line.
pub(super) fn line(text: &mut String, content: &str, indent: usize) {
    wrap(text, content, WIDTH, indent);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::failure;
    use crate::report::fixture::{failed, fixture, violation};

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
    fn a_message_of_megabytes_is_cut() {
        let mut outcome = failed();
        outcome.violations = vec![violation(&"word ".repeat(1_000_000))];
        outcome.reason = Some("word ".repeat(1_000_000));
        assert!(failure(&outcome).len() < 8_000);
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
