//! All orders of a small world's life, relists, on-demand relists, events and failures.

use cri_event_conformance::testing::pleg::{Features, LifecycleKind, Moment, State};

use crate::world::{POD, Truth, Watcher};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Move {
    Advance,
    Relist,
    RelistPod,
    RelistInVain,
    RequestInspection,
    Hear,
}

/// Plays every sequence of this length, and passes each final world to a closure.
fn play_all(
    moves: &[Move],
    count: usize,
    (truth, watcher): (&Truth, &Watcher),
    path: &mut Vec<Move>,
    end: &mut impl FnMut(Truth, Watcher, &[Move]),
) {
    if count == 0 {
        return end(truth.clone(), watcher.clone(), path);
    }
    for next in moves {
        let (mut truth, mut watcher) = (truth.clone(), watcher.clone());
        if *next == Move::Advance && truth.is_over() {
            continue;
        }
        let before = freshness(&watcher);
        play(*next, &mut truth, &mut watcher);
        path.push(*next);
        if let (true, Some(before), Some(after)) =
            (watcher.kubelet.gate(), before, freshness(&watcher))
        {
            assert!(before <= after, "the cache went back in time: {path:?}");
        }
        play_all(moves, count - 1, (&truth, &watcher), path, end);
        path.pop();
    }
}

fn play(next: Move, truth: &mut Truth, watcher: &mut Watcher) {
    match next {
        Move::Advance => truth.advance(),
        Move::Relist => watcher.relist(truth),
        Move::RelistPod => watcher.relist_pod(truth),
        Move::RelistInVain => watcher.relist_in_vain(truth),
        Move::RequestInspection => watcher.generic.request_inspection(POD),
        Move::Hear => {
            watcher.hear(truth);
        }
    }
}

fn freshness(watcher: &Watcher) -> Option<Moment> {
    watcher.kubelet.cache.get(POD).map(|entry| entry.modified)
}

/// The state in a sync loop that follows events.
fn follows(watcher: &Watcher, id: &str, state: Option<State>) -> bool {
    let last = watcher.forwarded.get(id);
    match state {
        Some(State::Running) => last == Some(&LifecycleKind::ContainerStarted),
        Some(State::Exited) => last == Some(&LifecycleKind::ContainerDied),
        // Creation is not forwarded, and neither is an unknown state.
        Some(State::Created | State::Unknown) => true,
        None => last.is_none_or(|last| *last == LifecycleKind::ContainerRemoved),
    }
}

/// After one more relist the kubelet has the same state as a kubelet without history, and has sent
/// the events to its sync loop.
fn converges(mut truth: Truth, mut watcher: Watcher, path: &[Move]) {
    let features = match (watcher.kubelet.gate(), watcher.kubelet.evented_in_use()) {
        (false, _) => Features::Generic,
        (true, false) => Features::GateOnly,
        (true, true) => Features::EventedInUse,
    };
    watcher.relist(&mut truth);
    let mut fresh = Watcher::new(features);
    fresh.relist(&mut truth);
    assert_eq!(watcher.belief(), fresh.belief(), "{path:?}");
    assert_eq!(watcher.generic.pods(), fresh.generic.pods(), "{path:?}");
    // A request outlives an unknown pod; that of a failure does not.
    if !path.contains(&Move::RequestInspection) {
        assert_eq!(watcher.generic.inspection_requests().len(), 0, "{path:?}");
    }
    let states = truth.states();
    for id in ["s", "c"] {
        let state = states.get(id).copied();
        assert!(
            follows(&watcher, id, state),
            "{id} is {state:?}: {path:?}, {:?}",
            watcher.forwarded
        );
    }
}

#[test]
fn relists_in_any_order_end_in_the_truth() {
    let moves = [
        Move::Advance,
        Move::Relist,
        Move::RelistPod,
        Move::RelistInVain,
        Move::RequestInspection,
    ];
    for features in [
        Features::Generic,
        Features::GateOnly,
        Features::EventedInUse,
    ] {
        let start = (&Truth::default(), &Watcher::new(features));
        let mut ends = 0;
        play_all(
            &moves,
            6,
            start,
            &mut Vec::new(),
            &mut |truth, watcher, path| {
                converges(truth, watcher, path);
                ends += 1;
            },
        );
        assert!(ends > 15_000, "{ends}");
    }
}

#[test]
fn events_and_relists_in_any_order_end_in_the_truth() {
    let moves = [Move::Advance, Move::Relist, Move::RelistPod, Move::Hear];
    let start = (&Truth::default(), &Watcher::new(Features::EventedInUse));
    play_all(
        &moves,
        8,
        start,
        &mut Vec::new(),
        &mut |mut truth, mut watcher, path| {
            while watcher.hear(&mut truth).is_some() {}
            converges(truth, watcher, path);
        },
    );
}

#[test]
fn a_whole_life_heard_in_any_order_of_relists_leaves_nothing_behind() {
    let moves = [Move::Advance, Move::Relist, Move::Hear];
    let start = (&Truth::default(), &Watcher::new(Features::EventedInUse));
    play_all(
        &moves,
        8,
        start,
        &mut Vec::new(),
        &mut |mut truth, mut watcher, path| {
            while !truth.is_over() {
                truth.advance();
            }
            while watcher.hear(&mut truth).is_some() {}
            watcher.relist(&mut truth);
            assert!(watcher.kubelet.cache.entries().is_empty(), "{path:?}");
            assert!(watcher.generic.pods().is_empty(), "{path:?}");
        },
    );
}
