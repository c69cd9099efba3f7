//! Needs of the runtime: calls, fields and features that it need not have, and events for each of
//! several subscribers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::{TrialContainer, Unavailable, end_sandbox, measured, run_sandbox};
use crate::cri::{Over, Subscription};
use crate::drive::session::Session;
use crate::drive::stream_error::StreamError;
use crate::history::{
    Body, ContainerFilter, ContainerId, ContainerSpec, ContainerState, Entry, EventKind, FanOut,
    Observer, OciRuntime, Reply, Request, RuntimeStatus, SandboxFilter, SandboxSpec, SandboxState,
    Signal, StatusCode, SubscriptionId,
};
use crate::recorder::Reader;
use crate::workload::Workload;
use crate::{host, limits};

/// The exit code of a trial container after the signal that it waits for.
const HEEDED_CODE: u8 = 42;
const HEEDED: i32 = HEEDED_CODE as i32;
/// Its exit code after SIGTERM instead.
const TERMINATED: i32 = 143;
/// How long a stop of a trial container waits for its end before it is killed.
const SIGNAL_GRACE: Duration = Duration::from_secs(2);
/// How many trial containers may miss their signal.
const SIGNAL_TRIALS: u32 = 3;

async fn status(session: &Session) -> Result<RuntimeStatus, String> {
    match session.call(None, Request::RuntimeStatus).await {
        Ok(Reply::RuntimeStatus(status)) => Ok(status),
        Ok(_) => Err("Status was answered by something else".to_owned()),
        Err(fault) => Err(format!("Status failed: {fault}")),
    }
}

pub(super) async fn handlers(session: &Session) -> Result<(), String> {
    let status = status(session).await?;
    let named = status.handlers.iter().filter(|name| !name.is_empty());
    if named.count() < 2 {
        return Err(
            "the runtime's Status does not report several runtime handlers; configure another one \
             to have its events tested, or test one by --runtime-handler"
                .to_owned(),
        );
    }
    Ok(())
}

/// A network is there if the runtime says so, and a sandbox that wants one gets an address.
pub(super) async fn network(session: &Session) -> Result<(), String> {
    let is_ready = |condition: &String| condition == "NetworkReady";
    let status = status(session).await;
    if !status.is_ok_and(|status| status.conditions.iter().any(is_ready)) {
        return Err(
            "the runtime's Status does not report NetworkReady: it has no CNI network; for a \
             private containerd, ci/containerd up has --cni bridge"
                .to_owned(),
        );
    }
    let spec = SandboxSpec {
        own_network: true,
        ..SandboxSpec::clone(&session.sandbox_spec("network", "trial"))
    };
    let none = |fault| format!("no sandbox can have a network of its own: {fault}");
    let sandbox = run_sandbox(session, spec).await.map_err(none)?;
    let status = Request::SandboxStatus(sandbox.clone());
    let status = session.call(None, status).await;
    end_sandbox(session, sandbox).await;
    match status {
        Ok(Reply::SandboxStatus(report))
            if report.status.state == SandboxState::Ready && !report.status.ips.is_empty() =>
        {
            Ok(())
        }
        Ok(_) => Err("a sandbox with a network of its own gets no address".to_owned()),
        Err(fault) => Err(format!("PodSandboxStatus failed: {fault}")),
    }
}

pub(super) async fn streamed_lists(session: &Session) -> Result<(), String> {
    let sandboxes = SandboxFilter {
        labels: session.labels(),
        streamed: true,
        ..SandboxFilter::default()
    };
    let containers = ContainerFilter {
        labels: session.labels(),
        streamed: true,
        ..ContainerFilter::default()
    };
    for request in [
        Request::FindSandboxes(sandboxes),
        Request::FindContainers(containers),
    ] {
        let method = request.method();
        // As for a kubelet, which falls back for this code alone.
        let answer = session.call(None, request).await;
        if answer.is_err_and(|fault| fault.code == StatusCode::UNIMPLEMENTED) {
            return Err(format!(
                "{method} is UNIMPLEMENTED; it came with Kubernetes 1.36 (KEP-5825)"
            ));
        }
    }
    Ok(())
}

