//! The measured times of short histories, in milliseconds.

use std::time::Duration;

use super::latencies;
use crate::checks::testing::case;
use crate::oracle::Index;
use crate::oracle::script::history;
use crate::outcome::{Level, Limit, Times};

/// Compares the bound and the longest time of a limit, in milliseconds.
#[track_caller]
fn check(check: &str, script: &str, limit: Limit, expect: Option<(u64, u64)>) {
    let call_deadline = Some(Duration::from_secs(30));
    let found = latencies(
        &case(Level::Must, check).claim(),
        &Index::new(&history(script)),
        call_deadline,
    );
    let of_limit = found.iter().copied().filter(|it| it.limit == limit);
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap();
    let measured: Vec<_> = Times::of(of_limit)
        .iter()
        .map(|it| (ms(it.longest.bound), ms(it.longest.took)))
        .collect();
    assert_eq!(
        measured,
        expect.into_iter().collect::<Vec<_>>(),
        "{found:?}"
    );
}

const ANY: &str = "no-repeats: {of: c}";

#[test]
fn the_longest_call_without_its_grace() {
    // The grace period of a script is 2 s.
    let script = "pod run; c create; c start; c stop begins; pass 3s; c stop returns";
    check(ANY, script, Limit::Call, Some((30_000, 1_001)));
    check(
        ANY,
        &script.replace("3s", "1s"),
        Limit::Call,
        Some((30_000, 1)),
    );
    check(ANY, "pod run begins", Limit::Call, None);
    let none = latencies(
        &case(Level::Must, ANY).claim(),
        &Index::new(&history(script)),
        None,
    );
    assert!(!none.iter().any(|it| it.limit == Limit::Call), "{none:?}");
}

#[test]
fn from_a_call_to_its_event() {
    let script = "pod run; c create; c CREATED; c start; pass 300ms; c STARTED; end";
    check(ANY, script, Limit::EventAfterCall, Some((10_000, 301)));
    let before = "pod run; c create begins; c CREATED; c create returns; end";
    check(ANY, before, Limit::EventAfterCall, Some((10_000, 0)));
    check(ANY, "pod run; c create; end", Limit::EventAfterCall, None);
}

#[test]
fn from_created_at_of_an_event_to_its_arrival() {
    let script = "pass 1s; pod run; c create; c CREATED at=-40ms; end; c DELETED at=-900ms";
    check(ANY, script, Limit::EventLag, Some((10_000, 40)));
    let before = "pod run; c create; c CREATED at=-40ms; end";
    check(ANY, before, Limit::EventLag, None);
}

#[test]
fn what_a_case_checks() {
    let script = "pod run; pass 1s; c create; c start; pass 39ms; c STARTED; end";
    let latency = "latency: {of: c, event: started, median: 100ms, p99: 1s}";
    check(latency, script, Limit::LatencyMedian, Some((100, 40)));
    check(latency, script, Limit::LatencyP99, Some((1_000, 40)));
    check(latency, "pod run; c create; end", Limit::LatencyP99, None);
    let life = |lag| format!("c create; c start; pass {lag}ms; c STARTED");
    let three = [89, 9, 39].map(life).join("; ");
    let three = format!("pod run; pass 1s; {three}; end");
    check(latency, &three, Limit::LatencyMedian, Some((100, 40)));
    check(latency, &three, Limit::LatencyP99, Some((1_000, 90)));
    let timing = "timing: {of: c, event: started, after: start-returned, at-most: 2s}";
    let late = "pod run; c create; c start; pass 300ms; c STARTED; end";
    check(timing, late, Limit::Timing, Some((2_000, 301)));
    check(
        &timing.replace("at-most", "at-least"),
        late,
        Limit::Timing,
        None,
    );
    let headers = "subscription: {of: b, headers-within: 1s}";
    let answered = "observe 7 as=b; pass 20ms; observe 7 answered; end";
    check(headers, answered, Limit::Headers, Some((1_000, 21)));
    check(headers, "observe 7 as=b; end", Limit::Headers, None);
}

#[test]
fn what_a_step_waits_for() {
    let waits = "pod run; wait 300ms event 2s; wait 100ms event 2s; wait 400ms end 4s; end";
    check(ANY, waits, Limit::Await, Some((2_000, 300)));
    check(ANY, waits, Limit::AwaitEnd, Some((4_000, 400)));
    let usual = "pod run; wait 300ms event 10s; end";
    check(ANY, usual, Limit::Await, None);
    check(ANY, "pod run; wait in-vain x; end", Limit::Await, None);
}
