//! What is reported of events and relists, as text and as JSON.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use expect_test::{Expect, expect};

use super::notice::Notice;
use super::observer::Observer;
use super::output::json;
use super::text;
use crate::drive::Relist;
use crate::history::{
    ContainerId, ContainerListing, ContainerMetadata, ContainerState, ContainerStatus, Event,
    EventKind, HostInstant, Labels, PodUid, RuntimeNanos, SandboxId, SandboxListing,
    SandboxMetadata, SandboxReport, SandboxState, SandboxStatus,
};
use crate::limits;
use crate::pleg::{Inspection, Moment, SharedUid, StatusFault, Statuses, list_pods, pod_status};

const BEGAN_NS: i64 = 1_795_193_560_000_000_000;

/// A node with one pod, which has one container.
struct Node {
    observer: Observer,
    sandbox: Option<SandboxState>,
    container: Option<ContainerState>,
    /// When the sandbox's status has read the containers; none if it does not report them.
    reported_ms: Option<u64>,
    reported: Vec<(HostInstant, Notice)>,
}

fn at(ms: u64) -> HostInstant {
    HostInstant {
        monotonic_ns: ms * 1_000_000,
        realtime_ns: BEGAN_NS + i64::try_from(ms).unwrap() * 1_000_000,
    }
}

fn nanos(ms: u64) -> RuntimeNanos {
    RuntimeNanos(at(ms).realtime_ns)
}

impl Node {
    fn new() -> Self {
        let mut observer = Observer::new(Duration::from_secs(5), at(0));
        observer.opened(at(0), false);
        Self {
            observer,
            sandbox: Some(SandboxState::Ready),
            container: None,
            reported_ms: None,
            reported: Vec::new(),
        }
    }

    fn metadata() -> SandboxMetadata {
        SandboxMetadata {
            name: "web".into(),
            uid: PodUid::from("u-1".to_owned()),
            namespace: "shop".into(),
            attempt: 0,
        }
    }

    fn sandbox_status(&self) -> Option<SandboxStatus> {
        Some(SandboxStatus {
            id: SandboxId::from("5a11d80c5a11d80c".to_owned()),
            metadata: Some(Self::metadata()),
            state: self.sandbox?,
            created_at: nanos(1),
            ..SandboxStatus::default()
        })
    }

    fn sandbox_report(&self) -> Option<SandboxReport> {
        let mut report = SandboxReport::from(self.sandbox_status()?);
        if let Some(ms) = self.reported_ms {
            report.timestamp = nanos(ms);
            report.containers = self
                .container_status()
                .into_iter()
                .map(Into::into)
                .collect();
        }
        Some(report)
    }

    fn container_status(&self) -> Option<ContainerStatus> {
        let name = "io.kubernetes.container.name".to_owned();
        Some(ContainerStatus {
            id: ContainerId::from("c0ffee00c0ffee00".to_owned()),
            metadata: Some(ContainerMetadata {
                name: "app".into(),
                attempt: 0,
            }),
            state: self.container?,
            created_at: nanos(2),
            started_at: nanos(3),
            finished_at: nanos(4),
            exit_code: 137,
            image: Some("app:1".into()),
            reason: match self.container? {
                ContainerState::Exited => "OOM\u{1b}[31mKilled".into(),
                _ => "".into(),
            },
            labels: Labels::from([(name, "app".to_owned())]),
            ..ContainerStatus::default()
        })
    }

    fn event(&mut self, ms: u64, kind: EventKind) {
        let event = Event {
            container: ContainerId::from("c0ffee00c0ffee00".to_owned()),
            kind,
            created_at: nanos(ms),
            sandbox: self.sandbox_status().map(Into::into),
            containers: self
                .container_status()
                .into_iter()
                .map(Into::into)
                .collect(),
        };
        let arrived = HostInstant {
            realtime_ns: at(ms).realtime_ns + 600_000,
            ..at(ms)
        };
        let notice = self.observer.event(arrived, &event);
        self.reported.push((arrived, notice));
    }

