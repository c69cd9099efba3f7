//! A failed case on the console, in full: plain text of at most [`WIDTH`] columns, or those of the
//! terminal, where words allow it; lines of a timeline may be longer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use super::evidence::Evidence;
use super::printable::{cut, printable, short_ids, wrap};
use crate::history::Seq;
use crate::outcome::{Kind, Mismatch, Outcome, REMOVED, Verdict, Violation};

/// The maximum number of columns at which text is wrapped.
const WIDTH: usize = 96;

/// The column of the words in a line of a timeline.
const WORDS: usize = 29;

/// The indent of further lines of a timeline on a terminal that leaves its words too few columns.
const NARROW: usize = 8;

/// The columns of a text in a file.
const OF_FILE: usize = usize::MAX;

/// A text that is wrapped between words.
pub(super) struct Text {
    pub(super) out: String,
    /// The columns of the terminal.
    columns: usize,
}

impl Text {
    pub(super) fn new(columns: usize) -> Self {
        let out = String::new();
        Self { out, columns }
    }

    /// Appends words to the last line; further lines are indented.
    fn words(&mut self, words: &str, indent: usize) {
        wrap(&mut self.out, words, WIDTH.min(self.columns), indent);
    }

    /// Whether a line of this many columns fits.
    pub(super) fn fits(&self, columns: usize) -> bool {
        columns <= self.columns
    }

    pub(super) fn line(&mut self, content: &str, indent: usize) {
        self.words(content, indent);
        self.out.push('\n');
    }

    /// A line of a timeline; further lines are indented like its words.
    fn timeline(&mut self, line: &str) {
        let indent = if self.fits(2 * WORDS) { WORDS } else { NARROW };
        wrap(&mut self.out, line, self.columns, indent);
        self.out.push('\n');
    }

    /// `  key       value`, the value wrapped; the key is padded to `align` columns. Without
    /// alignment: `key: value`.
    fn field(&mut self, key: &str, value: &str, align: usize) {
        let value = cut(value, VALUE);
        if align == 0 {
            return self.line(&format!("{key}: {value}"), 2);
        }
        let _ = write!(self.out, "  {key:<align$}  ");
        self.line(&value, align + 4);
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.out.write_str(text)
    }
}

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
    details(outcome, (IN_FULL, IN_FULL), OF_FILE)
}

/// The same for a terminal.
pub(super) fn failure_at(outcome: &Outcome, columns: usize) -> String {
    details(outcome, (IN_FULL, IN_FULL), columns)
}

/// The same for a terminal, with one violation of each kind.
pub(super) fn failure_in_short(outcome: &Outcome, columns: usize) -> String {
    details(outcome, (IN_FULL, 1), columns)
}

/// The same with every violation, for report files.
pub(super) fn failure_in_full(outcome: &Outcome) -> String {
    details(outcome, (usize::MAX, usize::MAX), OF_FILE)
}

fn details(outcome: &Outcome, shown: Shown, columns: usize) -> String {
    let mut text = Text::new(columns);
    // Writing to a string cannot fail.
    let _ = write_outcome(&mut text, outcome, shown);
    text.out
}

/// The reason for the outcome, on one line: its reason, or the first rule that it breaks.
pub fn cause(outcome: &Outcome) -> String {
    cause_within(outcome, REASON)
}

/// The same, practically whole.
pub(super) fn whole_cause(outcome: &Outcome) -> String {
    cause_within(outcome, VALUE)
}

fn cause_within(outcome: &Outcome, limit: usize) -> String {
    let count = outcome.violations.len();
    let more = match &outcome.reason {
        Some(reason) => format!("; {}", cut(&short_ids(reason), limit)),
        None if count > 1 => format!(" (and {} more)", count - 1),
        None => String::new(),
    };
    first_violation(outcome, limit).map_or_else(
        || match &outcome.reason {
            Some(reason) => cut(&short_ids(reason), limit),
            None => "no reason was given".to_owned(),
        },
        |violation| violation + &more,
    )
}

/// The first violation of a failed outcome: what it broke, its subject and the actual state.
pub(super) fn first_violation(outcome: &Outcome, limit: usize) -> Option<String> {
    let violation = outcome.violations.first();
    let violation = violation.filter(|_| outcome.verdict == Verdict::Fail)?;
    let rule = if *violation.rule == *outcome.id {
        String::new()
    } else {
        format!("{}, ", printable(&violation.rule))
    };
    let (subject, actual) = (
        cut(&short_ids(&violation.subject), limit),
        cut(&short_ids(&violation.actual()), limit),
    );
    let broke = outcome.breaks(violation);
    Some(format!("broke {broke}: {rule}{subject}: {actual}"))
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
        Verdict::UnexpectedPass => "unexpectedly passed",
        Verdict::Error => "undecided",
        Verdict::Skip => "skipped",
        Verdict::Inconclusive => "inconclusive: the situation under test did not arise",
    }
}

