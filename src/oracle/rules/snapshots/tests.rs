//! Snapshots that can be explained, and their nearest neighbours that cannot.

use expect_test::{Expect, expect};

use super::{PREMATURE, RULE};
use crate::oracle::rules::testing::check;

/// Two containers have been created and one of them was started.
const TWO: &str = "pod run; c create; c CREATED; d create; d CREATED; c start; c STARTED";

/// Checks INV-27 after that.
#[track_caller]
fn then(script: &str, expect: Expect) {
    check(&RULE, &format!("{TWO}; {script}"), expect);
}

/// Checks INV-19 after that.
#[track_caller]
fn early(script: &str, expect: Expect) {
    check(&PREMATURE, &format!("{TWO}; {script}"), expect);
}

#[test]
fn a_state_that_was_over_before_the_cause_is_stale() {
    then(
        "d start; d STARTED stale=c:created",
        expect![[r#"
        INV-27 at #14: c (c.0.beef): expected a state in which it was between the cause and the arrival of STARTED of d: CREATED, which was over before
    "#]],
    );
    check(
        &RULE,
        "pod run; c create; d create; c start begins; d start; d STARTED stale=c:created; \
         c start returns",
        expect![],
    );
}

#[test]
fn a_state_that_began_after_the_arrival_is_premature() {
    early(
        "d start begins; d STARTED stale=c:exited; pod relist c=running",
        expect![[r#"
            INV-19 at #13 #14: c (c.0.beef): expected a state from before ListContainers in STARTED: EXITED
        "#]],
    );
    then(
        "d start begins; pod relist begins; d STARTED stale=c:exited; pod relist returns c=running",
        expect![],
    );
}

#[test]
fn states_of_two_times_are_fractured() {
    // c was CREATED when d was created, and d RUNNING when CREATED of d came, but not both at once.
    let shown = "d CREATED state=running stale=c:created";
    let then = |calls: &str, expect| {
        let made = "pod run; c create; c CREATED; d create";
        check(&RULE, &format!("{made}; {calls}"), expect);
    };
    then(
        &format!("c start; d start; {shown}"),
        expect![[r#"
        INV-27 at #12: c (c.0.beef): expected states that were at one time, in CREATED of d: c CREATED, d RUNNING, which were not at one time
    "#]],
    );
    then(
        &format!("c start begins; d start; {shown}; c start returns"),
        expect![],
    );
    then(&format!("d start; c start; {shown}"), expect![]);
}

#[test]
fn a_snapshot_before_the_previous_one_is_found() {
    let then = |last: &str, expect| {
        self::then(
            &format!("c STOPPED; pod STARTED stale=c:running{last}"),
            expect,
        );
    };
    then(
        "",
        expect![[r#"
            INV-27 at #12 #13: c (c.0.beef): expected a state after that in the snapshot before, in STARTED of pod: c RUNNING, which was over then
        "#]],
    );
    then(" on=7", expect![]);
    // A kubelet drops it.
    then(" at=-20ms", expect![""]);
}

#[test]
fn what_is_absent_was_not_there_yet_or_no_longer() {
    then(
        "d start begins; d STARTED without=c",
        expect![[r#"
        INV-27 at #13: c (c.0.beef): expected a state in which it was between the cause and the arrival of STARTED of d: absent, which was over before
    "#]],
    );
    then(
        "c remove begins; d start begins; d STARTED without=c",
        expect![],
    );
    check(
        &RULE,
        "pod run; c create; c CREATED; d create begins; c start; c STARTED; d create returns",
        expect![],
    );
}

#[test]
fn a_sandbox_is_ready_until_it_is_stopped() {
    then(
        "pod stop; c STOPPED; d start; d STARTED ready",
        expect![[r#"
        INV-27 at #17: pod (pod.0.beef): expected a state in which it was between the cause and the arrival of STARTED of d: READY, which was over before
    "#]],
    );
    then(
        "pod stop begins; d start; d STARTED ready; pod stop returns",
        expect![],
    );
    then("d start; d STARTED not-ready", expect![]);
    early(
        "d start; d STARTED not-ready; pod inspect c=running d=running",
        expect![[r#"
            INV-19 at #14 #19: pod (pod.0.beef): expected a state from before PodSandboxStatus in STARTED: NOTREADY
        "#]],
    );
}

#[test]
fn a_container_has_exited_when_it_has_been_stopped() {
    then(
        "c stop; d start; d STARTED stale=c:running",
        expect![[r#"
        INV-27 at #16: c (c.0.beef): expected a state in which it was between the cause and the arrival of STARTED of d: RUNNING, which was over before
    "#]],
    );
    then(
        "c stop begins; d start; d STARTED stale=c:running; c stop returns",
        expect![],
    );
    then(
        "pod stop; d start; d STARTED stale=c:running not-ready",
        expect![[r#"
            INV-27 at #16: c (c.0.beef): expected a state in which it was between the cause and the arrival of STARTED of d: RUNNING, which was over before
        "#]],
    );
}

#[test]
fn what_others_did_and_calls_that_contradict_each_other_explain_everything() {
    check(
        &RULE,
        "pod run; foreign CREATED; foreign STOPPED",
        expect![],
    );
    then(
        "pod relist c=exited; pod relist c=running; d start; d STARTED stale=c:created",
        expect![],
    );
}

#[test]
fn an_event_without_a_cause_is_for_other_rules() {
    then("d STARTED", expect![]);
    then("d start begins; d STARTED; d start returns", expect![]);
}

/// Checks the rule after two containers have been created.
#[track_caller]
fn before(script: &str, expect: Expect) {
    check(
        &PREMATURE,
        &format!("pod run; c create; c CREATED; d create; {script}"),
        expect,
    );
}

#[test]
fn a_container_that_can_be_started_was_not_running() {
    before(
        "d CREATED stale=c:running; c start",
        expect![[r#"
            INV-19 at #8 #9: c (c.0.beef): expected a state from before StartContainer in CREATED: RUNNING
        "#]],
    );
    before("d CREATED stale=c:created; c start", expect![]);
    before(
        "c start begins; d CREATED stale=c:running; c start returns",
        expect![],
    );
    before(
        "d CREATED stale=c:exited; c start fails",
        expect![[r#"
        INV-19 at #8 #9: c (c.0.beef): expected a state from before StartContainer in CREATED: EXITED
    "#]],
    );
    check(
        &PREMATURE,
        "pod run; c create; c CREATED state=exited; c start",
        expect![[r#"
            INV-19 at #5 #6: c (c.0.beef): expected a state from before StartContainer in CREATED: EXITED
        "#]],
    );
}

#[test]
fn a_container_that_is_found_running_had_not_exited() {
    before(
        "c start; c STARTED; d CREATED stale=c:exited; pod relist c=running",
        expect![[r#"
            INV-19 at #11 #12: c (c.0.beef): expected a state from before ListContainers in CREATED: EXITED
        "#]],
    );
    before(
        "c start; c STARTED; pod relist c=running; d CREATED stale=c:exited",
        expect![],
    );
    before(
        "c start; c STARTED; d CREATED stale=c:exited; pod relist c=exited",
        expect![],
    );
    before(
        "c start; c STARTED; d CREATED stale=c:exited; pod relist c=unknown",
        expect![],
    );
    before(
        "c start; c STARTED state=exited; pod inspect c=running",
        expect![[r#"
            INV-19 at #10 #17: c (c.0.beef): expected a state from before ContainerStatus in STARTED: EXITED
        "#]],
    );
    before(
        "c start; c STARTED state=exited; pod inspect unlisted c=running",
        expect![[r#"
            INV-19 at #10 #17: c (c.0.beef): expected a state from before ContainerStatus in STARTED: EXITED
        "#]],
    );
}

#[test]
fn a_call_that_was_under_way_proves_nothing() {
    before(
        "c start; c STARTED; pod relist begins; d CREATED stale=c:exited; pod relist returns c=running",
        expect![],
    );
}
