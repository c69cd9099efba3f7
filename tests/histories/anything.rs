//! Any mutation of a clean recording is noticed, or it is harmless, or it is a known hole.
//!
//! Harmlessness is decided here by the history alone, without the oracle; see [`harmless`]. All
//! other mutations are listed in [`HOLES`], each with the missing rule: the oracle's blind spots,
//! and the list of tasks. An unlisted one fails the test.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use cri_event_conformance::testing::history::{
    Body, ContainerId, ContainerState, Event, EventKind, PodUid, SandboxId, SandboxState,
};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, proptest};
use proptest::prop_oneof;

use crate::golden::assert_file;
use crate::mutation::shortened;
use crate::recording::Recording;
use crate::tables::CASES;
use crate::{clean, judge_as};

/// A single change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    Remove,
    Repeat,
    /// With another event, which may be anywhere.
    Swap,
    Kind(EventKind),
    ShortId,
    NoSandbox,
    NoMetadata,
    OtherUid,
    OtherPodName,
    OtherSandbox,
    OtherSandboxState,
    MoreAddresses,
    CreatedAt(i64),
    NoCreatedAt,
    OwnAbsent,
    OwnTwice,
    OwnState(ContainerState),
    OwnExit,
    OwnReason,
    OwnWithoutMetadata,
    OwnWithoutImage,
    OwnNeverStarted,
    OwnNeverFinished,
    OthersAbsent,
    OthersExited,
    /// Of a call: it fails.
    CallFails,
    /// Of a `PodSandboxStatus`: it has a timestamp and no containers.
    ReportsNone,
    /// Of a container that no call has made.
    OtherId,
    /// A list shows one more, which no call has made, and those of the case that it lacks.
    AlsoListed,
}

/// Unnoticed mutations that could harm a consumer, with the reason.
const HOLES: &[(Mutation, &str)] = &[
    (
        Mutation::OwnExit,
        "if a container is stopped and then removed before anything else reports it, only the \
         event has the exit code: whether it obeyed or was killed is a race",
    ),
    (
        Mutation::OwnReason,
        "if a container is removed before anything else reports it, only the event has the \
         reason, and OOMKilled is the only one that the CRI names",
    ),
    (
        Mutation::OtherSandboxState,
        "a sandbox that is being made or stopped may be READY already, or no more",
    ),
    (
        Mutation::MoreAddresses,
        "that an event has the addresses of PodSandboxStatus is no more than a SHOULD of the \
         catalogue (SNP-12), and an invariant convicts",
    ),
    (
        Mutation::OthersAbsent,
        "a sibling whose removal has begun may be gone already",
    ),
];

fn mutation() -> impl Strategy<Value = Mutation> {
    use Mutation as M;
    let kind = prop_oneof![
        Just(EventKind::Created),
        Just(EventKind::Started),
        Just(EventKind::Stopped),
        Just(EventKind::Deleted),
        Just(EventKind::Unknown(7)),
    ];
    let state = prop_oneof![
        Just(ContainerState::Created),
        Just(ContainerState::Running),
        Just(ContainerState::Exited),
        Just(ContainerState::Unknown(3)),
    ];
    let time = prop_oneof![Just(2_000_000_000), Just(-2_000_000_000), Just(-1_000_000),];
    let plain = [
        M::NoSandbox,
        M::NoMetadata,
        M::OtherUid,
        M::OtherPodName,
        M::OtherSandbox,
        M::OtherSandboxState,
        M::MoreAddresses,
        M::NoCreatedAt,
        M::OwnAbsent,
        M::OwnTwice,
        M::OwnExit,
        M::OwnReason,
        M::OwnWithoutMetadata,
        M::OwnWithoutImage,
        M::OwnNeverStarted,
        M::OwnNeverFinished,
        M::OthersAbsent,
        M::OthersExited,
        M::ShortId,
    ];
    prop_oneof![
        3 => Just(M::Remove),
        3 => Just(M::Repeat),
        3 => Just(M::Swap),
        2 => kind.prop_map(M::Kind),
        2 => state.prop_map(M::OwnState),
        2 => time.prop_map(M::CreatedAt),
        8 => proptest::sample::select(plain.to_vec()),
    ]
}

