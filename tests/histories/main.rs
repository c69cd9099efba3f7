//! Recordings of real runtimes, judged again: the verdicts stay the same, and every case and every
//! invariant fails after a single change of the recording.

mod anything;
mod every;
#[path = "../support/golden.rs"]
mod golden;
mod mutation;
mod recording;
mod runs;
mod snapshots;
mod tables;
mod watched;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use cri_event_conformance::testing::case::{Case, load, parse};
use cri_event_conformance::testing::checks::{self, Undecided};
use cri_event_conformance::testing::history::{Body, CaseHistory, CaseRun, Entry, codec};
use cri_event_conformance::testing::oracle::{self, INVARIANTS, Index, WholeRun};
use cri_event_conformance::testing::outcome::Violation;
use golden::assert_file;

use mutation::mutate;
use tables::{CASES, INVARIANTS_BROKEN, NEIGHBOURS, REPAIRS};

/// The verdict of the oracle on a whole history.
struct Judged {
    verdict: &'static str,
    reason: Option<String>,
    violations: Vec<Violation>,
    advice: Vec<Violation>,
    invariants: Vec<Violation>,
}

impl Judged {
    /// The ids of the broken rules.
    fn red(&self) -> BTreeSet<&str> {
        let broken = self.violations.iter().chain(&self.invariants);
        broken.map(|violation| violation.rule.as_str()).collect()
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/histories")
}

/// Every recording of one case, by the name of its file.
fn recordings() -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for folder in fs::read_dir(folder())? {
        let folder = folder?.path();
        if folder.ends_with("runs") {
            continue;
        }
        for file in folder.read_dir().into_iter().flatten() {
            let path = file?.path();
            let stem = path.with_extension("");
            let name = stem
                .strip_prefix(self::folder())
                .expect("it is below the folder");
            found.push((name.display().to_string(), path));
        }
    }
    found.sort();
    Ok(found)
}

