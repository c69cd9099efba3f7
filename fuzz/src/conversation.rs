//! A runtime whose messages are arbitrary bytes, and the suite's client. A message that is repeated
//! many times is one with many of each field: so protobuf reads it.

use std::sync::Arc;
use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use cri_event_conformance::testing::case::Case;
use cri_event_conformance::testing::cri::{Client, Endpoint, Subscription};
use cri_event_conformance::testing::drive::RecordingClient;
use cri_event_conformance::testing::history::{
    Body, CaseRun, ContainerId, ContainerSpec, Entry, HostFact, Labels, PodUid, Reply, Request,
    RunInfo, SandboxId, SandboxSpec, StepsEnd, SubscriptionId,
};
use cri_event_conformance::testing::recorder::Reader;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tonic::{Code, Status};

use crate::judging;
use crate::script::{binding_of, moment};
use crate::wire::{self, Lines, Said};

/// The maximum message size: that of some thousand containers.
const LONGEST: usize = 1 << 20;
const MANY: usize = 3_000;
/// The maximum number of large messages in a conversation. More would test the machine.
const LARGE: u32 = 8;
/// A wait that ends only if the suite hangs; then the fuzzer reports it.
const FOREVER: Duration = Duration::from_secs(3_600);
const RUN: CaseRun = CaseRun(1);
/// The methods with requests other than an id.
const METHODS: [&str; 6] = [
    "/runtime.v1.RuntimeService/RunPodSandbox",
    "/runtime.v1.RuntimeService/CreateContainer",
    "/runtime.v1.RuntimeService/StopContainer",
    "/runtime.v1.RuntimeService/ListPodSandbox",
    "/runtime.v1.RuntimeService/ListContainers",
    "/runtime.v1.ImageService/ImageStatus",
];

/// One run of one case.
#[derive(Debug)]
pub struct Conversation {
    case: u8,
    end: u8,
    lines: Vec<Line>,
}

/// A request, and its reply.
#[derive(Debug)]
struct Line {
    what: u8,
    number: u8,
    after_ms: i16,
    message: Vec<u8>,
}

impl<'a> Arbitrary<'a> for Conversation {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let (case, end) = bytes.arbitrary()?;
        let (mut lines, mut large) = (Vec::new(), 0);
        while !bytes.is_empty() {
            lines.push(Line::read(bytes, &mut large)?);
        }
        Ok(Self { case, end, lines })
    }
}

impl Line {
    /// Reads a conversation with this many large messages so far.
    fn read(bytes: &mut Unstructured, large: &mut u32) -> arbitrary::Result<Self> {
        let (what, number, after_ms): (u8, u8, i16) = bytes.arbitrary()?;
        let (times, length): (u8, u16) = bytes.arbitrary()?;
        let length = usize::from(length).min(bytes.len());
        let message = bytes.bytes(length)?;
        let times = match times {
            0 if *large < LARGE => {
                *large += 1;
                MANY
            }
            2 | 3 => usize::from(times),
            _ => 1,
        };
        let times = times.min(LONGEST / length.max(1));
        Ok(Self {
            what,
            number,
            after_ms,
            message: message.repeat(times),
        })
    }
}

/// The subject of a line.
enum What {
    Call(u8),
    Event,
    Close,
    Note(Body),
    Ask(&'static str),
}

impl Line {
    fn what(&self) -> What {
        match self.what % 32 {
            call @ 0..16 => What::Call(call),
            16 => What::Close,
            17 => What::Note(Body::SubscriptionProven {
                subscription: SubscriptionId(u32::from(self.number)),
            }),
            18 => What::Note(Body::Waited {
                case: RUN,
                wanted: String::from_utf8_lossy(&self.message).into_owned(),
                met: self.number % 2 == 1,
                bound: Duration::from_secs(1),
                took: None,
                instead: String::new(),
            }),
            19 => What::Note(Body::Fact {
                case: RUN,
                fact: HostFact::OomKills(u64::from(self.number)),
            }),
            20 => What::Ask(METHODS[usize::from(self.number) % METHODS.len()]),
            _ => What::Event,
        }
    }

    fn said(&self) -> Said {
        if self.what < 128 {
            return Ok(self.message.clone());
        }
        let message = String::from_utf8_lossy(&self.message);
        Err(Status::new(Code::from(i32::from(self.number)), message))
    }
}

impl Conversation {
    /// The messages to a server, each with its method.
    pub fn asks(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.lines.iter().filter_map(|line| match line.what() {
            What::Ask(method) => Some((method, line.message.as_slice())),
            _ => None,
        })
    }

    /// The case, and its run's entries.
    pub fn history(&self) -> (&'static Case, CaseRun, Vec<Entry>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("the system has resources left");
        let case = judging::numbered_case(usize::from(self.case));
        (case, RUN, runtime.block_on(self.hold(case)))
    }

