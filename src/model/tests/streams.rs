//! Streams: who gets what, in what order, and what becomes of those who do not read.

use super::*;
use crate::history::EventKind;
use crate::model::{Audience, Delivery, FullQueue, NonTransition, Offer, Order, Passage, Replay};

/// A behaviour that differs from the model's in one thing.
fn with(change: impl FnOnce(&mut Behaviour)) -> Behaviour {
    let mut behaviour = Behaviour::default();
    change(&mut behaviour);
    behaviour
}

#[test]
fn all_who_listen_get_the_same_from_then_on() {
    let mut stand = Stand::new(Behaviour::default());
    let second = stand.machine.subscribe(stand.now, None).unwrap();
    let pod = stand.sandbox("pod");
    let third = stand.machine.subscribe(stand.now, None).unwrap();
    stand.running(&pod, "c", &Workload::Obey);
    let first = stand.events();
    assert_eq!(stand.events_of(second), first);
    assert_eq!(stand.events_of(third), first[2..]);
}

#[test]
fn times_of_events_grow_even_if_no_time_passes() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    stand.running(&pod, "c", &exit(0, Duration::ZERO));
    stand.pass(Duration::ZERO);
    let events = stand.events();
    assert_eq!(events.len(), 5);
    let grow = |pair: &[Event]| pair[0].created_at < pair[1].created_at;
    assert!(events.windows(2).all(grow));
}

#[test]
fn who_does_not_read_loses_the_stream_and_harms_nobody() {
    let mut stand = Stand::new(with(|behaviour| behaviour.queue = 3));
    let slow = stand.machine.subscribe(stand.now, None).unwrap();
    for name in ["a", "b", "c"] {
        stand.sandbox(name);
        assert_eq!(stand.events().len(), 2);
    }
    assert_eq!(stand.events_of(slow).len(), 3);
    match stand.end_of(slow) {
        Some(StreamEnd::Failed(fault)) => {
            assert_eq!(fault.code.to_string(), "RESOURCE_EXHAUSTED");
        }
        other => panic!("{other:?}"),
    }
    stand.sandbox("d");
    assert_eq!(stand.events().len(), 2);
}

#[test]
fn who_does_not_read_may_block_all_or_miss_some() {
    let wedge = with(|behaviour| {
        behaviour.queue = 2;
        behaviour.full_queue = FullQueue::Wedge;
    });
    let mut stand = Stand::new(wedge);
    let slow = stand.machine.subscribe(stand.now, None).unwrap();
    stand.sandbox("a");
    assert_eq!(stand.events().len(), 2);
    stand.sandbox("b");
    assert_eq!(stand.events().len(), 0);
    assert_eq!(stand.events_of(slow).len(), 4);
    assert_eq!(stand.events().len(), 2);

    let drop = with(|behaviour| {
        behaviour.queue = 2;
        behaviour.full_queue = FullQueue::Drop;
    });
    let mut stand = Stand::new(drop);
    stand.sandbox("a");
    stand.sandbox("b");
    assert_eq!(stand.events().len(), 2);
    assert_eq!(stand.end_of(stand.listener), None);
}

#[test]
fn one_may_take_events_from_another() {
    let turns = with(|behaviour| behaviour.audience = Audience::InTurns);
    let mut stand = Stand::new(turns);
    let second = stand.machine.subscribe(stand.now, None).unwrap();
    stand.sandbox("a");
    assert_eq!(stand.events().len(), 1);
    assert_eq!(stand.events_of(second).len(), 1);
}

#[test]
fn the_first_may_get_what_came_before_it() {
    let replay = with(|behaviour| behaviour.replay = Replay::ToFirst);
    let mut stand = Stand::new(replay);
    stand.machine.unsubscribe(stand.listener);
    stand.sandbox("a");
    let first = stand.machine.subscribe(stand.now, None).unwrap();
    let second = stand.machine.subscribe(stand.now, None).unwrap();
    assert_eq!(stand.events_of(first).len(), 2);
    assert_eq!(stand.events_of(second).len(), 0);
}

