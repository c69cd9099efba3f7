//! Histories in which the suite itself was held up, and their neighbours in which that explains
//! nothing.

use crate::oracle::expectations::tests::case;
use crate::oracle::script::history;
use crate::oracle::{Undecided, judge};
use crate::outcome::Level;

const STOPS: &str = "includes: {of: c, in-order: [stopped]}";
const MADE: &str = "pod run; c create; c CREATED";

/// Whether a history convicts; the first words of why it does not, if it proves nothing.
#[track_caller]
fn comes_to(check: &str, script: &str, expected: Result<&str, &str>) {
    let judgement = judge(&case(Level::Must, check), &history(script));
    let violation = judgement.violations.first();
    let found = match (&judgement.undecided, violation) {
        (Some(Undecided::Inconclusive(reason)), None) => Err(reason.clone()),
        (None, Some(violation)) => Ok(violation.actual()),
        (None, None) => Ok(String::new()),
        (undecided, _) => panic!("{undecided:?}"),
    };
    let text = |found: &Result<String, String>| found.clone().unwrap_or_else(|reason| reason);
    let is_as_expected = match expected {
        Ok(actual) => found == Ok(actual.to_owned()),
        Err(why) => found.is_err() && text(&found).contains(why),
    };
    assert!(is_as_expected, "{script}: {found:?}");
}

#[test]
fn what_was_awaited_in_vain_may_have_come_while_the_suite_was_held_up() {
    let waits = |before: &str| format!("{MADE}; {before}; wait in-vain STOPPED_of_c; end unmet");
    let why = "STOPPED of c within 10s has not come, and the suite itself was held up for 2s";
    comes_to(STOPS, &waits("pass 10s; held-up 2s"), Err(why));
    let convicts = Ok("it did not come");
    comes_to(STOPS, &waits("pass 10s"), convicts);
    comes_to(STOPS, &waits("pass 10s; held-up 900ms"), convicts);
    comes_to(STOPS, &waits("pass 5s; held-up 5s; pass 11s"), convicts);
}

#[test]
fn what_has_not_come_at_the_end_may_not_have_been_read() {
    let why = "STOPPED of c has not come, and the suite itself was held up for 1s";
    let script = |before: &str| format!("{MADE}; {before}; end");
    comes_to(STOPS, &script("pass 10s; held-up 1s"), Err(why));
    comes_to(
        STOPS,
        &script("held-up 1s; pass 11s"),
        Ok("it has not come"),
    );
    comes_to(STOPS, &script("c STOPPED; pass 10s; held-up 1s"), Ok(""));
}

#[test]
fn a_late_event_is_late_by_as_much_as_the_suite_was_running() {
    const IN_TIME: &str = "timing: {of: c, event: stopped, after: stop-called, at-most: 12s}";
    let stops = |held_up: &str| {
        format!("{MADE}; c stop begins; pass 14s; {held_up}; c STOPPED; c stop returns; end")
    };
    let why = "c: STOPPED came 14.002s after StopContainer was called, and the suite itself";
    comes_to(IN_TIME, &stops("held-up 3s"), Err(why));
    let convicts = Ok("14.002s after StopContainer was called");
    comes_to(IN_TIME, &stops("held-up 1s"), convicts);
}

#[test]
fn an_event_may_seem_early_where_what_it_follows_was_seen_late() {
    const LATER: &str = "timing: {of: c, event: stopped, after: start-returned, at-least: 2s}";
    let starts = |held_up: &str| {
        format!("{MADE}; c start begins; pass 5s; {held_up}; c start returns; c STOPPED; end")
    };
    let why = "c: STOPPED came 1ms after StartContainer returned, and the suite itself";
    comes_to(LATER, &starts("held-up 5s"), Err(why));
    let convicts = Ok("1ms after StartContainer returned");
    comes_to(LATER, &starts("pass 1ms"), convicts);
}

#[test]
fn headers_may_be_read_late() {
    const SOON: &str = "headers: {of: b, at-most: 1s}";
    let answered = |held_up: &str| {
        format!("pod run; observe 7 as=b; pass 3s; {held_up}; observe 7 answered proven; end")
    };
    let why = "b: the headers came late or not, and the suite itself was held up for 2.5s";
    comes_to(SOON, &answered("held-up 2500ms"), Err(why));
    comes_to(SOON, &answered("held-up 1s"), Ok("they came later"));
    let never = |held_up: &str| {
        format!("pod run; observe 7 as=b; pass 3s; {held_up}; observe 7 proven; end")
    };
    comes_to(SOON, &never("held-up 2500ms"), Err(why));
    comes_to(SOON, &never("held-up 1s"), Ok("they did not come"));
}

#[test]
fn the_time_for_which_the_suite_was_held_up_is_no_part_of_a_latency() {
    const SOON: &str = "latency: {of: c, event: created, median: 100ms, p99: 1s}";
    let comes =
        |held_up: &str| format!("pod run; c create; pass 3s; {held_up}; c CREATED at=-3s; end");
    comes_to(SOON, &comes("held-up 2950ms"), Ok(""));
    let convicts = Ok("median 2.5s, p99 2.5s, worst 2.5s of 1");
    comes_to(SOON, &comes("held-up 500ms"), convicts);
}

#[test]
fn what_is_broken_for_sure_is_broken_while_the_suite_is_held_up() {
    const ONCE: &str = "no-repeats: {of: c}";
    let again = format!("{MADE}; c CREATED; pass 10s; held-up 2s; end");
    comes_to(ONCE, &again, Ok("CREATED, CREATED"));
}
