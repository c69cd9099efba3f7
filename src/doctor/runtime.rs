//! The runtime: its replies, whether it sends events, and the known facts about its version, from
//! `known-versions.yaml`.

use std::time::Duration;

use serde::Deserialize;

use super::finding::{Area, Finding, Status};
use crate::cri::{self, Client, Endpoint};
use crate::escape::printable;
use crate::history::{CgroupDriver, Labels, Reply, Request, RuntimeVersion, StatusCode};
use crate::limits;
use crate::verdicts::Versions;

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

const FILE: &str = include_str!("known-versions.yaml");

/// Known facts about some versions of a runtime.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct KnownVersion {
    id: String,
    runtime: String,
    versions: Versions,
    /// The cgroup driver it uses; absent if irrelevant.
    #[serde(default)]
    cgroup_driver: Option<String>,
    effect: Effect,
    /// Whether each event is sent to only one subscriber.
    #[serde(default)]
    single_consumer: bool,
    finding: String,
    why: String,
    fix: String,
    source: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Effect {
    Unfit,
    Caution,
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
    let stream = if is_single_consumer(&version) {
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
    let labels = Labels::new();
    let mut lists = Vec::new();
    for request in [
        Request::sandboxes(labels.clone()),
        Request::containers(None, labels),
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
        let mut found = version_findings(self);
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
        let (status, driver) = match self.cgroup_driver {
            Some(driver) => (Status::Ok, driver.name()),
            None => (Status::Note, "unknown"),
        };
        found.push(Finding::new(
            (Area::Runtime, status),
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

fn all() -> Vec<KnownVersion> {
    serde_yaml::from_str(FILE).expect("a test reads the file")
}

impl KnownVersion {
    fn is_of(&self, version: &RuntimeVersion, driver: Option<CgroupDriver>) -> bool {
        let asked = self.cgroup_driver.as_deref();
        self.runtime == version.runtime_name
            && self.versions.include(&version.runtime_version) == Some(true)
            && asked.is_none_or(|asked| driver.is_some_and(|driver| driver.name() == asked))
    }
}

/// Whether this runtime sends each event to only one of its subscribers.
pub fn is_single_consumer(version: &RuntimeVersion) -> bool {
    let mut all = all().into_iter();
    all.any(|known| known.single_consumer && known.is_of(version, None))
}

/// The findings from `known-versions.yaml`.
fn version_findings(facts: &RuntimeFacts) -> Vec<Finding> {
    let all = all();
    let version = &facts.version;
    let name = format!("{} {}", version.runtime_name, version.runtime_version);
    let read = format!("Version: {name}, CRI {}", version.api_version);
    if !all
        .iter()
        .any(|known| known.runtime == version.runtime_name)
    {
        let finding = format!("nothing is known of versions of {}", version.runtime_name);
        return vec![Finding::new(
            (Area::Runtime, Status::Note),
            "runtime-not-known",
            finding,
            read,
        )];
    }
    let of_this = all.iter();
    let of_this = of_this.filter(|known| known.is_of(version, facts.cgroup_driver));
    let mut found: Vec<_> = of_this
        .map(|known| {
            let status = match known.effect {
                Effect::Unfit => Status::Wrong,
                Effect::Caution => Status::Note,
            };
            let mut read = read.clone();
            if let Some(driver) = &known.cgroup_driver {
                read = format!("{read}; cgroup driver {driver}");
            }
            Finding::new(
                (Area::Runtime, status),
                &known.id,
                known.finding.clone(),
                read,
            )
            .why(known.why.clone())
            .fix(known.fix.clone())
            .source(known.source.clone())
        })
        .collect();
    let is_fit = found.iter().all(|finding| finding.status != Status::Wrong);
    if is_fit {
        let finding = format!("{name} is not known to be unfit");
        let id = "runtime-version";
        found.push(Finding::new((Area::Runtime, Status::Ok), id, finding, read));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::runtime::Stream;

    #[track_caller]
    fn check(name: &str, version: &str, driver: CgroupDriver, expect: &[&str]) {
        let facts = RuntimeFacts {
            version: RuntimeVersion {
                runtime_name: name.to_owned(),
                runtime_version: version.to_owned(),
                api_version: "v1".to_owned(),
            },
            cgroup_driver: Some(driver),
            stream: Stream::Open,
            unmet: Vec::new(),
            lists: Vec::new(),
        };
        let found = version_findings(&facts);
        let found: Vec<_> = found
            .iter()
            .map(|it| format!("{:?} {}", it.status, it.id))
            .collect();
        assert_eq!(found, expect, "{name} {version}");
    }

    #[test]
    fn the_ranges_end_where_a_version_is_fixed() {
        use CgroupDriver::{Cgroupfs, Systemd};
        let (stalled, fit) = ("Note stalled-reader", "Ok runtime-version");
        let ended = "Note end-of-life";
        let (lost, order) = ("Note oom-reason-lost", "Note stopped-before-started");
        check("containerd", "1.6.20~ds1", Cgroupfs, &["Wrong no-events"]);
        check(
            "containerd",
            "v1.7.0",
            Cgroupfs,
            &["Note single-subscriber", lost, ended, fit],
        );
        check(
            "containerd",
            "1.7.34",
            Cgroupfs,
            &["Note single-subscriber", lost, ended, fit],
        );
        let timestamp = "Wrong timestamp-without-statuses";
        check("containerd", "2.0.0", Cgroupfs, &[timestamp, stalled, lost]);
        check("containerd", "2.0.2", Cgroupfs, &[timestamp, stalled, lost]);
        check("containerd", "2.0.3", Cgroupfs, &[stalled, lost, fit]);
        check("containerd", "2.0.9", Cgroupfs, &[stalled, lost, fit]);
        for version in ["2.1.0", "2.2.9"] {
            check(
                "containerd",
                version,
                Cgroupfs,
                &[stalled, lost, ended, fit],
            );
        }
        let torn_down = "Note torn-down-after-start";
        check("containerd", "v2.3.0", Cgroupfs, &[torn_down, stalled, fit]);
        check("containerd", "v2.3.1", Cgroupfs, &[torn_down, stalled, fit]);
        check("containerd", "v2.3.2", Cgroupfs, &[stalled, fit]);
        check("containerd", "v2.3.4", Systemd, &[stalled, lost, fit]);
        check("cri-o", "1.25.4", Systemd, &["Wrong no-events"]);
        let empty = "Note empty-container-statuses";
        check("cri-o", "1.26.0", Systemd, &[empty, stalled, order, fit]);
        check("cri-o", "1.34.9", Systemd, &[empty, stalled, order, fit]);
        check("cri-o", "1.35.0", Systemd, &[stalled, order, fit]);
        check("other", "1.0", Systemd, &["Note runtime-not-known"]);
    }

    #[test]
    fn only_containerd_1_7_has_one_consumer() {
        let is_single = |name: &str, version: &str| {
            is_single_consumer(&RuntimeVersion {
                runtime_name: name.to_owned(),
                runtime_version: version.to_owned(),
                api_version: "v1".to_owned(),
            })
        };
        assert!(is_single("containerd", "1.7.24~ds1"));
        assert!(!is_single("containerd", "2.0.0"));
        assert!(!is_single("containerd", "1.6.20"));
        assert!(!is_single("cri-o", "1.7.0"));
    }

    #[test]
    fn each_entry_has_a_source() {
        for known in all() {
            assert!(known.source.starts_with("https://"), "{}", known.id);
        }
    }
}