fn write_outcome(text: &mut Text, outcome: &Outcome, in_full: Shown) -> fmt::Result {
    write!(text, "{}  ", printable(&outcome.id))?;
    text.line(&outcome.title, outcome.id.chars().count() + 2);
    match &outcome.reason {
        Some(reason) => text.field(judgement(outcome.verdict), reason, 0),
        None => writeln!(text, "{}", judgement(outcome.verdict))?,
    }
    if let Some(hint) = &outcome.hint {
        let accept = "; `--expectations builtin` accepts it";
        let pages = outcome
            .pages
            .iter()
            .map(|page| format!("`explain {}`", printable(page)));
        let pages: Vec<_> = pages.collect();
        let more = match &*pages.join(" and ") {
            "" => String::new(),
            pages => format!(", {pages} has more"),
        };
        text.field("known of this runtime", &format!("{hint}{accept}{more}"), 0);
    }
    let broken = !outcome.violations.is_empty() || !outcome.advice.is_empty();
    if broken && !outcome.why.is_empty() {
        text.field("why it matters", &outcome.why, 0);
    }
    if broken && !outcome.sources.is_empty() {
        text.field("sources", &outcome.sources.join("; "), 0);
    }
    if !outcome.broken_in.is_empty() {
        text.field(BROKEN_IN, &outcome.broken_in.join(" "), 0);
    }
    let evidence = Evidence::of(outcome);
    if outcome.verdict == Verdict::Error && !outcome.evidence.is_empty() {
        writeln!(text, "last entries:")?;
        evidence.last().for_each(|line| text.timeline(&line));
    }
    let mut page = Page::default();
    let on_page = (&evidence, &mut page);
    write_violations(text, outcome, on_page, &outcome.violations, in_full)?;
    if !outcome.advice.is_empty() {
        let mut advice = Text::new(text.columns);
        let on_page = (&evidence, &mut page);
        let is_above = |it: &&Violation| {
            let mut above = outcome.violations.iter();
            let is_it = |above: &Violation| {
                (above.mismatch.kind, &above.subject) == (it.mismatch.kind, &it.subject)
            };
            in_full != (usize::MAX, usize::MAX) && above.any(is_it)
        };
        let rest = outcome.advice.iter().filter(|it| !is_above(it));
        write_violations(&mut advice, outcome, on_page, rest, in_full)?;
        if !advice.out.is_empty() {
            let advice = advice.out;
            write!(text, "\nadvice (no MUST, so it fails no run):\n{advice}")?;
        }
    }
    for leftover in &outcome.leftovers {
        if leftover.starts_with(REMOVED) {
            text.line(&cut(leftover, VALUE), 2);
        } else {
            text.field("left over", leftover, 0);
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
    text: &mut Text,
    outcome: &Outcome,
    (evidence, page): (&Evidence<'_>, &mut Page<'a>),
    violations: impl IntoIterator<Item = &'a Violation>,
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
            text.out.push('\n');
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
    text: &mut Text,
    outcome: &Outcome,
    evidence: Option<&Evidence<'_>>,
    violation: &Violation,
) -> fmt::Result {
    let level = violation.level.keyword();
    let start = text.out.len();
    write!(text, "{} {level}  ", printable(&violation.rule))?;
    let indent = text.out[start..].chars().count();
    // The case's own claim stands above.
    if *violation.sentence != *outcome.title {
        text.words(&violation.sentence, indent);
    }
    text.out.truncate(text.out.trim_end().len());
    text.out.push('\n');
    text.field("broke", outcome.breaks(violation).name(), 8);
    // An entry of an expectation file has a key of the same name.
    text.field("finding", violation.mismatch.kind.key(), 8);
    text.field("subject", &short_ids(&violation.subject), 8);
    text.field("expected", &short_ids(&violation.expected()), 8);
    text.field("actual", &short_ids(&violation.actual()), 8);
    let Some(evidence) = evidence else {
        return writeln!(text, "  the timeline is above");
    };
    let lines = evidence.lines(violation).into_iter();
    lines.for_each(|line| text.timeline(&line));
    Ok(())
}

#[cfg(test)]
mod tests {

    use super::{Violation, failure, failure_at};
    use crate::golden::assert_file;
    use crate::history::Seq;
    use crate::report::fixture::{failed, fixture, violation};

    #[test]
    fn a_failure_shows_what_proves_it() {
        assert_file("fixtures/reports/failure.txt", &failure(&failed()));
    }

    #[test]
    fn a_text_fits_a_narrow_terminal() {
        let is_long = |line: &&str| line.chars().count() > 60 && !line.contains("🦀");
        let long = fixture()
            .outcomes
            .iter()
            .map(|it| failure_at(it, 60))
            .collect::<String>();
        let long: Vec<&str> = long.lines().filter(is_long).collect();
        assert_eq!(long, Vec::<&str>::new());
        // Nothing is torn at a width that suffices.
        assert_eq!(failure_at(&failed(), 1_000), failure(&failed()));
    }

    #[test]
    fn every_verdict_has_its_words() {
        let all = fixture().outcomes;
        let texts: Vec<_> = all
            .iter()
            .map(|o| format!("[{}]\n{}", o.verdict, failure(o)))
            .collect();
        assert_file("fixtures/reports/outcomes.txt", &texts.join("\n"));
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
        let of_another = Violation {
            subject: "another".to_owned(),
            ..violation("it")
        };
        let weaker = violation("the same in other words");
        for (advice, headings) in [(weaker, 0), (of_another, 1)] {
            outcome.advice = vec![advice];
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