    fn relist(&mut self, ms: u64) {
        let sandboxes = self
            .sandbox_status()
            .into_iter()
            .map(|status| SandboxListing {
                id: status.id,
                metadata: status.metadata,
                state: status.state,
                created_at: status.created_at,
                labels: status.labels,
            });
        let uid = ("io.kubernetes.pod.uid".to_owned(), "u-1".to_owned());
        let containers = self
            .container_status()
            .into_iter()
            .map(|status| ContainerListing {
                id: status.id,
                sandbox: SandboxId::from("5a11d80c5a11d80c".to_owned()),
                metadata: status.metadata,
                state: status.state,
                created_at: status.created_at,
                image: status.image,
                labels: Labels::from([uid.clone()]),
            });
        let (sandboxes, containers): (Vec<_>, Vec<_>) = (sandboxes.collect(), containers.collect());
        let moment = Moment::from_ns(at(ms).realtime_ns);
        let list = list_pods(moment, &sandboxes, &containers);
        let answers = Answers(self.sandbox_report(), self.container_status());
        let statuses = |gate| {
            let statuses = list.iter().map(|pod| {
                let statuses = pod_status(&pod, gate, moment, &answers).map(Arc::new);
                (SharedUid::from(pod.uid), statuses)
            });
            statuses.collect::<BTreeMap<_, _>>()
        };
        let believed = statuses(false);
        let relist = Relist {
            began: at(ms),
            lifecycle: Vec::new(),
            with_evented_pleg_gate: statuses(true),
            believed: self.unchanged(believed),
            sandboxes,
            containers,
        };
        let notices = self.observer.relisted(at(ms), relist);
        self.reported
            .extend(notices.into_iter().map(|notice| (at(ms), notice)));
    }

    /// A Generic PLEG keeps the very status that it had if nothing has changed.
    fn unchanged(
        &self,
        mut statuses: BTreeMap<SharedUid, Inspection>,
    ) -> BTreeMap<SharedUid, Inspection> {
        for (uid, status) in &mut statuses {
            let Some(Ok(before)) = self.observer.believes(uid) else {
                continue;
            };
            if let Ok(status) = status
                && (&before.containers, &before.sandboxes)
                    == (&status.containers, &status.sandboxes)
            {
                *status = before.clone();
            }
        }
        statuses
    }

    fn text(&self) -> String {
        let lines = self
            .reported
            .iter()
            .map(|(at, notice)| text::line(*at, notice));
        let text = lines.collect::<Vec<_>>().join("\n");
        anstream::adapter::strip_str(&text).to_string()
    }

    #[track_caller]
    fn expect_lines(&self, expected: &Expect) {
        expected.assert_eq(&self.text());
    }
}

struct Answers(Option<SandboxReport>, Option<ContainerStatus>);

impl Statuses for Answers {
    fn sandbox(&self, _: &str) -> Result<&SandboxReport, StatusFault> {
        self.0.as_ref().ok_or(StatusFault::NotFound)
    }

