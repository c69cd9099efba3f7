//! The notices for events and relists, as text and as JSON.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

mod flaws;
mod floods;
mod node;
mod relayed;
mod scenarios;

use expect_test::expect;

use super::notice::{Notice, json, line};
use super::observer::{Observer, synced_pod};
use crate::history::{
    ContainerId, ContainerMetadata, ContainerState, ContainerStatus, Event, EventKind, PodUid,
    SandboxId, SandboxMetadata, SandboxStatus, Shared,
};
use crate::outcome::{Profile, WatchTotals};
use crate::pleg::POD_UID_LABEL;

use node::{Node, at, nanos};

#[test]
fn a_life_is_shown_and_nothing_is_wrong_with_it() {
    let mut node = Node::new();
    node.relist(100);
    node.container = Some(ContainerState::Created);
    node.event(2000, EventKind::Created);
    node.container = Some(ContainerState::Running);
    node.event(2100, EventKind::Started);
    (3..20).for_each(|second| node.relist(second * 1000));
    node.container = Some(ContainerState::Exited);
    node.event(21_000, EventKind::Stopped);
    (22..30).for_each(|second| node.relist(second * 1000));
    node.container = None;
    node.event(31_000, EventKind::Deleted);
    (32..50).for_each(|second| node.relist(second * 1000));
    node.expect_lines(&expect![[r#"
        2026-11-20T16:52:42.000Z CREATED  shop/web  app  c0ffee00c0ffe  CREATED  lag 0.6 ms  evented: cached
        2026-11-20T16:52:42.100Z STARTED  shop/web  app  c0ffee00c0ffe  RUNNING  lag 0.6 ms  evented: ContainerStarted
        2026-11-20T16:53:01.000Z STOPPED  shop/web  app  c0ffee00c0ffe  EXITED 137 OOM\u{1b}[31mKilled  lag 0.6 ms  evented: ContainerDied
        2026-11-20T16:53:11.000Z DELETED  shop/web  app  c0ffee00c0ffe  lag 0.6 ms  evented: ContainerDied, ContainerRemoved"#]]);
    let summary = Notice::Summary(node.summary(at(50_000)));
    expect![[r#"
        watched for 50.000 s: 4 events (CREATED 1, DELETED 1, STARTED 1, STOPPED 1)
        lag: median 0.6 ms, p95 0.6 ms, max 0.6 ms
        missed events: 0
        disagreements: 0
        other violations: 0
        events that would make a kubelet panic: 0
        outages of the stream: 0; without a stream for 0.0 ms in all, of which no event counts as missed
        relists: 44"#]]
    .assert_eq(&anstream::adapter::strip_str(&line(at(0), &summary)).to_string());
}

/// A STARTED, of a pod of a kubelet if there is a label.
fn started(container: &str, label: Option<&str>) -> Event {
    let label = label.map(|uid| (POD_UID_LABEL.to_owned(), uid.to_owned()));
    Event {
        container: ContainerId::from(container),
        kind: EventKind::Started,
        created_at: nanos(0),
        sandbox: Some(Shared::from(SandboxStatus {
            id: SandboxId::from("s"),
            labels: label.into_iter().collect(),
            ..SandboxStatus::default()
        })),
        containers: Vec::new(),
    }
}

#[test]
fn a_start_of_a_kubelets_container_lets_infer_a_sync_of_its_pod() {
    let stopped = Event {
        kind: EventKind::Stopped,
        ..started("c", Some("u"))
    };
    assert_eq!(synced_pod(&started("c", Some("u"))), Some("u"));
    assert_eq!(synced_pod(&started("s", Some("u"))), None, "a sandbox");
    assert_eq!(synced_pod(&started("c", None)), None, "no kubelet's");
    assert_eq!(synced_pod(&stopped), None, "a kubelet has not synced yet");
    let beside = |name: &str, created_at, exit_code| {
        let status = ContainerStatus {
            metadata: Some(ContainerMetadata {
                name: name.into(),
                attempt: 0,
            }),
            state: ContainerState::Exited,
            created_at: nanos(created_at),
            exit_code,
            ..ContainerStatus::default()
        };
        status.into()
    };
    let pod = |containers| {
        let event = Event {
            containers,
            ..started("c", Some("u"))
        };
        synced_pod(&event).is_some()
    };
    assert!(!pod(vec![beside("other", 1, 3)]), "in a back-off");
    assert!(
        pod(vec![beside("other", 1, 3), beside("other", 2, 0)]),
        "an earlier attempt"
    );
    let after_first = |started_at| {
        let first = ContainerStatus {
            started_at: nanos(started_at),
            ..ContainerStatus::clone(&beside("first", 1, 3))
        };
        let own = ContainerStatus {
            id: ContainerId::from("c"),
            created_at: nanos(2_000),
            ..ContainerStatus::default()
        };
        pod(vec![first.into(), own.into()])
    };
    assert!(after_first(1_900), "one that the same sync has started");
    assert!(!after_first(1_000), "one of an earlier sync");
}

#[test]
fn a_queued_start_is_of_an_earlier_sync() {
    let started = |ms| Event {
        created_at: nanos(ms),
        ..started("c", Some("u"))
    };
    let mut observer = Observer::new(at(0), Profile::Cache);
    observer.opened(at(1_000), false);
    assert_eq!(observer.relisted_after(&started(999)), None);
    assert_eq!(observer.relisted_after(&started(1_001)), Some("u"));
}

#[test]
fn an_outage_is_said_to_end_events_for_kubelets() {
    let said = |outages| {
        let totals = WatchTotals {
            outages,
            ..WatchTotals::default()
        };
        let summary = Notice::Summary(Observer::new(at(0), Profile::Cache).summary(at(1), &totals));
        line(at(1), &summary).contains("follows no events until it is restarted")
    };
    assert_eq!([0, 1].map(said), [false, true]);
}

#[test]
fn a_relist_on_demand_is_counted_and_marked_as_inferred() {
    let mut node = Node::new();
    node.relist(100);
    node.container = Some(ContainerState::Running);
    node.event(2100, EventKind::Started);
    node.relist_pod(2101);
    node.expect_lines(&expect![[r#"
        2026-11-20T16:52:42.100Z STARTED  shop/web  app  c0ffee00c0ffe  RUNNING  lag 0.6 ms  evented: ContainerStarted
        2026-11-20T16:52:42.101Z relist   shop/web  app  c0ffee00c0ffe  generic: ContainerStarted, on demand (inferred)"#]]);
    let summary = node.summary(at(3000));
    assert_eq!((summary.relists, summary.pod_relists), (1, 1));
}

#[test]
fn a_history_that_begins_after_a_relist_on_demand_begins_with_that() {
    let mut node = Node::new();
    node.container = Some(ContainerState::Created);
    node.relist(100);
    node.relist(1000);
    node.container = Some(ContainerState::Running);
    node.event(1500, EventKind::Started);
    node.relist_pod(1501);
    (2..5).for_each(|second| node.relist(second * 1000));
    // It shows nothing new, so that it asks for no status.
    node.relist_pod(4500);
    (5..20).for_each(|second| node.relist(second * 1000));
    node.container = Some(ContainerState::Exited);
    node.event(20_500, EventKind::Stopped);
    (21..40).for_each(|second| node.relist(second * 1000));
    let text = node.text();
    let alarms = ["MISSED", "DISAGREE", "BROKEN"];
    let alarms = alarms.iter().filter(|alarm| text.contains(**alarm));
    assert_eq!(alarms.count(), 0, "{text}");
}

#[test]
fn what_relists_show_and_events_do_not_report_is_an_alarm() {
    let mut node = Node::new();
    node.container = Some(ContainerState::Running);
    node.relist(100);
    node.relist(2000);
    node.container = Some(ContainerState::Exited);
    (3..12).for_each(|second| node.relist(second * 1000));
    node.event(12_000, EventKind::Stopped);
    (13..30).for_each(|second| node.relist(second * 1000));
    node.expect_lines(&expect![[r#"
        2026-11-20T16:52:52.000Z STOPPED  shop/web  app  c0ffee00c0ffe  EXITED 137 OOM\u{1b}[31mKilled  lag 0.6 ms  evented: ContainerDied
        2026-11-20T16:53:01.000Z MISSED   broke Complete: app (c0ffee00c0ffee00) of pod shop/web: INV-11, a MUST
            expected  STOPPED within 5s of a relist that shows it EXITED
            actual    STOPPED came 9s later
        2026-11-20T16:53:01.000Z DISAGREE broke Truthful: sandbox (5a11d80c5a11d80c) of pod shop/web: INV-13, a MUST
            expected  both kubelets believe the same of app c0ffee00c0ffee00
            actual    by relists exited 137 OOM\u{1b}[31mKilled, by events running 0"#]]);
    let summary = node.summary(at(30_000));
    assert_eq!((summary.missed, summary.disagreements), (1, 1));
}

#[test]
fn what_happens_without_a_stream_is_no_alarm() {
    let mut node = Node::new();
    node.container = Some(ContainerState::Running);
    node.relist(2000);
    node.loses_its_stream(2500);
    node.container = Some(ContainerState::Exited);
    node.relist(3000);
    node.opens(3500);
    (4..30).for_each(|second| node.relist(second * 1000));
    node.expect_lines(&expect![""]);
    let summary = node.summary(at(30_000));
    assert_eq!((summary.outages, summary.reconnects), (1, 1));
    assert_eq!(summary.without_stream_ns, 1_000_000_000);
}

#[test]
fn a_call_about_another_pod_shows_that_the_runtime_was_gone() {
    let restarted = |failed_ms: u64| {
        let mut node = Node::new();
        node.relist(100);
        node.container = Some(ContainerState::Running);
        node.event(2000, EventKind::Created);
        let fails_within = |node: &mut Node, from, until| {
            if (from..until).contains(&failed_ms) {
                node.fails(failed_ms);
            }
        };
        fails_within(&mut node, 2000, 2100);
        node.relist(2100);
        fails_within(&mut node, 2100, 3000);
        node.loses_its_stream(3000);
        fails_within(&mut node, 3000, 3400);
        node.opens(3400);
        node.relist(3500);
        fails_within(&mut node, 3500, 7000);
        (7..40).for_each(|second| node.relist(second * 1000));
        node.text().contains("INV-21")
    };
    assert!(restarted(0));
    assert!(!restarted(2999));
    assert!(!restarted(3001));
    assert!(!restarted(3600), "it ended its streams and was stopping");
    assert!(restarted(6000), "that is another outage");
    assert!(restarted(2050), "it has answered since");
}

#[test]
fn a_watch_without_a_stream_most_of_the_time_decides_nothing() {
    let mut node = Node::new();
    node.relist(1000);
    node.relist(2000);
    node.loses_its_stream(40_000);
    node.opens(60_000);
    assert_eq!(node.verdicts.report(None).faults.len(), 1, "cut off");
    node.ends(70_000);
    assert_eq!(node.verdicts.report(None).faults, Vec::<String>::new());
    let mut node = Node::new();
    node.relist(1000);
    node.relist(2000);
    node.loses_its_stream(10_000);
    node.opens(60_000);
    node.ends(70_000);
    let fault = "there was no event stream for 50.0 s of 70.0 s";
    assert_eq!(node.verdicts.report(None).faults, [fault]);
}

#[test]
fn time_in_which_a_watch_is_held_up_does_not_count() {
    // The container ends without STOPPED while the suite is held up in each second.
    let watched = |held_up_ms: u64| {
        let mut node = Node::new();
        node.container = Some(ContainerState::Running);
        node.relist(100);
        node.relist(2000);
        node.container = Some(ContainerState::Exited);
        for second in 3..20 {
            node.is_held_up(second * 1000 - 100, held_up_ms);
            node.relist(second * 1000);
        }
        node.ends(20_000);
        let faults = node.verdicts.report(None).faults;
        let summary = node.summary(at(20_000));
        (summary.missed, summary.disagreements, faults)
    };
    assert_eq!(watched(500), (1, 1, Vec::new()));
    let fault = "the suite itself was held up for 12.8 s of 20.0 s";
    assert_eq!(watched(750), (0, 0, vec![fault.to_owned()]));
}

#[test]
fn what_happens_between_the_last_relist_and_a_new_stream_is_no_alarm() {
    let mut node = Node::new();
    node.container = Some(ContainerState::Running);
    node.relist(100);
    node.relist(2000);
    node.loses_its_stream(2100);
    node.container = Some(ContainerState::Exited);
    node.opens(2500);
    (3..30).for_each(|second| node.relist(second * 1000));
    node.expect_lines(&expect![""]);
}

#[test]
fn an_event_that_is_newer_than_a_list_is_no_alarm() {
    let mut node = Node::new();
    node.relist(100);
    node.relist(1000);
    node.container = Some(ContainerState::Created);
    node.event(1500, EventKind::Created);
    node.container = None;
    node.relist(2000);
    node.container = Some(ContainerState::Created);
    (3..30).for_each(|second| node.relist(second * 1000));
    assert_eq!(node.summary(at(30_000)).missed, 0);
}

#[test]
fn a_pod_of_an_idle_node_is_judged_once_and_not_followed() {
    let mut node = Node::new();
    node.relist(100);
    assert!(!node.verdicts.is_following_pods());
    node.container = Some(ContainerState::Created);
    node.event(1500, EventKind::Created);
    assert!(node.verdicts.is_following_pods());
    (2..100).for_each(|second| node.relist(second * 1000));
    assert!(!node.verdicts.is_following_pods());
    let totals = node.verdicts.report(None).watch.unwrap();
    assert_eq!((totals.judged, totals.events), (1, 1));
}

#[test]
fn a_kubelet_that_takes_hints_relists_the_pod_of_a_stopped_container() {
    let event = |kind, metadata| Event {
        container: ContainerId::from("c"),
        kind,
        created_at: nanos(1000),
        sandbox: Some(Shared::from(SandboxStatus {
            id: SandboxId::from("s"),
            metadata,
            ..SandboxStatus::default()
        })),
        containers: Vec::new(),
    };
    let of_pod = Some(SandboxMetadata {
        uid: PodUid::from("u".to_owned()),
        ..SandboxMetadata::default()
    });
    for (kind, metadata, evented, relisted) in [
        (EventKind::Stopped, &of_pod, "relist", Some("u")),
        (EventKind::Started, &of_pod, "sampled", None),
        (EventKind::Stopped, &None, "ignored", None),
    ] {
        let event = event(kind, metadata.clone());
        let mut observer = Observer::new(at(0), Profile::Hint);
        assert_eq!(observer.relisted_after(&event), relisted, "{evented}");
        match observer.event(at(1000), &event, 0) {
            Notice::Event(seen) => assert_eq!(seen.evented, evented),
            other => panic!("{other:?}"),
        }
        let cached = Observer::new(at(0), Profile::Cache);
        assert_eq!(cached.relisted_after(&event), None, "{evented}");
    }
}

#[test]
fn a_line_about_the_stream_has_its_time() {
    let line = line(
        at(0),
        &super::stream::notice("live", "it is live".to_owned()),
    );
    assert_eq!(line, "2026-11-20T16:52:40.000Z stream   it is live");
}

#[test]
fn what_a_sandboxs_status_has_read_before_the_last_event_is_refused() {
    let relisted = |reported_ms| {
        let mut node = Node::new();
        node.container = Some(ContainerState::Running);
        node.event(2000, EventKind::Started);
        node.observer.stream_lost();
        node.container = Some(ContainerState::Exited);
        node.reported_ms = Some(reported_ms);
        node.observer.opened(at(3500), true);
        (4..20).for_each(|second| node.relist(second * 1000));
        node.summary(at(0)).disagreements
    };
    assert_eq!((relisted(1999), relisted(2000)), (1, 0));
}

#[test]
fn an_event_out_of_order_and_one_without_a_sandbox_are_reported_as_what_they_do() {
    let mut node = Node::new();
    node.container = Some(ContainerState::Running);
    node.relist(100);
    node.event(3000, EventKind::Started);
    node.event(2000, EventKind::Created);
    node.sandbox = None;
    node.event(3100, EventKind::Stopped);
    node.expect_lines(&expect![[r#"
        2026-11-20T16:52:43.000Z STARTED  shop/web  app  c0ffee00c0ffe  RUNNING  lag 0.6 ms  evented: ContainerStarted
        2026-11-20T16:52:42.000Z CREATED  shop/web  app  c0ffee00c0ffe  RUNNING  lag 0.6 ms  evented: refused, older than its cache
        2026-11-20T16:52:43.100Z STOPPED  shop/web  app  c0ffee00c0ffe  RUNNING  lag 0.6 ms  evented: ignored, it has no sandbox status"#]]);
}

#[test]
fn an_event_that_was_made_before_the_stream_counts_in_no_lag() {
    let mut node = Node::new();
    node.observer.opened(at(5000), false);
    node.container = Some(ContainerState::Running);
    node.event(1000, EventKind::Started);
    node.expect_lines(&expect!["2026-11-20T16:52:41.000Z STARTED  shop/web  app  c0ffee00c0ffe  RUNNING  lag 0.6 ms (created before the stream was requested)  evented: ContainerStarted"]);
    assert_eq!(node.summary(at(0)).lag_max_ns, None);
}

#[test]
fn json_has_a_line_for_each_notice() {
    let mut node = Node::new();
    node.relist(100);
    node.container = Some(ContainerState::Exited);
    node.event(2000, EventKind::Stopped);
    let summary = Notice::Summary(node.summary(at(3000)));
    let lines = node.reported.iter().map(|(at, notice)| json(*at, notice));
    let lines: Vec<_> = lines.chain([json(at(3000), &summary)]).collect();
    for line in &lines {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    expect![[r#"
        {"time":"2026-11-20T16:52:42.000Z","type":"event","namespace":"shop","pod":"web","uid":"u-1","container":"app","id":"c0ffee00c0ffee00","kind":"STOPPED","state":"EXITED","exit_code":137,"reason":"OOM\u001b[31mKilled","created_at_ns":1795193562000000000,"arrived_ns":1795193562000600000,"lag_ns":600000,"queued":false,"evented":"taken","lifecycle":["ContainerDied"],"panic":null}
        {"time":"2026-11-20T16:52:43.000Z","type":"summary","watched_ns":3000000000,"events":{"STOPPED":1},"queued":0,"lag_median_ns":600000,"lag_p95_ns":600000,"lag_max_ns":600000,"missed":0,"disagreements":0,"other_violations":0,"outages":0,"without_stream_ns":0,"panics":0,"reconnects":0,"relists":1,"pod_relists":0}"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn a_kubelets_panic_is_reported() {
    let mut node = Node::new();
    node.container = Some(ContainerState::Running);
    let mut event = Event {
        container: ContainerId::from("c0ffee00c0ffee00".to_owned()),
        kind: EventKind::Started,
        created_at: nanos(1000),
        sandbox: node.sandbox_status().map(Into::into),
        containers: node
            .container_status()
            .into_iter()
            .map(Into::into)
            .collect(),
    };
    event.containers[0].image = None;
    let notice = node.observer.event(at(1000), &event, 0);
    assert!(line(at(1000), &notice).contains("a kubelet would panic: "));
    assert_eq!(node.summary(at(1000)).panics, 1);
}
