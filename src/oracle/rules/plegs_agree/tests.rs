//! Histories in which both kubelets have the same beliefs, and similar ones in which they do not.

mod outages;

use expect_test::{Expect, expect};

use super::RULE;
use crate::oracle::rules::testing::check;

/// Checks the rule after a container has been created in #1 to #5 and started in #6 to #8.
const STARTED: &str = "pod run; c create; c CREATED; c start; c STARTED";

#[track_caller]
fn then(script: &str, expect: Expect) {
    check(&RULE, &format!("{STARTED}; {script}"), expect);
}

#[test]
fn the_last_inspection_shows_the_same_as_the_events() {
    then("pod inspect c=running; end", expect![""]);
    then(
        "c stop; c STOPPED exit=137; pod inspect c=exited:137; end",
        expect![""],
    );
}

#[test]
fn another_state_or_exit_code_is_a_disagreement() {
    then(
        "pod inspect c=exited:137; end",
        expect![[r#"
            INV-13 at #5 #8 #9 #16: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
    then(
        "c stop; c STOPPED exit=1; pod inspect c=exited:137; end",
        expect![[r#"
            INV-13 at #5 #8 #11 #12 #19: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events exited 1 Error
        "#]],
    );
}

#[test]
fn an_earlier_event_is_no_longer_believed() {
    then(
        "c stop; c STOPPED exit=137; pod inspect c=running; end",
        expect![[r#"
            INV-13 at #5 #8 #11 #12 #19: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists running 0, by events exited 137 Error
        "#]],
    );
}

#[test]
fn a_transition_during_the_inspection_may_be_reported_after_it() {
    then(
        "pod inspect c=exited:137; c STOPPED exit=137; end",
        expect![""],
    );
}

/// Cancelled creations continue concurrently.
#[test]
fn an_event_may_show_more_than_a_relist_found_before() {
    let made = "d create; e create";
    then(
        &format!("{made}; pod inspect c=running d=created; d CREATED stale=e:created; end"),
        expect![],
    );
    then(
        &format!("{made}; d CREATED stale=e:created; pod inspect c=running d=created; end"),
        expect![[r#"
            INV-13 at #5 #8 #13 #14 #23: pod (pod.0.beef): expected both kubelets believe the same of e.0.beef: by relists nothing, by events created 0
        "#]],
    );
}

#[test]
fn an_inspection_that_was_refused_shows_nothing() {
    then("pod inspect c=exited:137 unanswered; end", expect![]);
    then("c stop; pod inspect c=exited:137; end error", expect![""]);
}

#[test]
fn a_listed_container_that_is_not_found_is_gone() {
    then(
        "pod inspect c=running missing; end",
        expect![[r#"
        INV-13 at #5 #8 #9 #16: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists nothing, by events running 0
    "#]],
    );
    then(
        "pod inspect c=running missing sandbox-missing; end",
        expect![[r#"
            INV-13 at #5 #8 #9 #16: pod (pod.0.beef): expected both kubelets believe the same of sandbox pod.0.beef: by relists nothing, by events READY
            INV-13 at #5 #8 #9 #16: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists nothing, by events running 0
        "#]],
    );
    then(
        "c remove; c DELETED; pod inspect c=running missing; end",
        expect![],
    );
}

#[test]
fn a_relist_on_demand_that_lacks_the_pod_leaves_its_removal_to_the_next_of_all_pods() {
    let removed = "pod inspect c=running; pod stop; c STOPPED exit=137; pod STOPPED; pod remove; \
                   c DELETED; pod DELETED";
    then(
        &format!("{removed}; pod inspect sandbox-unlisted; end"),
        expect![],
    );
    then(
        &format!("{removed}; pod inspect; end"),
        expect![[r#"
        INV-13 at #5 #8 #19 #20 #23 #24 #25 #30: pod (pod.0.beef): expected both kubelets believe the same of sandbox pod.0.beef: by relists NOTREADY, by events nothing
    "#]],
    );
}

#[test]
fn a_relist_on_demand_beside_the_cases_is_no_inspection() {
    let exited = "c stop; c STOPPED exit=137";
    then(
        &format!("{exited}; run inspect c=running on-demand; end"),
        expect![],
    );
    then(
        &format!("{exited}; pod inspect c=exited:137; run inspect c=running on-demand; end"),
        expect![],
    );
    then(
        "pod inspect c=exited:137; run inspect c=exited:137 on-demand; end",
        expect![[r#"
            INV-13 at #5 #8 #9 #16: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
}

#[test]
fn calls_at_two_times_are_no_inspection() {
    let exits = "c stop; c STOPPED exit=137";
    then(
        &format!(
            "pod inspect sandbox; {exits}; pod relist c=exited; pod inspect c=exited:137; end"
        ),
        expect![""],
    );
    then(
        &format!("pod inspect sandbox; {exits}; pod relist; end"),
        expect![""],
    );
}

#[test]
fn only_the_last_inspection_waits_for_events() {
    let removed = "c remove; c DELETED; pod inspect; end";
    then(&format!("pod inspect c=exited:137; {removed}"), expect![]);
    then(
        "c remove; c DELETED; pod inspect; pod inspect c=exited:137; end",
        expect![[r#"
            INV-13 at #5 #8 #11 #18 #25: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events nothing
        "#]],
    );
}

#[test]
fn an_inspection_by_the_steps_before_a_change_is_not_the_last() {
    then("pod inspect c=exited:137; pod remove; end", expect![]);
    then(
        "c stop begins; pod inspect c=exited:137; c stop returns; end",
        expect![],
    );
    then(
        "pod2 run; pod inspect c=exited:137; pod2 remove; end",
        expect![[r#"
            INV-13 at #5 #8 #11 #18: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
}

#[test]
fn a_container_without_the_label_of_its_pod_is_in_no_relist() {
    let inspected = |words: &str, expect: Expect| {
        let started = format!("pod run labelled; c create{words}; c CREATED; c start; c STARTED");
        check(&RULE, &format!("{started}; pod inspect; end"), expect);
    };
    inspected("", expect![]);
    inspected(
        " labelled",
        expect![[r#"
        INV-13 at #5 #8 #9 #14: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists nothing, by events running 0
    "#]],
    );
}

#[test]
fn a_list_without_the_statuses_is_no_inspection() {
    let inspected = "pod inspect c=exited:137";
    then(
        &format!("{inspected}; {inspected} unasked; end"),
        expect![[r#"
            INV-13 at #5 #8 #9 #16: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
    then(&format!("{inspected} unasked; end"), expect![]);
}

#[test]
fn a_relist_that_the_end_of_the_case_cuts_off_shows_nothing() {
    let cut_off = "run inspect c=exited:137 unasked; pod inspect c=exited:137; end";
    then(
        &format!("run inspect c=running; c stop; c STOPPED exit=137; {cut_off}"),
        expect![],
    );
    then(
        &format!("run inspect c=running; c stop; {cut_off}"),
        expect![[r#"
            INV-13 at #5 #8 #25 #32: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
}

#[test]
fn a_relist_may_inspect_a_container_before_its_creation_returns() {
    let relist = "resubscribe; proven; c create begins; run inspect c=created";
    let rest = "c create returns; c CREATED; c start; c STARTED; pod inspect c=running; end";
    check(&RULE, &format!("pod run; {relist}; {rest}"), expect![]);
    check(
        &RULE,
        &format!("pod run; {relist} unanswered; {rest}"),
        expect![[r#"
            INV-13 at #16: c (c.0.beef): expected a kubelet takes the event: the kubelet panics: an event came for pod uid-of-pod, whose last inspection failed, and the kubelet dereferences the status that is not there
        "#]],
    );
}

#[test]
fn a_relist_that_the_end_of_the_case_cuts_off_shows_nothing_of_sandboxes() {
    let exited = "c stop; c STOPPED exit=137; run inspect c=exited:137; pod stop";
    let cut_off = "run inspect c=exited:137 not-ready unasked sandbox-unasked; \
                   pod inspect c=exited:137 not-ready; end";
    then(&format!("{exited}; pod STOPPED; {cut_off}"), expect![]);
    then(
        &format!("{exited}; {cut_off}"),
        expect![[r#"
        INV-13 at #5 #8 #11 #26 #33: pod (pod.0.beef): expected both kubelets believe the same of sandbox pod.0.beef: by relists NOTREADY, by events READY
    "#]],
    );
}

#[test]
fn a_container_that_was_deleted_may_stay_in_the_evented_cache() {
    then(
        "c stop; c STOPPED exit=1; c remove; c DELETED present exit=1; pod inspect; end",
        expect![],
    );
    then(
        "c stop; c STOPPED exit=1; pod inspect; end",
        expect![[r#"
            INV-13 at #5 #8 #11 #12 #17: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists nothing, by events exited 1 Error
        "#]],
    );
}

#[test]
fn a_snapshot_that_went_back_is_reported_by_its_own_rule() {
    let exits = "c stop; c STOPPED exit=1; d create; d CREATED exit=0";
    then(
        &format!("{exits}; pod inspect c=exited:1 d=created; end"),
        expect![],
    );
    then(
        &format!("{exits} stale=c:running; pod inspect c=exited:1 d=created; end"),
        expect![],
    );
    then(
        &format!("{exits} stale=c:exited:2; pod inspect c=exited:1 d=created; end"),
        expect![[r#"
            INV-13 at #5 #8 #11 #14 #15 #24: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 1 Error, by events exited 2 Error
        "#]],
    );
}

// During the steps

#[test]
fn a_pod_at_rest_for_as_long_as_events_may_take_is_judged_amid_the_steps() {
    then(
        "run inspect c=exited:137; pass 11s; c stop; end",
        expect![[r#"
            INV-13 at #5 #8 #9 #16: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
    then("run inspect c=running; pass 11s; c stop; end", expect![""]);
}

/// A runtime may send no DELETED of sandboxes.
#[test]
fn a_pod_that_is_removed_between_a_list_and_its_status_is_not_at_rest() {
    let gone = "c stop; c STOPPED exit=0; c remove; c DELETED; run inspect sandbox-missing";
    let rest = "pass 11s; pod stop; end";
    then(
        &format!("{gone}; run inspect sandbox-unlisted; {rest}"),
        expect![""],
    );
    then(
        &format!("{gone}; run inspect sandbox-missing; {rest}"),
        expect![[r#"
            INV-13 at #5 #8 #11 #14 #15 #20: pod (pod.0.beef): expected both kubelets believe the same of sandbox pod.0.beef: by relists nothing, by events READY
        "#]],
    );
}

#[test]
fn a_pod_that_is_not_at_rest_is_not_judged_amid_the_steps() {
    then("run inspect c=exited:137; pass 9s; c stop; end", expect![]);
    then(
        "c stop begins; run inspect c=exited:137; pass 11s; c stop returns; end",
        expect![],
    );
    then(
        "run inspect c=created; pass 5s; run inspect c=exited:1; pass 6s; c stop; end",
        expect![""],
    );
    then(
        "run inspect c=exited:137; pass 9s; c STOPPED exit=137; pass 2s; c stop; end",
        expect![""],
    );
}

#[test]
fn events_need_not_be_read_while_the_suite_itself_is_held_up() {
    let exits = "run inspect c=exited:137; pass 11s";
    then(
        &format!("{exits}; held-up 2s; c stop; end error"),
        expect![],
    );
    then(
        &format!("{exits}; held-up 900ms; c stop; end error"),
        expect![[r#"
            INV-13 at #5 #8 #9 #16: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
}

#[test]
fn any_call_that_may_change_a_pod_ends_its_rest() {
    let shown = "run inspect c=exited:137";
    then(
        &format!("pod stop begins; {shown}; pass 11s; pod stop returns; end"),
        expect![],
    );
    then(
        &format!("{shown}; d create; d CREATED; pass 11s; c stop; end"),
        expect![],
    );
}

#[test]
fn a_later_inspection_that_shows_the_same_does_not_end_the_rest() {
    let shown = "inspect c=exited:137";
    then(
        &format!("run {shown}; pass 5s; pod {shown}; pass 6s; c stop; end error"),
        expect![[r#"
            INV-13 at #5 #8 #9 #16: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
}

#[test]
fn a_call_about_another_pod_does_not_end_the_rest() {
    then(
        "pod2 run; run inspect c=exited:137; d create in=pod2; d start; d stop; pod2 stop; \
         pass 11s; c stop; end",
        expect![[r#"
            INV-13 at #5 #8 #11 #18: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
}

// Containers in PodSandboxStatus

/// Checks the rule on a container that exits while no stream is open, with the words of the relist
/// after it.
#[track_caller]
fn relisted(words: &str, expect: Expect) {
    then(
        &format!("resubscribe; proven; c stop; run inspect {words}; pod inspect c=exited:137; end"),
        expect,
    );
}

#[test]
fn a_relist_is_as_new_as_the_sandboxs_status_says() {
    relisted("c=exited:137 read=+0s", expect![]);
    relisted("c=exited:137 read=-5ms", expect![]);
    relisted(
        "c=exited:137 read=-1h",
        expect![[r#"
            INV-13 at #5 #8 #22 #29: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
    relisted("c=exited:137 read=0", expect![]);
}

#[test]
fn a_relist_with_a_future_time_hides_later_events() {
    let stopped = |read: &str, expect| {
        let relist = format!("resubscribe; proven; run inspect c=running read={read}");
        then(
            &format!("{relist}; c stop; c STOPPED exit=137; pod inspect c=exited:137; end"),
            expect,
        );
    };
    stopped("+0s", expect![]);
    stopped(
        "+1h",
        expect![[r#"
            INV-13 at #5 #8 #22 #23 #30: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
}

#[test]
fn containers_come_from_a_sandbox_status_with_a_timestamp() {
    relisted(
        "c=exited:137 read=+0s reported=c:running",
        expect![[r#"
            INV-13 at #5 #8 #22 #29: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events running 0
        "#]],
    );
    relisted(
        "c=exited:137 read=+0s reported=none",
        expect![[r#"
            INV-13 at #5 #8 #22 #29: pod (pod.0.beef): expected both kubelets believe the same of c.0.beef: by relists exited 137 Error, by events nothing
        "#]],
    );
    relisted("c=exited:137 read=0 reported=c:running", expect![]);
}

#[test]
fn the_generic_pleg_ignores_the_containers_of_a_sandbox_status() {
    then(
        "pod inspect c=running read=-1h reported=c:exited; end",
        expect![],
    );
}

// Where a pod has two sandboxes

#[test]
fn a_kubelet_forgets_a_pod_when_one_of_its_sandboxes_is_deleted() {
    let made_again = "pod-b run again=pod; pod-b STARTED";
    then(
        &format!("{made_again}; pod-b inspect d=running; end"),
        expect![[r#"
            INV-13 at #5 #8 #11 #12 #19: pod-b (pod-b.0.beef): expected both kubelets believe the same of d.0.beef: by relists running 0, by events nothing
        "#]],
    );
    then(
        &format!("{made_again}; pod DELETED; pod-b inspect d=running; end"),
        expect![""],
    );
}

#[test]
fn a_late_event_of_an_older_sandbox_is_named() {
    then(
        "pod-b run again=pod; pod-b STARTED; c STOPPED exit=255; pod-b inspect; end",
        expect![[r#"
            INV-13 at #5 #8 #11 #12 #13 #18: pod-b (pod-b.0.beef): expected both kubelets believe the same of sandbox pod-b.0.beef: by relists READY, by events nothing, since STOPPED of c.0.beef in the older sandbox pod.0.beef
            INV-13 at #5 #8 #11 #12 #13 #18: pod-b (pod-b.0.beef): expected both kubelets believe the same of sandbox pod.0.beef: by relists nothing, by events READY, since STOPPED of c.0.beef in the older sandbox pod.0.beef
            INV-13 at #5 #8 #11 #12 #13 #18: pod-b (pod-b.0.beef): expected both kubelets believe the same of c.0.beef: by relists nothing, by events exited 255 Error, since STOPPED of c.0.beef in the older sandbox pod.0.beef
        "#]],
    );
}
