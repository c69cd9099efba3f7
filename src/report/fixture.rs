//! One fixed run with awkward content, for the tests of all reports.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::history::{
    Body, CallFault, CallId, CaseRun, CgroupDriver, ContainerId, ContainerListing, ContainerSpec,
    ContainerState, ContainerStatus, Entry, Event, EventKind, Host, HostFact, HostInstant, Labels,
    OciRuntime, PodUid, Reply, Request, RunId, RunInfo, RuntimeNanos, RuntimeVersion, SandboxId,
    SandboxSpec, SandboxStatus, Seq, StatusCode, StreamEnd, SubscriptionId,
};
use crate::outcome::{
    Capabilities, Fact, Kind, Largest, Latency, Level, Levels, Limit, Mismatch, Outcome, Profile,
    REMOVED, RunReport, Spread, Verdict, Violation, Worst,
};

pub(super) const POD: &str = "b7c1d2e3f4a5968778695a4b3c2d1e0f";
pub(super) const C: &str = "3f2a9c81d0e4b7651122334455667788";
const STRANGER: &str = "99ffee\u{1b}[31mddccbbaa";
const START_NS: i64 = 1_795_193_560_000_000_000;

/// Characters that may break a terminal, an XML parser or a reader.
pub(super) const AWKWARD: &str =
    "\u{1b}[31mred\u{1b}[0m \u{0}\u{1} ]]> <b>&amp;\"'\r\nnext\u{fffe} \u{202e}🦀";

/// The time `ms` milliseconds after the start of the run.
pub(super) fn at(ms: u32) -> HostInstant {
    HostInstant {
        monotonic_ns: 5_000_000_000 + u64::from(ms) * 1_000_000,
        realtime_ns: START_NS + i64::from(ms) * 1_000_000,
    }
}

pub(super) fn info() -> RunInfo {
    RunInfo {
        run: RunId::from("0f6a1c1e-3f0b-4b52-9a25-6f2f3c1d7e11"),
        suite: "0.1.0 (abcdef0)".to_owned(),
        endpoint: "unix:///run/containerd/containerd.sock".to_owned(),
        runtime: RuntimeVersion {
            runtime_name: "containerd".to_owned(),
            runtime_version: "2.1.9".to_owned(),
            api_version: "v1".to_owned(),
        },
        oci: Some(OciRuntime {
            handler: "runc".to_owned(),
            name: Some("runc".to_owned()),
            version: None,
        }),
        cgroup_driver: Some(CgroupDriver::Systemd),
        host: Some(Host {
            kernel: "6.12.48+deb13-amd64".to_owned(),
            cgroup: Some("2".to_owned()),
            cpus: 2,
            load_percent: Some(307),
            name: Some("node-1".to_owned()),
        }),
        call_deadline: Some(Duration::from_secs(30)),
    }
}

fn opened(subscription: SubscriptionId) -> Body {
    Body::SubscriptionOpened {
        subscription,
        observer: None,
    }
}

/// A history of one case in which every kind of entry occurs.
pub(super) fn entries() -> Vec<Arc<Entry>> {
    let case = CaseRun(3);
    let subscription = SubscriptionId(1);
    let began = |number, request| Body::CallBegan {
        call: CallId(number),
        case: Some(case),
        request,
        message: Bytes::new(),
    };
    let ended = |number, result| Body::CallEnded {
        call: CallId(number),
        result,
        message: Bytes::new(),
    };
    let event = |event| Body::Event {
        subscription,
        event,
        message: Bytes::new(),
    };
    let fact = HostFact::OomKills(7);
    let bodies = vec![
        (0, Body::RunBegan(info().into())),
        (1, opened(subscription)),
        (9, Body::SubscriptionProven { subscription }),
        (
            10,
            Body::CaseBegan {
                case,
                id: "ORD-01".to_owned(),
                definition: "title: not shown\n".to_owned(),
                timeout_percent: 100,
            },
        ),
        (11, began(1, Request::RunSandbox(sandbox_spec()))),
        (98, event(sandbox_event(EventKind::Created, 97))),
        (112, ended(1, Ok(Reply::Sandbox(SandboxId::from(POD))))),
        (113, began(2, Request::CreateContainer(container_spec()))),
        (120, ended(2, Ok(Reply::Container(ContainerId::from(C))))),
        (121, began(3, Request::StartContainer(ContainerId::from(C)))),
        (150, event(container_event(EventKind::Stopped, 149))),
        (151, event(container_event(EventKind::Started, 150))),
        (156, ended(3, Ok(Reply::Done))),
        (157, began(4, relist())),
        (
            158,
            ended(
                4,
                Ok(Reply::Containers(vec![listing(C), listing(STRANGER)])),
            ),
        ),
        (
            159,
            began(
                5,
                Request::StopContainer {
                    container: ContainerId::from(C),
                    grace: Duration::from_secs(2),
                },
            ),
        ),
        (4_159, ended(5, Err(fault(StatusCode::DEADLINE_EXCEEDED)))),
        (4_160, event(stray_event())),
        (
            9_160,
            Body::Waited {
                case,
                wanted: "DELETED of c".to_owned(),
                met: false,
                bound: Duration::from_secs(5),
                took: None,
                instead: "the container runs".to_owned(),
            },
        ),
        (9_161, Body::Fact { case, fact }),
        (
            9_162,
            Body::StepsEnded {
                case,
                end: crate::history::StepsEnd::Complete,
            },
        ),
        (9_163, Body::CaseEnded { case }),
        (
            9_164,
            Body::SubscriptionEnded {
                subscription,
                end: StreamEnd::Failed(fault(StatusCode::UNAVAILABLE)),
            },
        ),
    ];
    let entry = |(seq, (ms, body))| {
        Arc::new(Entry {
            seq: Seq(seq),
            at: at(ms),
            body,
        })
    };
    (0..).zip(bodies).map(entry).collect()
}

