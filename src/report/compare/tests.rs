//! Pairs of reports with one difference, and the resulting text.

use expect_test::expect;

use super::Comparison;
use crate::outcome::{Level, Outcome, Profile, RunReport, Verdict};
use crate::report::fixture::{fixture, outcome, violation};
use crate::report::json::{self, Document};

fn written(outcomes: Vec<Outcome>) -> Document {
    let report = RunReport {
        outcomes,
        faults: Vec::new(),
        profiles: vec![Profile::Cache],
        ..fixture()
    };
    let mut bytes = Vec::new();
    json::write(&report, &mut bytes).unwrap();
    Document::parse(str::from_utf8(&bytes).unwrap()).unwrap()
}

fn one(verdict: Verdict) -> Document {
    written(vec![outcome("ORD-01", "order::one", verdict)])
}

/// Checks the list that contains a change from one verdict to another, and whether anything is
/// worse.
#[track_caller]
fn check(before: Verdict, after: Verdict, expect: (&str, bool)) {
    let compared = Comparison::of(&one(before), &one(after));
    let lists = [
        ("worse", &compared.worse),
        ("better", &compared.better),
        ("other", &compared.other),
        ("new", &compared.new),
        ("gone", &compared.gone),
    ];
    let found = lists.iter().filter(|(_, changes)| !changes.is_empty());
    let found: Vec<_> = found.map(|(word, _)| *word).collect();
    assert_eq!(
        (&*found.join(" "), compared.is_worse()),
        expect,
        "{before} {after}"
    );
}

#[test]
fn what_fails_and_did_not_is_worse() {
    check(Verdict::Pass, Verdict::Fail, ("worse", true));
    check(Verdict::Pass, Verdict::Known, ("worse", true));
    check(Verdict::Known, Verdict::Fail, ("worse", true));
    check(Verdict::Skip, Verdict::Fail, ("worse", true));
    check(Verdict::UnexpectedPass, Verdict::Known, ("worse", true));
    check(Verdict::Pass, Verdict::Error, ("worse", true));
}

#[test]
fn what_passes_and_did_not_is_better() {
    check(Verdict::Fail, Verdict::Pass, ("better", false));
    check(Verdict::Known, Verdict::UnexpectedPass, ("better", false));
    check(Verdict::Error, Verdict::Pass, ("better", false));
}

#[test]
fn other_changes_are_neither() {
    check(Verdict::Fail, Verdict::Fail, ("", false));
    check(Verdict::Fail, Verdict::Known, ("other", false));
    check(Verdict::Fail, Verdict::Skip, ("other", false));
    check(Verdict::Skip, Verdict::Pass, ("other", false));
    check(Verdict::Skip, Verdict::Known, ("other", false));
    check(Verdict::Inconclusive, Verdict::Known, ("other", false));
    check(Verdict::Error, Verdict::Known, ("other", false));
    // The verdict in the profile promises less: a MUST was not looked at.
    check(Verdict::Pass, Verdict::Inconclusive, ("other", true));
}

#[test]
fn a_race_that_shows_is_not_worse_unless_it_shows_what_is_no_race() {
    let of = |races: &[bool]| {
        let known = races.iter().map(|race| Outcome {
            race: *race,
            ..outcome("ORD-01", "order::one", Verdict::Known)
        });
        written(known.collect())
    };
    for (races, list, worse) in [
        (&[true][..], "changed", false),
        (&[true, false], "worse", true),
    ] {
        let compared = Comparison::of(&one(Verdict::Pass), &of(races));
        assert_eq!(compared.is_worse(), worse, "{compared:#?}");
        let text = compared.text();
        assert!(text.contains(&format!("{list:<8} ORD-01 ")), "{text}");
        assert!(text.contains(&format!("{list:<8} profile cache")), "{text}");
    }
}

#[test]
fn what_only_one_report_has_is_new_or_gone() {
    let (both, more) = (
        outcome("ORD-01", "order::one", Verdict::Pass),
        outcome("ORD-02", "order::two", Verdict::Pass),
    );
    let (less, more) = (written(vec![both.clone()]), written(vec![both, more]));
    let ids = |compared: &Comparison| {
        let ids = |changes: &[super::Change]| changes.iter().map(|it| it.id.clone()).collect();
        let (new, gone): (Vec<_>, Vec<_>) = (ids(&compared.new), ids(&compared.gone));
        (new.join(" "), gone.join(" "))
    };
    let grown = Comparison::of(&less, &more);
    assert_eq!(ids(&grown), ("ORD-02".to_owned(), String::new()));
    let shrunk = Comparison::of(&more, &less);
    assert_eq!(ids(&shrunk), (String::new(), "ORD-02".to_owned()));
    assert!(!shrunk.is_worse());
}

#[test]
fn of_repetitions_the_worst_counts() {
    let repeated = |verdicts: [Verdict; 2]| {
        let repeated = verdicts.map(|verdict| outcome("ORD-01", "order::one", verdict));
        written(repeated.to_vec())
    };
    let before = one(Verdict::Pass);
    for verdicts in [
        [Verdict::Fail, Verdict::Pass],
        [Verdict::Pass, Verdict::Fail],
    ] {
        let compared = Comparison::of(&before, &repeated(verdicts));
        assert_eq!(compared.worse.len(), 1, "{compared:?}");
    }
    let passed = repeated([Verdict::Pass, Verdict::Pass]);
    assert!(!Comparison::of(&before, &passed).is_worse());
}

