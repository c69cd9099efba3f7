//! Tests of the machine alone: the effects of calls and time, reported as lines.

mod crashes;
mod daemon;
mod monitors;
mod namespaces;
mod pod_memory;
mod stops;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use super::event_bus::{StreamItem, Subscriber};
use super::machine::Machine;
use super::timer_queue::later;
use super::{Behaviour, ChildKill};
use crate::history::{
    CallFault, ContainerId, ContainerSpec, Event, HostInstant, ImageListing, Labels, PodUid, Reply,
    Request, SandboxId, SandboxSpec, StreamEnd,
};
use crate::workload::Workload;

const IMAGE: &str = "image";
const SECOND: Duration = Duration::from_secs(1);

/// A machine, a clock, and a subscriber.
struct Harness {
    machine: Machine,
    now: HostInstant,
    subscriber: Subscriber,
}

impl Harness {
    fn new(behaviour: Behaviour) -> Self {
        let image = ImageListing {
            id: "sha256:1".to_owned(),
            tags: vec![IMAGE.to_owned()],
        };
        let now = HostInstant {
            monotonic_ns: 1,
            realtime_ns: 1_000_000_000_000,
        };
        let mut machine = Machine::new(behaviour, vec![image], 1);
        let subscriber = machine.subscribe(now, None).unwrap();
        Self {
            machine,
            now,
            subscriber,
        }
    }

    fn advance(&mut self, time: Duration) {
        self.now = later(self.now, time);
        self.machine.advance(self.now);
    }

    /// The answer to a call, if it is immediate.
    fn try_call(&mut self, request: Request) -> Option<Result<Reply, CallFault>> {
        let ticket = self.machine.call(self.now, request);
        self.machine.take_answer(ticket)
    }

    #[track_caller]
    fn call(&mut self, request: Request) -> Result<Reply, CallFault> {
        self.try_call(request)
            .expect("the call is answered at once")
    }

