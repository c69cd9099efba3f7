//! A runtime's answers and events, in few bytes: a fuzzer that had to find protobuf first would
//! seldom get so far. All messages that the CRI permits can be expressed: absent parts, huge texts,
//! statuses by the thousand, calls that end before they begin.

use std::sync::Arc;
use std::time::Duration;

use arbitrary::Arbitrary;
use bytes::Bytes;
use cri_event_conformance::testing::case::Case;
use cri_event_conformance::testing::history::{
    Body, CallFault, CallId, CaseRun, ContainerId, ContainerListing, ContainerMetadata,
    ContainerSpec, ContainerState, ContainerStatus, Entry, Event, EventKind, HostFact, HostInstant,
    Labels, PodUid, Reply, Request, RunInfo, RuntimeNanos, SandboxId, SandboxListing,
    SandboxMetadata, SandboxReport, SandboxSpec, SandboxState, SandboxStatus, Seq, Shared,
    StatusCode, StepsEnd, StreamEnd, SubscriptionId,
};

use crate::judging;

/// The maximum number of large values in a script. More would test the machine.
const LARGE: u32 = 8;
const MANY: usize = 3_000;
const HUGE: usize = 40_000;
const LONG_ID: usize = 3_000;
/// The names of sandboxes and containers in cases.
const BINDINGS: [&str; 8] = [
    "pod",
    "c",
    "obedient",
    "killed",
    "exited",
    "neighbour",
    "pod-of-killed",
    "",
];
const RUN: CaseRun = CaseRun(1);

/// One run of one case.
#[derive(Arbitrary, Debug)]
pub struct Script {
    case: u8,
    lines: Vec<Line>,
    end: End,
}

#[derive(Arbitrary, Debug)]
struct Line {
    after_ms: i16,
    what: What,
}

#[derive(Arbitrary, Debug)]
enum What {
    Event {
        kind: i8,
        of: Name,
        at_ms: i32,
        pod: Option<Pod>,
        containers: Statuses,
    },
    Make {
        call: u8,
        of: Name,
        binding: u8,
        sandbox: bool,
    },
    Ask {
        call: u8,
        of: Name,
        ask: Ask,
    },
    Answer {
        call: u8,
        answer: Answer,
    },
    Stream {
        number: u8,
        what: u8,
    },
    Waited {
        met: bool,
        wanted: Text,
    },
    OomKills(u64),
    Ended(End),
}

#[derive(Arbitrary, Debug)]
enum Ask {
    StopSandbox,
    RemoveSandbox,
    SandboxStatus,
    ListSandboxes,
    Start,
    Stop(u16),
    Remove,
    Status,
    List,
    Image,
}

#[derive(Arbitrary, Debug)]
enum Answer {
    Done,
    Made(Name),
    Pod(Pod),
    Container(Status),
    Pods(Vec<Pod>),
    Containers(Statuses),
    Nothing,
    Fault(i8, Text),
    Report(Pod, Statuses, i32),
}

#[derive(Arbitrary, Clone, Debug)]
struct Statuses {
    few: Vec<Status>,
    many: bool,
}

#[derive(Arbitrary, Clone, Debug)]
struct Pod {
    of: Name,
    uid: Option<Name>,
    attempt: u8,
    state: i8,
    at_ms: i32,
    ip: Text,
}

#[derive(Arbitrary, Clone, Debug)]
struct Status {
    of: Name,
    pod: Name,
    named: Option<u8>,
    state: i8,
    created_ms: i32,
    started_ms: i32,
    finished: Stamp,
    exit_code: i32,
    has_image: bool,
    reason: Text,
    message: Text,
}

#[derive(Arbitrary, Clone, Debug)]
enum Stamp {
    Never,
    Ms(i32),
    Ns(i64),
}

/// One of few names, so that related ones occur repeatedly.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Name(u8);

#[derive(Arbitrary, Clone, Debug)]
enum Text {
    Empty,
    Oom,
    Completed,
    Awkward,
    Huge(char),
    Any(String),
}

#[derive(Arbitrary, Debug)]
enum End {
    Complete,
    Unmet,
    Inconclusive(Text),
    Error(Text),
    None,
}