/// A run in which every verdict occurs.
pub(crate) fn fixture() -> RunReport {
    let outcomes = vec![
        Outcome {
            leftovers: vec![format!("{REMOVED}sandbox {POD}: {AWKWARD}")],
            ..outcome("SBX-01", "sandbox::four-events", Verdict::Pass)
        },
        failed(),
        Outcome {
            reason: Some(AWKWARD.to_owned()),
            evidence: entries(),
            leftovers: vec![format!("container {C}: {AWKWARD}")],
            ..outcome("STP-02", "stop::stop-grace-is-kept", Verdict::Error)
        },
        Outcome {
            reason: Some("needs memory-limit, which this host does not offer".to_owned()),
            ..outcome("OOM-01", "oom::oom-kill-says-so", Verdict::Skip)
        },
        Outcome {
            reason: Some("no OOM kill was counted".to_owned()),
            ..outcome("OOM-02", "oom::oom-of-a-child", Verdict::Inconclusive)
        },
        Outcome {
            reason: Some("containerd#12418".to_owned()),
            violations: vec![violation(AWKWARD)],
            evidence: entries(),
            ..outcome("SBX-04", "sandbox::deleted-names-the-pod", Verdict::Known)
        },
        Outcome {
            repetition: Some(2),
            reason: Some("cri-o#9738".to_owned()),
            ..outcome(
                "ORD-02",
                "order::started-before-stopped",
                Verdict::UnexpectedPass,
            )
        },
        Outcome {
            advice: vec![Violation {
                rule: "INV-08".to_owned(),
                level: Level::Should,
                evidence: vec![Seq(17), Seq(99)],
                ..violation("a lag of 3.2 s")
            }],
            evidence: entries(),
            ..outcome("INV-08", "invariant::events-are-prompt", Verdict::Pass)
        },
    ];
    RunReport {
        info: info(),
        began: at(0),
        duration: Duration::from_millis(9_170),
        image: "127.0.0.1:5000/workload:1".to_owned(),
        outcomes,
        faults: vec!["the history could not be written: no space left on device".to_owned()],
        foreign_pods: 2,
        profiles: Profile::ALL.to_vec(),
        tier: Some("extended".to_owned()),
        watch: None,
        partial: false,
        capabilities: Capabilities {
            events: Some(true),
            broadcast: Some(true),
            replay: Some(false),
            streamed_lists: Some(false),
            ..Capabilities::default()
        },
        latencies: vec![Worst {
            latency: Latency {
                limit: Limit::EventAfterCall,
                bound: Duration::from_secs(10),
                took: Duration::from_micros(1_234_500),
            },
            spread: spread([300, 1_000, 1_234_500]),
            case: "ORD-01".into(),
        }],
        largest_event: Some(Largest {
            bytes: 1_234,
            case: "ORD-01".into(),
        }),
        expired: vec!["ORD-02".to_owned()],
        notes: vec!["known.yaml: the entry of ORD-02 has expired on 2026-01-31".to_owned()],
    }
}

fn spread(micros: [u64; 3]) -> Spread {
    let mut spread = Spread::default();
    let times = micros.map(Duration::from_micros).into_iter();
    times.for_each(|took| spread.add(took));
    spread
}