    async fn hold(&self, case: &Case) -> Vec<Entry> {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let socket = folder.path().join("cri");
        let listener = UnixListener::bind(&socket).expect("a new socket can be bound");
        // A fuzzer has no Rust main, which would let a program survive that its peer hangs up.
        let _hung_up = signal(SignalKind::pipe()).expect("a signal can be taken");
        let lines = Lines::default();
        let server = tokio::spawn(wire::serve(lines.clone(), listener));
        let mut talk = Talk::begin(Endpoint::Socket(socket), lines, case).await;
        for line in &self.lines {
            talk.say(line).await;
        }
        server.abort();
        talk.end(self.end)
    }
}

/// The suite's side of the conversation.
struct Talk {
    endpoint: Endpoint,
    lines: Lines,
    caller: RecordingClient,
    reader: Reader,
    stream: Option<(Subscription, UnboundedSender<Said>)>,
    sandbox: SandboxId,
    container: ContainerId,
    now_ms: i64,
    entries: Vec<Entry>,
}

impl Talk {
    async fn begin(endpoint: Endpoint, lines: Lines, case: &Case) -> Self {
        lines.answer(Ok(Vec::new()));
        let client = Client::connect(&endpoint, &endpoint, FOREVER).await;
        let caller = RecordingClient::new(client.expect("the server answers the first call"));
        let mut talk = Self {
            endpoint,
            lines,
            reader: caller.recorder.reader(),
            caller,
            stream: None,
            sandbox: SandboxId::default(),
            container: ContainerId::default(),
            now_ms: 0,
            entries: Vec::new(),
        };
        talk.record(Body::RunBegan(RunInfo::default().into()));
        talk.record(Body::CaseBegan {
            case: RUN,
            id: case.id.clone(),
            definition: case.definition.clone(),
            timeout_percent: 100,
        });
        talk
    }

    async fn say(&mut self, line: &Line) {
        self.now_ms += i64::from(line.after_ms);
        match line.what() {
            What::Call(call) => {
                self.lines.answer(line.said());
                let request = self.request(call, line.number);
                let _ = self.caller.call(Some(RUN), request).await;
                self.take();
            }
            What::Event => self.send(line.said()).await,
            What::Close => self.close().await,
            What::Note(body) => self.record(body),
            What::Ask(_) => {}
        }
    }

    /// Sends a message on the event stream, on a new one if there is none.
    async fn send(&mut self, said: Said) {
        if self.stream.is_none() {
            let (events, received) = unbounded_channel();
            self.lines.stream(received);
            let opened = Subscription::open(&self.endpoint, &self.caller.recorder).await;
            self.stream = Some((opened.expect("the server takes connections"), events));
            self.take();
        }
        if let Some((_, events)) = &self.stream {
            events.send(said).expect("the stream is open");
            self.wait().await;
        }
    }

    async fn close(&mut self) {
        if let Some((subscription, events)) = self.stream.take() {
            drop(events);
            self.wait().await;
            assert!(!subscription.is_open());
        }
    }

    fn record(&mut self, body: Body) {
        self.caller.recorder.record(body);
        self.take();
    }

    async fn wait(&mut self) {
        let had = self.entries.len();
        while self.entries.len() == had {
            self.reader.changed().await;
            self.take();
        }
    }

    /// Adds the recorded entries, at a time set by the conversation: with the clock's, no run could
    /// be repeated.
    fn take(&mut self) {
        for entry in self.reader.drain().expect("it is read at once") {
            self.learn(&entry.body);
            self.entries.push(Entry {
                at: moment(self.now_ms),
                ..Arc::unwrap_or_clone(entry)
            });
        }
    }

    /// Records the ids for later requests.
    fn learn(&mut self, body: &Body) {
        match body {
            Body::SubscriptionEnded { .. } => self.stream = None,
            Body::Event { event, .. } => self.container = event.container.clone(),
            Body::CallEnded {
                result: Ok(reply), ..
            } => match reply {
                Reply::Sandbox(id) => self.sandbox = id.clone(),
                Reply::Container(id) => self.container = id.clone(),
                _ => {}
            },
            _ => {}
        }
    }

    fn request(&self, call: u8, number: u8) -> Request {
        let (sandbox, container) = (|| self.sandbox.clone(), || self.container.clone());
        let binding = || binding_of(number).to_owned();
        let image = || "image".to_owned();
        match call {
            0 => Request::Version,
            1 => Request::RunSandbox(Arc::new(spec(binding()))),
            2 => Request::StopSandbox(sandbox()),
            3 => Request::RemoveSandbox(sandbox()),
            4 => Request::SandboxStatus(sandbox()),
            5 => Request::sandboxes(Labels::new()),
            6 => Request::CreateContainer(Arc::new(ContainerSpec {
                sandbox: sandbox(),
                sandbox_spec: Arc::new(spec(String::new())),
                binding: binding(),
                // Without a log, the client sends none.
                log_path: "c.log".to_owned(),
                ..ContainerSpec::default()
            })),
            7 => Request::StartContainer(container()),
            8 => Request::StopContainer {
                container: container(),
                grace: Duration::from_secs(u64::from(number)),
            },
            9 => Request::RemoveContainer(container()),
            10 => Request::ContainerStatus(container()),
            11 => {
                let sandbox = Some(sandbox()).filter(|_| number % 2 == 1);
                Request::containers(sandbox, Labels::new())
            }
            12 => Request::ImageStatus(image()),
            13 => Request::PullImage(image()),
            14 => Request::RemoveImage(image()),
            _ => Request::ListImages,
        }
    }

    fn end(mut self, end: u8) -> Vec<Entry> {
        let end = match end % 6 {
            0 => Some(StepsEnd::Complete),
            1 => Some(StepsEnd::Unmet),
            2 => Some(StepsEnd::Inconclusive(String::new())),
            3 => Some(StepsEnd::Error(String::new())),
            4 => Some(StepsEnd::NotApplicable(String::new())),
            _ => None,
        };
        if let Some(end) = end {
            self.record(Body::StepsEnded { case: RUN, end });
            self.record(Body::CaseEnded { case: RUN });
        }
        self.stream = None;
        self.take();
        self.entries
    }
}

fn spec(binding: String) -> SandboxSpec {
    SandboxSpec {
        binding,
        uid: PodUid::from("uid"),
        log_directory: "/var/log".to_owned(),
        ..SandboxSpec::default()
    }
}