#[test]
fn of_repetitions_the_rates_are_shown() {
    let repeated = |failed: usize| {
        let verdicts = (0..4).map(|nth| {
            if nth < failed {
                Verdict::Fail
            } else {
                Verdict::Pass
            }
        });
        let outcomes = verdicts.map(|verdict| outcome("ORD-01", "order::one", verdict));
        written(outcomes.collect())
    };
    let compared = |before: &Document, after: &Document| Comparison::of(before, after);
    for (before, after, expected) in [
        (
            repeated(0),
            repeated(3),
            "worse    ORD-01 order::one: pass (0 of 4 failed) → fail (3 of 4 failed)\n",
        ),
        (
            repeated(1),
            repeated(3),
            "changed  ORD-01 order::one: fail (1 of 4 failed) → fail (3 of 4 failed)\n",
        ),
        (
            one(Verdict::Pass),
            repeated(1),
            ": pass (0 of 1 failed) → fail (1 of 4 failed)\n",
        ),
        (
            one(Verdict::Pass),
            one(Verdict::Fail),
            "order::one: pass → fail\n",
        ),
    ] {
        let text = compared(&before, &after).text();
        assert!(text.contains(expected), "{text}");
    }
    let same = compared(&repeated(2), &repeated(2));
    assert!(same.other.is_empty(), "{same:?}");
    let more_often = compared(&one(Verdict::Pass), &repeated(0));
    assert!(more_often.other.is_empty(), "{more_often:?}");
    let rate = compared(&repeated(1), &repeated(3)).other[0].after_rate;
    assert_eq!((rate.failed, rate.decided), (3, 4));
}

#[test]
fn the_whole_comparison_is_shown_in_lines() {
    let before = written(vec![
        outcome("ORD-01", "order::one", Verdict::Pass),
        outcome("ORD-02", "order::two", Verdict::Fail),
        outcome("ORD-03", "order::three", Verdict::Pass),
    ]);
    let after = written(vec![
        outcome("ORD-01", "order::one", Verdict::Fail),
        outcome("ORD-02", "order::two", Verdict::Pass),
        outcome("ORD-04", "order::four\u{1b}[31m", Verdict::Skip),
    ]);
    let compared = Comparison::of(&before, &after);
    expect![[r"
        before   containerd 2.1.9, suite 0.1.0 (abcdef0), 2026-11-20T16:52:40.000Z, tier extended
        after    containerd 2.1.9, suite 0.1.0 (abcdef0), 2026-11-20T16:52:40.000Z, tier extended
        worse    ORD-01 order::one: pass → fail
        better   ORD-02 order::two: fail → pass
        new      ORD-04 order::four\u{1b}[31m: skip
        gone     ORD-03 order::three: pass
        1 worse, 1 better, 0 changed, 1 new, 1 gone
    "]]
    .assert_eq(&compared.text());
}

/// A report on a passed case, with advice of this level.
fn advised(level: Level) -> Document {
    let advice = crate::outcome::Violation {
        level,
        ..violation("late")
    };
    written(vec![Outcome {
        advice: vec![advice],
        ..outcome("ORD-01", "order::one", Verdict::Pass)
    }])
}

#[test]
fn newly_broken_and_mended_shoulds_are_reported() {
    let (kept, broken) = (one(Verdict::Pass), advised(Level::Should));
    let compared = Comparison::of(&kept, &broken);
    let ids = |shoulds: &[super::Should]| shoulds.iter().map(|it| it.id.clone()).collect();
    let ids_broken: Vec<String> = ids(&compared.should_broken);
    assert_eq!(ids_broken, ["ORD-01"]);
    assert!(!compared.is_worse(), "it is advice");
    let text = compared.text();
    assert!(
        text.contains("\nshould   ORD-01 order::one: expected "),
        "{text}"
    );
    assert!(
        text.ends_with("; SHOULDs: 1 newly broken, 0 mended\n"),
        "{text}"
    );
    let compared = Comparison::of(&broken, &kept);
    let ids_mended: Vec<String> = ids(&compared.should_mended);
    assert_eq!(ids_mended, ["ORD-01"]);
    assert!(compared.text().contains("\nmended   ORD-01 order::one: "));
}

#[test]
fn a_should_that_was_broken_before_or_not_decided_is_no_news() {
    let broken = advised(Level::Should);
    for (before, after) in [
        (broken.clone(), broken.clone()),
        (one(Verdict::Skip), broken.clone()),
        (broken, one(Verdict::Error)),
        (one(Verdict::Pass), advised(Level::May)),
    ] {
        let compared = Comparison::of(&before, &after);
        assert!(compared.should_broken.is_empty(), "{compared:?}");
        assert!(compared.should_mended.is_empty(), "{compared:?}");
    }
}

#[test]
fn anything_but_a_report_is_refused() {
    for (text, expected) in [
        ("", "it is empty; was the run"),
        ("<testsuites/>", "`--json` writes one"),
        ("[]", "check HISTORY --json FILE"),
        (
            r#"{"format": 9}"#,
            "it is of format 9, and this version of the suite reads 1",
        ),
        (r#"{"format": 1}"#, "missing field"),
    ] {
        let fault = Document::parse(text).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
    }
}

#[test]
fn injected_defects_are_named_beside_the_runtime() {
    let mut after = one(Verdict::Fail);
    after.endpoint += Document::INJECTS;
    after.endpoint += "drop-stopped";
    let text = Comparison::of(&one(Verdict::Pass), &after).text();
    let line = "after    containerd 2.1.9 through a relay that injects drop-stopped, suite ";
    assert!(text.contains(line), "{text}");
}
