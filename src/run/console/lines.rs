//! Outcomes as lines of text, or as one character each.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::outcome::{Level, Outcome, Verdict};
use crate::report::{cause, cut, failure, folded};

/// The width of a line if the output is not a terminal.
const COLUMNS: usize = 100;
/// The minimum length of a reason, in characters. A narrower terminal shows none.
const SHORTEST_REASON: usize = 10;
/// The minimum length of a name, in characters: of an id.
const SHORTEST_NAME: usize = 6;
/// The columns of a line without its name, its verdict and the rest.
const AROUND: usize = "test  ... ".len();
/// The columns that most lines need besides the name.
const REST: usize = "test  ... FAILED (100.0 s)".len();

/// Renders outcomes as lines, and collects the texts to print at the end.
pub(super) struct Lines {
    is_terse: bool,
    widest: usize,
    columns: usize,
    is_terminal: bool,
    /// Skipped and undecided cases with the same reason as an earlier one.
    repeated: BTreeMap<(&'static str, String), Repeated>,
    failures: Vec<(String, String)>,
}

/// A reason that is printed only once.
struct Repeated {
    /// The case with which it was printed.
    first: String,
    again: usize,
}

impl Lines {
    /// `widest` is the width of the longest name, `columns` that of the terminal, if there is one.
    pub(super) fn new(is_terse: bool, widest: usize, columns: Option<usize>) -> Self {
        let room = columns.map(|columns| columns.saturating_sub(REST).max(SHORTEST_NAME));
        Self {
            is_terse,
            widest: room.map_or(widest, |room| room.min(widest)),
            columns: columns.unwrap_or(COLUMNS),
            is_terminal: columns.is_some(),
            repeated: BTreeMap::new(),
            failures: Vec::new(),
        }
    }

    fn line(&mut self, text: &mut String, name: &str, outcome: &Outcome) -> fmt::Result {
        let word = word(outcome);
        if let (Verdict::Skip | Verdict::Error, Some(reason)) = (outcome.verdict, &outcome.reason) {
            let key = (word, reason.clone());
            if let Some(known) = self.repeated.get_mut(&key) {
                known.again += 1;
                return Ok(());
            }
            let first = outcome.id.to_string();
            self.repeated.insert(key, Repeated { first, again: 0 });
        }
        let mut took = String::new();
        if !outcome.is_invariant() && outcome.verdict != Verdict::Skip {
            took = format!(" ({:.1} s)", outcome.duration.as_secs_f64());
        }
        let (mut name, mut width) = (Cow::Borrowed(name), self.widest);
        if self.is_terminal {
            let room = self.columns.saturating_sub(AROUND + word.len());
            if room < took.len() + SHORTEST_NAME {
                took.clear();
            }
            width = width.min(room - took.len().min(room)).max(SHORTEST_NAME);
            name = cut(&name, width).into();
        }
        let style = style(outcome.verdict);
        write!(text, "test {name:width$} ... {style}{word}{style:#}{took}")?;
        let column = AROUND + width.max(name.chars().count()) + word.len() + took.len();
        let left = self.columns.saturating_sub(column + ": ".len());
        if let Some(reason) = self.reason(outcome)
            && (left >= SHORTEST_REASON || !self.is_terminal)
        {
            write!(text, ": {}", cut(&reason, left.max(SHORTEST_REASON)))?;
        }
        writeln!(text)
    }

    /// The reason in the line. That of a failure is printed at the end with its evidence, but on a
    /// terminal at once, too.
    fn reason<'a>(&self, outcome: &'a Outcome) -> Option<Cow<'a, str>> {
        match outcome.verdict {
            Verdict::Fail if self.is_terminal => Some(cause(outcome).into()),
            Verdict::Pass | Verdict::Fail => None,
            Verdict::Known
            | Verdict::UnexpectedPass
            | Verdict::Error
            | Verdict::Skip
            | Verdict::Inconclusive => outcome.reason.as_deref().map(Cow::Borrowed),
        }
    }
}

impl super::Renderer for Lines {
    fn begin(&mut self, cases: usize, invariants: usize) -> String {
        let counted = |count, one| {
            let plural = if count == 1 { "" } else { "s" };
            format!("{count} {one}{plural}")
        };
        let (cases, invariants) = (counted(cases, "case"), counted(invariants, "invariant"));
        format!("\n{cases}, judged also by {invariants}\n")
    }

    fn outcome(&mut self, name: &str, outcome: &Outcome) -> String {
        let has_details = match outcome.verdict {
            Verdict::Fail | Verdict::UnexpectedPass => true,
            Verdict::Error => !outcome.evidence.is_empty(),
            Verdict::Pass | Verdict::Known | Verdict::Skip | Verdict::Inconclusive => false,
        };
        if has_details {
            self.failures.push((name.to_owned(), failure(outcome)));
        }
        if self.is_terse {
            let style = style(outcome.verdict);
            return format!("{style}{}{style:#}", letter(outcome.verdict));
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.line(&mut text, name, outcome);
        text
    }

    fn end(&mut self) -> String {
        let mut text = String::new();
        if self.is_terse {
            text.push('\n');
        }
        for ((word, _), Repeated { first, again }) in &self.repeated {
            if *again > 0 {
                let more = format!("     {again} more {word} for the same reason as {first}\n");
                text.push_str(&more);
            }
        }
        for (name, failure) in &self.failures {
            let _ = write!(
                text,
                "\n---- {name} ----\n{}",
                folded(failure, self.columns)
            );
        }
        text.push('\n');
        text
    }
}

fn word(outcome: &Outcome) -> &'static str {
    let mut advice = outcome.advice.iter();
    match outcome.verdict {
        Verdict::Pass if advice.any(|advice| advice.level == Level::Should) => {
            "ok, but breaks a SHOULD"
        }
        Verdict::Pass if !outcome.advice.is_empty() => "ok, with advice",
        Verdict::Pass => "ok",
        Verdict::Fail => "FAILED",
        Verdict::Known => "known to fail",
        Verdict::UnexpectedPass => "UNEXPECTEDLY PASSED",
        Verdict::Error => "undecided",
        Verdict::Skip => "skipped",
        Verdict::Inconclusive => "inconclusive",
    }
}