pub(super) async fn timestamp(session: &Session) -> Result<(), String> {
    let pod = session.marker_pod().await;
    let (sandbox, _) = pod.map_err(|fault| fault.to_string())?;
    match session.call(None, Request::SandboxStatus(sandbox)).await {
        Ok(Reply::SandboxStatus(report)) if report.timestamp.0 != 0 => Ok(()),
        Ok(_) => Err(
            "PodSandboxStatus has no timestamp, which a runtime need not give; CRI-O has one where \
             enable_pod_events is set"
                .to_owned(),
        ),
        Err(fault) => Err(format!("PodSandboxStatus failed: {fault}")),
    }
}

/// Not measured but where there is an event stream.
pub(super) fn no_events() -> Result<(), String> {
    Err(
        "the runtime offers events, and this is about one that does not; switch them off, as \
         CRI-O's `enable_pod_events = false` does, and run it again"
            .to_owned(),
    )
}

/// Makes a checkpoint of a trial container.
pub(super) async fn checkpoint(session: &Session) -> Result<(), String> {
    let trial = TrialContainer::run(session, "checkpointed").await?;
    let made = trial.checkpoint().await;
    trial.end().await;
    measured(
        made.map(drop),
        "the runtime makes no checkpoint of a container",
        "It needs CRIU on its PATH, and CRI-O also enable_criu_support = true",
    )
}

/// Restores a trial container beside the one that its checkpoint was made of.
pub(super) async fn restore(session: &Session) -> Result<(), String> {
    let options = session.options();
    let cgroup = options.kernel.host().and_then(|host| host.cgroup);
    if multiplies_cgroups(options.oci.as_ref(), cgroup.as_deref()) {
        return Err(
            "crun adds copies of a whole hierarchy of cgroups to it whenever it restores a container, \
             where one of version 1 is mounted (containers/crun#2256)"
                .to_owned(),
        );
    }
    let trial = TrialContainer::run(session, "trial-original").await?;
    let restored = async {
        let location = trial.checkpoint().await?;
        trial.restore("trial-restored", location).await
    };
    let restored = restored.await;
    trial.end().await;
    let restored = match restored {
        Ok(restored) => {
            restored.end().await;
            Ok(())
        }
        Err(fault) => Err(fault),
    };
    measured(
        restored,
        "the runtime restores no container from a checkpoint",
        "containerd 2.3 does with enable_experimental_restore_via_create = true, CRI-O where no \
         signature_policy is set",
    )
}

/// Whether restores by this OCI runtime multiply cgroups, on a host with these.
fn multiplies_cgroups(oci: Option<&OciRuntime>, cgroup: Option<&str>) -> bool {
    let program = oci.and_then(|oci| oci.name.as_deref());
    program == Some("crun") && cgroup.is_some_and(|cgroup| cgroup != "2")
}

/// The result of stopping a container with a stop signal of its own.
#[derive(Clone, Copy, Debug, Default)]
struct SignalTrial {
    /// Whether `ContainerStatus` reports the signal.
    is_reported: bool,
    exit_code: Option<i32>,
}

/// A runtime knows a container's stop signal if it reports it in the container's status, or if a
/// container ends by it that has another exit code for SIGTERM: CRI-O does not report it.
pub(super) async fn stop_signal(session: &Session) -> Result<(), String> {
    let mut is_reported = false;
    for attempt in 0..SIGNAL_TRIALS {
        let trial = try_stop_signal(session, attempt).await?;
        is_reported |= trial.is_reported;
        let sent = match trial.exit_code {
            Some(HEEDED) => true,
            Some(TERMINATED) => false,
            // A signal before the program has set how it takes it is lost.
            _ => continue,
        };
        session.probed.set_stop_signal_sent(sent);
        if sent || is_reported {
            return Ok(());
        }
        return Err(
            "a stop sends SIGTERM whatever stop signal the container was given, as was measured \
             when the run began: the runtime does not know this field of the CRI, which came with \
             Kubernetes 1.33 (KEP-4960), and to containerd with containerd/containerd#11774"
                .to_owned(),
        );
    }
    if is_reported {
        return Ok(());
    }
    Err(format!(
        "which signal a stop sends could not be measured when the run began: it was lost in \
         {SIGNAL_TRIALS} of {SIGNAL_TRIALS} containers"
    ))
}

