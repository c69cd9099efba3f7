//! The runtime: its replies, and whether it sends events.

use std::time::Duration;

use super::finding::{Area, Finding, Status};
use super::known_versions;
use crate::cri::{self, Client, Endpoint};
use crate::escape::printable;
use crate::history::{CgroupDriver, Labels, Reply, Request, RuntimeVersion, StatusCode};
use crate::limits;

/// How long the event stream is observed. A runtime with events disabled ends it at once; one with
/// events enabled leaves it open.
const STREAM_OPEN: Duration = Duration::from_millis(500);

/// The size in bytes from which a reply is close to a kubelet's limit.
const LARGE_LIST: usize = limits::MESSAGE_BYTES / 2;

/// Without this condition of `Status`, a kubelet starts no pods.
const RUNTIME_READY: &str = "RuntimeReady";
/// Without this condition of `Status`, only pods on the host's network start.
const NETWORK_READY: &str = "NetworkReady";

/// Why a runtime with events switched off is wrong.
pub(super) const WHY_EVENTS_OFF_IS_WRONG: &str = "A kubelet with EventedPLEG cannot distinguish \
     this from a lost connection, and falls back to relists after some retries.";

#[derive(Clone, Debug)]
pub(super) struct RuntimeFacts {
    pub(super) version: RuntimeVersion,
    pub(super) cgroup_driver: Option<CgroupDriver>,
    pub(super) stream: Stream,
    /// The conditions of `Status` that are false.
    pub(super) unmet: Vec<String>,
    /// The list calls, with the bytes of the reply or the error.
    pub(super) lists: Vec<(String, Result<usize, String>)>,
}

/// The fate of the event stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// It was open until cancelled, or delivered an event.
    Open,
    /// The runtime ended it with OK, or with `FAILED_PRECONDITION`.
    Off,
    /// The runtime does not implement the call.
    Unimplemented,
    Failed(String),
    /// It was not opened because it would have taken events from other subscribers.
    NotOpened,
}

/// Queries the runtime. If each event goes to one subscriber only, the stream is not opened: even a
/// cancelled stream takes the next event.
pub(super) async fn ask(client: &Client, endpoint: &Endpoint) -> RuntimeFacts {
    let version = client.version().clone();
    let cgroup_driver = client.beneath("").await.cgroup_driver;
    let unmet = match client.call(&Request::RuntimeStatus).await {
        Ok(Reply::RuntimeStatus(status)) => {
            let holds = |condition: &str| status.conditions.iter().any(|it| it == condition);
            let unmet = [RUNTIME_READY, NETWORK_READY]
                .into_iter()
                .filter(|condition| !holds(condition));
            unmet.map(str::to_owned).collect()
        }
        Ok(_) | Err(_) => Vec::new(),
    };
    let stream = if known_versions::is_single_consumer(&version) {
        Stream::NotOpened
    } else {
        watch(endpoint).await
    };
    RuntimeFacts {
        version,
        cgroup_driver,
        stream,
        unmet,
        lists: lists(client).await,
    }
}

async fn lists(client: &Client) -> Vec<(String, Result<usize, String>)> {
    let (sandbox, labels) = (None, Labels::new());
    let mut lists = Vec::new();
    for request in [
        Request::ListSandboxes(labels.clone()),
        Request::ListContainers { sandbox, labels },
    ] {
        let answer = client.exchange(&request, cri::encode(&request), None).await;
        let bytes = answer.message.len();
        let answered = answer.result.map(|_| bytes).map_err(|it| it.to_string());
        lists.push((request.method().to_owned(), answered));
    }
    lists
}

async fn watch(endpoint: &Endpoint) -> Stream {
    let mut events = match cri::events(endpoint, None).await {
        Ok(events) => events,
        Err(fault) => return Stream::Failed(fault.to_string()),
    };
    match tokio::time::timeout(STREAM_OPEN, events.next()).await {
        Err(_) | Ok(Ok(Some(_))) => Stream::Open,
        Ok(Ok(None)) => Stream::Off,
        Ok(Err(fault)) if fault.code == StatusCode::UNIMPLEMENTED => Stream::Unimplemented,
        Ok(Err(fault)) if fault.code == StatusCode::FAILED_PRECONDITION => Stream::Off,
        Ok(Err(fault)) => Stream::Failed(printable(&fault.to_string()).into_owned()),
    }
}

impl Stream {
    /// The evidence.
    pub(super) fn read(&self) -> &'static str {
        match self {
            Self::NotOpened => "the runtime's version",
            _ => "GetContainerEvents, for 500 ms",
        }
    }
}