/// The recordings of all cases.
static RECORDINGS: LazyLock<Vec<Recording>> = LazyLock::new(|| {
    CASES
        .iter()
        .map(|(id, _)| Recording::of(clean(id)))
        .collect()
});

pub(crate) fn alter(event: &mut Event, mutation: Mutation) {
    let id = event.container.clone();
    let sandbox = event.sandbox.as_mut();
    let own = event.containers.iter_mut().find(|status| status.id == id);
    match (mutation, sandbox, own) {
        (Mutation::Kind(kind), ..) => event.kind = kind,
        (Mutation::OtherId, ..) => event.container = ContainerId::from("another"),
        (Mutation::ShortId, ..) => event.container = shortened(&event.container),
        (Mutation::NoSandbox, ..) => event.sandbox = None,
        (Mutation::NoMetadata, Some(sandbox), _) => sandbox.metadata = None,
        (Mutation::OtherUid, Some(sandbox), _) => {
            if let Some(metadata) = &mut sandbox.metadata {
                metadata.uid = PodUid::from("other");
            }
        }
        (Mutation::OtherPodName, Some(sandbox), _) => {
            if let Some(metadata) = &mut sandbox.metadata {
                metadata.name = "other".into();
            }
        }
        (Mutation::OtherSandbox, Some(sandbox), _) => sandbox.id = SandboxId::from("other"),
        (Mutation::OtherSandboxState, Some(sandbox), _) => {
            sandbox.state = match sandbox.state {
                SandboxState::Ready => SandboxState::NotReady,
                SandboxState::NotReady | SandboxState::Unknown(_) => SandboxState::Ready,
            };
        }
        (Mutation::MoreAddresses, Some(sandbox), _) => sandbox.ips.push("10.0.0.1".to_owned()),
        (Mutation::CreatedAt(by), ..) => event.created_at.0 += by,
        (Mutation::NoCreatedAt, ..) => event.created_at.0 = 0,
        (Mutation::OwnAbsent, ..) => event.containers.retain(|status| status.id != id),
        (Mutation::OwnTwice, _, Some(own)) => {
            let own = own.clone();
            event.containers.push(own);
        }
        (Mutation::OwnState(state), _, Some(own)) => own.state = state,
        (Mutation::OwnExit, _, Some(own)) => own.exit_code += 1,
        (Mutation::OwnReason, _, Some(own)) => own.reason = "Other".into(),
        (Mutation::OwnWithoutMetadata, _, Some(own)) => own.metadata = None,
        (Mutation::OwnWithoutImage, _, Some(own)) => own.image = None,
        (Mutation::OwnNeverStarted, _, Some(own)) => own.started_at.0 = 0,
        (Mutation::OwnNeverFinished, _, Some(own)) => own.finished_at.0 = 0,
        (Mutation::OthersAbsent, ..) => event.containers.retain(|status| status.id == id),
        (Mutation::OthersExited, ..) => {
            let others = event.containers.iter_mut().filter(|status| status.id != id);
            others.for_each(|status| status.state = ContainerState::Exited);
        }
        _ => {}
    }
}