    #[track_caller]
    fn sandbox(&mut self, name: &str) -> SandboxId {
        let spec = SandboxSpec {
            name: name.to_owned(),
            uid: PodUid::from(name),
            labels: Labels::from([("pod".to_owned(), name.to_owned())]),
            ..SandboxSpec::default()
        };
        match self.call(Request::RunSandbox(Arc::new(spec))) {
            Ok(Reply::Sandbox(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn create(&mut self, sandbox: &SandboxId, name: &str, workload: &Workload) -> ContainerId {
        self.create_limited(sandbox, name, workload, None)
    }

    #[track_caller]
    fn create_limited(
        &mut self,
        sandbox: &SandboxId,
        name: &str,
        workload: &Workload,
        memory_mib: Option<u64>,
    ) -> ContainerId {
        let spec = ContainerSpec {
            memory_bytes: memory_mib.map(|mib| mib << 20),
            ..spec(sandbox, name, workload)
        };
        self.create_from(spec)
    }

    #[track_caller]
    fn create_from(&mut self, spec: ContainerSpec) -> ContainerId {
        match self.call(Request::CreateContainer(Arc::new(spec))) {
            Ok(Reply::Container(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn running(&mut self, sandbox: &SandboxId, name: &str, workload: &Workload) -> ContainerId {
        let id = self.create(sandbox, name, workload);
        self.call(Request::StartContainer(id.clone())).unwrap();
        id
    }

    /// The events since the last call.
    fn events(&mut self) -> Vec<Event> {
        self.events_of(self.subscriber)
    }

    fn events_of(&mut self, subscriber: Subscriber) -> Vec<Event> {
        let taken = std::iter::from_fn(|| match self.machine.take(subscriber) {
            StreamItem::Event(event) => Some(*event),
            StreamItem::End(_) | StreamItem::Pending => None,
        });
        taken.collect()
    }

    fn end_of(&mut self, subscriber: Subscriber) -> Option<StreamEnd> {
        match self.machine.take(subscriber) {
            StreamItem::End(end) => Some(end),
            StreamItem::Event(_) | StreamItem::Pending => None,
        }
    }

    /// Compares the events since the last call, one per line.
    #[track_caller]
    fn expect_events(&mut self, expect: &[&str]) {
        let lines: Vec<String> = self.events().iter().map(line).collect();
        assert_eq!(lines, expect);
    }

    #[track_caller]
    fn status_is(&mut self, id: &ContainerId, expect: &str) {
        let reported = match self.call(Request::ContainerStatus(id.clone())) {
            Ok(Reply::ContainerStatus(report)) => {
                let status = report.status;
                format!("{} {} {}", status.state, status.exit_code, status.reason)
            }
            Ok(other) => panic!("{other:?}"),
            Err(fault) => fault.code.to_string(),
        };
        assert_eq!(reported.trim_end(), expect);
    }
}

fn spec(sandbox: &SandboxId, name: &str, workload: &Workload) -> ContainerSpec {
    ContainerSpec {
        sandbox: sandbox.clone(),
        binding: name.to_owned(),
        image: IMAGE.to_owned(),
        command: workload.command(),
        labels: Labels::from([("name".to_owned(), name.to_owned())]),
        ..ContainerSpec::default()
    }
}

/// An event as `STOPPED c: READY [c EXITED 0 Completed]`.
fn line(event: &Event) -> String {
    let sandbox = event.sandbox.as_ref().expect("every event has a sandbox");
    let own = event.own_status().and_then(|own| own.labels.get("name"));
    let of_sandbox = event.container == ContainerId::from(&sandbox.id);
    let name = match own {
        Some(name) => name,
        None if of_sandbox => "sandbox",
        None => "-",
    };
    let containers = event.containers.iter().map(|status| {
        let text = format!(
            "{} {} {} {}",
            status.labels["name"], status.state, status.exit_code, status.reason
        );
        text.trim_end_matches([' ', '0']).to_owned()
    });
    let containers: Vec<String> = containers.collect();
    let (kind, state) = (event.kind, sandbox.state);
    format!("{kind} {name}: {state} [{}]", containers.join(", "))
}

fn exit(code: u8, after: Duration) -> Workload {
    Workload::Exit { code, after }
}

fn stop(container: &ContainerId, grace_s: u64) -> Request {
    Request::StopContainer {
        container: container.clone(),
        grace: Duration::from_secs(grace_s),
    }
}

#[test]
fn a_life_is_reported_from_its_beginning_to_its_end() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    harness.expect_events(&["CREATED sandbox: READY []", "STARTED sandbox: READY []"]);
    let c = harness.create(&pod, "c", &Workload::UntilTerm);
    harness.expect_events(&["CREATED c: READY [c CREATED]"]);
    harness.call(Request::StartContainer(c.clone())).unwrap();
    harness.expect_events(&["STARTED c: READY [c RUNNING]"]);
    harness.call(stop(&c, 10)).unwrap();
    harness.expect_events(&["STOPPED c: READY [c EXITED 0 Completed]"]);
    harness.call(Request::RemoveContainer(c.clone())).unwrap();
    harness.expect_events(&["DELETED -: READY []"]);
    harness.call(Request::RemoveSandbox(pod)).unwrap();
    harness.expect_events(&[
        "STOPPED sandbox: NOTREADY []",
        "DELETED sandbox: NOTREADY []",
    ]);
    harness.status_is(&c, "NOT_FOUND");
}

#[test]
fn sandbox_creation_times_are_distinct() {
    let mut harness = Harness::new(Behaviour::default());
    harness.sandbox("other");
    let first = harness.sandbox("pod");
    let container = harness.create(&first, "c", &Workload::UntilTerm);
    let again = SandboxSpec {
        uid: PodUid::from("pod"),
        attempt: 1,
        ..SandboxSpec::default()
    };
    let again = harness.call(Request::RunSandbox(Arc::new(again)));
    let Ok(Reply::Sandbox(second)) = again else {
        panic!("{again:?}");
    };
    let of_sandbox = |id: &SandboxId| harness.machine.sandboxes[id].created_at;
    let of_container = harness.machine.containers[&container].status.created_at;
    assert!(of_sandbox(&first) < of_sandbox(&second));
    assert!(of_sandbox(&first) <= of_container);
}

#[test]
fn a_sandboxs_status_may_tell_of_its_containers() {
    let ids = |behaviour| {
        let mut harness = Harness::new(behaviour);
        let pod = harness.sandbox("pod");
        let other = harness.sandbox("other");
        let made = ["c", "d"].map(|name| harness.create(&pod, name, &Workload::UntilTerm));
        harness.create(&other, "e", &Workload::UntilTerm);
        let last = harness.events().last().expect("events").created_at;
        let Ok(Reply::SandboxStatus(report)) = harness.call(Request::SandboxStatus(pod)) else {
            panic!("no status");
        };
        let reported = report.containers.iter().map(|status| status.id.clone());
        (made, reported.collect::<Vec<_>>(), report.timestamp > last)
    };
    let ([c, d], reported, timed) = ids(Behaviour::default());
    assert_eq!((reported, timed), (vec![d, c], true), "the newest first");
    let (_, reported, timed) = ids(Behaviour {
        reports_containers: false,
        ..Behaviour::default()
    });
    assert_eq!((reported, timed), (Vec::new(), false));
}

#[test]
fn an_exit_is_reported_when_it_happens() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let c = harness.running(&pod, "c", &exit(42, SECOND));
    harness.events();
    harness.advance(SECOND / 2);
    harness.expect_events(&[]);
    let due = harness.machine.next_due().unwrap();
    // Whoever looks late learns of the true time all the same.
    harness.advance(SECOND);
    let events = harness.events();
    assert_eq!(line(&events[0]), "STOPPED c: READY [c EXITED 42 Error]");
    assert_eq!(events[0].created_at.0, due.realtime_ns);
    harness.status_is(&c, "EXITED 42 Error");
    assert_eq!(harness.machine.next_due(), None);
}

#[test]
fn a_container_that_cannot_be_started_is_over_and_reported_so() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let c = harness.create(&pod, "c", &Workload::MissingProgram);
    harness.events();
    let fault = harness
        .call(Request::StartContainer(c.clone()))
        .unwrap_err();
    assert!(fault.message.contains("/missing"), "{fault}");
    harness.expect_events(&["STOPPED c: READY [c EXITED 128 StartError]"]);
    let again = harness.call(Request::StartContainer(c)).unwrap_err();
    assert_eq!(again.code.to_string(), "FAILED_PRECONDITION");
    harness.expect_events(&[]);
}

#[test]
fn oom_kills_are_reported_and_counted() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let allocating = Workload::Allocate {
        mebibytes: 64,
        after: SECOND,
    };
    let c = harness.create_limited(&pod, "c", &allocating, Some(16));
    harness.call(Request::StartContainer(c)).unwrap();
    harness.events();
    harness.advance(SECOND);
    harness.expect_events(&["STOPPED c: READY [c EXITED 137 OOMKilled]"]);
    assert_eq!(harness.machine.oom_kills(), 1);
}

#[track_caller]
fn a_child_is_killed(child_kill: ChildKill, meanwhile: &str, last: &str) {
    let mut harness = Harness::new(Behaviour {
        child_kill,
        ..Behaviour::default()
    });
    let pod = harness.sandbox("pod");
    let allocating = Workload::AllocateInChild {
        mebibytes: 64,
        after: SECOND,
        then: SECOND,
        code: 5,
    };
    let c = harness.create_limited(&pod, "c", &allocating, Some(16));
    harness.call(Request::StartContainer(c.clone())).unwrap();
    harness.advance(SECOND);
    harness.status_is(&c, meanwhile);
    harness.advance(SECOND);
    harness.status_is(&c, last);
    assert_eq!(harness.machine.oom_kills(), 1);
}

#[test]
fn a_child_that_is_killed_for_its_memory_is_not_its_container() {
    a_child_is_killed(ChildKill::Ignored, "RUNNING 0", "EXITED 5 Error");
    a_child_is_killed(
        ChildKill::MarksContainer,
        "RUNNING 0 OOMKilled",
        "EXITED 5 OOMKilled",
    );
    a_child_is_killed(
        ChildKill::EndsContainer,
        "EXITED 137 Error",
        "EXITED 137 Error",
    );
}

#[test]
fn a_command_that_is_killed_for_its_memory_is_not_its_container() {
    let mut harness = Harness::new(Behaviour::default());
    let pod = harness.sandbox("pod");
    let c = harness.create_limited(&pod, "c", &Workload::UntilTerm, Some(16));
    harness.call(Request::StartContainer(c.clone())).unwrap();
    harness.events();
    let allocating = Workload::Allocate {
        mebibytes: 64,
        after: SECOND,
    };
    let exec = Request::ExecSync {
        container: c.clone(),
        command: allocating.command(),
        timeout: SECOND * 5,
    };
    let ticket = harness.machine.call(harness.now, exec);
    harness.advance(SECOND);
    assert_eq!(
        harness.machine.take_answer(ticket),
        Some(Ok(Reply::Exec(137)))
    );
    assert_eq!(harness.machine.oom_kills(), 1);
    harness.expect_events(&[]);
    harness.call(stop(&c, 5)).unwrap();
    harness.expect_events(&["STOPPED c: READY [c EXITED 0 Completed]"]);
}

#[test]
fn lists_show_the_objects_that_match_their_filters() {
    let mut harness = Harness::new(Behaviour::default());
    let (one, two) = (harness.sandbox("one"), harness.sandbox("two"));
    let a = harness.create(&one, "a", &Workload::UntilTerm);
    let b = harness.create(&two, "b", &Workload::UntilTerm);
    let mut ids = |sandbox: Option<&SandboxId>, labels: &[(&str, &str)]| {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let request = Request::containers(sandbox.cloned(), labels.collect());
        match harness.call(request) {
            Ok(Reply::Containers(listed)) => listed.into_iter().map(|it| it.id).collect(),
            other => panic!("{other:?}"),
        }
    };
    let all: Vec<ContainerId> = ids(None, &[]);
    assert_eq!(all, [a.clone(), b.clone()]);
    assert_eq!(ids(Some(&one), &[]), [a]);
    assert_eq!(ids(None, &[("name", "b")]), [b]);
    assert_eq!(ids(Some(&one), &[("name", "b")]), []);
}

#[test]
fn images_come_and_go() {
    let mut harness = Harness::new(Behaviour::default());
    let mut has = |request| match harness.call(request) {
        Ok(Reply::Image(image)) => image.is_some(),
        Ok(Reply::Pulled(_) | Reply::Done) => true,
        other => panic!("{other:?}"),
    };
    let status = || Request::ImageStatus("other".to_owned());
    assert!(!has(status()));
    assert!(has(Request::PullImage("other".to_owned())));
    assert!(has(status()));
    assert!(has(Request::RemoveImage("other".to_owned())));
    assert!(!has(status()));
    assert!(has(Request::RemoveImage("other".to_owned())));
}
