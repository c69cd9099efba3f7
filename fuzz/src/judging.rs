//! A history, judged by the oracle and shown by every report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cri_event_conformance::testing::case::{Case, load};
use cri_event_conformance::testing::checks::{self, Undecided};
use cri_event_conformance::testing::history::{
    CaseHistory, CaseRun, Entry, HostInstant, RunInfo, codec,
};
use cri_event_conformance::testing::oracle::{self, Index, WholeRun};
use cri_event_conformance::testing::outcome::{
    Capabilities, Levels, Outcome, RunReport, Verdict, Violation,
};
use cri_event_conformance::testing::report::{self, Evidence, Timeline, json, junit};
use serde::de::IgnoredAny;

/// The maximum number of entries of an outcome in a run.
const EVIDENCE: usize = 60;

/// The maximum length of a line. A single value is cut at 2,000 characters.
const LINE: usize = 2_500;

static CASES: LazyLock<Vec<Case>> =
    LazyLock::new(|| load::embedded().expect("the cases are valid"));

/// The suite's case of an id; any case for an unknown id.
pub fn case(id: &str) -> &'static Case {
    let found = CASES.iter().find(|case| case.id == id);
    found.unwrap_or(&CASES[0])
}

/// The suite's case of a number, modulo their count.
pub fn numbered_case(number: usize) -> &'static Case {
    &CASES[number % CASES.len()]
}

/// Judges the history of a case, and writes every report of it.
pub fn judge_and_report(case: &Case, run: CaseRun, entries: &[Arc<Entry>]) {
    let mut history = CaseHistory::new(run);
    let mut whole_run = WholeRun::default();
    for entry in entries {
        history.push(entry);
        whole_run.push(entry);
    }
    let index = Index::new(&history);
    let _ = checks::pending(&case.claim(), &index);
    let _ = oracle::unannounced(&index);
    let judgement = checks::judge(&case.claim(), &index);
    let mut invariants = oracle::invariants(&index);
    invariants.extend(whole_run.violations(&invariants));
    for violation in invariants.iter().chain(&judgement.violations) {
        let _ = oracle::context(&history, violation);
    }
    let (verdict, reason) = match judgement.undecided {
        Some(Undecided::Error(reason)) => (Verdict::Error, Some(reason)),
        Some(Undecided::Inconclusive(reason)) => (Verdict::Inconclusive, Some(reason)),
        Some(Undecided::Skip(reason)) => (Verdict::Skip, Some(reason)),
        None if judgement.violations.is_empty() => (Verdict::Pass, None),
        None => (Verdict::Fail, None),
    };
    let invariants = Outcome {
        id: "INV-00".into(),
        name: "invariant::all-of-them".into(),
        verdict: Verdict::Fail,
        violations: invariants,
        ..outcome(case, entries)
    };
    let of_case = Outcome {
        verdict,
        reason,
        violations: judgement.violations,
        advice: judgement.advice,
        ..outcome(case, history.entries())
    };
    report_all(vec![of_case, invariants]);
    let timeline = Timeline::new(HostInstant::default(), entries.iter().map(AsRef::as_ref));
    for entry in entries {
        assert_plain(&timeline.line(entry, true));
    }
}

/// Asserts that encoded entries are decoded again, and encoded to the same bytes.
pub fn assert_survives_encoding(entries: &[Entry]) {
    let bytes = encoded(entries);
    let again = codec::decode(&bytes);
    assert_eq!(again.fault, None);
    assert_eq!(encoded(&again.entries), bytes);
}

fn encoded(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        codec::encode(entry, &mut bytes);
    }
    bytes
}

fn outcome(case: &Case, evidence: &[Arc<Entry>]) -> Outcome {
    Outcome {
        id: case.id.as_str().into(),
        name: case.name.as_str().into(),
        repetition: None,
        title: case.title.as_str().into(),
        why: case.why.as_str().into(),
        sources: case.sources.as_slice().into(),
        requirements: [].into(),
        levels: case.levels,
        race: false,
        broken_in: Vec::new(),
        broken_levels: Levels::default(),
        seen: BTreeMap::new(),
        hint: None,
        pages: BTreeSet::new(),
        verdict: Verdict::Pass,
        reason: None,
        violations: Vec::new(),
        advice: Vec::new(),
        leftovers: Vec::new(),
        evidence: evidence.iter().take(EVIDENCE).cloned().collect(),
        began: evidence
            .first()
            .map_or(HostInstant::default(), |entry| entry.at),
        duration: Duration::from_secs(1),
    }
}

fn report_all(outcomes: Vec<Outcome>) {
    for outcome in &outcomes {
        let evidence = Evidence::of(outcome);
        let lines = |violation: &Violation| evidence.lines(violation);
        for line in outcome
            .violations
            .iter()
            .chain(&outcome.advice)
            .flat_map(lines)
        {
            assert_plain(&line);
        }
        report::failure(outcome).lines().for_each(assert_plain);
    }
    let run_report = RunReport {
        expired: Vec::new(),
        info: RunInfo::default(),
        profiles: Vec::new(),
        tier: None,
        watch: None,
        partial: false,
        began: HostInstant::default(),
        duration: Duration::from_secs(1),
        image: String::new(),
        outcomes,
        faults: Vec::new(),
        foreign_pods: 0,
        capabilities: Capabilities::default(),
        latencies: Vec::new(),
        largest_event: None,
        notes: Vec::new(),
    };
    report::summary(&run_report, false, 80)
        .lines()
        .for_each(assert_plain);
    let mut xml = Vec::new();
    junit::write(&run_report, &mut xml).expect("memory takes all");
    let xml = String::from_utf8(xml).expect("a document is text");
    roxmltree::Document::parse(&xml).expect("a document is well-formed");
    let mut text = Vec::new();
    json::write(&run_report, &mut text).expect("memory takes all");
    serde_json::from_slice::<IgnoredAny>(&text).expect("a document is JSON");
}

/// No line lets a runtime control a terminal, or flood it.
fn assert_plain(line: &str) {
    assert!(
        line.chars().count() < LINE,
        "{} characters",
        line.chars().count()
    );
    assert!(!line.chars().any(char::is_control), "{line:?}");
}
