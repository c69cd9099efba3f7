//! Lines, JSON events and characters for the outcomes of a run.
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use expect_test::{Expect, expect};

use super::*;
use crate::report::fixture::{fixture, outcome};

#[test]
fn an_undecided_case_is_ignored_and_fails_the_suite() {
    let mut events = Events::new();
    let mut outcomes = fixture().outcomes;
    outcomes.retain(|outcome| outcome.verdict == Verdict::Error);
    let begun = events.begin(1, 0);
    let lines = begun + &events.outcome("a", &outcomes[0]) + &events.end();
    let lines = lines.lines().map(serde_json::from_str::<serde_json::Value>);
    let lines: Vec<_> = lines.map(Result::unwrap).collect();
    let [started, _, ended, suite] = &lines[..] else {
        panic!("{lines:#?}");
    };
    assert_eq!(
        (&started["event"], &started["test_count"]),
        (&"started".into(), &1.into())
    );
    assert_eq!(
        (&ended["event"], &ended["verdict"]),
        (&"ignored".into(), &"error".into())
    );
    assert_eq!(
        (&suite["event"], &suite["undecided"]),
        (&"failed".into(), &1.into())
    );
    assert_eq!(suite["failed"], 0);
}

const TERMINAL: usize = 84;

fn printed(outcomes: &[Outcome], look: Look) -> String {
    let mut lines = Lines::new(look, 40, Some(TERMINAL));
    let mut text = lines.begin(outcomes.len(), 1);
    for outcome in outcomes {
        let name = format!("{} {}", outcome.id, outcome.label());
        text += &lines.outcome(&name, outcome);
    }
    text += &lines.end();
    without_colours(&text)
}

fn without_colours(text: &str) -> String {
    let parts = text
        .split("\u{1b}[")
        .enumerate()
        .map(|(nth, part)| match part.split_once('m') {
            Some((_, rest)) if nth > 0 => rest,
            _ => part,
        });
    parts.collect()
}

fn check(outcomes: &[Outcome], expected: &Expect) {
    let text = printed(outcomes, Look::default());
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
            test ORD-01 order::four-events-in-order       ... FAILED (1.2 s): broke Current: c …
            test STP-02 stop::stop-grace-is-kept          ... undecided (1.2 s): \u{1b}[31mred\…
            test OOM-01 oom::oom-kill-says-so             ... skipped: needs memory-limit, whic…
            test OOM-02 oom::oom-of-a-child               ... inconclusive (1.2 s): no OOM kill…
            test SBX-04 sandbox::deleted-names-the-pod    ... known to fail (1.2 s): containerd…
            test ORD-02 order::started-before-stopped#2   ... UNEXPECTEDLY PASSED (1.2 s)
            test INV-08 invariant::events-are-prompt      ... ok, but breaks a SHOULD
        "#]],
    );
    let terse = Look {
        format: Format::Terse,
        ..Look::default()
    };
    expect![".FusikP."].assert_eq(printed(&fixture().outcomes, terse).lines().nth(2).unwrap());
    let quiet = Look {
        quiet: true,
        ..Look::default()
    };
    let listed = printed(&fixture().outcomes, quiet);
    let listed = listed.lines().filter(|line| line.starts_with("test "));
    let ids: Vec<_> = listed.filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(ids, ["ORD-01", "STP-02", "ORD-02"]);
}

#[test]
fn a_common_reason_for_skips_is_printed_once() {
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
    let text = printed(&[known], Look::default());
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert_eq!(longest, Some(TERMINAL), "{text}");
}

#[test]
fn a_narrow_terminal_shows_the_beginning_of_a_name_and_no_reason() {
    let mut lines = Lines::new(Look::default(), 60, Some(40));
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
