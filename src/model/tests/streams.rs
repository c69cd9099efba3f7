//! Streams: receivers of events, their order, and subscribers that do not read.

use super::*;
use crate::history::EventKind;
use crate::model::behaviour::EventHook;
use crate::model::{
    Delivery, FanOutPolicy, FullQueue, HookContext, NonTransition, Order, Replay, StreamSupport,
};

/// A behaviour that differs from the model's in one thing.
fn with(change: impl FnOnce(&mut Behaviour)) -> Behaviour {
    let mut behaviour = Behaviour::default();
    change(&mut behaviour);
    behaviour
}

#[test]
fn all_who_listen_get_the_same_from_then_on() {
    let mut harness = Harness::new(Behaviour::default());
    let second = harness.machine.subscribe(harness.now, None).unwrap();
    let pod = harness.sandbox("pod");
    let third = harness.machine.subscribe(harness.now, None).unwrap();
    harness.running(&pod, "c", &Workload::UntilTerm);
    let first = harness.events();
    assert_eq!(harness.events_of(second), first);
    assert_eq!(harness.events_of(third), first[2..]);
}

#[test]
fn times_of_events_grow_even_if_no_time_passes() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    harness.running(&pod, "c", &exit(0, Duration::ZERO));
    harness.advance(Duration::ZERO);
    let events = harness.events();
    assert_eq!(events.len(), 5);
    let grow = |pair: &[Event]| pair[0].created_at < pair[1].created_at;
    assert!(events.windows(2).all(grow));
}

#[test]
fn a_stalled_subscriber_loses_its_stream_and_no_other_does() {
    let mut harness = Harness::new(with(|behaviour| behaviour.queue = 3));
    let slow = harness.machine.subscribe(harness.now, None).unwrap();
    for name in ["a", "b", "c"] {
        harness.sandbox(name);
        assert_eq!(harness.events().len(), 2);
    }
    assert_eq!(harness.events_of(slow).len(), 3);
    match harness.end_of(slow) {
        Some(StreamEnd::Failed(fault)) => {
            assert_eq!(fault.code.to_string(), "RESOURCE_EXHAUSTED");
        }
        other => panic!("{other:?}"),
    }
    harness.sandbox("d");
    assert_eq!(harness.events().len(), 2);
}

#[test]
fn who_does_not_read_may_block_all_or_miss_some() {
    let wedge = with(|behaviour| {
        behaviour.queue = 2;
        behaviour.full_queue = FullQueue::Wedge;
    });
    let mut harness = Harness::new(wedge);
    let slow = harness.machine.subscribe(harness.now, None).unwrap();
    harness.sandbox("a");
    assert_eq!(harness.events().len(), 2);
    harness.sandbox("b");
    assert_eq!(harness.events().len(), 0);
    assert_eq!(harness.events_of(slow).len(), 4);
    assert_eq!(harness.events().len(), 2);

    let drop = with(|behaviour| {
        behaviour.queue = 2;
        behaviour.full_queue = FullQueue::Drop;
    });
    let mut harness = Harness::new(drop);
    harness.sandbox("a");
    harness.sandbox("b");
    assert_eq!(harness.events().len(), 2);
    assert_eq!(harness.end_of(harness.subscriber), None);
}

#[test]
fn one_may_take_events_from_another() {
    let turns = with(|behaviour| behaviour.fan_out = FanOutPolicy::RoundRobin);
    let mut harness = Harness::new(turns);
    let second = harness.machine.subscribe(harness.now, None).unwrap();
    harness.sandbox("a");
    assert_eq!(harness.events().len(), 1);
    assert_eq!(harness.events_of(second).len(), 1);
}

#[test]
fn the_first_subscriber_may_get_earlier_events() {
    let replay = with(|behaviour| behaviour.replay = Replay::ToFirst);
    let mut harness = Harness::new(replay);
    harness.machine.unsubscribe(harness.subscriber);
    harness.sandbox("a");
    let first = harness.machine.subscribe(harness.now, None).unwrap();
    let second = harness.machine.subscribe(harness.now, None).unwrap();
    assert_eq!(harness.events_of(first).len(), 2);
    assert_eq!(harness.events_of(second).len(), 0);
}

