//! Recordings of whole runs: each gives the same report when judged again.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cri_event_conformance::testing::history::{Body, Entry, StepsEnd};
use cri_event_conformance::testing::outcome::{RunReport, Verdict};
use cri_event_conformance::testing::plan::Selection;
use cri_event_conformance::testing::report;
use cri_event_conformance::testing::verdicts::{Accepted, Scope, Verdicts};

use crate::golden::assert_file;

/// Every recorded run, by its path.
fn runs() -> Vec<PathBuf> {
    let folder = crate::folder().join("runs");
    let files = fs::read_dir(folder).expect("the runs can be listed");
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|kind| kind == "binpb"));
    files.sort();
    files
}

/// The report of a history.
#[track_caller]
fn judged(entries: &[Entry], scope: Scope) -> RunReport {
    let mut verdicts = Verdicts::new(scope);
    for entry in entries {
        if let Some(ended) = verdicts.push(&Arc::new(entry.clone())) {
            verdicts.settle(ended.judge());
        }
    }
    verdicts.report(None)
}

fn of(name: &str) -> Vec<Entry> {
    crate::read(&crate::folder().join("runs").join(name))
}

/// Checks all forms of a report.
fn check_reports(path: &Path, report: &RunReport) {
    let mut text = report::summary(report, false, 100);
    for outcome in &report.outcomes {
        if !matches!(outcome.verdict, Verdict::Pass | Verdict::Skip) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{}", report::failure(outcome));
        }
    }
    assert_file(path.with_extension("txt"), &text);
    let mut json = Vec::new();
    report::json::write(report, &mut json).expect("a vector takes everything");
    assert_file(path.with_extension("json"), &String::from_utf8_lossy(&json));
    let mut junit = Vec::new();
    report::junit::write(report, &mut junit).expect("a vector takes everything");
    assert_file(path.with_extension("xml"), &String::from_utf8_lossy(&junit));
}

#[test]
fn recorded_runs_come_to_the_reports_that_they_had() {
    for path in runs() {
        check_reports(&path, &judged(&crate::read(&path), Scope::default()));
    }
}

/// For any end of a history: cases that ended before keep their outcome, and no other is decided.
#[test]
fn a_run_that_is_cut_off_is_judged_up_to_there() {
    for path in runs() {
        let entries = crate::read(&path);
        let whole = judged(&entries, Scope::default());
        let planned = entries
            .iter()
            .position(|entry| matches!(entry.body, Body::RunPlanned(_)));
        let planned = planned.expect("it was planned");
        let ended = entries
            .iter()
            .position(|entry| matches!(entry.body, Body::RunEnded(_)));
        for cut in planned + 1..ended.expect("it ended") {
            let part = judged(&entries[..cut], Scope::default());
            assert_eq!(part.faults, ["the history ends before its run does"]);
            assert_eq!(part.outcomes.len(), whole.outcomes.len());
            for (part, whole) in part.outcomes.iter().zip(&whole.outcomes) {
                let is_same = part.verdict == whole.verdict && part.reason == whole.reason;
                let reason = part.reason.as_deref().unwrap_or_default();
                let says_so = reason.contains("the history");
                assert!(
                    is_same || says_so || part.is_invariant(),
                    "{}: {part:#?}",
                    path.display()
                );
                assert!(is_same || part.verdict != Verdict::Pass, "{part:#?}");
            }
        }
    }
}

/// The selected part is reported as if nothing else had been recorded.
#[test]
fn a_part_of_a_run_is_judged_by_itself() {
    let entries = of("containerd-2.1-failing.binpb");
    let selection = Selection {
        filters: vec!["ORD-01".to_owned(), "SBX-01".to_owned()],
        ..Selection::default()
    };
    let scope = Scope {
        selection,
        accepted: Accepted::Recorded,
    };
    let part = judged(&entries, scope);
    assert_eq!(part.count(Verdict::Fail), 0, "{part:#?}");
    let whole = judged(&entries, Scope::default());
    assert!(whole.count(Verdict::Fail) > 0, "{whole:#?}");
}

#[test]
fn other_expectations_take_the_place_of_the_recorded_ones() {
    let entries = of("containerd-2.1-known.binpb");
    let recorded = judged(&entries, Scope::default());
    assert!(recorded.count(Verdict::Known) > 0, "{recorded:#?}");
    let scope = Scope {
        selection: Selection::default(),
        accepted: Accepted::Listed(Box::default()),
    };
    let none = judged(&entries, scope);
    assert_eq!(none.count(Verdict::Known), 0, "{none:#?}");
    assert_eq!(
        none.count(Verdict::Fail),
        recorded.count(Verdict::Known),
        "{none:#?}"
    );
}

/// If every case of a run was interrupted, no invariant is reported as holding.
#[test]
fn an_invariant_holds_nowhere_if_no_case_ran_to_its_end() {
    let entries = of("containerd-2.1-clean.binpb");
    let without_ends = entries.into_iter().map(|mut entry| {
        if let Body::StepsEnded { end, .. } = &mut entry.body {
            *end = StepsEnd::Error("interrupted".to_owned());
        }
        entry
    });
    let report = judged(&without_ends.collect::<Vec<_>>(), Scope::default());
    for outcome in &report.outcomes {
        let expected = if outcome.is_invariant() {
            Verdict::Skip
        } else {
            Verdict::Error
        };
        assert_eq!(outcome.verdict, expected, "{outcome:#?}");
        if !outcome.is_invariant() {
            assert!(
                report::failure(outcome).contains("last entries:\n"),
                "{outcome:#?}"
            );
        }
    }
}

/// Histories of format 1 have no plan: their cases are reported in order of appearance.
#[test]
fn a_history_without_a_plan_is_judged_case_by_case() {
    let path = crate::folder().join("containerd-2.1/ORD-01.binpb");
    let entries = crate::read(&path);
    let report = judged(&entries, Scope::default());
    let first = &report.outcomes[0];
    assert_eq!((&*first.id, first.verdict), ("ORD-01", Verdict::Pass));
    assert_eq!(report.count(Verdict::Pass), report.outcomes.len());
    assert_eq!(report.faults, Vec::<String>::new());
    let report = judged(&entries[..entries.len() / 2], Scope::default());
    assert_eq!(report.outcomes[0].verdict, Verdict::Error);
    assert_eq!(report.faults.len(), 1);
}