#[test]
fn a_subscription_may_take_its_time() {
    let late = with(|behaviour| behaviour.effective_after = SECOND);
    let mut stand = Stand::new(late);
    stand.sandbox("a");
    stand.pass(SECOND);
    stand.sandbox("b");
    assert_eq!(stand.events().len(), 2);
}

#[test]
fn a_runtime_may_have_no_events() {
    let offers = |offer| Stand::new(with(|behaviour| behaviour.offer = offer));
    let mut closed = offers(Offer::Closed);
    assert_eq!(closed.end_of(closed.listener), Some(StreamEnd::Closed));
    let mut silent = offers(Offer::Silence);
    silent.sandbox("a");
    silent.told(&[]);
    let behaviour = with(|behaviour| behaviour.offer = Offer::Unimplemented);
    let mut machine = Machine::new(behaviour, Vec::new(), 1);
    let fault = machine.subscribe(HostInstant::default(), None).unwrap_err();
    assert_eq!(fault.code.to_string(), "UNIMPLEMENTED");
}

#[test]
fn siblings_may_come_in_any_order() {
    let any = with(|behaviour| behaviour.siblings = Order::Any);
    let mut stand = Stand::new(any);
    let pod = stand.sandbox("pod");
    for name in ["a", "b", "c", "d", "e"] {
        stand.create(&pod, name, &Workload::Obey);
    }
    let last = stand.events().pop().unwrap();
    let mut names: Vec<&str> = last
        .containers
        .iter()
        .map(|status| &*status.labels["name"])
        .collect();
    assert_ne!(names, ["a", "b", "c", "d", "e"]);
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
}

/// Each STARTED comes twice, and each CREATED a second late.
fn twice_and_late(passage: &mut Passage<'_>, event: Event) -> Vec<Delivery> {
    assert_eq!(passage.nth == 0, passage.held.is_empty());
    passage.held.push(event.clone());
    match event.kind {
        EventKind::Started => [Delivery::now(event.clone()), Delivery::now(event)].concat(),
        EventKind::Created => vec![Delivery::after(SECOND, event)],
        _ => Delivery::now(event),
    }
}

#[test]
fn hooks_change_what_comes_on_each_stream_one_after_the_other() {
    let hooked = with(|behaviour| behaviour.events = vec![twice_and_late, twice_and_late]);
    let mut stand = Stand::new(hooked);
    stand.sandbox("a");
    stand.told(&["STARTED sandbox: READY []"; 4]);
    stand.pass(SECOND);
    stand.told(&[]);
    stand.pass(SECOND);
    stand.told(&["CREATED sandbox: READY []"]);
}

#[test]
fn hooks_change_answers_or_keep_them() {
    let late = with(|behaviour| {
        behaviour.replies = vec![|request, mut answer| {
            answer.after = match request {
                Request::Version => Some(SECOND),
                Request::ListImages => None,
                _ => answer.after,
            };
            answer
        }];
    });
    let mut stand = Stand::new(late);
    let version = stand.machine.call(stand.now, Request::Version);
    let images = stand.machine.call(stand.now, Request::ListImages);
    assert!(stand.machine.take_answer(version).is_none());
    stand.pass(SECOND);
    assert!(stand.machine.take_answer(version).is_some());
    stand.pass(SECOND * 3600);
    assert!(stand.machine.take_answer(images).is_none());
}

#[test]
fn what_lives_outside_the_cri_is_not_told_unless_a_defect_does() {
    use EventKind::{Created, Deleted, Started, Stopped};
    let mut stand = Stand::new(Behaviour::default());
    stand.machine.live_outside_cri(stand.now);
    stand.told(&[]);
    let mut stand = Stand::new(Behaviour {
        told_too: &[NonTransition::OutsideCri],
        ..Behaviour::default()
    });
    stand.machine.live_outside_cri(stand.now);
    let kinds: Vec<_> = stand.events().into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [Created, Started, Stopped, Deleted]);
}
