//! A recorded case from a text: `pod run; c create; c start; pass 1s; c STOPPED`. Each entry comes
//! a millisecond after the one before it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use cri_event_conformance::testing::history::{
    Body, CallId, CaseRun, ContainerId, ContainerSpec, Entry, Event, EventKind, HostInstant, Reply,
    Request, RuntimeNanos, SandboxId, Seq, SubscriptionId,
};

/// The case that makes all of the calls.
pub(crate) const CASE: CaseRun = CaseRun(0);

#[derive(Default)]
struct Recording {
    entries: Vec<Entry>,
    pause: Duration,
    /// The call that has begun and not returned.
    open: u64,
}

/// The entries of a script.
pub(crate) fn entries(script: &str) -> Vec<Entry> {
    let mut recording = Recording::default();
    for step in script.split("; ") {
        let words: Vec<&str> = step.split(' ').collect();
        recording.step(&words);
    }
    recording.entries
}

impl Recording {
    fn step(&mut self, words: &[&str]) {
        match words {
            ["pass", time] => {
                self.pause = humantime::parse_duration(time).expect("a time such as 2s");
            }
            ["wait", how, wanted] => self.record(Body::Waited {
                case: CASE,
                wanted: wanted.replace('_', " "),
                met: *how == "met",
                bound: Duration::from_secs(10),
                took: None,
                instead: String::new(),
            }),
            [name, kind @ ("STARTED" | "STOPPED"), ..] => self.event(name, kind),
            [name, call, "begins"] => self.begins(name, call),
            [name, call, "returns"] => self.returns(name, call),
            [name, call] => {
                self.begins(name, call);
                self.returns(name, call);
            }
            _ => panic!("no such step: {words:?}"),
        }
    }

    fn begins(&mut self, name: &str, call: &str) {
        let container = || ContainerId::from(id(name));
        let sandbox = || SandboxId::from(id(name));
        let request = match (name, call) {
            ("pod", "run") => Request::RunSandbox(Arc::default()),
            ("pod", "stop") => Request::StopSandbox(sandbox()),
            (_, "create") => Request::CreateContainer(Arc::new(ContainerSpec::default())),
            (_, "start") => Request::StartContainer(container()),
            (_, "stop") => Request::StopContainer {
                container: container(),
                grace: Duration::ZERO,
            },
            (_, "remove") => Request::RemoveContainer(container()),
            _ => panic!("no such call: {name} {call}"),
        };
        self.open += 1;
        self.record(Body::CallBegan {
            call: CallId(self.open),
            case: Some(CASE),
            request,
            message: Bytes::new(),
        });
    }

    fn returns(&mut self, name: &str, call: &str) {
        let reply = match call {
            "run" => Reply::Sandbox(SandboxId::from(id(name))),
            "create" => Reply::Container(ContainerId::from(id(name))),
            _ => Reply::Done,
        };
        self.record(Body::CallEnded {
            call: CallId(self.open),
            result: Ok(reply),
            message: Bytes::new(),
        });
    }

    fn event(&mut self, name: &str, kind: &str) {
        let kind = match kind {
            "STARTED" => EventKind::Started,
            _ => EventKind::Stopped,
        };
        self.record(Body::Event {
            subscription: SubscriptionId(0),
            event: Event {
                container: ContainerId::from(id(name)),
                kind,
                created_at: RuntimeNanos(0),
                sandbox: None,
                containers: Vec::new(),
            },
            message: Bytes::new(),
        });
    }

    fn record(&mut self, body: Body) {
        let last = self.entries.last().map_or(0, |entry| entry.at.monotonic_ns);
        let step = std::mem::take(&mut self.pause) + Duration::from_millis(1);
        let at = HostInstant {
            monotonic_ns: last + u64::try_from(step.as_nanos()).expect("a short time"),
            realtime_ns: 0,
        };
        let seq = Seq(self.entries.len() as u64);
        self.entries.push(Entry { seq, at, body });
    }
}

fn id(name: &str) -> String {
    format!("{name}.0.beef")
}
