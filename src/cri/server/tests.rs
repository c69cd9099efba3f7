//! The client against the server: messages arrive on the other side unchanged.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::*;
use crate::cri::{Client, Subscription};
use crate::history::{
    Body, ContainerFilter, ContainerId, ContainerListing, ContainerMetadata, ContainerSetup,
    ContainerSpec, ContainerState, ContainerStatus, EventKind, Flaw, ImageListing, Labels, Mount,
    NamespaceMode, Namespaces, NoEventCall, NoEventCallTarget, PodUid, RuntimeNanos, RuntimeStatus,
    RuntimeVersion, SandboxFilter, SandboxId, SandboxListing, SandboxMetadata, SandboxReport,
    SandboxSpec, SandboxState, SandboxStatus, Signal, StatusCode, StreamEnd, User,
};
use crate::host::Reactor;
use crate::recorder::Recorder;

/// Gives prepared replies, and records the requests.
#[derive(Default)]
pub(super) struct Scripted {
    asked: Mutex<Vec<Request>>,
    pub(super) answers: Mutex<VecDeque<Result<Reply, CallFault>>>,
    events: Vec<Result<Event, CallFault>>,
}

impl Backend for Scripted {
    type Events = tokio_stream::Iter<std::vec::IntoIter<Result<Event, CallFault>>>;

    async fn call(&self, request: Request) -> Result<Reply, CallFault> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(request);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.pop_front().unwrap()
    }

    async fn subscribe(&self, _: Option<Duration>) -> Result<Self::Events, CallFault> {
        Ok(tokio_stream::iter(self.events.clone()))
    }
}

fn labels(key: &str) -> Labels {
    Labels::from([(key.to_owned(), "value".to_owned())])
}

fn sandbox_metadata() -> SandboxMetadata {
    SandboxMetadata {
        name: "pod".into(),
        uid: PodUid::from("uid"),
        namespace: "namespace".into(),
        attempt: 3,
    }
}

fn sandbox_status() -> SandboxStatus {
    SandboxStatus {
        id: SandboxId::from("s"),
        metadata: Some(sandbox_metadata()),
        state: SandboxState::NotReady,
        created_at: RuntimeNanos(5),
        ips: vec!["10.0.0.1".to_owned(), "fd00::1".to_owned()],
        namespaces: Some(Namespaces {
            network: NamespaceMode::Node,
            ..Namespaces::default()
        }),
        labels: labels("l"),
        annotations: labels("a"),
        runtime_handler: "handler".to_owned(),
    }
}

fn sandbox_report() -> SandboxReport {
    SandboxReport {
        containers: vec![container_status().into()],
        timestamp: RuntimeNanos(8),
        ..sandbox_status().into()
    }
}

fn container_status() -> ContainerStatus {
    ContainerStatus {
        id: ContainerId::from("c"),
        metadata: Some(container_metadata()),
        state: ContainerState::Exited,
        created_at: RuntimeNanos(5),
        started_at: RuntimeNanos(6),
        finished_at: RuntimeNanos(7),
        exit_code: 137,
        image: Some("image".into()),
        image_ref: "sha256:1".into(),
        reason: "OOMKilled".into(),
        message: "it ate".to_owned(),
        labels: labels("l"),
        annotations: labels("a"),
        setup: details().into(),
    }
}

fn details() -> ContainerSetup {
    let resources = [
        ("cpuset_cpus", "0-1"),
        ("hugepage_limits.2MB", "4096"),
        ("memory_limit_in_bytes", "1024"),
        ("oom_score_adj", "-5"),
        ("unified.memory.high", "max"),
    ];
    ContainerSetup {
        mounts: vec![Mount {
            container_path: "/inside".into(),
            host_path: "/outside".into(),
            readonly: true,
            recursive_readonly: true,
            selinux_relabel: true,
            propagation: 2,
        }],
        log_path: "/log".into(),
        resources: Some(Labels::from(resources)),
        image_id: "sha256:2".into(),
        user: Some(User {
            uid: 1,
            gid: 2,
            groups: vec![3, 4],
        }),
        stop_signal: Signal::USER_1,
    }
}