impl Script {
    /// The case, and its run's entries.
    pub fn history(&self) -> (&'static Case, CaseRun, Vec<Entry>) {
        let case = judging::numbered_case(usize::from(self.case));
        let mut writer = Writer::default();
        writer.write(0, Body::RunBegan(RunInfo::default().into()));
        writer.write(
            1,
            Body::CaseBegan {
                case: RUN,
                id: case.id.clone(),
                definition: case.definition.clone(),
                timeout_percent: 100,
            },
        );
        for line in &self.lines {
            let body = writer.body(&line.what);
            writer.write(line.after_ms, body);
        }
        if let Some(end) = writer.end(&self.end) {
            writer.write(1, Body::StepsEnded { case: RUN, end });
            writer.write(1, Body::CaseEnded { case: RUN });
        }
        (case, RUN, writer.entries)
    }
}

#[derive(Default)]
struct Writer {
    entries: Vec<Entry>,
    now_ms: i64,
    large: u32,
}

impl Writer {
    fn write(&mut self, after_ms: i16, body: Body) {
        self.now_ms += i64::from(after_ms);
        let at = moment(self.now_ms);
        let seq = Seq(self.entries.len() as u64);
        self.entries.push(Entry { seq, at, body });
    }

    fn body(&mut self, what: &What) -> Body {
        let call = |call: &u8| CallId(u64::from(*call % 16));
        match what {
            What::Event {
                kind,
                of,
                at_ms,
                pod,
                containers,
            } => Body::Event {
                message: Bytes::new(),
                subscription: SubscriptionId(1),
                event: Event {
                    container: of.container(),
                    kind: kind_of(*kind),
                    created_at: nanos(*at_ms),
                    sandbox: pod.as_ref().map(|pod| self.sandbox(pod).into()),
                    containers: self
                        .statuses(containers)
                        .into_iter()
                        .map(Into::into)
                        .collect(),
                },
            },
            What::Make {
                call: number,
                of,
                binding,
                sandbox,
            } => Body::CallBegan {
                call: call(number),
                case: Some(RUN),
                request: make(*of, *binding, *sandbox),
                message: Bytes::new(),
            },
            What::Ask {
                call: number,
                of,
                ask,
            } => Body::CallBegan {
                call: call(number),
                case: Some(RUN),
                request: request(*of, ask),
                message: Bytes::new(),
            },
            What::Answer {
                call: number,
                answer,
            } => Body::CallEnded {
                call: call(number),
                result: self.answer(answer),
                message: Bytes::new(),
            },
            What::Stream { number, what } => stream(SubscriptionId(u32::from(*number % 3)), *what),
            What::Waited { met, wanted } => Body::Waited {
                case: RUN,
                wanted: self.text(wanted),
                met: *met,
                bound: Duration::from_secs(1),
                took: None,
                instead: String::new(),
            },
            What::OomKills(count) => Body::Fact {
                case: RUN,
                fact: HostFact::OomKills(*count),
            },
            What::Ended(end) => Body::StepsEnded {
                case: RUN,
                end: self.end(end).unwrap_or(StepsEnd::Complete),
            },
        }
    }

    fn answer(&mut self, answer: &Answer) -> Result<Reply, CallFault> {
        Ok(match answer {
            Answer::Done => Reply::Done,
            Answer::Made(name) if name.0 % 2 == 0 => Reply::Sandbox(name.sandbox()),
            Answer::Made(name) => Reply::Container(name.container()),
            Answer::Pod(pod) => Reply::SandboxStatus(self.sandbox(pod).into()),
            Answer::Report(pod, statuses, read_ms) => Reply::SandboxStatus(SandboxReport {
                containers: self
                    .statuses(statuses)
                    .into_iter()
                    .map(Into::into)
                    .collect(),
                timestamp: nanos(*read_ms),
                ..self.sandbox(pod).into()
            }),
            Answer::Container(status) => Reply::ContainerStatus(self.status(status).into()),
            Answer::Pods(pods) => Reply::Sandboxes(pods.iter().map(listed_pod).collect()),
            Answer::Containers(statuses) => {
                let pods = statuses.few.iter().map(|status| status.pod).cycle();
                let listed = self.statuses(statuses).into_iter().zip(pods);
                Reply::Containers(
                    listed
                        .map(|(status, pod)| listed_container(status, pod))
                        .collect(),
                )
            }
            Answer::Nothing => Reply::Image(None),
            Answer::Fault(code, message) => {
                return Err(CallFault {
                    code: StatusCode(i32::from(*code)),
                    message: self.text(message),
                    deadline: Duration::from_secs(4),
                });
            }
        })
    }

