//! A node with one pod, and a watch of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use expect_test::Expect;

use super::super::notice::{Notice, Summary, line};
use super::super::observer::Observer;
use crate::drive::Relist;
use crate::history::{
    Body, CallFault, CallId, ContainerId, ContainerListing, ContainerMetadata, ContainerState,
    ContainerStatus, Entry, Event, EventKind, HostInstant, Labels, PodUid, Reply, Request, RunEnd,
    RunInfo, RunPlan, RuntimeNanos, SandboxId, SandboxListing, SandboxMetadata, SandboxReport,
    SandboxState, SandboxStatus, Seq, StatusCode, StreamEnd, SubscriptionId,
};
use crate::outcome::Profile;
use crate::pleg::{
    LifecycleEvent, LifecycleKind, Moment, POD_UID_LABEL, SharedId, SharedUid, StatusFault,
    Statuses, list_pods, pod_status,
};
use crate::verdicts::{Scope, Verdicts};

const BEGAN_NS: i64 = 1_795_193_560_000_000_000;

/// A node with one pod, which has one container.
pub(super) struct Node {
    pub(super) observer: Observer,
    pub(super) sandbox: Option<SandboxState>,
    pub(super) container: Option<ContainerState>,
    /// When the sandbox's status was read with its containers; `None` if it has none.
    pub(super) reported_ms: Option<u64>,
    pub(super) reported: Vec<(HostInstant, Notice)>,
    pub(super) verdicts: Verdicts,
    entries: u64,
    calls: u64,
    stream: SubscriptionId,
    /// The content of the last relist.
    listed: Option<(Option<SandboxState>, Option<ContainerState>)>,
}

pub(super) fn at(ms: u64) -> HostInstant {
    HostInstant {
        monotonic_ns: ms * 1_000_000,
        realtime_ns: BEGAN_NS + i64::try_from(ms).unwrap() * 1_000_000,
    }
}

pub(super) fn nanos(ms: u64) -> RuntimeNanos {
    RuntimeNanos(at(ms).realtime_ns)
}

impl Node {
    pub(super) fn new() -> Self {
        let mut node = Self {
            observer: Observer::new(at(0), Profile::Cache),
            sandbox: Some(SandboxState::Ready),
            container: None,
            reported_ms: None,
            reported: Vec::new(),
            verdicts: Verdicts::new(Scope::default()),
            entries: 0,
            calls: 0,
            stream: SubscriptionId(0),
            listed: None,
        };
        let plan = RunPlan {
            watch_within: Some(Duration::from_secs(5)),
            ..RunPlan::default()
        };
        node.record(at(0), Body::RunBegan(RunInfo::default().into()));
        node.record(at(0), Body::RunPlanned(plan.into()));
        node.opens(0);
        node
    }

    fn record(&mut self, at: HostInstant, body: Body) {
        let seq = Seq(self.entries);
        self.entries += 1;
        self.verdicts.push(&Arc::new(Entry { seq, at, body }));
        for news in self.verdicts.take_news() {
            let notice = self.observer.found(&news);
            self.reported.push((at, notice));
        }
    }

    pub(super) fn opens(&mut self, ms: u64) {
        let subscription = SubscriptionId(self.stream.0 + 1);
        self.stream = subscription;
        let observer = None;
        self.record(
            at(ms),
            Body::SubscriptionOpened {
                subscription,
                observer,
            },
        );
        self.record(at(ms), Body::SubscriptionProven { subscription });
        self.observer.opened(at(ms), ms > 0);
    }

    pub(super) fn loses_its_stream(&mut self, ms: u64) {
        let (subscription, end) = (self.stream, StreamEnd::Closed);
        self.record(at(ms), Body::SubscriptionEnded { subscription, end });
        self.observer.stream_lost();
    }

    pub(super) fn is_held_up(&mut self, ms: u64, by_ms: u64) {
        let by = Duration::from_millis(by_ms);
        self.record(at(ms), Body::HeldUp { by });
    }

    pub(super) fn ends(&mut self, ms: u64) {
        self.record(at(ms), Body::CasesEnded);
        self.record(at(ms), Body::RunEnded(RunEnd::default()));
    }

    /// A call about another pod fails, as the runtime is gone.
    pub(super) fn fails(&mut self, ms: u64) {
        let request = Request::SandboxStatus(SandboxId::from("another"));
        let fault = CallFault {
            code: StatusCode::UNAVAILABLE,
            message: String::new(),
            deadline: Duration::ZERO,
        };
        self.called(ms, request, Err(fault));
    }

    fn call(&mut self, ms: u64, request: Request, reply: Reply) {
        self.called(ms, request, Ok(reply));
    }

    fn called(&mut self, ms: u64, request: Request, result: Result<Reply, CallFault>) {
        let call = CallId(self.calls);
        self.calls += 1;
        let (case, message) = (None, Bytes::new());
        let began = Body::CallBegan {
            call,
            case,
            request,
            message: message.clone(),
        };
        self.record(at(ms), began);
        let ended = Body::CallEnded {
            call,
            result,
            message,
        };
        self.record(at(ms), ended);
    }