/// The reason why a mutation is harmless, according to the history alone.
fn harmless(
    recording: &Recording,
    mutation: Mutation,
    place: usize,
    other: usize,
) -> Option<&'static str> {
    let entries = &recording.entries;
    if recording.with(mutation, place, other) == *entries {
        return Some("nothing has changed");
    }
    let Body::Event { .. } = entries[place].body else {
        return Some(
            "the suite's own entry: no runtime can make it wrong, and `check` sees a hole",
        );
    };
    let both = [place, other];
    let touched = if mutation == Mutation::Swap {
        &both[..]
    } else {
        &both[..1]
    };
    let events: Vec<&Event> = touched
        .iter()
        .filter_map(|place| recording.judged(*place))
        .collect();
    let Some(event) = events.first() else {
        return Some("the event is about nothing that the case has made");
    };
    if touched.iter().any(|place| *place > recording.steps_ended) {
        return Some(
            "the teardown: nobody waits for what it causes, and nothing is at rest after it",
        );
    }
    let is_sandbox = |event: &Event| recording.subjects[&event.container];
    let about = |status: &ContainerState| *status == ContainerState::Exited;
    let own = event.own_status().map(|status| status.state);
    match mutation {
        Mutation::Swap if events.len() < 2 || events[0].container != events[1].container => {
            Some("events of different containers: the CRI orders those of one container alone")
        }
        Mutation::Remove if is_sandbox(event) => Some(
            "the CRI speaks of containers' events; which sandbox's events must come, cases say",
        ),
        Mutation::OwnExit | Mutation::OwnReason | Mutation::OwnNeverFinished
            if !own.as_ref().is_some_and(about) =>
        {
            Some("of a container that has not exited these fields mean nothing")
        }
        Mutation::OwnNeverStarted if own == Some(ContainerState::Created) => {
            Some("of a container that was not started this is unset anyway")
        }
        Mutation::CreatedAt(by) if made_after_the_change(event, by) => {
            Some("what the event reports had happened by then")
        }
        Mutation::CreatedAt(-1_000_000) => {
            Some("a millisecond earlier the event may have been made as well")
        }
        _ => None,
    }
}

/// Whether an exit had already happened at the new creation time of its event.
fn made_after_the_change(event: &Event, by: i64) -> bool {
    let exit = event.own_status().map(|own| own.finished_at.0);
    event.kind == EventKind::Stopped
        && by < 0
        && exit.is_some_and(|exit| exit > 0 && event.created_at.0 + by >= exit)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_mutation_is_noticed_or_harmless_or_known(
        case in 0..CASES.len(),
        mutation in mutation(),
        place in any::<proptest::sample::Index>(),
        other in any::<proptest::sample::Index>(),
        on_events in 0..8,
    ) {
        let recording = &RECORDINGS[case];
        let all = 0..recording.entries.len();
        let events = all.clone().filter(|place| recording.judged(*place).is_some());
        let events: Vec<_> = events.collect();
        let place = if on_events > 0 {
            events[place.index(events.len())]
        } else {
            place.index(recording.entries.len())
        };
        let other = events[other.index(events.len())];
        let is_known = HOLES.iter().any(|(hole, _)| *hole == mutation);
        if harmless(recording, mutation, place, other).is_none() && !is_known {
            prop_assert!(
                is_noticed(recording, mutation, place, other),
                "{} #{place}, #{other}: {mutation:?} of {:?}",
                CASES[case].0,
                recording.entries[place]
            );
        }
    }
}

/// The extent of each hole: the events for which it is noticed, and for which it is not. A closed
/// hole is removed.
#[test]
fn the_known_holes_are_as_wide_as_they_were() {
    let mut table = String::new();
    let mut closed = Vec::new();
    for (mutation, why) in HOLES {
        let mut reach = BTreeMap::<String, [usize; 2]>::new();
        for recording in RECORDINGS.iter() {
            for place in 0..recording.steps_ended {
                let Some(event) = recording.judged(place) else {
                    continue;
                };
                if harmless(recording, *mutation, place, place).is_some() {
                    continue;
                }
                let is_sandbox = recording.subjects[&event.container];
                let of = if is_sandbox { "sandbox" } else { "container" };
                let noticed = is_noticed(recording, *mutation, place, place);
                let reach = reach.entry(format!("{} of a {of}", event.kind));
                reach.or_default()[usize::from(!noticed)] += 1;
            }
        }
        let open = reach.values().any(|[_, not]| *not > 0);
        if !open {
            closed.push(format!("{mutation:?}"));
        }
        let _ = writeln!(table, "{mutation:?}: {why}");
        for (of, [noticed, not]) in reach {
            let _ = writeln!(table, "  {of:<22} {noticed:>3} noticed, {not:>3} not");
        }
    }
    assert!(
        closed.is_empty(),
        "noticed now; take them off the list: {}",
        closed.join(", ")
    );
    assert_file(crate::folder().join("holes.txt"), &table);
}

fn is_noticed(recording: &Recording, mutation: Mutation, place: usize, other: usize) -> bool {
    let mutated = recording.with(mutation, place, other);
    let judged = judge_as(&recording.case, &mutated);
    judged.verdict != "pass" || !judged.red().is_empty()
}