    fn sandbox(&mut self, pod: &Pod) -> SandboxStatus {
        let listed = listed_pod(pod);
        SandboxStatus {
            id: listed.id,
            metadata: listed.metadata,
            state: listed.state,
            created_at: listed.created_at,
            ips: vec![self.text(&pod.ip)],
            labels: listed.labels,
            annotations: Labels::new(),
            namespaces: None,
            runtime_handler: String::new(),
        }
    }

    fn statuses(&mut self, statuses: &Statuses) -> Vec<ContainerStatus> {
        let mut all: Vec<_> = statuses
            .few
            .iter()
            .map(|status| self.status(status))
            .collect();
        // No message is longer than a kubelet accepts, so many values are short.
        let brief = all.iter().find(|status| status.id.as_str().len() < LONG_ID);
        if let Some(brief) = brief.cloned()
            && statuses.many
            && self.may_be_large()
        {
            all.extend((0..MANY).map(|place| ContainerStatus {
                id: ContainerId::from(format!("{}-{place}", brief.id)),
                reason: "".into(),
                message: String::new(),
                labels: Labels::new(),
                ..brief.clone()
            }));
        }
        all
    }

    fn status(&mut self, status: &Status) -> ContainerStatus {
        ContainerStatus {
            id: status.of.container(),
            metadata: status.named.map(|binding| ContainerMetadata {
                name: binding_of(binding).into(),
                attempt: 0,
            }),
            state: match status.state % 5 {
                0 => ContainerState::Created,
                1 => ContainerState::Running,
                2 => ContainerState::Exited,
                other => ContainerState::Unknown(i32::from(other)),
            },
            created_at: nanos(status.created_ms),
            started_at: nanos(status.started_ms),
            finished_at: match status.finished {
                Stamp::Never => RuntimeNanos(0),
                Stamp::Ms(ms) => nanos(ms),
                Stamp::Ns(ns) => RuntimeNanos(ns),
            },
            exit_code: status.exit_code,
            image: status.has_image.then(|| "image".into()),
            image_ref: "".into(),
            reason: self.text(&status.reason).into(),
            message: self.text(&status.message),
            labels: labels(status.pod),
            annotations: Labels::new(),
            setup: Shared::default(),
        }
    }

    fn text(&mut self, text: &Text) -> String {
        match text {
            Text::Empty => String::new(),
            Text::Oom => "OOMKilled".to_owned(),
            Text::Completed => "Completed".to_owned(),
            Text::Awkward => "\u{1b}[31m ]]> <b>&amp;\"'\r\n\u{0}\u{fffe}\u{202e}".to_owned(),
            Text::Huge(char) if self.may_be_large() => char.to_string().repeat(HUGE),
            Text::Huge(char) => char.to_string(),
            Text::Any(text) => text.clone(),
        }
    }

    fn end(&mut self, end: &End) -> Option<StepsEnd> {
        Some(match end {
            End::Complete => StepsEnd::Complete,
            End::Unmet => StepsEnd::Unmet,
            End::Inconclusive(reason) => StepsEnd::Inconclusive(self.text(reason)),
            End::Error(reason) => StepsEnd::Error(self.text(reason)),
            End::None => return None,
        })
    }

    fn may_be_large(&mut self) -> bool {
        self.large += 1;
        self.large <= LARGE
    }
}

fn listed_pod(pod: &Pod) -> SandboxListing {
    SandboxListing {
        id: pod.of.sandbox(),
        metadata: pod.uid.map(|uid| SandboxMetadata {
            name: "pod".into(),
            uid: uid.uid(),
            namespace: "".into(),
            attempt: u32::from(pod.attempt),
        }),
        state: match pod.state % 4 {
            0 => SandboxState::Ready,
            1 => SandboxState::NotReady,
            other => SandboxState::Unknown(i32::from(other)),
        },
        created_at: nanos(pod.at_ms),
        labels: Labels::new(),
        ..SandboxListing::default()
    }
}