fn container_metadata() -> ContainerMetadata {
    ContainerMetadata {
        name: "container".into(),
        attempt: 2,
    }
}

fn event(kind: EventKind) -> Event {
    Event {
        container: ContainerId::from("c"),
        kind,
        created_at: RuntimeNanos(9),
        sandbox: Some(sandbox_status().into()),
        containers: vec![container_status().into()],
    }
}

fn spec(handler: &str) -> Arc<SandboxSpec> {
    let SandboxMetadata {
        name,
        uid,
        namespace,
        attempt,
    } = sandbox_metadata();
    Arc::new(SandboxSpec {
        binding: String::new(),
        name: name.to_string(),
        namespace: namespace.to_string(),
        uid,
        attempt,
        labels: labels("l"),
        annotations: labels("a"),
        runtime_handler: handler.to_owned(),
        sysctls: labels("s"),
        own_network: true,
        shared_pid: true,
        cgroup_parent: "/cgroup".to_owned(),
        memory_bytes: Some(64 << 20),
        log_directory: "/logs".to_owned(),
    })
}

/// Every request with a possible reply, without fields that only the suite uses.
fn calls() -> Vec<(Request, Reply)> {
    let (c, s) = (|| ContainerId::from("c"), || SandboxId::from("s"));
    let checkpoint = Request::CheckpointContainer {
        container: c(),
        location: "/checkpoint.tar".to_owned(),
    };
    let stop = Request::StopContainer {
        container: c(),
        grace: Duration::from_secs(7),
    };
    let mut calls = vec![
        (Request::Version, Reply::Version(version())),
        (Request::RunSandbox(spec("handler")), Reply::Sandbox(s())),
        (Request::StopSandbox(s()), Reply::Done),
        (Request::RemoveSandbox(s()), Reply::Done),
        (
            Request::SandboxStatus(s()),
            Reply::SandboxStatus(sandbox_report()),
        ),
        (
            Request::SandboxStatus(s()),
            Reply::SandboxStatus(sandbox_status().into()),
        ),
        (checkpoint, Reply::Done),
        (Request::StartContainer(c()), Reply::Done),
        (stop, Reply::Done),
        (Request::RemoveContainer(c()), Reply::Done),
        (
            Request::ContainerStatus(c()),
            Reply::ContainerStatus(container_status().into()),
        ),
    ];
    calls.extend(
        creations()
            .into_iter()
            .map(|create| (create, Reply::Container(c()))),
    );
    calls.extend(lists());
    calls.extend(others());
    calls
}

/// Creations of containers with and without flaws, from an image and from a checkpoint.
fn creations() -> Vec<Request> {
    let container = ContainerSpec {
        sandbox: SandboxId::from("s"),
        sandbox_spec: spec(""),
        binding: "container".to_owned(),
        attempt: 2,
        image: "image".to_owned(),
        command: vec!["/workload".to_owned(), "until-term".to_owned()],
        name: None,
        tty: true,
        declared_exit: None,
        memory_bytes: Some(16 << 20),
        labels: labels("l"),
        annotations: labels("a"),
        flaw: Some(Flaw::Mount),
        stop_signal: Signal::USER_1,
        pid_target: Some(ContainerId::from("target")),
        oom_group: true,
        mounted: true,
        log_path: "container_2.log".to_owned(),
    };
    let created = |image: &str, flaw| {
        let container = container.clone();
        Request::CreateContainer(Arc::new(ContainerSpec {
            image: image.to_owned(),
            flaw,
            ..container
        }))
    };
    let damaged = format!("/checkpoint.tar{}", ContainerSpec::DAMAGED);
    vec![
        created("image", None),
        created("image", Some(Flaw::User)),
        created("image", Some(Flaw::Directory)),
        created("image", Some(Flaw::Mount)),
        created("image", Some(Flaw::CrashAtKill)),
        created("/checkpoint.tar", None),
        created(&damaged, Some(Flaw::Checkpoint)),
    ]
}