    /// The calls of a relist, with statuses if something has changed.
    fn calls_of_relist(&mut self, ms: u64, relist: &Relist) {
        let sandboxes = Reply::Sandboxes(relist.sandboxes.clone());
        let labels: Labels = relist
            .pod
            .iter()
            .map(|uid| (POD_UID_LABEL, uid.as_str()))
            .collect();
        self.call(ms, Request::sandboxes(labels.clone()), sandboxes);
        let request = Request::containers(None, labels);
        self.call(ms, request, Reply::Containers(relist.containers.clone()));
        let listed = Some((self.sandbox, self.container));
        if std::mem::replace(&mut self.listed, listed) == listed {
            return;
        }
        if let Some(report) = self.sandbox_report() {
            let request = Request::SandboxStatus(report.status.id.clone());
            self.call(ms, request, Reply::SandboxStatus(report));
        }
        if let Some(status) = self.container_status() {
            let request = Request::ContainerStatus(status.id.clone());
            self.call(ms, request, Reply::ContainerStatus(status.into()));
        }
    }

    pub(super) fn summary(&mut self, now: HostInstant) -> Summary {
        let totals = self.verdicts.report(None).watch.unwrap_or_default();
        self.observer.summary(now, &totals)
    }

    fn metadata() -> SandboxMetadata {
        SandboxMetadata {
            name: "web".into(),
            uid: PodUid::from("u-1".to_owned()),
            namespace: "shop".into(),
            attempt: 0,
        }
    }

    pub(super) fn sandbox_status(&self) -> Option<SandboxStatus> {
        Some(SandboxStatus {
            id: SandboxId::from("5a11d80c5a11d80c".to_owned()),
            metadata: Some(Self::metadata()),
            state: self.sandbox?,
            created_at: nanos(1),
            labels: Labels::from([(POD_UID_LABEL.to_owned(), "u-1".to_owned())]),
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

    pub(super) fn container_status(&self) -> Option<ContainerStatus> {
        let [name, uid] = ["container.name", "pod.uid"].map(|key| format!("io.kubernetes.{key}"));
        let state = self.container?;
        let has_exited = state == ContainerState::Exited;
        let unset = RuntimeNanos(0);
        Some(ContainerStatus {
            id: ContainerId::from("c0ffee00c0ffee00".to_owned()),
            metadata: Some(ContainerMetadata {
                name: "app".into(),
                attempt: 0,
            }),
            state,
            created_at: nanos(2),
            started_at: if state == ContainerState::Created {
                unset
            } else {
                nanos(3)
            },
            finished_at: if has_exited { nanos(4) } else { unset },
            exit_code: if has_exited { 137 } else { 0 },
            image: Some("app:1".into()),
            image_ref: "app@sha256:1".into(),
            reason: if has_exited {
                "OOM\u{1b}[31mKilled"
            } else {
                ""
            }
            .into(),
            labels: Labels::from([(name, "app".to_owned()), (uid, "u-1".to_owned())]),
            ..ContainerStatus::default()
        })
    }

    pub(super) fn event(&mut self, ms: u64, kind: EventKind) {
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
        self.arrives(ms, event);
    }

    pub(super) fn arrives(&mut self, ms: u64, event: Event) {
        let arrived = HostInstant {
            realtime_ns: at(ms).realtime_ns + 600_000,
            ..at(ms)
        };
        let notice = self.observer.event(arrived, &event, 0);
        self.reported.push((arrived, notice));
        let (subscription, message) = (self.stream, Bytes::new());
        let body = Body::Event {
            subscription,
            event,
            message,
        };
        self.record(arrived, body);
    }

    pub(super) fn relist(&mut self, ms: u64) {
        self.relist_at(ms, None);
    }

    /// Relists the pod on demand, and its container has started.
    pub(super) fn relist_pod(&mut self, ms: u64) {
        self.relist_at(ms, Some("u-1"));
    }

    fn relist_at(&mut self, ms: u64, pod: Option<&str>) {
        let sandboxes = self
            .sandbox_status()
            .into_iter()
            .map(|status| SandboxListing {
                id: status.id,
                metadata: status.metadata,
                state: status.state,
                created_at: status.created_at,
                labels: status.labels,
                ..SandboxListing::default()
            });
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
                image_ref: status.image_ref,
                labels: status.labels,
                ..ContainerListing::default()
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
            pod: pod.map(SharedUid::from),
            began: at(ms),
            lifecycle: pod.map_or_else(Vec::new, started),
            with_evented_pleg_gate: statuses(true),
            believed,
            sandboxes,
            containers,
        };
        self.calls_of_relist(ms, &relist);
        let notices = self.observer.relisted(relist);
        self.reported
            .extend(notices.into_iter().map(|notice| (at(ms), notice)));
    }

    pub(super) fn text(&self) -> String {
        let lines = self.reported.iter().map(|(at, notice)| line(*at, notice));
        let text = lines.collect::<Vec<_>>().join("\n");
        anstream::adapter::strip_str(&text).to_string()
    }

    #[track_caller]
    pub(super) fn expect_lines(&self, expected: &Expect) {
        expected.assert_eq(&self.text());
    }
}

fn started(pod: &str) -> Vec<LifecycleEvent> {
    vec![LifecycleEvent {
        pod: SharedUid::from(pod),
        kind: LifecycleKind::ContainerStarted,
        container: Some(SharedId::from("c0ffee00c0ffee00")),
    }]
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
