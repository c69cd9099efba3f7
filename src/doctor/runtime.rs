//! The runtime: what it answers, and whether it sends events.

use std::time::Duration;

use super::finding::{Area, Finding, Status};
use super::known_versions;
use crate::cri::{self, Endpoint};
use crate::drive::{self, RecordingClient};
use crate::escape::printable;
use crate::history::{CgroupDriver, Reply, Request, RuntimeVersion, StatusCode};

/// How long the event stream is watched. A runtime with events switched off ends it at once; one
/// with events leaves it open.
const STREAM_OPEN: Duration = Duration::from_millis(500);

/// Conditions of `Status` that a kubelet waits for.
const CONDITIONS: [&str; 2] = ["RuntimeReady", "NetworkReady"];

/// What a runtime reports of itself.
#[derive(Clone, Debug)]
pub(super) struct RuntimeFacts {
    pub(super) version: RuntimeVersion,
    pub(super) cgroup_driver: Option<CgroupDriver>,
    pub(super) stream: Stream,
    /// The conditions of `Status` that do not hold.
    pub(super) unmet: Vec<String>,
}

/// What became of the event stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// It was open until it was cancelled, or brought an event.
    Open,
    /// The runtime ended it with OK, or with `FAILED_PRECONDITION`.
    Off,
    /// The runtime does not have the call.
    Unimplemented,
    /// Something else.
    Failed(String),
    /// It was not opened because it would have taken events from a kubelet.
    NotOpened,
}

/// Asks the runtime. Where each event goes to one subscriber only, the stream is not opened beside
/// a kubelet.
pub(super) async fn ask(
    caller: &RecordingClient,
    endpoint: &Endpoint,
    has_kubelet: bool,
) -> RuntimeFacts {
    let client = &caller.client;
    let version = client.version().clone();
    let cgroup_driver = client.beneath("").await.cgroup_driver;
    let unmet = match client.call(&Request::RuntimeStatus).await {
        Ok(Reply::RuntimeStatus(status)) => {
            let holds = |condition: &str| status.conditions.iter().any(|it| it == condition);
            let unmet = CONDITIONS.into_iter().filter(|condition| !holds(condition));
            unmet.map(str::to_owned).collect()
        }
        Ok(_) | Err(_) => Vec::new(),
    };
    let pods = drive::foreign_pods(caller).await;
    let has_kubelet = has_kubelet || pods.is_ok_and(|pods| pods.kubelets > 0);
    let stream = if has_kubelet && known_versions::is_single_consumer(&version) {
        Stream::NotOpened
    } else {
        watch(endpoint).await
    };
    RuntimeFacts {
        version,
        cgroup_driver,
        stream,
        unmet,
    }
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

impl RuntimeFacts {
    /// Whether the runtime sends events; none if unknown.
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
        found.push(self.stream());
        found.extend(self.conditions());
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
            let read = "GetContainerEvents, for 500 ms";
            Finding::new((Area::Runtime, status), id, finding, read)
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
            .why(
                "A kubelet with EventedPLEG cannot tell this from a lost connection, and falls \
                 back to relists after some retries.",
            )
            .fix(if self.is_crio() {
                super::crio::SWITCH_ON
            } else {
                "Switch events on in the runtime's configuration and restart it."
            }),
            Stream::Unimplemented => new(
                Status::Wrong,
                "events-unimplemented",
                "the runtime has no event stream: it answered with UNIMPLEMENTED",
            )
            .why("Without events, EventedPLEG only adds retries to the kubelet's relists.")
            .fix("Upgrade the runtime: containerd has events since 1.7, CRI-O since 1.26."),
            Stream::Failed(fault) => new(
                Status::Unknown,
                "events-failed",
                &format!("the event stream failed: {fault}"),
            )
            .why("Whether the runtime sends events is unknown.")
            .fix("Look into the runtime's log, and run this again."),
            Stream::NotOpened => Finding::new(
                (Area::Runtime, Status::Note),
                "events-not-tried",
                "the event stream was not opened: it would have taken events from the kubelet",
                "the runtime's version, and a kubelet on this node",
            )
            .why(
                "This version sends each event to one subscriber only. It has events and cannot \
                 switch them off.",
            )
            .fix("To try the stream, stop the kubelet and run this again."),
        }
    }

    fn conditions(&self) -> Option<Finding> {
        if self.unmet.is_empty() {
            return None;
        }
        let unmet = self.unmet.join(", ");
        let finding = Finding::new(
            (Area::Runtime, Status::Note),
            "runtime-not-ready",
            format!("the runtime is not ready: {unmet} does not hold"),
            "Status",
        );
        let finding = finding.why("A kubelet starts no pods until then, so that no events come.");
        Some(finding.fix("Install a network plugin for pods, or see the runtime's log."))
    }
}