#[test]
fn a_subscription_may_take_its_time() {
    let late = with(|behaviour| behaviour.effective_after = SECOND);
    let mut harness = Harness::new(late);
    harness.sandbox("a");
    harness.advance(SECOND);
    harness.sandbox("b");
    assert_eq!(harness.events().len(), 2);
}

#[test]
fn a_runtime_may_have_no_events() {
    let offers =
        |stream_support| Harness::new(with(|behaviour| behaviour.stream_support = stream_support));
    let mut closed = offers(StreamSupport::ClosedAtOnce);
    assert_eq!(closed.end_of(closed.subscriber), Some(StreamEnd::Closed));
    let mut silent = offers(StreamSupport::Silent);
    silent.sandbox("a");
    silent.expect_events(&[]);
    let behaviour = with(|behaviour| behaviour.stream_support = StreamSupport::Unimplemented);
    let mut machine = Machine::new(behaviour, Vec::new(), 1);
    let fault = machine.subscribe(HostInstant::default(), None).unwrap_err();
    assert_eq!(fault.code.to_string(), "UNIMPLEMENTED");
}

#[test]
fn siblings_may_come_in_any_order() {
    let any = with(|behaviour| behaviour.siblings = Order::Random);
    let mut harness = Harness::new(any);
    let pod = harness.sandbox("pod");
    for name in ["a", "b", "c", "d", "e"] {
        harness.create(&pod, name, &Workload::UntilTerm);
    }
    let last = harness.events().pop().unwrap();
    let mut names: Vec<&str> = last
        .containers
        .iter()
        .map(|status| &*status.labels["name"])
        .collect();
    assert_ne!(names, ["a", "b", "c", "d", "e"]);
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
}

/// Duplicates each STARTED, and delays each CREATED by a second.
fn twice_and_late(context: &mut HookContext<'_>, event: Event) -> Vec<Delivery> {
    assert_eq!(context.nth == 0, context.held.is_empty());
    context.held.push(event.clone());
    match event.kind {
        EventKind::Started => [Delivery::now(event.clone()), Delivery::now(event)].concat(),
        EventKind::Created => vec![Delivery::after(SECOND, event)],
        _ => Delivery::now(event),
    }
}

#[test]
fn hooks_apply_to_each_stream_in_turn() {
    let apply_reply_hooks =
        with(|behaviour| behaviour.events = vec![EventHook::Deliver(twice_and_late); 2]);
    let mut harness = Harness::new(apply_reply_hooks);
    harness.sandbox("a");
    harness.expect_events(&["STARTED sandbox: READY []"; 4]);
    harness.advance(SECOND);
    harness.expect_events(&[]);
    harness.advance(SECOND);
    harness.expect_events(&["CREATED sandbox: READY []"]);
}

#[test]
fn hooks_change_answers_or_keep_them() {
    let late = with(|behaviour| {
        behaviour.replies = vec![|request, answer| {
            answer.after = match request {
                Request::Version => Some(SECOND),
                Request::ListImages => None,
                _ => answer.after,
            };
        }];
    });
    let mut harness = Harness::new(late);
    let version = harness.machine.call(harness.now, Request::Version);
    let images = harness.machine.call(harness.now, Request::ListImages);
    assert!(harness.machine.take_answer(version).is_none());
    harness.advance(SECOND);
    assert!(harness.machine.take_answer(version).is_some());
    harness.advance(SECOND * 3600);
    assert!(harness.machine.take_answer(images).is_none());
}

#[test]
fn containers_outside_the_cri_are_not_reported_unless_by_a_defect() {
    use EventKind::{Created, Deleted, Started, Stopped};
    let mut harness = Harness::new(Behaviour::default());
    harness.machine.run_outside_cri(harness.now);
    harness.expect_events(&[]);
    let mut harness = Harness::new(Behaviour {
        spurious: &[NonTransition::OutsideCri],
        ..Behaviour::default()
    });
    harness.machine.run_outside_cri(harness.now);
    let kinds: Vec<_> = harness
        .events()
        .into_iter()
        .map(|event| event.kind)
        .collect();
    assert_eq!(kinds, [Created, Started, Stopped, Deleted]);
}
