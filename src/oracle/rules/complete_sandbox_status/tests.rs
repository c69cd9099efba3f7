//! Answers that break INV-22, and their nearest neighbours that do not.

use expect_test::{Expect, expect};

use super::RULE;
use crate::oracle::rules::testing::check;

/// Checks the rule after a container has been started.
#[track_caller]
fn then(script: &str, expect: Expect) {
    let started = "pod run; c create; c CREATED; c start; c STARTED";
    check(&RULE, &format!("{started}; {script}"), expect);
}

#[test]
fn all_containers_are_reported_or_none() {
    then("pod inspect c=running", expect![]);
    then("pod inspect c=running read=+0s", expect![]);
    then(
        "pod inspect c=running read=0",
        expect![[r#"
    INV-22 at #13 #14: pod (pod.0.beef): expected a timestamp beside the statuses of containers: none beside 1
"#]],
    );
    then(
        "pod inspect c=running read=+0s reported=none",
        expect![[r#"
        INV-22 at #4 #13 #14: c (c.0.beef): expected it in PodSandboxStatus, after CreateContainer: it is missing
    "#]],
    );
    then(
        "pod inspect read=+0s; c remove",
        expect![[r#"
        INV-22 at #4 #13 #14: c (c.0.beef): expected it in PodSandboxStatus, after CreateContainer: it is missing
    "#]],
    );
    then("c stop; c remove; pod inspect read=+0s", expect![]);
}

#[test]
fn a_container_that_is_being_removed_may_be_reported_or_not() {
    then(
        "c remove begins; pod inspect read=+0s; c remove returns",
        expect![],
    );
    then(
        "c remove begins; pod inspect c=exited read=+0s; c remove returns",
        expect![],
    );
    then("c remove fails; pod inspect c=running read=+0s", expect![]);
    then(
        "c remove; pod inspect c=exited read=+0s",
        expect![[r#"
        INV-22 at #10 #15 #16: c (c.0.beef): expected a state from after RemoveContainer in PodSandboxStatus: EXITED
    "#]],
    );
}

#[test]
fn the_time_is_that_of_the_call_in_nanoseconds() {
    then("pod inspect c=running read=+1002ms", expect![]);
    then("pass 1s; pod inspect c=running read=-999ms", expect![]);
    then(
        "pod inspect c=running read=+2s",
        expect![[r#"
    INV-22 at #13 #14: pod (pod.0.beef): expected a timestamp from 1699999999014000000 to 1700000001015000000: 1700000002013000000
"#]],
    );
    then(
        "pod inspect c=running read=-2s",
        expect![[r#"
    INV-22 at #13 #14: pod (pod.0.beef): expected a timestamp from 1699999999014000000 to 1700000001015000000: 1699999998013000000
"#]],
    );
    then(
        "pod inspect c=running read=s",
        expect![[r#"
    INV-22 at #13 #14: pod (pod.0.beef): expected a timestamp from 1699999999014000000 to 1700000001015000000: 1700000000, which looks like seconds
"#]],
    );
    then(
        "pod inspect c=running read=us",
        expect![[r#"
    INV-22 at #13 #14: pod (pod.0.beef): expected a timestamp from 1699999999014000000 to 1700000001015000000: 1700000000013000, which looks like microseconds
"#]],
    );
}

#[test]
fn the_time_is_not_before_that_of_an_earlier_event() {
    then(
        "pod inspect c=running read=-5ms",
        expect![[r#"
    INV-22 at #8 #13 #14: pod (pod.0.beef): expected a timestamp not before STARTED, which had come: it is 1000000 ns before it
"#]],
    );
    then("pod inspect c=running read=-4ms", expect![]);
    then(
        "pod inspect c=running read=-4ms; c STOPPED at=+1s",
        expect![],
    );
    then(
        "pod2 run; pod2 STARTED; pod inspect c=running read=-4ms",
        expect![],
    );
    then(
        "pod2 run; pod2 STARTED; pod inspect c=running read=-7ms",
        expect![],
    );
    then(
        "pod2 run; pod2 STARTED; pod inspect c=running read=-8ms",
        expect![[r#"
        INV-22 at #8 #16 #17: pod (pod.0.beef): expected a timestamp not before STARTED, which had come: it is 1000000 ns before it
    "#]],
    );
}

#[test]
fn containers_of_another_sandbox_are_not_reported() {
    let other = "pod2 run; d create in=pod2";
    then(
        &format!("{other}; pod inspect c=running read=+0s"),
        expect![],
    );
    then(
        &format!("{other}; pod inspect c=running read=+0s reported=d:created"),
        expect![[r#"
            INV-22 at #17 #18: pod (pod.0.beef): expected no status of d: it is shown, though it is of another sandbox
        "#]],
    );
}

#[test]
fn no_status_is_older_than_an_earlier_reading() {
    then(
        "pod inspect c=created read=+0s",
        expect![[r#"
        INV-22 at #7 #13 #14: c (c.0.beef): expected a state from after StartContainer in PodSandboxStatus: CREATED
    "#]],
    );
    then("pod inspect c=unknown read=+0s", expect![]);
    then(
        "c stop; c STOPPED; pod inspect c=running read=+0s",
        expect![[r#"
            INV-22 at #10 #16 #17: c (c.0.beef): expected a state from after StopContainer in PodSandboxStatus: RUNNING
        "#]],
    );
    then(
        "run inspect c=exited; pod inspect c=exited read=+0s reported=c:running",
        expect![[r#"
            INV-22 at #12 #21 #22: c (c.0.beef): expected a state from after ListContainers in PodSandboxStatus: RUNNING
        "#]],
    );
}

#[test]
fn no_status_is_newer_than_a_later_reading() {
    then(
        "pod inspect c=running read=+0s reported=c:exited:137; pod relist c=running",
        expect![""],
    );
    then(
        "pod inspect c=exited:137 read=+0s; c STOPPED exit=137",
        expect![],
    );
}

#[test]
fn an_exit_is_reported_as_in_the_containers_own_status() {
    then(
        "pod inspect c=exited:137 read=+0s reported=c:exited:1",
        expect![""],
    );
    then(
        "pod inspect c=exited:137 read=+0s reported=c:exited:137",
        expect![],
    );
}
