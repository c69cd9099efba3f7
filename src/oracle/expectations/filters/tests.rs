//! What lists by filters may show, and what not.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::expect;

use crate::oracle::expectations::tests::check;

const FILTERED: &str = "filtered: {of: c}";
const RUNS: &str = "pod run; pod STARTED; c create; c CREATED; c start; c STARTED";

#[test]
fn what_passes_is_shown() {
    for found in [
        "c find c=running",
        "c find state=running c=running",
        "pod find c=running",
        "pod find state=running c=running d=running",
    ] {
        check(FILTERED, &format!("{RUNS}; {found}; end"), expect!["holds"]);
    }
}

#[test]
fn what_passes_is_missing() {
    check(
        FILTERED,
        &format!("{RUNS}; c find; end"),
        expect![[r#"
            ORD-01 at #6 #9 #10 #11: c (c.0.beef): expected RUNNING in ListContainers: nothing of it
        "#]],
    );
    check(
        FILTERED,
        &format!("{RUNS}; pod find state=running d=running; end"),
        expect![[r#"
            ORD-01 at #6 #9 #10 #11: c (c.0.beef): expected RUNNING in ListContainers: nothing of it
        "#]],
    );
}

#[test]
fn what_does_not_pass_is_not_shown() {
    check(
        FILTERED,
        &format!("{RUNS}; pod find state=exited; end"),
        expect!["holds"],
    );
    check(
        FILTERED,
        &format!("{RUNS}; pod find state=exited c=running; end"),
        expect![[r#"
            ORD-01 at #6 #9 #10 #11: c (c.0.beef): expected nothing of it in ListContainers: RUNNING
        "#]],
    );
    check(
        FILTERED,
        &format!("{RUNS}; d create; d find d=created c=running; end"),
        expect![[r#"
            ORD-01 at #6 #9 #12 #13: c (c.0.beef): expected nothing of it in ListContainers: RUNNING
        "#]],
    );
}

#[test]
fn what_is_gone_is_not_shown() {
    let gone = format!("{RUNS}; c STOPPED; c DELETED");
    check(FILTERED, &format!("{gone}; c find; end"), expect!["holds"]);
    check(
        FILTERED,
        &format!("{gone}; pod find c=exited; end"),
        expect![[r#"
            ORD-01 at #6 #9 #10 #11 #12 #13: c (c.0.beef): expected nothing of it in ListContainers: EXITED
        "#]],
    );
}

#[test]
fn an_item_comes_once_and_in_the_state_that_events_have_told() {
    check(
        FILTERED,
        &format!("{RUNS}; pod find streamed c=running c=running; end"),
        expect![[r#"
            ORD-01 at #6 #9 #10 #11: c (c.0.beef): expected RUNNING in StreamContainers: RUNNING and RUNNING
        "#]],
    );
    check(
        FILTERED,
        &format!("{RUNS}; c find c=created; end"),
        expect![[r#"
            ORD-01 at #6 #9 #10 #11: c (c.0.beef): expected RUNNING in ListContainers: CREATED
        "#]],
    );
}

#[test]
fn a_state_that_changes_meanwhile_is_not_judged() {
    check(
        FILTERED,
        &format!("{RUNS}; pod find c=running; c find begins; c STOPPED; c find returns; end"),
        expect!["holds"],
    );
}

#[test]
fn there_must_be_such_a_list() {
    check(
        FILTERED,
        &format!("{RUNS}; pod relist c=running; end"),
        expect![[r#"
            waits for a list by a filter of c
            ORD-01 at: c (c.0.beef): expected a list by a filter: it has not come
        "#]],
    );
}

#[test]
fn sandboxes_are_listed_by_filters_too() {
    let filtered = "filtered: {of: pod}";
    let runs = "pod run; pod STARTED";
    check(
        filtered,
        &format!("{runs}; pod find-sandbox state=ready pod=ready; end"),
        expect!["holds"],
    );
    check(
        filtered,
        &format!("{runs}; pod2 run; pod2 find-sandbox pod2=ready; end"),
        expect!["holds"],
    );
    check(
        filtered,
        &format!("{runs}; pod find-sandbox state=notready pod=ready; end"),
        expect![[r#"
            ORD-01 at #3 #4 #5: pod (pod.0.beef): expected nothing of it in ListPodSandbox: READY
        "#]],
    );
    check(
        filtered,
        &format!("{runs}; pod STOPPED; pod find-sandbox pod=ready; end"),
        expect![[r#"
            ORD-01 at #3 #4 #5 #6: pod (pod.0.beef): expected NOTREADY in ListPodSandbox: READY
        "#]],
    );
}
