//! Each expectation of every case can be broken, by itself: where the model has kept it, some one
//! thing made wrong in what the model did breaks it.

use std::sync::Arc;

use cri_event_conformance::case::{Case, load};
use cri_event_conformance::history::{Body, CaseHistory, ContainerState, Entry, EventKind, codec};
use cri_event_conformance::oracle;
use cri_event_conformance::plan::Selection;
use cri_event_conformance::run::{Rehearsal, rehearse};

use crate::anything::Mutation;
use crate::recording::Recording;

/// What is tried on every event, one at a time.
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

/// What is tried on the end of every call.
const ON_CALLS: &[Mutation] = &[Mutation::CallFails, Mutation::ReportsNone];

/// What the model does in a case, without a defect.
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
        ..Rehearsal::default()
    };
    rehearse(rehearsal, vec![case.clone()]).expect("the model runs it");
    let entries = codec::decode(&std::fs::read(&file).expect("the history"));
    Recording::of(entries.entries)
}

/// Whether any one mutation breaks the only expectation of a case.
fn can_be_broken(recording: &Recording, only: &Case) -> bool {
    let events = (0..recording.entries.len())
        .filter(|place| recording.judged(*place).is_some() || recording.lists(*place));
    let events: Vec<_> = events.collect();
    let judged_broken = |entries: Vec<Entry>| {
        let mut history = CaseHistory::new(recording.run);
        for entry in entries {
            history.push(&Arc::new(entry));
        }
        let judged = oracle::judge(only, &history);
        !judged.violations.is_empty() || !judged.advice.is_empty()
    };
    let breaks = |mutation: &Mutation, place: usize, other: usize| {
        judged_broken(recording.with(*mutation, place, other))
    };
    let alone = events.iter().any(|place| {
        MUTATIONS
            .iter()
            .any(|mutation| breaks(mutation, *place, *place))
    });
    let others = (0..recording.entries.len()).any(|place| {
        let made_wrong = recording.with_other(place);
        made_wrong.into_iter().any(judged_broken)
    });
    let mut ends = (0..recording.entries.len()).filter(|place| {
        let body = &recording.entries[*place].body;
        matches!(body, Body::CallEnded { result: Ok(_), .. })
    });
    let mut calls = || {
        ends.any(|place| {
            let mut mutations = ON_CALLS.iter();
            mutations.any(|mutation| breaks(mutation, place, place))
        })
    };
    let mut pairs = events.iter().zip(events.iter().skip(1));
    alone
        || others
        || calls()
        || pairs.any(|(place, other)| breaks(&Mutation::Swap, *place, *other))
}

#[test]
fn every_expectation_can_turn_red() {
    let mut green = Vec::new();
    for case in load::embedded().expect("the cases are valid") {
        let recording = on_the_model(&case);
        for expectation in &case.expect {
            let only = Case {
                expect: vec![expectation.clone()],
                ..case.clone()
            };
            if !can_be_broken(&recording, &only) {
                green.push(format!("{}: {:?}", case.id, expectation.check));
            }
        }
    }
    assert!(green.is_empty(), "no mutation breaks\n{}", green.join("\n"));
}