pub(crate) fn outcome(id: &str, name: &str, verdict: Verdict) -> Outcome {
    Outcome {
        id: id.into(),
        name: name.into(),
        title: "A container's events arrive in the order of its life.".into(),
        why: "A kubelet takes the latest event for the truth.".into(),
        sources: ["KEP-3386".to_owned(), "cri-o/cri-o#9738".to_owned()].into(),
        requirements: ["R7".to_owned(), "C2".to_owned()].into(),
        levels: Levels {
            cache: Some(Level::Must),
            hint: Some(Level::Should),
            observer: None,
        },
        verdict,
        began: at(0),
        duration: Duration::from_millis(1_234),
        ..Outcome::default()
    }
}

/// A failure with two broken rules.
pub(super) fn failed() -> Outcome {
    let second = Violation {
        rule: "INV-02".to_owned(),
        evidence: Vec::new(),
        ..violation(AWKWARD)
    };
    Outcome {
        violations: vec![violation("CREATED, STOPPED, STARTED"), second],
        evidence: entries(),
        ..outcome("ORD-01", "order::four-events-in-order", Verdict::Fail)
    }
}

pub(crate) fn violation(actual: &str) -> Violation {
    Violation {
        rule: "ORD-01".to_owned(),
        level: Level::Must,
        sentence: "The events of a container arrive in the order CREATED, STARTED, STOPPED and \
                   DELETED, each of them once, whatever else the node is doing meanwhile."
            .to_owned(),
        subject: "c (3f2a9c81d0e4b)".to_owned(),
        mismatch: Mismatch::new(
            Kind::RefutedWait,
            [Fact::Of("CREATED, STARTED, STOPPED".to_owned())],
            [Fact::Text(actual.to_owned())],
        ),
        evidence: vec![Seq(10), Seq(11)],
    }
}

fn sandbox_spec() -> Arc<SandboxSpec> {
    Arc::new(SandboxSpec {
        binding: "pod".to_owned(),
        name: "conformance-pod".to_owned(),
        uid: PodUid::from("uid-1"),
        ..SandboxSpec::default()
    })
}

fn container_spec() -> Arc<ContainerSpec> {
    Arc::new(ContainerSpec {
        sandbox: SandboxId::from(POD),
        sandbox_spec: sandbox_spec(),
        binding: "c".to_owned(),
        ..ContainerSpec::default()
    })
}

fn sandbox_event(kind: EventKind, ms: u32) -> Event {
    Event {
        container: ContainerId::from(POD),
        kind,
        created_at: RuntimeNanos(at(ms).realtime_ns),
        sandbox: Some(sandbox_status().into()),
        containers: Vec::new(),
    }
}

fn container_event(kind: EventKind, ms: u32) -> Event {
    Event {
        container: ContainerId::from(C),
        containers: vec![
            status(C, ContainerState::Running, "").into(),
            exited().into(),
        ],
        ..sandbox_event(kind, ms)
    }
}

fn stray_event() -> Event {
    Event {
        container: ContainerId::from(STRANGER),
        kind: EventKind::Unknown(9),
        created_at: RuntimeNanos(0),
        sandbox: None,
        containers: vec![status("", ContainerState::Unknown(3), AWKWARD).into(); 9],
    }
}

fn sandbox_status() -> SandboxStatus {
    SandboxStatus {
        id: SandboxId::from(POD),
        created_at: RuntimeNanos(START_NS),
        ..SandboxStatus::default()
    }
}

fn exited() -> ContainerStatus {
    ContainerStatus {
        exit_code: 137,
        ..status("d0d0d0d0d0d0d0d0d0", ContainerState::Exited, "OOMKilled")
    }
}

fn status(id: &str, state: ContainerState, reason: &str) -> ContainerStatus {
    ContainerStatus {
        id: ContainerId::from(id),
        state,
        created_at: RuntimeNanos(START_NS),
        reason: reason.into(),
        ..ContainerStatus::default()
    }
}

fn relist() -> Request {
    Request::containers(Some(SandboxId::from(POD)), Labels::new())
}

fn listing(id: &str) -> ContainerListing {
    ContainerListing {
        id: ContainerId::from(id),
        sandbox: SandboxId::from(POD),
        metadata: None,
        state: ContainerState::Running,
        created_at: RuntimeNanos(START_NS),
        labels: Labels::new(),
        image: Some("image".into()),
        ..ContainerListing::default()
    }
}

fn fault(code: StatusCode) -> CallFault {
    CallFault {
        code,
        message: AWKWARD.to_owned(),
        deadline: Duration::from_secs(4),
    }
}
