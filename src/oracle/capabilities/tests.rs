//! Histories that show a capability of a runtime, its absence, or neither.

use std::sync::Arc;

use super::Measuring;
use crate::history::{Body, Entry, FanOut, HostInstant, ProbedCapabilities, RunPlan, Seq};
use crate::oracle::script::entries;
use crate::outcome::Capabilities;

fn found(script: &str) -> Capabilities {
    let mut measuring = Measuring::default();
    for entry in &entries(script) {
        measuring.push(entry);
    }
    measuring.found()
}

const HEARD: &str = "observe 0 as=b proven; pod run; c create; c CREATED";

#[test]
fn a_stream_without_events_shows_no_capability() {
    assert_eq!(found("observe 0 as=b proven"), Capabilities::default());
}

#[test]
fn events_before_a_stream_are_replayed_or_not() {
    let gap = "observe 0 cancelled; c start; d create; observe 7 as=b";
    let replayed = format!("{HEARD}; {gap}; d CREATED on=7 at=-20ms; observe 7 proven");
    assert_eq!(found(&format!("{HEARD}; pass 1s; {gap}")).replay, None);
    let lost = format!("{HEARD}; {gap}; observe 7 proven");
    assert_eq!(found(&lost).replay, Some(false));
    assert_eq!(found(&replayed).replay, Some(true));
    let young = format!("{HEARD}; {gap}; d CREATED on=7; observe 7 proven");
    assert_eq!(found(&young).replay, Some(false));
    let quiet = format!("{HEARD}; observe 0 cancelled; observe 7 as=b proven");
    assert_eq!(found(&quiet).replay, None);
    let overlapping = format!("{HEARD}; d create; observe 7 as=b proven");
    assert_eq!(found(&overlapping).replay, None);
}

#[test]
fn events_before_the_first_stream_are_replayed_or_not() {
    assert_eq!(found("pod run; observe 0 as=b proven").replay, Some(false));
}

#[test]
fn a_replay_is_older_than_the_clocks_are_apart_and_may_be_hours_old() {
    let replay = |age: &str| {
        let script = format!("{HEARD}; observe 0 cancelled; d create; observe 7 as=b");
        found(&format!(
            "{script}; d CREATED on=7 at=-{age}; observe 7 proven"
        ))
        .replay
    };
    // The stream was opened 1 ms before its first event.
    assert_eq!(replay("2ms"), Some(false));
    assert_eq!(replay("3ms"), Some(true));
    assert_eq!(replay("20h"), Some(true));
}

#[test]
fn a_stamp_of_1970_is_no_replay() {
    let script = format!("{HEARD}; observe 0 cancelled; d create; observe 7 as=b");
    let script = format!("{script}; d CREATED on=7 at=0; observe 7 proven");
    assert_eq!(found(&script).replay, Some(false));
}

#[test]
fn an_event_shows_that_there_are_events() {
    assert_eq!(found("pod run").events, None);
    assert_eq!(found(HEARD).events, Some(true));
}

#[test]
fn sandboxes_have_events_or_none() {
    assert_eq!(found("pod run").sandbox_events, None);
    assert_eq!(found(HEARD).sandbox_events, Some(false));
    let sandbox_event = format!("{HEARD}; pod CREATED");
    assert_eq!(found(&sandbox_event).sandbox_events, Some(true));
}

#[test]
fn the_status_of_a_sandbox_has_a_timestamp_or_none() {
    let asked = |how: &str| {
        let script = format!("{HEARD}; pod inspect c=running{how}");
        found(&script).sandbox_status_timestamp
    };
    assert_eq!(found(HEARD).sandbox_status_timestamp, None);
    assert_eq!(asked(""), Some(false));
    assert_eq!(asked(" read=+0s"), Some(true));
    assert_eq!(asked(" read=+0s; pod inspect c=running"), Some(true));
}

#[test]
fn probed_capabilities_are_found() {
    let measured = |probed| {
        let plan = RunPlan {
            probed,
            ..RunPlan::default()
        };
        let mut measuring = Measuring::default();
        measuring.push(&Entry {
            seq: Seq(0),
            at: HostInstant::default(),
            body: Body::RunPlanned(Arc::new(plan)),
        });
        let found = measuring.found();
        (
            found.events,
            found.streamed_lists,
            found.handlers,
            found.network,
            found.stop_signal,
        )
    };
    assert_eq!(
        measured(ProbedCapabilities::default()),
        (None, None, None, None, None)
    );
    let probed = ProbedCapabilities {
        events: Some(true),
        streamed_lists: Some(false),
        handlers: Some(true),
        network: None,
        stop_signal: Some(false),
    };
    assert_eq!(
        measured(probed),
        (Some(true), Some(false), Some(true), None, Some(false))
    );
}

#[test]
fn broadcast_is_as_the_plan_measured_it() {
    for (fan_out, broadcast) in [
        (None, None),
        (Some(FanOut::Broadcast), Some(true)),
        (Some(FanOut::SingleConsumer), Some(false)),
    ] {
        let plan = RunPlan {
            fan_out,
            ..RunPlan::default()
        };
        let mut measuring = Measuring::default();
        measuring.push(&Entry {
            seq: Seq(0),
            at: HostInstant::default(),
            body: Body::RunPlanned(Arc::new(plan)),
        });
        assert_eq!(measuring.found().broadcast, broadcast);
    }
}