fn letter(verdict: Verdict) -> char {
    match verdict {
        Verdict::Pass => '.',
        Verdict::Fail => 'F',
        Verdict::Known => 'k',
        Verdict::UnexpectedPass => 'P',
        Verdict::Error => 'u',
        Verdict::Skip => 's',
        Verdict::Inconclusive => 'i',
    }
}

fn style(verdict: Verdict) -> Style {
    let color = match verdict {
        Verdict::Pass => AnsiColor::Green,
        Verdict::Fail | Verdict::UnexpectedPass => AnsiColor::Red,
        Verdict::Known | Verdict::Error | Verdict::Skip | Verdict::Inconclusive => {
            AnsiColor::Yellow
        }
    };
    color.on_default()
}

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::Renderer;
    use super::*;
    use crate::report::fixture::{fixture, outcome};

    const TERMINAL: usize = 84;

    fn printed(outcomes: &[Outcome], is_terse: bool) -> String {
        let mut lines = Lines::new(is_terse, 40, Some(TERMINAL));
        let mut text = lines.begin(outcomes.len(), 1);
        for outcome in outcomes {
            let name = format!("{} {}", outcome.id, outcome.label());
            text += &lines.outcome(&name, outcome);
        }
        text += &lines.end();
        without_colours(&text)
    }

    fn without_colours(text: &str) -> String {
        let parts =
            text.split("\u{1b}[")
                .enumerate()
                .map(|(nth, part)| match part.split_once('m') {
                    Some((_, rest)) if nth > 0 => rest,
                    _ => part,
                });
        parts.collect()
    }

    fn check(outcomes: &[Outcome], expected: &Expect) {
        let text = printed(outcomes, false);
        let until_failures: Vec<_> = text
            .lines()
            .take_while(|l| !l.starts_with("----"))
            .collect();
        expected.assert_eq(&until_failures.join("\n"));
    }

    #[test]
    fn each_verdict_has_its_word_and_only_a_failure_is_called_so() {
        check(
            &fixture().outcomes,
            &expect![[r#"

                8 cases, judged also by 1 invariant
                test SBX-01 sandbox::four-events              ... ok (1.2 s)
                test ORD-01 order::four-events-in-order       ... FAILED (1.2 s): c (3f2a9c81d0e4b)…
                test STP-02 stop::stop-grace-is-kept          ... undecided (1.2 s): \u{1b}[31mred\…
                test OOM-01 oom::oom-kill-says-so             ... skipped: needs memory-limit, whic…
                test OOM-02 oom::oom-of-a-child               ... inconclusive (1.2 s): no OOM kill…
                test SBX-04 sandbox::deleted-names-the-pod    ... known to fail (1.2 s): containerd…
                test ORD-02 order::started-before-stopped#2   ... UNEXPECTEDLY PASSED (1.2 s)
                test INV-07 invariant::events-are-prompt      ... ok, but breaks a SHOULD
            "#]],
        );
        expect![".FusikP."].assert_eq(printed(&fixture().outcomes, true).lines().nth(2).unwrap());
    }

    #[test]
    fn what_was_not_run_for_one_reason_is_said_once() {
        let not_run = |nth: usize, verdict| Outcome {
            reason: Some("not run: the runtime was lost during ORD-01".to_owned()),
            ..outcome(&format!("ORD-{nth:02}"), "order::four-events", verdict)
        };
        let mut outcomes: Vec<_> = (2..52).map(|nth| not_run(nth, Verdict::Error)).collect();
        outcomes.push(not_run(60, Verdict::Skip));
        check(
            &outcomes,
            &expect![[r#"

                51 cases, judged also by 1 invariant
                test ORD-02 order::four-events                ... undecided (1.2 s): not run: the r…
                test ORD-60 order::four-events                ... skipped: not run: the runtime was…
                     49 more undecided for the same reason as ORD-02
            "#]],
        );
    }

    #[test]
    fn a_line_is_as_long_as_the_terminal_is_wide() {
        let known = Outcome {
            reason: Some("why ".repeat(100)),
            ..outcome("ORD-01", "order::four-events", Verdict::Known)
        };
        let text = printed(&[known], false);
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert_eq!(longest, Some(TERMINAL), "{text}");
    }

    #[test]
    fn a_narrow_terminal_shows_the_beginning_of_a_name_and_no_reason() {
        let mut lines = Lines::new(false, 60, Some(40));
        let mut text = String::new();
        for outcome in &fixture().outcomes {
            let name = format!("{} {}", outcome.id, "long ".repeat(20));
            text += &lines.outcome(&name, outcome);
        }
        let text = without_colours(&text);
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(40), "{text}");
        assert!(
            text.contains("test ORD-01 long l… ... FAILED (1.2 s)\n"),
            "{text}"
        );
    }
}
