//! What checks on gaps and onlookers hold, and what breaks them.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::expect;

use crate::oracle::expectations::tests::check;

#[test]
fn an_end_is_learnt_by_an_event_or_a_relist() {
    let learnt = "learnt: {of: c, event: stopped}";
    check(
        learnt,
        "pod run; c create; c STOPPED; end",
        expect!["holds"],
    );
    check(
        learnt,
        "pod run; c create; pod relist c=exited; end",
        expect!["holds"],
    );
    check(
        learnt,
        "pod run; c create; pod relist c=running; end",
        expect![[r#"
            waits for STOPPED, by an event or a relist of c
            ORD-01 at #3 #4: c (c.0.beef): expected STOPPED, by an event or a relist: it has not come
        "#]],
    );
}

const REPLAY: &str = "replay: {of: c, all: [created, stopped]}";

#[test]
fn a_replay_is_whole_or_there_is_none() {
    check(
        REPLAY,
        "pod run; c create; resubscribe; end",
        expect!["holds"],
    );
    check(
        REPLAY,
        "pod run; c create; resubscribe; c CREATED at=-1s; c STOPPED at=-1s; end",
        expect!["holds"],
    );
    check(
        REPLAY,
        "pod run; c create; resubscribe; c STOPPED at=-1s; end",
        expect![[r#"
            ORD-01 at #7: c (c.0.beef): expected CREATED, STOPPED, or nothing at all: STOPPED
        "#]],
    );
}

#[test]
fn a_replay_tells_when_it_happened() {
    check(
        REPLAY,
        "pod run; c create; resubscribe; c CREATED; c STOPPED; end",
        expect![[r#"
            ORD-01 at #8: c (c.0.beef): expected the time at which it happened: a new created_at in STOPPED
        "#]],
    );
}

#[test]
fn relists_show_the_same() {
    let unchanged = "unchanged: {of: pod}";
    check(
        unchanged,
        "pod run; c create; pod relist c=running; pod relist c=running; end",
        expect!["holds"],
    );
    check(
        unchanged,
        "pod run; c create; pod relist c=running; pod relist c=exited; end",
        expect![[r#"
            ORD-01 at #5 #7: pod (pod.0.beef): expected the same as before: ListContainers shows something else
        "#]],
    );
    check(
        unchanged,
        "pod run; c create; pod inspect c=running unlisted; pod inspect c=exited unlisted; end",
        expect![[r#"
            ORD-01 at #11 #19: pod (pod.0.beef): expected the same as before: ContainerStatus shows something else
        "#]],
    );
}

#[test]
fn what_others_ask_and_what_is_asked_of_others_may_change() {
    for changes in [
        "pod inspect c=running; run inspect c=exited; end",
        "pod inspect c=running; end; pod inspect c=exited",
        "pod2 run; d create; pod2 inspect d=running; pod2 inspect d=exited; end",
    ] {
        let script = format!("pod run; c create; {changes}");
        check("unchanged: {of: pod}", &script, expect!["holds"]);
    }
}