/// Stops a trial container that has a stop signal of its own.
async fn try_stop_signal(session: &Session, attempt: u32) -> Result<SignalTrial, String> {
    let (sandbox, pod) = session
        .marker_pod()
        .await
        .map_err(|fault| fault.to_string())?;
    let heed = Workload::UntilSignal {
        signal: 10,
        code: HEEDED_CODE,
    };
    let spec = ContainerSpec {
        stop_signal: Signal::USER_1,
        ..session.container_spec((&sandbox, &pod), "stop-signal", attempt, &heed)
    };
    let create = Request::CreateContainer(Arc::new(spec));
    let refused = |fault| format!("no container can have a stop signal: {fault}");
    let Reply::Container(container) = session.call(None, create).await.map_err(refused)? else {
        return Err("CreateContainer was answered by something else".to_owned());
    };
    let mut trial = SignalTrial::default();
    for request in [
        Request::StartContainer(container.clone()),
        Request::StopContainer {
            container: container.clone(),
            grace: SIGNAL_GRACE,
        },
        Request::ContainerStatus(container.clone()),
    ] {
        let method = request.method();
        let failed = |fault| format!("{method} of a container with a stop signal: {fault}");
        if let Reply::ContainerStatus(report) = session
            .client()
            .brief_call(None, request)
            .await
            .map_err(failed)?
        {
            let exited = report.status.state == ContainerState::Exited;
            trial = SignalTrial {
                is_reported: report.status.setup.stop_signal == Signal::USER_1,
                exit_code: exited.then_some(report.status.exit_code),
            };
        }
    }
    // Leftovers are swept at the end of the run.
    let _ = session
        .call(None, Request::RemoveContainer(container))
        .await;
    Ok(trial)
}

pub(super) async fn broadcast(session: &Session) -> Result<(), Unavailable> {
    match find_fan_out(session).await? {
        FanOut::Broadcast => Ok(()),
        FanOut::SingleConsumer => Err(Unavailable::Lack(
            "the runtime gives each event to one subscriber alone, as was measured when the run \
             began: a second one would take events from the first"
                .to_owned(),
        )),
    }
}

/// Finds out whether each of several subscribers gets every event.
async fn find_fan_out(session: &Session) -> Result<FanOut, StreamError> {
    let own = session.stream().await?;
    let mut reader = session.recorder().reader();
    let observer = Observer {
        binding: "a second subscriber".to_owned(),
        ..Observer::default()
    };
    let over = Over::Own(&session.options().endpoint);
    let second = Subscription::observe(over, session.recorder(), observer).await?;
    let mut received = Received::new([own, second.id()]);
    let began = host::now();
    let mut found = None;
    for _ in 0..limits::AUDIENCE_MARKERS {
        received.markers.push(session.send_marker().await?);
        let wait = session.scaled(limits::MARKER_WAIT);
        found = who_receives(session, &mut reader, &mut received, wait).await?;
        if found.is_some() {
            break;
        }
    }
    if found.is_none() {
        // As long as a case waits for an event that is late.
        let wait = session.scaled(limits::EVENT_WAIT);
        let left = wait.saturating_sub(host::elapsed(began));
        found = who_receives(session, &mut reader, &mut received, left).await?;
    }
    let fan_out = found.unwrap_or(FanOut::SingleConsumer);
    second.cancel().await;
    // The run's own stream is live again. If it ended with the second one, INV-21 reports that.
    match session.barrier().await {
        Err(StreamError::Closed | StreamError::Ended(_)) => session.ensure_stream().await?,
        live => live?,
    }
    Ok(fan_out)
}

/// Who gets the events of markers, as soon as they show it.
async fn who_receives(
    session: &Session,
    reader: &mut Reader,
    received: &mut Received,
    wait: Duration,
) -> Result<Option<FanOut>, StreamError> {
    let deadline = tokio::time::Instant::now() + wait;
    loop {
        for entry in reader.drain()? {
            received.take(&entry);
        }
        if let Some(fan_out) = received.fan_out() {
            return Ok(Some(fan_out));
        }
        tokio::select! {
            () = reader.changed() => {}
            () = tokio::time::sleep_until(deadline) => return Ok(None),
            () = session.stop().cancelled() => return Err(StreamError::Interrupted),
        }
    }
}