/// Calls outside the life cycle of containers.
fn others() -> Vec<(Request, Reply)> {
    let exec = Request::ExecSync {
        container: ContainerId::from("c"),
        command: vec!["/workload".to_owned(), "ignore-term".to_owned()],
        timeout: Duration::from_secs(3),
    };
    let mut calls = vec![(exec, Reply::Exec(137))];
    // A server takes any question for the runtime's status for one that wants to know it.
    let calls_without_events = NoEventCall::ALL
        .iter()
        .filter(|call| **call != NoEventCall::Status);
    calls.extend(calls_without_events.map(|call| {
        let id = match call.target() {
            NoEventCallTarget::Container | NoEventCallTarget::Sandbox => "id",
            NoEventCallTarget::Nothing => "",
        };
        (Request::NoEventCall(*call, id.to_owned()), Reply::Done)
    }));
    calls
}

pub(super) fn version() -> RuntimeVersion {
    RuntimeVersion {
        runtime_name: "name".to_owned(),
        runtime_version: "1".to_owned(),
        api_version: "v1".to_owned(),
    }
}

fn lists() -> Vec<(Request, Reply)> {
    let image = || ImageListing {
        id: "sha256:1".to_owned(),
        tags: vec!["image".to_owned()],
    };
    let reference = || "image".to_owned();
    let sandbox = SandboxListing {
        id: SandboxId::from("s"),
        metadata: Some(sandbox_metadata()),
        state: SandboxState::Unknown(7),
        created_at: RuntimeNanos(5),
        labels: labels("l"),
        ..SandboxListing::default()
    };
    let container = ContainerListing {
        id: ContainerId::from("c"),
        sandbox: SandboxId::from("s"),
        metadata: Some(container_metadata()),
        state: ContainerState::Unknown(3),
        created_at: RuntimeNanos(5),
        labels: labels("l"),
        image: Some(reference().into()),
        ..ContainerListing::default()
    };
    let of_sandbox = Request::containers(Some(SandboxId::from("s")), labels("l"));
    let status = RuntimeStatus {
        conditions: vec!["RuntimeReady".to_owned()],
        handlers: vec![String::new(), "other".to_owned()],
    };
    let mut calls = vec![
        (Request::RuntimeStatus, Reply::RuntimeStatus(status)),
        (
            Request::sandboxes(labels("l")),
            Reply::Sandboxes(vec![sandbox.clone()]),
        ),
        (of_sandbox, Reply::Containers(vec![container.clone()])),
        (
            Request::ImageStatus(reference()),
            Reply::Image(Some(image())),
        ),
        (Request::ImageStatus(reference()), Reply::Image(None)),
        (Request::PullImage(reference()), Reply::Pulled(reference())),
        (Request::RemoveImage(reference()), Reply::Done),
        (Request::ListImages, Reply::Images(vec![image()])),
    ];
    for streamed in [false, true] {
        calls.extend(finds(streamed, [&sandbox; 3], [&container; 3]));
    }
    calls
}

fn finds(
    streamed: bool,
    sandboxes: [&SandboxListing; 3],
    containers: [&ContainerListing; 3],
) -> [(Request, Reply); 2] {
    let of_sandboxes = SandboxFilter {
        id: Some(SandboxId::from("s")),
        state: Some(SandboxState::NotReady),
        labels: labels("l"),
        streamed,
    };
    let of_containers = ContainerFilter {
        id: Some(ContainerId::from("c")),
        state: Some(ContainerState::Exited),
        sandbox: Some(SandboxId::from("s")),
        labels: labels("l"),
        streamed,
    };
    let sandboxes = sandboxes.map(Clone::clone).to_vec();
    let containers = containers.map(Clone::clone).to_vec();
    [
        (
            Request::FindSandboxes(of_sandboxes),
            Reply::Sandboxes(sandboxes),
        ),
        (
            Request::FindContainers(of_containers),
            Reply::Containers(containers),
        ),
    ]
}

