//! The machine by itself: what comes of calls and time, told as lines.

mod crashes;
mod daemon;
mod namespaces;
mod pod_memory;
mod stops;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use super::agenda::later;
use super::{Behaviour, ChildKill, Machine, Subscriber, Taken};
use crate::history::{
    CallFault, ContainerId, ContainerSpec, Event, HostInstant, ImageListing, Labels, PodUid, Reply,
    Request, SandboxId, SandboxSpec, StreamEnd,
};
use crate::workload::Workload;

const IMAGE: &str = "image";
const SECOND: Duration = Duration::from_secs(1);

/// A machine, a clock, and one who listens.
struct Stand {
    machine: Machine,
    now: HostInstant,
    listener: Subscriber,
}

impl Stand {
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
        let listener = machine.subscribe(now, None).unwrap();
        Self {
            machine,
            now,
            listener,
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = later(self.now, time);
        self.machine.advance(self.now);
    }

    /// The answer to a call, if it comes at once.
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
        self.made(spec)
    }

    #[track_caller]
    fn made(&mut self, spec: ContainerSpec) -> ContainerId {
        match self.call(Request::CreateContainer(Arc::new(spec))) {
            Ok(Reply::Container(id)) => id,
            other => panic!("{other:?}"),
        }
    }

    /// A container that runs.
    #[track_caller]
    fn running(&mut self, sandbox: &SandboxId, name: &str, workload: &Workload) -> ContainerId {
        let id = self.create(sandbox, name, workload);
        self.call(Request::StartContainer(id.clone())).unwrap();
        id
    }

    /// The events that have come since the last time.
    fn events(&mut self) -> Vec<Event> {
        self.events_of(self.listener)
    }

    fn events_of(&mut self, subscriber: Subscriber) -> Vec<Event> {
        let taken = std::iter::from_fn(|| match self.machine.take(subscriber) {
            Taken::Event(event) => Some(*event),
            Taken::End(_) | Taken::Nothing => None,
        });
        taken.collect()
    }

    fn end_of(&mut self, subscriber: Subscriber) -> Option<StreamEnd> {
        match self.machine.take(subscriber) {
            Taken::End(end) => Some(end),
            Taken::Event(_) | Taken::Nothing => None,
        }
    }

    /// The events since the last time, a line each.
    #[track_caller]
    fn told(&mut self, expect: &[&str]) {
        let lines: Vec<String> = self.events().iter().map(line).collect();
        assert_eq!(lines, expect);
    }

    #[track_caller]
    fn status_is(&mut self, id: &ContainerId, expect: &str) {
        let told = match self.call(Request::ContainerStatus(id.clone())) {
            Ok(Reply::ContainerStatus(report)) => {
                let status = report.status;
                format!("{} {} {}", status.state, status.exit_code, status.reason)
            }
            Ok(other) => panic!("{other:?}"),
            Err(fault) => fault.code.to_string(),
        };
        assert_eq!(told.trim_end(), expect);
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
fn a_life_is_told_from_its_beginning_to_its_end() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    stand.told(&["CREATED sandbox: READY []", "STARTED sandbox: READY []"]);
    let c = stand.create(&pod, "c", &Workload::Obey);
    stand.told(&["CREATED c: READY [c CREATED]"]);
    stand.call(Request::StartContainer(c.clone())).unwrap();
    stand.told(&["STARTED c: READY [c RUNNING]"]);
    stand.call(stop(&c, 10)).unwrap();
    stand.told(&["STOPPED c: READY [c EXITED 0 Completed]"]);
    stand.call(Request::RemoveContainer(c.clone())).unwrap();
    stand.told(&["DELETED -: READY []"]);
    stand.call(Request::RemoveSandbox(pod)).unwrap();
    stand.told(&[
        "STOPPED sandbox: NOTREADY []",
        "DELETED sandbox: NOTREADY []",
    ]);
    stand.status_is(&c, "NOT_FOUND");
}

#[test]
fn a_sandboxs_status_may_tell_of_its_containers() {
    let ids = |behaviour| {
        let mut stand = Stand::new(behaviour);
        let pod = stand.sandbox("pod");
        let other = stand.sandbox("other");
        let made = ["c", "d"].map(|name| stand.create(&pod, name, &Workload::Obey));
        stand.create(&other, "e", &Workload::Obey);
        let last = stand.events().last().expect("events").created_at;
        let Ok(Reply::SandboxStatus(report)) = stand.call(Request::SandboxStatus(pod)) else {
            panic!("no status");
        };
        let told = report.containers.iter().map(|status| status.id.clone());
        (made, told.collect::<Vec<_>>(), report.timestamp > last)
    };
    let ([c, d], told, timed) = ids(Behaviour::default());
    assert_eq!((told, timed), (vec![d, c], true), "the newest first");
    let (_, told, timed) = ids(Behaviour {
        reports_containers: false,
        ..Behaviour::default()
    });
    assert_eq!((told, timed), (Vec::new(), false));
}

