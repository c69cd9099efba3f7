//! Violations after a case was judged, and those that are not reported a second time.

#![expect(
    clippy::needless_pass_by_value,
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use std::sync::Arc;

use expect_test::{Expect, expect};

use super::WholeRun;
use crate::history::{Body, PodUid, Request, SandboxSpec};
use crate::limits;
use crate::oracle::Index;
use crate::oracle::invariants;
use crate::oracle::script::{entries, history, render};

/// Checks the violations of the whole run without those that the case reported after `judged`.
#[track_caller]
fn check(judged: &str, late: &str, expect: Expect) {
    let reported = invariants(&Index::new(&history(judged)));
    let mut whole_run = WholeRun::default();
    for entry in entries(&format!("{judged}; {late}")) {
        whole_run.push(&entry);
    }
    expect.assert_eq(&render(&whole_run.violations(&reported)));
}

const LIFE: &str = "pod run; c create; c CREATED; c STOPPED; c DELETED; end";

#[test]
fn nothing_late_is_nothing_wrong() {
    check(LIFE, "pass 1s", expect![]);
}

#[test]
fn a_late_repetition_is_reported() {
    check(
        LIFE,
        "c DELETED",
        expect![[r#"
            INV-02 at #7 #9: c.0.beef: expected one DELETED event: DELETED again after 2ms, when its case had been judged
        "#]],
    );
}

#[test]
fn a_late_repetition_without_a_sandbox_is_reported() {
    check(
        LIFE,
        "c DELETED no-sandbox",
        expect![[r#"
            INV-02 at #7 #9: c.0.beef: expected one DELETED event: DELETED again after 2ms, when its case had been judged
        "#]],
    );
}

#[test]
fn a_late_event_out_of_order_is_reported() {
    check(
        LIFE,
        "pass 1s; c STARTED",
        expect![[r#"
            INV-01 at #7 #9: c.0.beef: expected STARTED before DELETED: STARTED after DELETED, when its case had been judged
        "#]],
    );
}

#[test]
fn two_events_are_enough_for_a_disorder() {
    check(
        "pod run; c create; c DELETED; end",
        "c STARTED",
        expect![[r#"
            INV-01 at #5 #7: c.0.beef: expected STARTED before DELETED: STARTED after DELETED, when its case had been judged
        "#]],
    );
}

#[test]
fn a_late_event_in_order_is_accepted() {
    check(
        "pod run; c create; c CREATED; end",
        "c STOPPED; c DELETED",
        expect![],
    );
}

#[test]
fn a_late_event_after_an_unknown_type_is_reported() {
    check(
        LIFE,
        "c TYPE=9; c STARTED",
        expect![[r#"
            INV-01 at #7 #10: c.0.beef: expected STARTED before DELETED: STARTED after DELETED, when its case had been judged
        "#]],
    );
}

#[test]
fn a_violation_that_a_case_has_reported_is_not_reported_again() {
    check(
        "pod run; c create; c STARTED; c STARTED; c CREATED; end",
        "c CREATED",
        expect![],
    );
}

#[test]
fn a_repetition_that_a_case_has_reported_does_not_hide_a_late_disorder() {
    check(
        "pod run; c create; c CREATED; c CREATED; c DELETED; end",
        "c STARTED",
        expect![[r#"
            INV-01 at #7 #9: c.0.beef: expected STARTED before DELETED: STARTED after DELETED, when its case had been judged
        "#]],
    );
}

#[test]
fn another_containers_violation_hides_nothing() {
    check(
        "pod run; c create; d create; c CREATED; c CREATED; d CREATED; end",
        "d CREATED",
        expect![[r#"
            INV-02 at #9 #11: d.0.beef: expected one CREATED event: CREATED again after 2ms, when its case had been judged
        "#]],
    );
}

#[test]
fn a_late_replay_to_a_new_subscriber_is_accepted() {
    check(
        LIFE,
        "resubscribe; c CREATED; c STOPPED; c DELETED",
        expect![],
    );
}

#[test]
fn foreign_pods_are_not_judged() {
    check(
        LIFE,
        "foreign CREATED; foreign CREATED; foreign STOPPED no-sandbox",
        expect![],
    );
}

#[test]
fn only_the_latest_pods_are_known() {
    let script = entries("pod run; c create; c CREATED");
    let knows_the_first_of = |pods: usize| {
        let mut whole_run = WholeRun::default();
        whole_run.push(&script[1]);
        for number in 1..pods {
            let mut another = script[1].clone();
            if let Body::CallBegan { request, .. } = &mut another.body {
                *request = Request::RunSandbox(Arc::new(SandboxSpec {
                    uid: PodUid::from(format!("another-{number}")),
                    ..SandboxSpec::default()
                }));
            }
            whole_run.push(&another);
        }
        whole_run.push(script.last().expect("an event"));
        !whole_run.seen.is_empty()
    };
    assert!(knows_the_first_of(limits::RUN_CONTAINERS));
    assert!(!knows_the_first_of(limits::RUN_CONTAINERS + 1));
}

#[test]
fn the_violations_of_a_dropped_container_stay() {
    let mut whole_run = WholeRun::default();
    let script = entries("pod run; c create; c CREATED; c CREATED");
    for entry in &script {
        whole_run.push(entry);
    }
    let event = script.last().expect("an event");
    for number in 0..=limits::RUN_CONTAINERS {
        let mut another = event.clone();
        let Body::Event { event, .. } = &mut another.body else {
            unreachable!("the script ends with an event")
        };
        event.container = format!("another-{number}").into();
        whole_run.push(&another);
    }
    assert_eq!(whole_run.seen.len(), limits::RUN_CONTAINERS);
    let found = whole_run.violations(&[]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].subject, "c.0.beef");
    let newest = format!("another-{}", limits::RUN_CONTAINERS).into();
    for _ in 0..2 * limits::EVENTS_OF_A_KIND {
        let mut again = event.clone();
        if let Body::Event { event, .. } = &mut again.body {
            event.container.clone_from(&newest);
        }
        whole_run.push(&again);
    }
    assert_eq!(whole_run.seen[&newest].len(), limits::EVENTS_OF_A_KIND);
}

/// An event that was held back for the next stream.
const REPLAY: &str = "pod run; c create; unsubscribe; c start; subscribe; c STARTED at=-4ms";

#[test]
fn a_held_back_event_is_sent_to_one_subscriber() {
    check(REPLAY, "c STOPPED", expect![]);
    check(
        REPLAY,
        "resubscribe; c STARTED at=-7ms",
        expect![[r#"
            INV-25 at #9 #11 #12: c.0.beef: expected STARTED not to be sent to a subscriber that came after it: it had come to an earlier one, and was sent to this one, too
        "#]],
    );
    // It is another one.
    check(REPLAY, "resubscribe; c STARTED at=-8ms", expect![]);
}

#[test]
fn two_subscribers_before_an_event_may_both_get_it() {
    let both = "pod run; c create; unsubscribe; c start; subscribe; subscribe; \
                c STARTED on=1 at=-5ms; c STARTED on=2 at=-6ms";
    check(both, "end", expect![]);
}

#[test]
fn a_live_event_is_sent_to_no_later_subscriber() {
    let live = "pod run; c create; c start; c STARTED";
    check(
        live,
        "resubscribe; c STARTED at=-3ms",
        expect![[r#"
        INV-25 at #7 #9 #10: c.0.beef: expected STARTED not to be sent to a subscriber that came after it: it had come to an earlier one, and was sent to this one, too
    "#]],
    );
    // Another one, or made so late that a clock may be wrong.
    check(live, "resubscribe; c STARTED at=-4ms", expect![]);
}

#[test]
fn a_stream_that_ended_is_reported_with_any_later_answer() {
    check("stream ends", "pass 1s", expect![]);
    check(
        "stream ends",
        "pod run foreign",
        expect![[r#"
            INV-21 at #1 #3: stream 0: expected a stream that stays open as long as the runtime runs: the runtime ended it with OK; after five such ends a kubelet up to 1.37 follows no events until it is restarted
        "#]],
    );
    check("stream ends UNAVAILABLE", "pod run foreign", expect![]);
    check("unsubscribe", "pod run foreign", expect![]);
}

#[test]
fn a_runtime_that_was_gone_may_end_streams() {
    check("stream ends", "pod run fails; pod2 run", expect![]);
    check("pod run begins; stream ends", "pod run returns", expect![]);
}

#[test]
fn a_stream_that_a_case_has_reported_is_not_reported_again() {
    check("stream ends; pod run", "pod2 run", expect![]);
}
