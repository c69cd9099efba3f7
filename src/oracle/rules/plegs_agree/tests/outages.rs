//! Histories with a stream that ended.

use expect_test::expect;

use super::then;

#[test]
fn a_kubelet_relists_after_a_stream_that_ended() {
    let stopped = "resubscribe; proven; c stop";
    then(
        &format!("{stopped}; run inspect c=exited:137; pod inspect c=exited:137; end"),
        expect![],
    );
    then(
        "resubscribe; proven; run inspect c=running; c stop; pod inspect c=exited:137; end",
        expect![[r#"
            INV-13 at #5 #8 #22 #29: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
}

#[test]
fn a_relist_that_began_before_its_stream_ended_is_not_the_one_after_it() {
    let stopped = "c stop; run inspect c=exited:137; pod inspect c=exited:137; end";
    then(
        &format!("run inspect c=running resubscribe; proven; {stopped}"),
        expect![],
    );
    then(
        &format!("resubscribe; proven; run inspect c=running; {stopped}"),
        expect![[r#"
            INV-13 at #5 #8 #30 #37: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
}

#[test]
fn a_relist_without_a_stream_is_not_the_one_after_it() {
    let stopped = "c stop; subscribe; proven; pod inspect c=exited:137; end";
    then(
        &format!("unsubscribe; run inspect c=running; {stopped}"),
        expect![],
    );
    then(
        &format!("unsubscribe; subscribe; proven; run inspect c=running; {stopped}"),
        expect![[r#"
            INV-13 at #5 #8 #24 #31: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
}

#[test]
fn a_transition_while_no_stream_is_live_is_not_judged() {
    let exits = "run inspect c=running; pass 2s; run inspect c=exited:137; pass 11s; c stop";
    for away in ["stream ends UNAVAILABLE", "stream ends", "unsubscribe"] {
        then(&format!("{away}; {exits}; end error"), expect![]);
        then(&format!("{away}; subscribe; {exits}; end error"), expect![]);
        // The stream ended before the events had their time.
        let rest = "run inspect c=exited:137; pass 5s";
        then(
            &format!("{rest}; {away}; pass 6s; c stop; end error"),
            expect![],
        );
    }
    then(
        &format!("stream ends UNAVAILABLE; subscribe; proven; {exits}; end error"),
        expect![[r#"
            INV-13 at #5 #8 #20 #27: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
    // A container exits without a call.
    then(
        "stream ends UNAVAILABLE; subscribe; proven; pod inspect c=exited:137; end",
        expect![],
    );
}

/// A kubelet compares a relist with the previous one, and inspects the pods that differ.
#[test]
fn a_container_that_came_and_went_between_two_relists_may_stay_in_the_evented_cache() {
    let relist = "resubscribe; proven; run inspect c=running";
    let made = format!("{relist}; d create; d CREATED");
    let ends = "pod inspect c=running; end";
    then(
        &format!("{made}; resubscribe; proven; d remove; run inspect c=running; {ends}"),
        expect![],
    );
    // It went while the stream was live.
    then(
        &format!("{made}; {relist} d=created; d remove; {ends}"),
        expect![[r#"
            INV-13 at #5 #8 #22 #38 #45: pod (pod.0.beef): expected both kubelets believe the same of d.0.beef: by relists nothing, by events created 0
        "#]],
    );
    // Its event came during the relist that lacks it.
    then(
        &format!("resubscribe; proven; d create; run inspect c=running created=d; {ends}"),
        expect![[r#"
            INV-13 at #5 #8 #18 #23 #30: pod (pod.0.beef): expected both kubelets believe the same of d.0.beef: by relists nothing, by events created 0
        "#]],
    );
}

#[test]
fn a_late_event_of_a_stream_that_was_given_up_is_ignored() {
    let late = "resubscribe; c TYPE=9 on=0; c stop; c STOPPED exit=137 on=1";
    then(&format!("{late}; pod inspect c=exited:137; end"), expect![]);
}

#[test]
fn events_of_another_stream_do_not_reach_the_kubelet() {
    then(
        "c stop; c STOPPED exit=137 on=7; pod inspect c=exited:137; end",
        expect![[r#"
            INV-13 at #5 #8 #11 #12 #19: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
}