#[test]
fn an_exit_is_told_when_it_happens() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    let c = stand.running(&pod, "c", &exit(42, SECOND));
    stand.events();
    stand.pass(SECOND / 2);
    stand.told(&[]);
    let due = stand.machine.next_due().unwrap();
    // Whoever looks late learns of the true time all the same.
    stand.pass(SECOND);
    let events = stand.events();
    assert_eq!(line(&events[0]), "STOPPED c: READY [c EXITED 42 Error]");
    assert_eq!(events[0].created_at.0, due.realtime_ns);
    stand.status_is(&c, "EXITED 42 Error");
    assert_eq!(stand.machine.next_due(), None);
}

#[test]
fn a_container_that_cannot_be_started_is_over_and_told_to_be() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    let c = stand.create(&pod, "c", &Workload::Missing);
    stand.events();
    let fault = stand.call(Request::StartContainer(c.clone())).unwrap_err();
    assert!(fault.message.contains("/missing"), "{fault}");
    stand.told(&["STOPPED c: READY [c EXITED 128 StartError]"]);
    let again = stand.call(Request::StartContainer(c)).unwrap_err();
    assert_eq!(again.code.to_string(), "FAILED_PRECONDITION");
    stand.told(&[]);
}

#[test]
fn what_the_kernel_kills_for_its_memory_is_told_and_counted() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    let eat = Workload::Eat {
        mebibytes: 64,
        after: SECOND,
    };
    let c = stand.create_limited(&pod, "c", &eat, Some(16));
    stand.call(Request::StartContainer(c)).unwrap();
    stand.events();
    stand.pass(SECOND);
    stand.told(&["STOPPED c: READY [c EXITED 137 OOMKilled]"]);
    assert_eq!(stand.machine.oom_kills(), 1);
}

#[track_caller]
fn a_child_is_killed(child_kill: ChildKill, meanwhile: &str, last: &str) {
    let mut stand = Stand::new(Behaviour {
        child_kill,
        ..Behaviour::default()
    });
    let pod = stand.sandbox("pod");
    let eat = Workload::ChildEat {
        mebibytes: 64,
        after: SECOND,
        then: SECOND,
        code: 5,
    };
    let c = stand.create_limited(&pod, "c", &eat, Some(16));
    stand.call(Request::StartContainer(c.clone())).unwrap();
    stand.pass(SECOND);
    stand.status_is(&c, meanwhile);
    stand.pass(SECOND);
    stand.status_is(&c, last);
    assert_eq!(stand.machine.oom_kills(), 1);
}

#[test]
fn a_child_that_is_killed_for_its_memory_is_not_its_container() {
    a_child_is_killed(ChildKill::Nothing, "RUNNING 0", "EXITED 5 Error");
    a_child_is_killed(
        ChildKill::Marks,
        "RUNNING 0 OOMKilled",
        "EXITED 5 OOMKilled",
    );
    a_child_is_killed(ChildKill::Ends, "EXITED 137 Error", "EXITED 137 Error");
}

#[test]
fn a_command_that_is_killed_for_its_memory_is_not_its_container() {
    let mut stand = Stand::new(Behaviour::default());
    let pod = stand.sandbox("pod");
    let c = stand.create_limited(&pod, "c", &Workload::Obey, Some(16));
    stand.call(Request::StartContainer(c.clone())).unwrap();
    stand.events();
    let eat = Workload::Eat {
        mebibytes: 64,
        after: SECOND,
    };
    let exec = Request::ExecSync {
        container: c.clone(),
        command: eat.command(),
        timeout: SECOND * 5,
    };
    let ticket = stand.machine.call(stand.now, exec);
    stand.pass(SECOND);
    assert_eq!(
        stand.machine.take_answer(ticket),
        Some(Ok(Reply::Exec(137)))
    );
    assert_eq!(stand.machine.oom_kills(), 1);
    stand.told(&[]);
    stand.call(stop(&c, 5)).unwrap();
    stand.told(&["STOPPED c: READY [c EXITED 0 Completed]"]);
}

#[test]
fn lists_show_what_is_there_and_passes_their_filters() {
    let mut stand = Stand::new(Behaviour::default());
    let (one, two) = (stand.sandbox("one"), stand.sandbox("two"));
    let a = stand.create(&one, "a", &Workload::Obey);
    let b = stand.create(&two, "b", &Workload::Obey);
    let mut ids = |sandbox: Option<&SandboxId>, labels: &[(&str, &str)]| {
        let labels = labels.iter();
        let labels = labels.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let request = Request::ListContainers {
            sandbox: sandbox.cloned(),
            labels: labels.collect(),
        };
        match stand.call(request) {
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
    let mut stand = Stand::new(Behaviour::default());
    let mut has = |request| match stand.call(request) {
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
