//! Each expectation of every case can be broken on its own, by a single change in a passing history
//! of the model.

use std::sync::Arc;

use cri_event_conformance::testing::case::{Case, Step, load};
use cri_event_conformance::testing::checks::{self, Expectation};
use cri_event_conformance::testing::history::{
    Body, CaseHistory, ContainerState, Entry, EventKind, codec,
};
use cri_event_conformance::testing::oracle::Index;
use cri_event_conformance::testing::plan::Selection;
use cri_event_conformance::testing::run::{Rehearsal, rehearse};
use serde_json::{Value, json};

use crate::anything::Mutation;
use crate::recording::Recording;

/// Mutations of every event, one at a time.
const MUTATIONS: &[Mutation] = &[
    Mutation::Remove,
    Mutation::Repeat,
    Mutation::Kind(EventKind::Created),
    Mutation::Kind(EventKind::Started),
    Mutation::Kind(EventKind::Stopped),
    Mutation::Kind(EventKind::Deleted),
    Mutation::NoSandbox,
    Mutation::OtherUid,
    Mutation::OtherSandbox,
    Mutation::OtherSandboxState,
    Mutation::CreatedAt(-2_000_000_000),
    Mutation::CreatedAt(2_000_000_000),
    Mutation::OwnAbsent,
    Mutation::OwnTwice,
    Mutation::OwnState(ContainerState::Created),
    Mutation::OwnState(ContainerState::Running),
    Mutation::OwnExit,
    Mutation::OwnReason,
    Mutation::OwnWithoutImage,
    Mutation::OwnNeverFinished,
    Mutation::OthersAbsent,
    Mutation::OthersExited,
    Mutation::OtherId,
    Mutation::AlsoListed,
];

/// Mutations of the end of every call.
const ON_CALLS: &[Mutation] = &[Mutation::CallFails, Mutation::ReportsNone];

/// The number of rounds of a `repeat` that suffices: each expectation can be broken in one of them.
const ROUNDS: u32 = 3;

/// These steps with few rounds, which are equivalent.
fn shorten(steps: &mut [Step]) {
    for step in steps {
        match step {
            Step::Repeat(repeat) => {
                repeat.times = repeat.times.map(|times| times.min(ROUNDS));
                repeat.items.truncate(ROUNDS as usize);
                shorten(&mut repeat.steps);
            }
            Step::CallsReturnWithin(prompt) => shorten(&mut prompt.steps),
            Step::FreezeMonitor(frozen) => shorten(&mut frozen.steps),
            Step::Measure(measured) => shorten(&mut measured.steps),
            Step::Parallel(parallel) => {
                parallel
                    .branches
                    .iter_mut()
                    .for_each(|branch| shorten(&mut branch.steps));
            }
            Step::Resubscribe(gap) => shorten(&mut gap.meanwhile),
            Step::RestartRuntime(restart) => {
                shorten(&mut restart.during);
                shorten(&mut restart.meanwhile);
            }
            _ => {}
        }
    }
}

/// The recording of a case on the model without a defect.
fn on_the_model(case: &Case) -> Recording {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("history");
    let rehearsal = Rehearsal {
        selection: Selection {
            filters: vec![case.id.clone()],
            exact: true,
            ..Selection::default()
        },
        history: Some(file.clone()),
        ..Rehearsal::fit_for(case)
    };
    rehearse(rehearsal, vec![case.clone()]).expect("the model runs it");
    let entries = codec::decode_file(&std::fs::read(&file).expect("the history"));
    Recording::of(entries.entries)
}

/// All single changes of the recording.
fn made_wrong(recording: &Recording) -> impl Iterator<Item = Vec<Entry>> {
    let places = 0..recording.entries.len();
    let is_ours = |place: &usize| recording.judged(*place).is_some() || recording.lists(*place);
    let ours: Vec<usize> = places.clone().filter(is_ours).collect();
    let ends = places.clone().filter(|place| {
        let body = &recording.entries[*place].body;
        matches!(body, Body::CallEnded { result: Ok(_), .. })
    });
    let in_place = |mutations: &'static [Mutation]| {
        move |place: usize| {
            let mutations = mutations.iter();
            mutations.map(move |mutation| recording.with(*mutation, place, place))
        }
    };
    let events = ours.clone().into_iter().flat_map(in_place(MUTATIONS));
    let others = places.filter_map(|place| recording.with_other(place));
    let calls = ends.flat_map(in_place(ON_CALLS));
    let pairs: Vec<(usize, usize)> = ours
        .iter()
        .copied()
        .zip(ours.iter().copied().skip(1))
        .collect();
    let swaps = pairs.into_iter();
    let swaps = swaps.map(|(place, other)| recording.with(Mutation::Swap, place, other));
    let late = std::iter::once_with(|| all_late(recording));
    events.chain(others).chain(calls).chain(swaps).chain(late)
}

/// The recording with all events two seconds late: one in a hundred may be late.
fn all_late(recording: &Recording) -> Vec<Entry> {
    let mut entries = recording.entries.clone();
    for entry in &mut entries {
        if let Body::Event { event, .. } = &mut entry.body {
            event.created_at.0 -= 2_000_000_000;
        }
    }
    entries
}

/// The expectation; one for each claim, if it makes several about a subscription.
fn single_claims(expectation: &Expectation) -> Vec<Expectation> {
    let check = serde_json::to_value(&expectation.check).expect("it has a JSON form");
    let Some(Value::Object(whole)) = check.get("subscription") else {
        return vec![expectation.clone()];
    };
    let shared = ["of", "ends-after"];
    let claims = whole.keys().filter(|key| !shared.contains(&key.as_str()));
    claims
        .map(|claim| {
            let mut single = whole.clone();
            single.retain(|key, _| key == claim || shared.contains(&key.as_str()));
            let check = serde_json::from_value(json!({"subscription": single}));
            Expectation {
                check: check.expect("a claim is a check"),
                ..expectation.clone()
            }
        })
        .collect()
}

/// The expectations of a case that no mutation breaks on its own.
fn unbreakable(case: &Case, recording: &Recording) -> Vec<String> {
    let alone = |expectation: Expectation| Case {
        expect: vec![expectation],
        // Few rounds do not make a situation of many.
        provokes: None,
        ..case.clone()
    };
    let claims = case.expect.iter().flat_map(single_claims);
    let mut unbroken: Vec<Case> = claims.map(alone).collect();
    for entries in made_wrong(recording) {
        if unbroken.is_empty() {
            break;
        }
        let mut history = CaseHistory::new(recording.run);
        for entry in entries {
            history.push(&Arc::new(entry));
        }
        unbroken.retain(|only| {
            let judged = checks::judge(&only.claim(), &Index::new(&history));
            judged.violations.is_empty() && judged.advice.is_empty()
        });
    }
    let describe = |only: &Case| format!("{}: {:?}", only.id, only.expect[0].check);
    unbroken.iter().map(describe).collect()
}

#[test]
fn every_expectation_can_turn_red() {
    let cases = load::embedded().expect("the cases are valid");
    let green = cases.into_iter().flat_map(|mut case| {
        shorten(&mut case.steps);
        let recording = on_the_model(&case);
        unbreakable(&case, &recording)
    });
    let green: Vec<String> = green.collect();
    assert!(green.is_empty(), "no mutation breaks\n{}", green.join("\n"));
}
