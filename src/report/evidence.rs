//! The few lines of a history that prove a violation, with a little of what stands around them.

use std::ops::Range;

use crate::outcome::{Outcome, Violation};

use super::timeline::Timeline;

/// Entries shown before and after each one that proves something.
const CONTEXT: usize = 2;

/// Entries shown for one violation. A case that starts hundreds of containers can break a rule with
/// each; forty are two screens, and the recorded history has the rest.
const LINES: usize = 40;

/// The timeline around a violation's evidence, where `>` marks the evidence itself. Empty if the
/// violation points to nothing.
#[must_use]
pub fn evidence(outcome: &Outcome, violation: &Violation) -> Vec<String> {
    let entries = || outcome.evidence.iter().map(AsRef::as_ref);
    let timeline = Timeline::new(outcome.began, entries());
    let marked = |index: usize| violation.evidence.contains(&outcome.evidence[index].seq);
    let mut lines = Vec::new();
    let mut budget = LINES;
    let mut shown_until = 0;
    for window in windows(outcome.evidence.len(), marked) {
        let window = window.start..window.end.min(window.start + budget);
        if window.is_empty() {
            break;
        }
        budget -= window.len();
        lines.extend(left_out(window.start - shown_until));
        shown_until = window.end;
        let window = window.map(|index| timeline.line(&outcome.evidence[index], marked(index)));
        lines.extend(window);
    }
    if !lines.is_empty() {
        lines.extend(left_out(outcome.evidence.len() - shown_until));
    }
    lines.extend(absent(outcome, violation));
    lines
}

/// The stretches of entries to show: each marked one with its context, joined where they touch.
fn windows(count: usize, marked: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut windows: Vec<Range<usize>> = Vec::new();
    for index in (0..count).filter(|index| marked(*index)) {
        let window = index.saturating_sub(CONTEXT)..(index + CONTEXT + 1).min(count);
        match windows.last_mut() {
            // A gap of one line would be replaced by a line that says so.
            Some(last) if window.start <= last.end + 1 => last.end = window.end,
            _ => windows.push(window),
        }
    }
    windows
}

fn left_out(count: usize) -> Option<String> {
    (count > 0).then(|| format!("       … {count} entries"))
}

/// Evidence that the slice of the history does not hold is told, lest proof be lost in silence.
fn absent(outcome: &Outcome, violation: &Violation) -> Option<String> {
    let held = |seq| outcome.evidence.iter().any(|entry| entry.seq == seq);
    let absent = violation.evidence.iter().filter(|seq| !held(**seq));
    let absent: Vec<_> = absent.take(CONTEXT).map(|seq| format!("#{seq}")).collect();
    (!absent.is_empty()).then(|| {
        let absent = absent.join(", ");
        format!("       see also {absent} in the recorded history")
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::evidence;
    use crate::history::Seq;
    use crate::report::fixture::{failed, violation};

    #[track_caller]
    fn check(seqs: &[u64], expect: &Expect) {
        let mut violation = violation("");
        violation.evidence = seqs.iter().copied().map(Seq).collect();
        let lines = evidence(&failed(), &violation);
        let starts = lines
            .iter()
            .map(|line| line.chars().take(8).collect::<String>());
        expect.assert_eq(&starts.collect::<Vec<_>>().join("|"));
    }

    #[test]
    fn no_evidence_is_no_lines() {
        check(&[], &expect![[""]]);
    }

    #[test]
    fn evidence_stands_in_its_context() {
        check(
            &[10, 11],
            &expect!["       …|      #8|      #9|>    #10|>    #11|     #12|     #13|       …"],
        );
    }

    #[test]
    fn neighbouring_stretches_are_joined() {
        check(
            &[2, 8, 20],
            &expect![
                "      #0|      #1|>     #2|      #3|      #4|      #5|      #6|      #7|>     #8|      #9|     #10|       …|     #18|     #19|>    #20|     #21|     #22"
            ],
        );
    }

    #[test]
    fn what_the_slice_lacks_is_told() {
        check(&[99], &expect!["       s"]);
    }

    #[test]
    fn one_violation_cannot_flood_the_screen() {
        let mut outcome = failed();
        outcome.evidence = std::iter::repeat_n(outcome.evidence, 10)
            .flatten()
            .collect();
        let mut violation = violation("");
        violation.evidence = (0..23).map(Seq).collect();
        let lines = evidence(&outcome, &violation);
        assert_eq!(lines.len(), super::LINES + 1);
        assert_eq!(lines.last().expect("41 lines"), "       … 190 entries");
    }
}