    fn container(&self, _: &str) -> Result<&ContainerStatus, StatusFault> {
        self.1.as_ref().ok_or(StatusFault::NotFound)
    }
}

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
    let summary = Notice::Summary(node.observer.summary(at(50_000)));
    expect![[r#"
        watched for 50.000 s: 4 events (CREATED 1, DELETED 1, STARTED 1, STOPPED 1)
        lag: median 0.6 ms, p95 0.6 ms, max 0.6 ms
        missed events: 0
        disagreements: 0
        events that would make a kubelet panic: 0
        reconnects: 0 (meanwhile: 0 transitions, 0 disagreements)
        relists: 44"#]]
    .assert_eq(&anstream::adapter::strip_str(&text::line(at(0), &summary)).to_string());
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
        2026-11-20T16:52:49.000Z MISSED   shop/web  app  c0ffee00c0ffe  no STOPPED within 6.000 s, but a relist shows it EXITED
        2026-11-20T16:52:49.000Z DISAGREE shop/web: a kubelet's caches differ
            5a11d80c5a11d  by relists: READY         by events: READY
        >   c0ffee00c0ffe  by relists: EXITED 137    by events: RUNNING
        2026-11-20T16:52:52.000Z STOPPED  shop/web  app  c0ffee00c0ffe  EXITED 137 OOM\u{1b}[31mKilled  lag 0.6 ms  evented: ContainerDied
        2026-11-20T16:52:58.000Z AGREE    shop/web: a kubelet's caches agree again"#]]);
    let summary = node.observer.summary(at(0));
    assert_eq!((summary.missed, summary.disagreements), (1, 1));
}

#[test]
fn what_happens_without_a_stream_is_no_alarm() {
    let mut node = Node::new();
    node.container = Some(ContainerState::Running);
    node.relist(2000);
    node.observer.stream_lost();
    node.container = Some(ContainerState::Exited);
    node.relist(3000);
    node.observer.opened(at(3500), true);
    (4..20).for_each(|second| node.relist(second * 1000));
    node.expect_lines(&expect![""]);
    let summary = node.observer.summary(at(0));
    assert_eq!((summary.unheard, summary.reconnects), (1, 1));
}

#[test]
fn what_differs_for_want_of_a_stream_is_counted_apart() {
    let mut node = Node::new();
    node.container = Some(ContainerState::Running);
    node.relist(100);
    node.relist(2000);
    node.observer.stream_lost();
    node.container = Some(ContainerState::Exited);
    (3..12).for_each(|second| node.relist(second * 1000));
    assert!(
        node.text()
            .contains("differ, because there was no event stream")
    );
    node.observer.opened(at(12_000), true);
    (13..30).for_each(|second| node.relist(second * 1000));
    let summary = node.observer.summary(at(0));
    assert_eq!(summary.disagreements_in_outages, 1);
    assert_eq!((summary.disagreements, summary.missed), (0, 0));
    assert!(node.text().contains("AGREE    shop/web"));
}

#[test]
fn what_happens_before_a_new_stream_takes_effect_is_no_alarm() {
    let mut node = Node::new();
    node.container = Some(ContainerState::Running);
    node.relist(100);
    node.relist(2000);
    node.observer.stream_lost();
    node.observer.opened(at(2500), true);
    node.relist(2600);
    node.container = Some(ContainerState::Exited);
    (4..30).for_each(|second| node.relist(second * 1000));
    assert_eq!(node.observer.summary(at(0)).disagreements, 0);
}

#[test]
fn ids_without_end_are_shown_and_not_followed() {
    let mut observer = Observer::new(Duration::from_secs(5), at(0));
    observer.opened(at(0), false);
    let mut event = Event {
        container: ContainerId::from(String::new()),
        kind: EventKind::Started,
        created_at: nanos(1000),
        sandbox: None,
        containers: Vec::new(),
    };
    let mut evented = |id: usize| {
        event.container = ContainerId::from(format!("{id}"));
        match observer.event(at(1000), &event) {
            Notice::Event(seen) => seen.evented,
            other => panic!("{other:?}"),
        }
    };
    assert!((0..limits::WATCHED).all(|id| evented(id) == "ignored"));
    assert_eq!(evented(limits::WATCHED), "unfollowed");
    assert_eq!(evented(0), "ignored");
    assert_eq!(
        observer.summary(at(0)).events["STARTED"],
        limits::WATCHED as u64 + 2
    );
}

#[test]
fn a_line_about_the_stream_has_its_time() {
    let line = text::line(
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
        node.observer.summary(at(0)).disagreements
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
    assert_eq!(node.observer.summary(at(0)).lag_max_ns, None);
}

#[test]
fn json_has_a_line_for_each_notice() {
    let mut node = Node::new();
    node.relist(100);
    node.container = Some(ContainerState::Exited);
    node.event(2000, EventKind::Stopped);
    let lines = node.reported.iter().map(|(at, notice)| json(*at, notice));
    let summary = Notice::Summary(node.observer.summary(at(3000)));
    let lines: Vec<_> = lines.chain([json(at(3000), &summary)]).collect();
    for line in &lines {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    expect![[r#"
        {"time":"2026-11-20T16:52:42.000Z","type":"event","namespace":"shop","pod":"web","uid":"u-1","container":"app","id":"c0ffee00c0ffee00","kind":"STOPPED","state":"EXITED","exit_code":137,"reason":"OOM\u001b[31mKilled","created_at_ns":1795193562000000000,"arrived_ns":1795193562000600000,"lag_ns":600000,"queued":false,"evented":"taken","lifecycle":["ContainerDied"],"panic":null}
        {"time":"2026-11-20T16:52:43.000Z","type":"summary","watched_ns":3000000000,"events":{"STOPPED":1},"queued":0,"lag_median_ns":600000,"lag_p95_ns":600000,"lag_max_ns":600000,"missed":0,"unheard":0,"disagreements":0,"disagreements_in_outages":0,"panics":0,"reconnects":0,"relists":1}"#]].assert_eq(&lines.join("\n"));
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
    let notice = node.observer.event(at(1000), &event);
    assert!(text::line(at(1000), &notice).contains("a kubelet would panic: "));
    assert_eq!(node.observer.summary(at(1000)).panics, 1);
}