/// The events of markers that each of two streams has brought.
#[derive(Debug)]
struct Received {
    both: [SubscriptionId; 2],
    /// In the order in which they were sent.
    markers: Vec<ContainerId>,
    events: Vec<(SubscriptionId, ContainerId, EventKind)>,
}

impl Received {
    fn new(both: [SubscriptionId; 2]) -> Self {
        Self {
            both,
            markers: Vec::new(),
            events: Vec::new(),
        }
    }

    fn take(&mut self, entry: &Entry) {
        if let Body::Event {
            subscription,
            event,
            ..
        } = &entry.body
        {
            let event = (*subscription, event.container.clone(), event.kind);
            self.events.push(event);
        }
    }

    /// Everyone, if an event came on both streams. One, if a stream brought events of a marker
    /// before and of one after an event that came on the other alone: it was live all the time.
    fn fan_out(&self) -> Option<FanOut> {
        let [one, other] = self.both.map(|stream| self.brought_by(stream));
        if one.iter().any(|event| other.contains(event)) {
            return Some(FanOut::Broadcast);
        }
        let passed_over = |live: &BTreeSet<Brought>, others: &BTreeSet<Brought>| {
            let markers = || live.iter().map(|(marker, _)| *marker);
            let (Some(first), Some(last)) = (markers().min(), markers().max()) else {
                return false;
            };
            others
                .iter()
                .any(|(marker, _)| first < *marker && *marker < last)
        };
        let split = passed_over(&one, &other) || passed_over(&other, &one);
        split.then_some(FanOut::SingleConsumer)
    }

    fn brought_by(&self, stream: SubscriptionId) -> BTreeSet<Brought> {
        let events = self.events.iter().filter(|(on, ..)| *on == stream);
        let of_marker = events.filter_map(|(_, of, kind)| {
            let marker = self.markers.iter().position(|marker| marker == of)?;
            Some((marker, *kind))
        });
        of_marker.collect()
    }
}

/// An event of a marker, by its number.
type Brought = (usize, EventKind);

#[cfg(test)]
mod tests {
    use super::*;

    /// What the first stream brought, and the second: events of markers, `c0` for CREATED of the
    /// first marker, `d0` for its DELETED.
    #[track_caller]
    fn check(brought: [&str; 2], expected: Option<FanOut>) {
        let both = [SubscriptionId(1), SubscriptionId(2)];
        let mut received = Received::new(both);
        received.markers = ["0", "1", "2"].map(ContainerId::from).into();
        for (stream, brought) in both.into_iter().zip(brought) {
            for event in brought.split_whitespace() {
                let (kind, marker) = event.split_at(1);
                let kind = if kind == "c" {
                    EventKind::Created
                } else {
                    EventKind::Deleted
                };
                received.events.push((stream, marker.into(), kind));
            }
        }
        assert_eq!(received.fan_out(), expected);
    }

    #[test]
    fn one_event_on_both_streams_is_enough() {
        check(["c0 d0 c1", "c1"], Some(FanOut::Broadcast));
        check(["c0", "c0"], Some(FanOut::Broadcast));
    }

    #[test]
    fn late_events_prove_nothing() {
        check(["", ""], None);
        check(["c0 d0 c1 d1 c2 d2", ""], None);
        check(["c0 d0 c1 d1", "c2"], None);
    }

    #[test]
    fn an_event_that_is_passed_over_is_the_others() {
        check(["c0 c1 c2", "d0 d1 d2"], Some(FanOut::SingleConsumer));
        check(["c0 d0 d2", "c1"], Some(FanOut::SingleConsumer));
        check(["c1", "c0 d2"], Some(FanOut::SingleConsumer));
        check(["c0 c1", "d0 d1"], None);
    }

    #[test]
    fn crun_multiplies_cgroups_of_version_1() {
        let multiplies = |name: Option<&str>, cgroup| {
            let oci = OciRuntime {
                name: name.map(str::to_owned),
                ..OciRuntime::default()
            };
            multiplies_cgroups(Some(&oci), cgroup)
        };
        assert!(multiplies(Some("crun"), Some("1")) && multiplies(Some("crun"), Some("hybrid")));
        assert!(!multiplies(Some("crun"), Some("2")) && !multiplies(Some("crun"), None));
        assert!(!multiplies(Some("runc"), Some("1")) && !multiplies(None, Some("1")));
    }
}
