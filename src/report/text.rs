//! A failed case on the console, in full: plain text of at most [`WIDTH`] columns where words allow
//! it; lines of a timeline may be longer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use super::evidence::Evidence;
use super::printable::{cut, printable, short_ids, wrap};
use crate::history::Seq;
use crate::outcome::{Kind, Mismatch, Outcome, REMOVED, Verdict, Violation};

/// The columns at which text is wrapped.
const WIDTH: usize = 96;

/// The maximum number of violations of one outcome that are shown in full. The reports in files
/// have all of them.
const IN_FULL: usize = 5;

/// The maximum length of a value in the details, in characters. A runtime's message may have
/// megabytes.
const VALUE: usize = 2_000;

/// The maximum length of a reason in the closing lines, in characters, where each outcome has one
/// line.
pub(super) const REASON: usize = 200;

/// The label before the cases that break an invariant.
const BROKEN_IN: &str = "broken in";

/// The violations of an outcome that are shown in full: the maximum number of all, and of one kind.
type Shown = (usize, usize);

/// The details of an outcome other than a plain pass: its verdict, the broken rules with the
/// expected state, the actual state and the evidence, advice, and leftovers.
pub fn failure(outcome: &Outcome) -> String {
    details(outcome, (IN_FULL, IN_FULL))
}

/// The same with one violation of each kind.
pub(super) fn failure_in_short(outcome: &Outcome) -> String {
    details(outcome, (IN_FULL, 1))
}

/// The same with every violation, for report files.
pub(super) fn failure_in_full(outcome: &Outcome) -> String {
    details(outcome, (usize::MAX, usize::MAX))
}

fn details(outcome: &Outcome, shown: Shown) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_outcome(&mut text, outcome, shown);
    text
}

/// The reason for the outcome, on one line: its reason, or the first rule that it breaks.
pub fn cause(outcome: &Outcome) -> String {
    match (&outcome.reason, outcome.violations.first()) {
        (Some(reason), _) => cut(&short_ids(reason), REASON),
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
                cut(&short_ids(&violation.subject), REASON),
                cut(&short_ids(&violation.actual()), REASON),
            );
            let broke = outcome.breaks(violation);
            format!("broke {broke}: {rule}{subject}: {actual}{more}")
        }
        (None, None) => "no reason was given".to_owned(),
    }
}

/// The adjective for a verdict.
pub(super) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passed",
        Verdict::Fail => "failed",
        Verdict::Known => "known to fail",
        Verdict::UnexpectedPass => "unexpectedly passed",
        Verdict::Error => "undecided",
        Verdict::Skip => "skipped",
        Verdict::Inconclusive => "inconclusive",
    }
}

/// The sentence about a verdict above the details.
pub(super) fn judgement(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passed",
        Verdict::Fail => "failed: the runtime broke a rule",
        Verdict::Known => "known to fail, by the expectation file",
        Verdict::UnexpectedPass => "passed, though the expectation file lists it as failing",
        Verdict::Error => "undecided",
        Verdict::Skip => "skipped",
        Verdict::Inconclusive => "inconclusive: the situation under test did not arise",
    }
}