/// Serves a backend within this process, and passes a client to a closure.
fn with_client<T>(
    backend: Arc<Scripted>,
    talk: impl AsyncFnOnce(Client, crate::cri::Endpoint) -> T,
) -> T {
    let first = Ok(Reply::Version(version()));
    backend.answers.lock().unwrap().push_front(first);
    let reactor = Reactor::simulated().unwrap();
    reactor.runtime().block_on(async {
        let (endpoint, mut listener) = Listener::in_process("scripted");
        tokio::spawn(async move { serve(backend, &mut listener).await });
        let client = Client::connect(&endpoint, &endpoint, Duration::from_secs(1)).await;
        talk(client.unwrap(), endpoint).await
    })
}

#[test]
fn every_request_and_every_reply_arrives_as_it_was() {
    let backend = Arc::new(Scripted::default());
    let calls = calls();
    let answers = calls.iter().map(|(_, reply)| Ok(reply.clone()));
    backend.answers.lock().unwrap().extend(answers);
    with_client(backend.clone(), async |client, _| {
        for (request, reply) in &calls {
            assert_eq!(
                client.call(request).await.as_ref(),
                Ok(reply),
                "{request:?}"
            );
            let asked = backend.asked.lock().unwrap().pop();
            assert_eq!(asked.as_ref(), Some(request));
        }
    });
}

#[test]
fn a_fault_arrives_with_its_code_and_words() {
    let backend = Arc::new(Scripted::default());
    let fault = CallFault {
        code: StatusCode::NOT_FOUND,
        message: "no such thing".to_owned(),
        deadline: Duration::from_secs(1),
    };
    let misfit = Ok(Reply::Done);
    let answers = [Err(fault.clone()), misfit];
    backend.answers.lock().unwrap().extend(answers);
    with_client(backend, async |client, _| {
        let answer = client.call(&Request::Version).await;
        assert_eq!(answer, Err(fault));
        let answer = client.call(&Request::Version).await;
        assert_eq!(answer.unwrap_err().code.to_string(), "INTERNAL");
    });
}

#[test]
fn events_arrive_as_they_were_and_then_the_fault_that_ends_them() {
    let mut bare = event(EventKind::Unknown(9));
    (
        bare.sandbox,
        bare.containers[0].image,
        bare.containers[0].metadata,
    ) = (None, None, None);
    let sent = vec![event(EventKind::Created), event(EventKind::Deleted), bare];
    let end = CallFault {
        code: StatusCode::RESOURCE_EXHAUSTED,
        message: "too slow".to_owned(),
        deadline: Duration::ZERO,
    };
    let mut events: Vec<_> = sent.iter().cloned().map(Ok).collect();
    events.push(Err(end.clone()));
    let backend = Arc::new(Scripted {
        events,
        ..Scripted::default()
    });
    let (arrived, ended) = with_client(backend, async |_, endpoint| {
        let recorder = Recorder::new();
        let mut reader = recorder.reader();
        let _stream = Subscription::open(&endpoint, &recorder).await.unwrap();
        let mut arrived = Vec::new();
        loop {
            reader.changed().await;
            for entry in reader.drain().unwrap() {
                match &entry.body {
                    Body::Event { event, .. } => arrived.push(event.clone()),
                    Body::SubscriptionEnded { end, .. } => return (arrived, end.clone()),
                    _ => {}
                }
            }
        }
    });
    assert_eq!(arrived, sent);
    assert_eq!(ended, StreamEnd::Failed(end));
}

#[test]
fn a_container_without_a_log_path_is_never_sent() {
    let logless = ContainerSpec {
        sandbox_spec: spec(""),
        ..ContainerSpec::default()
    };
    let nowhere = ContainerSpec {
        log_path: "c_0.log".to_owned(),
        ..ContainerSpec::default()
    };
    let backend = Arc::new(Scripted::default());
    with_client(backend.clone(), async |client, _| {
        for made in [logless, nowhere] {
            let fault = client.call(&Request::CreateContainer(Arc::new(made))).await;
            let fault = fault.expect_err("it is not sent");
            assert_eq!(fault.code, StatusCode::INVALID_ARGUMENT);
        }
    });
    let asked = backend.asked.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(*asked, [Request::Version]);
}