impl RuntimeFacts {
    /// Whether the runtime sends events; `None` if unknown.
    pub(super) fn sends_events(&self) -> Option<bool> {
        match self.stream {
            // containerd, the only one of which it is not opened, cannot switch them off.
            Stream::Open | Stream::NotOpened => Some(true),
            Stream::Off | Stream::Unimplemented => Some(false),
            Stream::Failed(_) => None,
        }
    }

    pub(super) fn is_crio(&self) -> bool {
        self.version.runtime_name == "cri-o"
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut found = known_versions::findings(self);
        let without_events = found.iter_mut().find(|it| it.id == "no-events");
        match (without_events, &self.stream) {
            (Some(version), Stream::Unimplemented) => {
                version.read.push_str("; GetContainerEvents: UNIMPLEMENTED");
            }
            // The findings of its configuration say so, and why.
            (_, Stream::Off) if self.is_crio() => {}
            _ => found.push(self.stream()),
        }
        found.extend(self.unmet.iter().map(|condition| unmet(condition)));
        found.extend(
            self.lists
                .iter()
                .filter_map(|(call, answer)| list(call, answer)),
        );
        let driver = self.cgroup_driver.map_or("unknown", CgroupDriver::name);
        found.push(Finding::new(
            (Area::Runtime, Status::Ok),
            "cgroup-driver",
            format!("the runtime's cgroup driver is {driver}"),
            "RuntimeConfig, or verbose Status where the runtime has no such call",
        ));
        found
    }

    fn stream(&self) -> Finding {
        let new = |status, id, finding: &str| {
            Finding::new((Area::Runtime, status), id, finding, self.stream.read())
        };
        match &self.stream {
            Stream::Open => new(
                Status::Ok,
                "events-open",
                "the event stream stays open: the runtime sends events",
            ),
            Stream::Off => new(
                Status::Wrong,
                "events-off",
                "the runtime ended the event stream at once: events are switched off",
            )
            .why(WHY_EVENTS_OFF_IS_WRONG)
            .fix("Switch events on in the runtime's configuration and restart it."),
            Stream::Unimplemented => new(
                Status::Wrong,
                "events-unimplemented",
                "the runtime has no event stream: it answered with UNIMPLEMENTED",
            )
            .why("Without events, EventedPLEG only adds retries to the kubelet's relists.")
            .fix("Upgrade the runtime, such as to containerd 2.3 or CRI-O 1.35."),
            Stream::Failed(fault) => new(
                Status::Unknown,
                "events-failed",
                &format!("the event stream failed: {fault}"),
            )
            .why("Whether the runtime sends events is unknown.")
            .fix("Look into the runtime's log, and run this again."),
            Stream::NotOpened => new(
                Status::Note,
                "events-not-tried",
                "the event stream was not opened: this would take events from other subscribers",
            )
            .why("This version has events and cannot switch them off."),
        }
    }
}

/// The finding on a list that a kubelet cannot read, or soon cannot.
fn list(call: &str, answer: &Result<usize, String>) -> Option<Finding> {
    const FIX: &str = "Remove containers that have exited, or shorten labels and annotations.";
    let new =
        |status, id, finding: String| Finding::new((Area::Runtime, status), id, finding, call);
    let mebibytes = |bytes: usize| bytes.div_ceil(1 << 20);
    let most = mebibytes(limits::MESSAGE_BYTES);
    match answer {
        Ok(bytes) if *bytes < LARGE_LIST => None,
        Ok(bytes) => {
            let bytes = mebibytes(*bytes);
            let finding = format!("the answer has {bytes} MiB, and a kubelet accepts {most} MiB");
            let why = "From there on a kubelet cannot relist, and its node is not ready.";
            Some(new(Status::Note, "list-large", finding).why(why).fix(FIX))
        }
        Err(fault) => {
            let finding = format!("{call} fails: {fault}");
            let why = format!("A kubelet relists by it, and accepts an answer of {most} MiB.");
            let fix = format!("See the runtime's log. If the answer is too large: {FIX}");
            Some(new(Status::Wrong, "list-fails", finding).why(why).fix(fix))
        }
    }
}

/// The finding on a condition of `Status` that is false.
fn unmet(condition: &str) -> Finding {
    let new = |status, id| {
        let finding = format!("the runtime reports that {condition} does not hold");
        Finding::new((Area::Runtime, status), id, finding, "Status")
    };
    if condition == NETWORK_READY {
        let why = "Only pods on the host's network start until then.";
        let fix = "Install a network plugin for pods, or see the runtime's log.";
        return new(Status::Note, "network-not-ready").why(why).fix(fix);
    }
    new(Status::Wrong, "runtime-not-ready")
        .why("A kubelet starts no pods until then.")
        .fix("See the runtime's log.")
}