fn write_outcome(text: &mut String, outcome: &Outcome, in_full: Shown) -> fmt::Result {
    text.push_str(&printable(&outcome.id));
    text.push_str("  ");
    wrap(text, &outcome.title, WIDTH, outcome.id.chars().count() + 2);
    text.push('\n');
    match &outcome.reason {
        Some(reason) => field(text, judgement(outcome.verdict), reason, 0),
        None => writeln!(text, "{}", judgement(outcome.verdict))?,
    }
    if let Some(hint) = &outcome.hint {
        let accept = "; `--expectations builtin` accepts it";
        field(text, "known of this runtime", &format!("{hint}{accept}"), 0);
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
    if outcome.verdict == Verdict::Error && !outcome.evidence.is_empty() {
        writeln!(text, "last entries:")?;
        for line in evidence.last() {
            writeln!(text, "{line}")?;
        }
    }
    let mut page = Page::default();
    let on_page = (&evidence, &mut page);
    write_violations(text, outcome, on_page, &outcome.violations, in_full)?;
    if !outcome.advice.is_empty() {
        let mut advice = String::new();
        let on_page = (&evidence, &mut page);
        write_violations(&mut advice, outcome, on_page, &outcome.advice, in_full)?;
        // All of it may be above.
        if !advice.is_empty() {
            write!(text, "\nadvice (no MUST, so it fails no run):\n{advice}")?;
        }
    }
    for leftover in &outcome.leftovers {
        if leftover.starts_with(REMOVED) {
            line(text, &cut(leftover, VALUE), 2);
        } else {
            field(text, "left over", leftover, 0);
        }
    }
    Ok(())
}

/// The parts of an outcome that are already on the page.
#[derive(Default)]
struct Page<'a> {
    said: BTreeSet<(&'a str, &'a str, &'a Mismatch)>,
    proof: BTreeSet<Seq>,
}

impl<'a> Page<'a> {
    /// Whether it has evidence, all of it on the page.
    fn proves(&self, violation: &Violation) -> bool {
        let mut evidence = violation.evidence.iter();
        !violation.evidence.is_empty() && evidence.all(|seq| self.proof.contains(seq))
    }

    /// Whether its texts and evidence are already on the page; adds them otherwise.
    fn has(&mut self, violation: &'a Violation) -> bool {
        let Violation {
            rule,
            subject,
            mismatch,
            ..
        } = violation;
        let is_new = self.said.insert((rule, subject, mismatch));
        !is_new && self.proves(violation)
    }
}

fn write_violations<'a>(
    text: &mut String,
    outcome: &Outcome,
    (evidence, page): (&Evidence<'_>, &mut Page<'a>),
    violations: &'a [Violation],
    (of_all, of_kind): Shown,
) -> fmt::Result {
    let (mut shown, mut omitted) = (0, 0);
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    for violation in violations {
        if page.has(violation) {
            continue;
        }
        let seen = kinds.entry(violation.mismatch.kind).or_default();
        *seen += 1;
        if shown == of_all || *seen > of_kind {
            omitted += 1;
        } else {
            shown += 1;
            text.push('\n');
            let evidence = (!page.proves(violation)).then_some(evidence);
            write_violation(text, outcome, evidence, violation)?;
            page.proof.extend(&violation.evidence);
        }
    }
    if omitted > 0 {
        writeln!(text, "\n… {omitted} more, which the written reports show")?;
    }
    Ok(())
}

fn write_violation(
    text: &mut String,
    outcome: &Outcome,
    evidence: Option<&Evidence<'_>>,
    violation: &Violation,
) -> fmt::Result {
    let level = violation.level.keyword();
    let start = text.len();
    write!(text, "{} {level}  ", printable(&violation.rule))?;
    let indent = text[start..].chars().count();
    // The case's own claim stands above.
    if *violation.sentence != *outcome.title {
        wrap(text, &violation.sentence, WIDTH, indent);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    field(text, "broke", outcome.breaks(violation).name(), 8);
    // An entry of an expectation file has a key of the same name.
    field(text, "finding", violation.mismatch.kind.key(), 8);
    field(text, "subject", &violation.subject, 8);
    field(text, "expected", &violation.expected(), 8);
    field(text, "actual", &violation.actual(), 8);
    let Some(evidence) = evidence else {
        return writeln!(text, "  the timeline is above");
    };
    for line in evidence.lines(violation) {
        writeln!(text, "{line}")?;
    }
    Ok(())
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

pub(super) fn line(text: &mut String, content: &str, indent: usize) {
    wrap(text, content, WIDTH, indent);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::failure;
    use crate::history::Seq;
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
    fn what_is_said_and_proven_twice_is_shown_once() {
        let mut outcome = failed();
        let first = outcome.violations[0].clone();
        outcome.violations = vec![first.clone(), first.clone()];
        let text = failure(&outcome);
        assert_eq!(text.matches("subject").count(), 1, "{text}");
        outcome.violations[1].mismatch = violation("nothing").mismatch;
        let text = failure(&outcome);
        assert_eq!(text.matches("subject").count(), 2, "{text}");
        assert_eq!(text.matches("the timeline is above").count(), 1, "{text}");
        outcome.violations[1] = first;
        outcome.violations[1].evidence = vec![Seq(19)];
        let text = failure(&outcome);
        assert_eq!(text.matches("subject").count(), 2, "{text}");
    }

    #[test]
    fn advice_has_a_heading_only_if_something_follows() {
        let mut outcome = failed();
        outcome.violations.truncate(1);
        for (advice, headings) in [(outcome.violations.clone(), 0), (vec![violation("it")], 1)] {
            outcome.advice = advice;
            let text = failure(&outcome);
            assert_eq!(text.matches("advice (").count(), headings, "{text}");
        }
    }

    #[test]
    fn many_violations_are_counted_not_shown() {
        let mut outcome = failed();
        outcome.violations = (0..1_000).map(|nth| violation(&nth.to_string())).collect();
        let text = failure(&outcome);
        assert!(text.ends_with("\n… 995 more, which the written reports show\n"));
        assert!(text.lines().count() < 100);
    }
}
