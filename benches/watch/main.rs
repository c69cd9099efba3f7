//! The memory of a watch over time, and the cost of judging, in simulated time.
//!
//! `cargo bench --bench watch -- HOURS` simulates HOURS hours of a node with 110 idle pods, on
//! which 25 pods a second are created, run and are removed: 100 events a second, and a relist each
//! second. It prints the memory after each hour.
//!
//! On a loaded virtual machine with two cores, built with little optimization: 24 hours were
//! 8,639,775 events and 2,163,450 judged pods, took 580 s of CPU time, 67 µs an event, and the
//! memory grew from 19.1 MB after the first hour to 19.3 MB after the last.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "this is a program for developers"
)]

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cri_event_conformance::testing::history::{
    Body, CallId, ContainerId, ContainerListing, ContainerMetadata, ContainerState,
    ContainerStatus, Entry, Event, EventKind, HostInstant, Labels, PodUid, Reply, Request, RunInfo,
    RunPlan, RuntimeNanos, SandboxId, SandboxListing, SandboxMetadata, SandboxState, SandboxStatus,
    Seq, SubscriptionId,
};
use cri_event_conformance::testing::oracle::INVARIANTS;
use cri_event_conformance::testing::verdicts::{Scope, Verdicts};

/// Pods that never change.
const IDLE: u64 = 110;
/// Pods created per second; each has four events.
const COMING: u64 = 25;
/// Seconds from a pod's creation to the exit of its container.
const RUNS: u64 = 3;

const STREAM: SubscriptionId = SubscriptionId(0);
const SECOND_NS: u64 = 1_000_000_000;

/// A node in simulated time, and the verdicts on it.
struct Node {
    verdicts: Verdicts,
    now_ns: u64,
    entries: u64,
    calls: u64,
    pods: BTreeMap<u64, ContainerState>,
    leaving: VecDeque<(u64, u64)>,
    next_pod: u64,
}

fn main() {
    let hours = std::env::args().skip(1).find_map(|word| word.parse().ok());
    let mut node = Node::new();
    for hour in 1..=hours.unwrap_or(0_u64) {
        (0..3_600).for_each(|_| node.second());
        report(&mut node, &format!("{hour} h"));
    }
    if hours.is_none() {
        // Under `cargo test --benches`.
        (0..30).for_each(|_| node.second());
        report(&mut node, "30 s");
    }
}

fn report(node: &mut Node, after: &str) {
    let totals = node.verdicts.report(None).watch.unwrap();
    let stat = fs::read_to_string("/proc/self/schedstat").unwrap();
    let used: u64 = stat.split(' ').next().unwrap().parse().unwrap();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let held = status.lines().find(|line| line.starts_with("VmRSS:"));
    println!(
        "watch: after {after} {} events, {} judged, {:.1} s on the processor, {}",
        totals.events,
        totals.judged,
        Duration::from_nanos(used).as_secs_f64(),
        held.unwrap()
    );
}

impl Node {
    fn new() -> Self {
        let mut node = Self {
            verdicts: Verdicts::new(Scope::default()),
            now_ns: SECOND_NS,
            entries: 0,
            calls: 0,
            pods: (0..IDLE)
                .map(|pod| (pod, ContainerState::Running))
                .collect(),
            leaving: VecDeque::new(),
            next_pod: IDLE,
        };
        let rules = INVARIANTS.iter().filter(|rule| rule.of_foreign_pods);
        let plan = RunPlan {
            invariants: rules.map(|rule| rule.id.to_owned()).collect(),
            watch_within: Some(Duration::from_secs(5)),
            ..RunPlan::default()
        };
        node.record(Body::RunBegan(RunInfo::default().into()));
        node.record(Body::RunPlanned(plan.into()));
        let (subscription, observer) = (STREAM, None);
        node.record(Body::SubscriptionOpened {
            subscription,
            observer,
        });
        node.record(Body::SubscriptionProven { subscription });
        let idle: Vec<u64> = (0..IDLE).collect();
        node.relist(&idle);
        node
    }

    /// One second: pods are created, exit and are removed, and a relist shows it.
    fn second(&mut self) {
        let second = self.now_ns / SECOND_NS;
        let mut changed = Vec::new();
        for _ in 0..COMING {
            let pod = self.next_pod;
            self.next_pod += 1;
            self.event(pod, EventKind::Created, Some(ContainerState::Created));
            self.event(pod, EventKind::Started, Some(ContainerState::Running));
            self.leaving.push_back((second + RUNS, pod));
            changed.push(pod);
        }
        while let Some(&(_, pod)) = self.leaving.front().filter(|(at, _)| *at <= second) {
            self.leaving.pop_front();
            if self.pods[&pod] == ContainerState::Running {
                self.event(pod, EventKind::Stopped, Some(ContainerState::Exited));
                self.leaving.push_back((second + 1, pod));
                changed.push(pod);
            } else {
                self.event(pod, EventKind::Deleted, None);
            }
        }
        self.now_ns = (second + 1) * SECOND_NS;
        self.relist(&changed);
    }

