//! Statements that break INV-28 and INV-29, and their nearest neighbours that do not.

use expect_test::{Expect, expect};

use super::{ANSWERS, SNAPSHOTS};
use crate::oracle::rules::testing::check;

/// Checks the rule about snapshots after a container has been created.
#[track_caller]
fn shown(script: &str, expect: Expect) {
    let made = "pod run; pod STARTED; c create; c CREATED";
    check(&SNAPSHOTS, &format!("{made}; {script}"), expect);
}

/// Checks the rule about answers after a container has been started.
#[track_caller]
fn answered(script: &str, expect: Expect) {
    let started = "pod run; c create; c CREATED; c start; c STARTED";
    check(&ANSWERS, &format!("{started}; {script}"), expect);
}

#[test]
fn a_field_is_set_when_its_state_demands_it() {
    shown("c start; c STARTED; c STOPPED", expect![]);
    shown(
        "c STARTED status-lacks=metadata",
        expect![[r#"
        INV-29 at #7: c (c.0.beef): expected name of what is RUNNING in STARTED: none
    "#]],
    );
    shown(
        "c STARTED status-lacks=image",
        expect![[r#"
        INV-29 at #7: c (c.0.beef): expected image of what is RUNNING in STARTED: none
    "#]],
    );
    shown(
        "c STARTED status-lacks=time",
        expect![[r#"
        INV-29 at #7: c (c.0.beef): expected created_at of what is RUNNING in STARTED: none
    "#]],
    );
    shown(
        "c STARTED ref=",
        expect![[r#"
        INV-29 at #7: c (c.0.beef): expected image_ref of what is RUNNING in STARTED: none
    "#]],
    );
    shown(
        "c STARTED status-lacks=id",
        expect![[r#"
        INV-29 at #7: c (c.0.beef): expected id `c.0.beef` in STARTED, as was requested: id ``
    "#]],
    );
    shown(
        "c start; c STARTED started=0",
        expect![[r#"
        INV-29 at #9: c (c.0.beef): expected started_at of what is RUNNING in STARTED: none
    "#]],
    );
    shown(
        "c start; c STOPPED started=0",
        expect![[r#"
        INV-29 at #9: c (c.0.beef): expected started_at of what is EXITED in STOPPED: none
    "#]],
    );
    shown(
        "c start; c STOPPED finished=0",
        expect![[r#"
        INV-29 at #9: c (c.0.beef): expected finished_at of what is EXITED in STOPPED: none
    "#]],
    );
    shown("c STARTED state=created started=0", expect![]);
    // A container that was never started has no start time.
    shown("c start fails; c STOPPED started=0", expect![]);
}

#[test]
fn a_field_is_not_set_before_its_state() {
    shown(
        "c STARTED finished=+0s",
        expect![[r#"
        INV-29 at #7: c (c.0.beef): expected no finished_at of what is RUNNING in STARTED: finished_at 1700000000005000000
    "#]],
    );
    shown(
        "c STARTED state=created started=+0s",
        expect![[r#"
        INV-29 at #7: c (c.0.beef): expected no started_at of what is CREATED in STARTED: started_at 1700000000005000000
    "#]],
    );
    shown(
        "c stop; c STOPPED started=go",
        expect![[r#"
        INV-29 at #9: c (c.0.beef): expected no started_at of what is EXITED in STOPPED: the zero time of Go in nanoseconds, which is in the year 1754
    "#]],
    );
}

#[test]
fn a_field_is_as_it_was_requested() {
    shown(
        "c STARTED pod-name=other",
        expect![[r#"
            INV-29 at #7: pod (pod.0.beef): expected name `pod` in STARTED, as was requested: name `other`
        "#]],
    );
    shown(
        "pod2 run; c STARTED sandbox=pod2",
        expect![[r#"
        INV-29 at #9: pod (pod.0.beef): expected id `pod.0.beef` in STARTED, as was requested: id `pod2.0.beef`
    "#]],
    );
    shown(
        "pod STOPPED sandbox=other",
        expect![[r#"
        INV-29 at #7: pod (pod.0.beef): expected id `pod.0.beef` in STOPPED, as was requested: id `other.0.beef`
    "#]],
    );
    // A snapshot is not older than the start that it reports, but it may be older than its arrival.
    shown(
        "c update shares=512; c start; c STARTED shares=512",
        expect![],
    );
    shown(
        "c update shares=512; c start; c STARTED",
        expect![[r#"
        INV-29 at #11: c (c.0.beef): expected resources {"cpu_shares": "512"} in STARTED, as was requested: resources {}
    "#]],
    );
    shown("c start; c update shares=512; c STARTED", expect![]);
    // Another UID or none is reported by another rule.
    shown("c STARTED uid=x pod-name=other", expect![]);
    shown("c STARTED no-sandbox", expect![]);
    shown("c STARTED no-metadata", expect![]);
}

#[test]
fn a_field_does_not_change() {
    let ended = "c start; c STARTED; c STOPPED exit=1";
    shown(&format!("{ended}; pod inspect c=exited:1"), expect![]);
    shown(
        &format!("{ended}; pod inspect c=exited:2"),
        expect![[r#"
            INV-29 at #10 #17 #18: c (c.0.beef): expected exit_code 2 in STOPPED, as ContainerStatus has it: exit_code 1
        "#]],
    );
    shown(
        &format!("{ended} reason=Other; pod inspect c=exited:1"),
        expect![[r#"
            INV-29 at #10 #17 #18: c (c.0.beef): expected reason `Error` in STOPPED, as ContainerStatus has it: reason `Other`
        "#]],
    );
    shown(
        &format!("{ended} finished=+1ms; pod inspect c=exited:1"),
        expect![[r#"
            INV-29 at #10 #17 #18: c (c.0.beef): expected finished_at 1700000000011000000 in STOPPED, as ContainerStatus has it: finished_at 1700000000012000000
        "#]],
    );
    shown(
        "c start; c STARTED; c STOPPED ref=sha256:f00d",
        expect![[r#"
        INV-29 at #6 #10: c (c.0.beef): expected image_ref `sha256:beef` in STOPPED, as CREATED has it: image_ref `sha256:f00d`
    "#]],
    );
    // What a snapshot shows before the exit is no exit status.
    shown(
        "c start; c STARTED exit=1; c STOPPED",
        expect![[r#"
        INV-29 at #9: c (c.0.beef): expected no exit_code of what is RUNNING in STARTED: exit_code 1
    "#]],
    );
    answered("pod inspect c=exited:1; pod inspect c=exited:1", expect![]);
    answered(
        "pod inspect c=exited:1; pod inspect c=exited:2",
        expect![[r#"
            INV-28 at #15 #16 #23 #24: c (c.0.beef): expected exit_code 1 in ContainerStatus, as ContainerStatus has it: exit_code 2
        "#]],
    );
    answered(
        "pod inspect c=exited:1:why; pod inspect c=exited:1",
        expect![[r#"
            INV-28 at #15 #16 #23 #24: c (c.0.beef): expected message `why` in ContainerStatus, as ContainerStatus has it: message ``
        "#]],
    );
    answered("c STOPPED exit=2; pod inspect c=exited:1", expect![]);
}

#[test]
fn an_answer_shows_no_earlier_state() {
    answered("c STOPPED; pod inspect c=running", expect![""]);
    answered("c STOPPED; pod relist c=running", expect![""]);
    answered(
        "pod relist begins; c STOPPED; pod relist returns c=running",
        expect![],
    );
    answered("pod inspect c=exited; pod inspect c=running", expect![""]);
    answered(
        "pod stop; pod STOPPED; pod find-sandbox pod=ready",
        expect![""],
    );
    answered(
        "d create; d CREATED stale=c:exited; pod inspect c=running",
        expect![],
    );
}

#[test]
fn a_time_is_within_the_calls_that_set_it() {
    let started = |words: &str| format!("pass 1s; c start; c STARTED {words}");
    shown(&started(""), expect![]);
    shown(&started("started=-10ms"), expect![]);
    shown(
        &started("started=-11ms"),
        expect![[r#"
        INV-29 at #9: c (c.0.beef): expected started_at in STARTED not before StartContainer: 1ms before it
    "#]],
    );
    shown(
        &started("started=+51ms"),
        expect![[r#"
        INV-29 at #9: c (c.0.beef): expected started_at not 49ms after the event's created_at in STARTED: started_at after the event's created_at
    "#]],
    );
    shown(
        &started("started=+52ms"),
        expect![[r#"
            INV-29 at #9: c (c.0.beef): expected started_at in STARTED not after StartContainer: 1ms after it
        "#]],
    );
    let ended = |words: &str| format!("c start; c STARTED; pass 1s; c STOPPED {words}");
    shown(&ended(""), expect![]);
    shown(
        &ended("finished=+11ms"),
        expect![[r#"
            INV-29 at #10: c (c.0.beef): expected finished_at in STOPPED not after STOPPED: 1ms after it
        "#]],
    );
    shown(
        &ended("finished=-2s"),
        expect![[r#"
            INV-29 at #10: c (c.0.beef): expected finished_at in STOPPED not before StartContainer: 987ms before it
        "#]],
    );
}

#[test]
fn a_killed_process_ended_when_the_kernel_ended_it() {
    let script =
        |at: &str| format!("c start; c STARTED; c killed; pass 3s; c STOPPED finished={at}");
    shown(
        &script("-999ms"),
        expect![[r#"
            INV-29 at #11: c (c.0.beef): expected finished_at in STOPPED not after the kill of its process: 2ms after it
        "#]],
    );
    shown(&script("-1003ms"), expect![]);
}

#[test]
fn times_are_in_order() {
    let ended = |words: &str| format!("c start; c STARTED; c STOPPED {words}");
    shown(&ended("at=-10ms"), expect![]);
    shown(
        &ended("at=-11ms"),
        expect![[r#"
        INV-29 at #10: c (c.0.beef): expected finished_at not 11ms after the event's created_at in STOPPED: finished_at after the event's created_at
    "#]],
    );
    shown(
        "c start; c STARTED at=-20ms",
        expect![[r#"
        INV-29 at #9: c (c.0.beef): expected started_at not 18ms after the event's created_at in STARTED: started_at after the event's created_at
    "#]],
    );
    shown("c start; c STARTED at=s", expect![]);
    shown("c start; c STARTED state=exited at=-20ms", expect![]);
    shown(
        "c start; c STARTED; c STOPPED finished=-15ms",
        expect![[r#"
        INV-29 at #10: c (c.0.beef): expected finished_at in STOPPED not before StartContainer: 2ms before it
    "#]],
    );
}

#[test]
fn no_success_is_shown_of_a_failure() {
    let inspected = |life: &str, code: i32, expect: Expect| {
        let script = format!("pod run; {life}; pod inspect c=exited:{code}; end");
        check(&ANSWERS, &script, expect);
    };
    for (life, code) in [
        ("c create; c start refused", 128),
        ("c create exit=7; c start", 255),
        ("c create exit=0; c start", 0),
    ] {
        inspected(life, code, expect![]);
    }
    for life in [
        "c create; c start refused",
        "c create exit=7; c start",
        "c create mode=ignore-term; c start",
    ] {
        let broken = expect![[r#"
            INV-28 at #13 #14: c (c.0.beef): expected exit_code other than 0 in ContainerStatus, as was requested: exit_code 0
        "#]];
        inspected(life, 0, broken);
    }
}