#[track_caller]
fn read(path: &Path) -> Vec<Entry> {
    let bytes = fs::read(path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
    let decoded = codec::decode_file(&bytes);
    assert_eq!(decoded.fault, None, "{}", path.display());
    decoded.entries
}

/// A recorded history in which the case passes.
#[track_caller]
fn clean(id: &str) -> Vec<Entry> {
    let mut entries = read(&folder().join(format!("containerd-2.1/{id}.binpb")));
    for (_, repair) in REPAIRS.iter().filter(|(of, _)| *of == id) {
        mutate(&mut entries, repair);
    }
    entries
}

#[track_caller]
fn mutated(id: &str, words: &str) -> Judged {
    let mut entries = clean(id);
    mutate(&mut entries, words);
    judge(&entries)
}

/// Judges the one case of a history by the definition that the history carries.
#[track_caller]
fn judge(entries: &[Entry]) -> Judged {
    judge_as(&case_of(entries).1, entries)
}

/// Judges the one case of a history by this definition.
#[track_caller]
fn judge_as(case: &Case, entries: &[Entry]) -> Judged {
    let began = entries.iter().find_map(|entry| match entry.body {
        Body::CaseBegan { case, .. } => Some(case),
        _ => None,
    });
    let mut history = CaseHistory::new(began.expect("no case began"));
    let mut whole_run = WholeRun::default();
    for entry in entries {
        history.push(&Arc::new(entry.clone()));
        whole_run.push(entry);
    }
    let index = Index::new(&history);
    let judgement = checks::judge(&case.claim(), &index);
    let mut invariants = oracle::invariants(&index);
    invariants.extend(whole_run.violations(&invariants));
    let (verdict, reason) = match judgement.undecided {
        Some(Undecided::Error(reason)) => ("error", Some(reason)),
        Some(Undecided::Inconclusive(reason)) => ("inconclusive", Some(reason)),
        Some(Undecided::Skip(reason)) => ("skip", Some(reason)),
        None if judgement.violations.is_empty() => ("pass", None),
        None => ("fail", None),
    };
    Judged {
        verdict,
        reason,
        violations: judgement.violations,
        advice: judgement.advice,
        invariants,
    }
}

#[track_caller]
fn case_of(entries: &[Entry]) -> (CaseRun, Case) {
    let began = entries
        .iter()
        .find(|entry| matches!(entry.body, Body::CaseBegan { .. }));
    let Some(Body::CaseBegan {
        case: run,
        id,
        definition,
        ..
    }) = began.map(|entry| &entry.body)
    else {
        panic!("no case began");
    };
    let cases = load::embedded().expect("the cases are valid");
    let now = cases.iter().find(|case| case.id == *id);
    let name = &now.unwrap_or_else(|| panic!("{id}: the case is gone")).name;
    let path = format!("{}.yaml", name.replace("::", "/"));
    let case = parse(Path::new(&path), definition);
    (*run, case.expect("what was run was valid"))
}

fn lines_of(kind: &str, violations: &[Violation]) -> String {
    let line = |found: &Violation| {
        let places: Vec<_> = found.evidence.iter().map(|seq| format!("#{seq}")).collect();
        let (rule, places) = (&found.rule, places.join(" "));
        // Ids differ from run to run, and the places identify it.
        let subject = found.subject.split(" (").next().unwrap_or_default();
        let (expected, actual) = (found.expected(), found.actual());
        format!("  {kind} {rule}, {subject} at {places}\n    {expected}\n    {actual}\n")
    };
    violations.iter().map(line).collect()
}

#[test]
fn recorded_verdicts_stay() {
    let mut golden = String::new();
    for (name, path) in recordings().expect("the recordings can be listed") {
        let judged = judge(&read(&path));
        let reason = judged.reason.map(|reason| format!(", {reason}"));
        golden += &[
            &name,
            ": ",
            judged.verdict,
            &reason.unwrap_or_default(),
            "\n",
        ]
        .concat();
        golden += &lines_of("broken", &judged.violations);
        golden += &lines_of("broken", &judged.invariants);
        golden += &lines_of("advice", &judged.advice);
    }
    assert_file(folder().join("verdicts.txt"), &golden);
}

/// Except for the first entry, which has the version of the format.
#[test]
fn recordings_are_written_as_they_were_read() {
    for (name, path) in recordings().expect("the recordings can be listed") {
        let (mut first, mut written) = (Vec::new(), Vec::new());
        for (place, entry) in read(&path).iter().enumerate() {
            codec::encode(entry, if place == 0 { &mut first } else { &mut written });
        }
        let file = fs::File::open(&path).expect("it was just read");
        let bytes = zstd::decode_all(file).expect("it was just decompressed");
        assert!(bytes.get(first.len()..) == Some(&written), "{name}");
    }
}

#[test]
fn every_case_has_a_recording_in_which_it_passes() {
    for (id, _) in CASES {
        let judged = judge(&clean(id));
        let red = lines_of("broken", &judged.violations) + &lines_of("broken", &judged.invariants);
        assert_eq!((judged.verdict, red.as_str()), ("pass", ""), "{id}");
    }
}

#[test]
fn every_case_can_turn_red() {
    for (id, mutations) in CASES {
        for words in *mutations {
            let judged = mutated(id, words);
            assert_eq!(judged.verdict, "fail", "{id}: {words}");
        }
    }
}

#[test]
fn every_invariant_can_turn_red() {
    for (id, mutations) in INVARIANTS_BROKEN {
        for (case, words) in *mutations {
            assert!(
                mutated(case, words).red().contains(id),
                "{id}: {words} in {case}"
            );
        }
    }
}

#[test]
fn what_is_only_close_to_wrong_stays_green() {
    for (id, words) in NEIGHBOURS {
        let judged = mutated(id, words);
        assert_eq!(
            (judged.verdict, judged.red().into_iter().collect::<Vec<_>>()),
            ("pass", vec![]),
            "{id}: {words}"
        );
    }
}

/// The coverage of the oracle: the rules that each defect breaks, and no rule without a defect.
#[test]
fn each_defect_turns_red_what_it_should() {
    let of_cases = CASES
        .iter()
        .flat_map(|(id, all)| all.iter().map(move |words| (*id, *words)));
    let of_invariants = INVARIANTS_BROKEN
        .iter()
        .flat_map(|(_, all)| all.iter().copied());
    let all: BTreeSet<(&str, &str)> = of_cases.chain(of_invariants).collect();
    let line = |(id, words): &(&str, &str)| {
        let judged = mutated(id, words);
        let red: Vec<_> = judged.red().into_iter().collect();
        format!("{id}  {words:<48}{}\n", red.join(" "))
    };
    let table: String = all.iter().map(line).collect();
    assert_file(folder().join("mutations.txt"), &table);
}

#[test]
fn every_recording_and_invariant_has_a_mutation() {
    let recorded = recordings().expect("the recordings can be listed");
    let mut there: Vec<_> = recorded
        .iter()
        .filter_map(|(name, _)| name.strip_prefix("containerd-2.1/"))
        .collect();
    there.retain(|name| load::embedded().is_ok_and(|all| all.iter().any(|case| case.id == *name)));
    let tried: Vec<_> = CASES.iter().map(|(id, _)| *id).collect();
    assert_eq!(there, tried, "each recording has a line in CASES, in order");
    let there: Vec<_> = INVARIANTS.iter().map(|invariant| invariant.id).collect();
    let tried: Vec<_> = INVARIANTS_BROKEN.iter().map(|(id, _)| *id).collect();
    assert_eq!(
        there, tried,
        "each invariant has a line in INVARIANTS_BROKEN, in order"
    );
    let empty = CASES.iter().filter(|(_, mutations)| mutations.is_empty());
    let empty = empty.map(|(id, _)| *id);
    let empty = empty.chain(
        INVARIANTS_BROKEN
            .iter()
            .filter(|(_, all)| all.is_empty())
            .map(|(id, _)| *id),
    );
    assert_eq!(
        empty.collect::<Vec<_>>(),
        Vec::<&str>::new(),
        "without a mutation"
    );
}

/// A recorded case may have fewer rounds than the real one, and other limits; otherwise it is the
/// same.
#[test]
fn recordings_are_of_the_cases_as_they_are() {
    let cases = load::embedded().expect("the cases are valid");
    let claims = |text: &str| {
        // How often a step is taken, and where a case can be run, is no claim.
        let other = ["times:", "items:", "needs:", "exclusive:"];
        let is_claim = |line: &&str| !other.iter().any(|other| line.contains(other));
        let mut lines = text.lines();
        lines.find(|line| line.starts_with("levels:"));
        lines
            .filter(is_claim)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (_, path) in recordings().expect("the recordings can be listed") {
        let (_, recorded) = case_of(&read(&path));
        let now = cases.iter().find(|case| case.id == recorded.id);
        let now = now.unwrap_or_else(|| panic!("{}: the case is gone", recorded.id));
        let hint = "the case has changed: record it again";
        assert_eq!(
            claims(&recorded.definition),
            claims(&now.definition),
            "{hint}"
        );
    }
}

#[test]
fn a_history_that_is_cut_off_is_never_a_pass() {
    for (id, _) in CASES {
        let entries = clean(id);
        let ended = entries
            .iter()
            .position(|entry| matches!(entry.body, Body::StepsEnded { .. }));
        let judged = judge(&entries[..ended.expect("the steps ended")]);
        assert_eq!(judged.verdict, "error", "{id}");
    }
}