    fn at(&self) -> HostInstant {
        HostInstant {
            monotonic_ns: self.now_ns,
            realtime_ns: 1_700_000_000_000_000_000 + i64::try_from(self.now_ns).unwrap(),
        }
    }

    fn record(&mut self, body: Body) {
        self.now_ns += 1_000;
        let (seq, at) = (Seq(self.entries), self.at());
        self.entries += 1;
        self.verdicts.push(&Arc::new(Entry { seq, at, body }));
        drop(self.verdicts.take_news());
    }

    fn event(&mut self, pod: u64, kind: EventKind, state: Option<ContainerState>) {
        match state {
            Some(state) => self.pods.insert(pod, state),
            None => self.pods.remove(&pod),
        };
        let created_at = RuntimeNanos(self.at().realtime_ns);
        let containers = state.map(|_| self.container(pod).into());
        let event = Event {
            container: ContainerId::from(format!("c{pod}")),
            kind,
            created_at,
            sandbox: Some(sandbox(pod).into()),
            containers: containers.into_iter().collect(),
        };
        self.record(Body::Event {
            subscription: STREAM,
            event,
            message: Bytes::new(),
        });
    }

    fn relist(&mut self, changed: &[u64]) {
        let sandboxes = self.pods.keys().map(|pod| {
            let status = sandbox(*pod);
            SandboxListing {
                id: status.id,
                metadata: status.metadata,
                state: SandboxState::Ready,
                created_at: status.created_at,
                labels: Labels::new(),
                ..SandboxListing::default()
            }
        });
        let containers = self.pods.iter().map(|(pod, state)| ContainerListing {
            id: ContainerId::from(format!("c{pod}")),
            sandbox: sandbox(*pod).id,
            metadata: Some(ContainerMetadata::default()),
            state: *state,
            created_at: RuntimeNanos(1),
            labels: Labels::new(),
            image: Some("app:1".into()),
            ..ContainerListing::default()
        });
        let (sandboxes, containers) = (sandboxes.collect(), containers.collect());
        self.call(
            Request::sandboxes(Labels::new()),
            Reply::Sandboxes(sandboxes),
        );
        let request = Request::containers(None, Labels::new());
        self.call(request, Reply::Containers(containers));
        for pod in changed
            .iter()
            .filter(|pod| self.pods.contains_key(pod))
            .copied()
            .collect::<Vec<_>>()
        {
            let report = sandbox(pod).into();
            self.call(
                Request::SandboxStatus(sandbox(pod).id),
                Reply::SandboxStatus(report),
            );
            let status = self.container(pod);
            self.call(
                Request::ContainerStatus(status.id.clone()),
                Reply::ContainerStatus(status.into()),
            );
        }
    }

    fn call(&mut self, request: Request, reply: Reply) {
        let (call, case, message) = (CallId(self.calls), None, Bytes::new());
        self.calls += 1;
        self.record(Body::CallBegan {
            call,
            case,
            request,
            message: message.clone(),
        });
        let result = Ok(reply);
        self.record(Body::CallEnded {
            call,
            result,
            message,
        });
    }

    fn container(&self, pod: u64) -> ContainerStatus {
        let state = self.pods[&pod];
        let set = |is: bool| RuntimeNanos(i64::from(is) * 1_700_000_000_000_000_000);
        ContainerStatus {
            id: ContainerId::from(format!("c{pod}")),
            metadata: Some(ContainerMetadata::default()),
            state,
            created_at: set(true),
            started_at: set(state != ContainerState::Created),
            finished_at: set(state == ContainerState::Exited),
            image: Some("app:1".into()),
            image_ref: "app@sha256:1".into(),
            ..ContainerStatus::default()
        }
    }
}

fn sandbox(pod: u64) -> SandboxStatus {
    SandboxStatus {
        id: SandboxId::from(format!("s{pod}")),
        metadata: Some(SandboxMetadata {
            name: format!("pod-{pod}").into(),
            uid: PodUid::from(format!("u{pod}")),
            namespace: "bench".into(),
            attempt: 0,
        }),
        created_at: RuntimeNanos(1_700_000_000_000_000_000),
        ..SandboxStatus::default()
    }
}
