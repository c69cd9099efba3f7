//! For each check, histories on which it holds, is broken, or is still waiting.

#![expect(
    clippy::needless_raw_string_hashes,
    reason = "this is how expect-test is used"
)]

use expect_test::expect;

use super::differing;
use crate::history::{ContainerDetails, ContainerStatus, Labels, Mount, Shared, User};
use crate::oracle::expectations::tests::check;
use crate::oracle::script::history;

const SAME: &str = "same-status: {of: c}";
const LIFE: &str = "pod run; c create; c CREATED; c start; c STARTED";

#[test]
fn a_snapshot_is_what_the_status_says() {
    let script = format!("{LIFE}; pod inspect c=running; c STOPPED; pod inspect c=exited; end");
    check(SAME, &script, expect!["holds"]);
}

#[test]
fn a_status_of_a_later_state_has_other_times() {
    check(
        SAME,
        &format!("{LIFE}; pod inspect c=exited:3; end"),
        expect!["holds"],
    );
}

#[test]
fn a_status_of_a_later_state_has_the_same_start() {
    let script = LIFE.replace("STARTED", "STARTED started=+1s");
    check(
        SAME,
        &format!("{script}; pod inspect c=exited:3; end"),
        expect![[r#"
            ORD-01 at #8 #15 #16: c (c.0.beef): expected started_at 1700000000000000001 in STARTED, as ContainerStatus tells: started_at 1700000001000000001
        "#]],
    );
}

#[test]
fn a_snapshot_has_another_exit_code() {
    let script = format!("{LIFE}; c STOPPED exit=2; pod inspect c=exited:1; end");
    check(
        SAME,
        &script,
        expect![[r#"
        ORD-01 at #9 #16 #17: c (c.0.beef): expected exit code 1 in STOPPED, as ContainerStatus tells: exit code 2
    "#]],
    );
}

#[test]
fn a_status_from_before_the_event_or_of_another_container_is_not_compared() {
    for other in [
        "pod inspect c=exited:2; c STOPPED",
        "c STOPPED; pod inspect d=exited:2",
    ] {
        let script = format!("{LIFE}; {other}; pod inspect c=exited:0; end");
        check(SAME, &script, expect!["holds"]);
    }
}

#[test]
fn a_snapshot_has_no_image() {
    let script = "pod run; c create; c CREATED status-lacks=image; pod inspect c=running; end";
    check(
        SAME,
        script,
        expect![[r#"
        ORD-01 at #5 #12 #13: c (c.0.beef): expected image workload in CREATED, as ContainerStatus tells: image 
    "#]],
    );
}

/// What differs between two statuses of which the second tells other details.
#[track_caller]
fn check_details(change: impl FnOnce(&mut ContainerDetails), expect: Option<&str>) {
    let history = history("pod run; c create; c CREATED");
    let event = history.subjects()[1].sightings[0].event();
    let mut shown = ContainerStatus::clone(event.own_status().expect("it is shown"));
    let mount = |path: &str| Mount {
        container_path: path.into(),
        ..Mount::default()
    };
    shown.details = Some(Shared::from(ContainerDetails {
        mounts: vec![mount("/a"), mount("/b")],
        resources: Some(Labels::from([("cpu_shares", "2")])),
        ..ContainerDetails::default()
    }));
    let mut told = shown.clone();
    change(told.details.as_mut().expect("they are told"));
    let differing = differing(&shown, &told);
    let found = differing.map(|(field, ..)| field);
    assert_eq!(found, expect);
}

#[test]
fn details_are_compared_one_by_one() {
    check_details(|_| {}, None);
    check_details(|told| told.mounts.reverse(), None);
    check_details(|told| told.mounts[0].readonly = true, Some("mounts"));
    check_details(|told| drop(told.mounts.pop()), Some("mounts"));
    check_details(|told| told.log_path = "/log".into(), Some("log_path"));
    check_details(|told| told.image_id = "sha256:1".into(), Some("image_id"));
    check_details(|told| told.user = Some(User::default()), Some("user"));
    check_details(|told| told.resources = None, Some("resources"));
}

#[test]
fn a_status_without_details_is_of_an_older_history() {
    let script = "pod run; c create; c CREATED; pod inspect c=created; end";
    check(SAME, script, expect!["holds"]);
}

#[test]
fn a_status_that_nobody_asked_for_is_waited_for() {
    check(
        SAME,
        &format!("{LIFE}; end"),
        expect![[r#"
        waits for a ContainerStatus after one of its events of c
        ORD-01 at: c (c.0.beef): expected a ContainerStatus after one of its events: it has not come
    "#]],
    );
}

#[test]
fn an_event_shows_what_was_asked_for() {
    let script = "pod run; c create; c CREATED; end";
    check(
        "as-asked-for: {of: c}",
        script,
        expect![[r#"
        ORD-01 at #5: c (c.0.beef): expected the name `c`, attempt 0 in CREATED: ``, attempt 0
    "#]],
    );
}

#[test]
fn an_event_shows_another_pods_name() {
    let script = "pod run; pod STARTED pod-name=other; end";
    check(
        "as-asked-for: {of: pod}",
        script,
        expect![[r#"
        ORD-01 at #3: pod (pod.0.beef): expected the sandbox's name `` in STARTED: `other`
    "#]],
    );
    check(
        "as-asked-for: {of: pod}",
        "pod run; pod STARTED; end",
        expect!["holds"],
    );
}

#[test]
fn labels_may_be_more_and_annotations_may_not() {
    use super::{other_annotations, other_labels};
    use crate::history::Labels;
    let labels = |pairs: &[(&str, &str)]| -> Labels {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    };
    let (asked, more) = (labels(&[("a", "1")]), labels(&[("a", "1"), ("b", "2")]));
    let other = labels(&[("a", "2")]);
    assert_eq!(other_labels("labels", &asked, &more), None);
    assert!(other_labels("labels", &asked, &other).is_some());
    let told = |told| other_annotations("annotations", &asked, told).map(|(_, actual)| actual);
    assert_eq!(told(&more).as_deref(), Some("1 more"));
    assert_eq!(told(&other).as_deref(), Some("`a` is lost or changed"));
    assert_eq!(told(&asked), None);
}

const STATE: &str = "sandbox-state: {of: pod, event: stopped, is: notready}";

#[test]
fn a_sandbox_that_has_stopped_is_not_ready() {
    let script = "pod run; pod STARTED; pod stop; pod STOPPED; end";
    check(STATE, script, expect!["holds"]);
    check(
        STATE,
        &script.replace("STOPPED", "STOPPED ready"),
        expect![[r#"
        ORD-01 at #6: pod (pod.0.beef): expected the sandbox NOTREADY in STOPPED: READY
    "#]],
    );
    check(
        STATE,
        "pod run; pod STARTED; end",
        expect![[r#"
        waits for STOPPED of pod
        ORD-01 at #1 #2 #3: pod (pod.0.beef): expected STOPPED: it has not come
    "#]],
    );
}

#[test]
fn a_rule_is_kept_by_the_one_that_is_named() {
    let script = "pod run; c create; d create; c CREATED; c STARTED state=created; end";
    check(
        "keeps: {of: c, rule: INV-08}",
        script,
        expect![[r#"
        ORD-01 at #8: c (c.0.beef): expected RUNNING or EXITED in STARTED: CREATED in STARTED
    "#]],
    );
    check("keeps: {of: d, rule: INV-08}", script, expect!["holds"]);
    check(
        "keeps: {of: c, rule: INV-99}",
        script,
        expect![[r#"
        ORD-01 at: c (c.0.beef): expected a rule INV-99: there is none
    "#]],
    );
}

/// A case can name no rule that there is not.
#[test]
fn every_rule_that_a_case_names_is_there() {
    use crate::case::{Check, load};
    use crate::oracle::INVARIANTS;
    for case in load::embedded().expect("the cases are valid") {
        for expectation in &case.expect {
            if let Check::Keeps(check) = &expectation.check {
                let there = INVARIANTS
                    .iter()
                    .any(|invariant| invariant.id == check.rule);
                assert!(there, "{}: {}", case.id, check.rule);
            }
        }
    }
}

const ADDRESSES: &str = "addresses: {of: c}";

#[test]
fn addresses_are_those_of_the_sandbox_until_it_stops() {
    let script = "pod run; pod CREATED; pod STARTED ip=x; pod inspect sandbox ip=x; c create; \
                  c CREATED ip=x; pod stop; c STOPPED; pod STOPPED; end";
    check(ADDRESSES, script, expect!["holds"]);
    check("addresses: {of: pod}", script, expect!["holds"]);
}

#[test]
fn another_sandbox_has_addresses_of_its_own() {
    check(
        ADDRESSES,
        "pod run; pod2 run; pod2 inspect sandbox ip=y; pod inspect sandbox ip=x; \
         c create in=pod; c CREATED ip=x; end",
        expect!["holds"],
    );
}

#[test]
fn an_event_before_the_stop_lacks_the_address() {
    check(
        ADDRESSES,
        "pod run; pod inspect sandbox ip=x; c create; c CREATED; pod stop; end",
        expect![[r#"
            ORD-01 at #6 #9: c (c.0.beef): expected the address x in CREATED: none
        "#]],
    );
}

#[test]
fn an_event_lacks_the_address() {
    check(
        ADDRESSES,
        "pod run; pod inspect sandbox ip=x; c create; c CREATED; end",
        expect![[r#"
            ORD-01 at #6 #9: c (c.0.beef): expected the address x in CREATED: none
        "#]],
    );
    check(
        "addresses: {of: pod}",
        "pod run; pod STARTED ip=y; pod inspect sandbox ip=x; end",
        expect![[r#"
            ORD-01 at #7 #3: pod (pod.0.beef): expected the address x in STARTED: y
        "#]],
    );
}

#[test]
fn there_must_be_an_address() {
    check(
        ADDRESSES,
        "pod run; pod inspect sandbox; c create; c CREATED; end",
        expect![[r#"
            ORD-01 at #6: c (c.0.beef): expected an address in PodSandboxStatus: none
        "#]],
    );
    check(
        ADDRESSES,
        "pod run; c create; c CREATED; end",
        expect![[r#"
            waits for a PodSandboxStatus of the running sandbox of c
            ORD-01 at: c (c.0.beef): expected a PodSandboxStatus of the running sandbox: it has not come
        "#]],
    );
}

#[test]
fn a_message_is_too_large() {
    let sized = |bytes, expect| {
        let script = format!("pod run; c create; c CREATED bytes={bytes}; end");
        check("message-size: {of: c, at-most-kib: 4}", &script, expect);
    };
    sized(4096, expect!["holds"]);
    sized(
        4097,
        expect![[r#"
        ORD-01 at #5: c (c.0.beef): expected a message of CREATED with at most 4096 bytes: 4097 bytes
    "#]],
    );
}