impl Name {
    fn text(self, prefix: &str) -> String {
        let width = if self.0 == u8::MAX { LONG_ID } else { 8 };
        format!("{prefix}{:0width$}", self.0 % 6)
    }

    fn container(self) -> ContainerId {
        ContainerId::from(self.text("id"))
    }

    fn sandbox(self) -> SandboxId {
        SandboxId::from(self.text("id"))
    }

    fn uid(self) -> PodUid {
        PodUid::from(self.text("uid"))
    }
}

/// A time in a run, whose clocks may go backwards.
pub(crate) fn moment(ms: i64) -> HostInstant {
    HostInstant {
        monotonic_ns: ms.unsigned_abs() * 1_000_000,
        realtime_ns: ms * 1_000_000,
    }
}

pub(crate) fn binding_of(number: u8) -> &'static str {
    BINDINGS[usize::from(number) % BINDINGS.len()]
}

fn kind_of(number: i8) -> EventKind {
    match number % 6 {
        0 => EventKind::Created,
        1 => EventKind::Started,
        2 => EventKind::Stopped,
        3 => EventKind::Deleted,
        other => EventKind::Unknown(i32::from(other)),
    }
}

fn nanos(ms: i32) -> RuntimeNanos {
    RuntimeNanos(i64::from(ms) * 1_000_000)
}

fn labels(pod: Name) -> Labels {
    Labels::from([("io.kubernetes.pod.uid".to_owned(), pod.text("uid"))])
}

fn listed_container(status: ContainerStatus, pod: Name) -> ContainerListing {
    ContainerListing {
        id: status.id,
        sandbox: pod.sandbox(),
        metadata: status.metadata,
        state: status.state,
        created_at: status.created_at,
        labels: status.labels,
        image: status.image,
        ..ContainerListing::default()
    }
}

fn make(of: Name, binding: u8, sandbox: bool) -> Request {
    let binding = binding_of(binding).to_owned();
    let spec = SandboxSpec {
        uid: of.uid(),
        ..SandboxSpec::default()
    };
    if sandbox {
        return Request::RunSandbox(Arc::new(SandboxSpec { binding, ..spec }));
    }
    Request::CreateContainer(Arc::new(ContainerSpec {
        sandbox: of.sandbox(),
        sandbox_spec: Arc::new(spec),
        binding,
        ..ContainerSpec::default()
    }))
}

fn request(of: Name, ask: &Ask) -> Request {
    match ask {
        Ask::StopSandbox => Request::StopSandbox(of.sandbox()),
        Ask::RemoveSandbox => Request::RemoveSandbox(of.sandbox()),
        Ask::SandboxStatus => Request::SandboxStatus(of.sandbox()),
        Ask::ListSandboxes => Request::sandboxes(Labels::new()),
        Ask::Start => Request::StartContainer(of.container()),
        Ask::Stop(grace_ms) => Request::StopContainer {
            container: of.container(),
            grace: Duration::from_millis(u64::from(*grace_ms)),
        },
        Ask::Remove => Request::RemoveContainer(of.container()),
        Ask::Status => Request::ContainerStatus(of.container()),
        Ask::List => Request::containers(None, Labels::new()),
        Ask::Image => Request::ListImages,
    }
}

fn stream(subscription: SubscriptionId, what: u8) -> Body {
    match what % 5 {
        0 => Body::SubscriptionOpened {
            subscription,
            observer: None,
        },
        1 => Body::SubscriptionProven { subscription },
        2 => Body::SubscriptionEnded {
            subscription,
            end: StreamEnd::Closed,
        },
        3 => Body::SubscriptionEnded {
            subscription,
            end: StreamEnd::Cancelled,
        },
        _ => Body::SubscriptionEnded {
            subscription,
            end: StreamEnd::Failed(CallFault {
                code: StatusCode::UNAVAILABLE,
                message: String::new(),
                deadline: Duration::ZERO,
            }),
        },
    }
}
