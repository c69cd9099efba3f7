//! The state that all cases of a run share: the runtime, the event stream, and a marker pod.
//!
//! All cases read one stream. A marker is a container that is created and removed in the marker
//! pod only for its event: once that has arrived, the stream is live, and all that the runtime sent
//! before has arrived, too.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio_util::sync::CancellationToken;

use super::leftovers;
use super::live_pleg::RelistRequests;
use super::options::DriveOptions;
use super::probes::ProbeResults;
use super::recording_client::RecordingClient;
use super::stream_error::{StreamError, stream_ended};
use crate::cri::{Endpoint, Subscription};
use crate::history::{
    Body, CallFault, CaseRun, CgroupDriver, ContainerId, ContainerSpec, Entry, Labels, OciRuntime,
    PodUid, Reply, Request, RunId, SandboxId, SandboxSpec, StreamEnd, SubscriptionId,
};
use crate::host::{CgroupError, Kernel, PodCgroup};
use crate::metrics::Metrics;
use crate::recorder::{Reader, Recorder};
use crate::workload::Workload;
use crate::{host, limits};

/// The label that every sandbox and container of a run carries; its value is the run's id.
pub const RUN_LABEL: &str = "cri-event-conformance/run-id";
/// The label that names the process of the run.
pub const PROCESS_LABEL: &str = "cri-event-conformance/process";
/// The labels that a kubelet gives each of its sandboxes: `pkg/kubelet/types/labels.go`.
pub const KUBELET_LABELS: [&str; 3] = [
    "io.kubernetes.pod.name",
    "io.kubernetes.pod.namespace",
    "io.kubernetes.pod.uid",
];
/// The namespace of every pod that the suite makes.
pub const NAMESPACE: &str = "cri-event-conformance";

/// The labels of all objects that a run creates.
pub fn run_labels(run: &RunId) -> Labels {
    Labels::from([
        (RUN_LABEL.to_owned(), run.to_string()),
        (PROCESS_LABEL.to_owned(), host::this_process()),
    ])
}

/// How much of the UID of a pod is in its name.
pub(super) const UID_IN_NAME: usize = 8;

/// The configuration of a session: the options of the user, and facts about the runtime.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    pub asked: DriveOptions,
    pub run: RunId,
    pub endpoint: Endpoint,
    /// The reference of the image that containers run.
    pub image: String,
    /// The directory on the host in which the logs of all containers stand.
    pub log_directory: PathBuf,
    /// The OCI runtime, if it is reported.
    pub oci: Option<OciRuntime>,
    /// The driver of the runtime's cgroups; absent if it does not report it.
    pub cgroup_driver: Option<CgroupDriver>,
    /// The cgroup below which those of pods are made; empty for the runtime's default.
    pub cgroup_parent: String,
    /// The kernel under the runtime.
    pub kernel: Kernel,
}

/// One run's hold on its runtime.
#[derive(Debug)]
pub struct Session {
    options: SessionOptions,
    pub(super) client: RecordingClient,
    metrics: Metrics,
    silence: RwLock<()>,
    relists: OnceLock<RelistRequests>,
    stop: CancellationToken,
    stream: Mutex<Option<Subscription>>,
    pub(super) probed: ProbeResults,
    marker_pod: Mutex<Option<(SandboxId, Arc<SandboxSpec>)>>,
    markers: AtomicU32,
    cgroups: AtomicU32,
    labels: Labels,
}

/// The result of a wait for a marker.
enum Seen {
    Marker,
    End(StreamEnd),
    /// Neither, and so many other events.
    Nothing(u64),
}

impl Session {
    /// A session on a runtime that answers. Nothing is made there yet.
    pub fn new(
        options: SessionOptions,
        client: RecordingClient,
        metrics: Metrics,
        stop: CancellationToken,
    ) -> Self {
        Self {
            labels: run_labels(&options.run),
            options,
            client,
            metrics,
            silence: RwLock::default(),
            relists: OnceLock::new(),
            stop,
            stream: Mutex::default(),
            probed: ProbeResults::default(),
            marker_pod: Mutex::default(),
            markers: AtomicU32::new(0),
            cgroups: AtomicU32::new(0),
        }
    }

    /// How this session talks to its runtime.
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// The client that makes the calls of the run.
    pub fn client(&self) -> &RecordingClient {
        &self.client
    }

    /// The metrics of a kubelet, measured on the run.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Sends later requests to relist one pod to the run's first PLEG.
    pub(super) fn take_requests(&self, relists: RelistRequests) {
        let _ = self.relists.set(relists);
    }

    /// Requests a relist of one pod on demand, if the run relists pods.
    pub(super) fn request_relist(&self, pod: &PodUid) {
        if let Some(relists) = self.relists.get() {
            relists.request(pod.as_str());
        }
    }

    /// Keeps cases from being silent as long as it is held; waits until none is.
    pub(super) async fn relisting(&self) -> RwLockReadGuard<'_, ()> {
        self.silence.read().await
    }

    /// Keeps relists from beginning as long as it is held; waits until none is under way.
    pub(super) async fn silence(&self) -> RwLockWriteGuard<'_, ()> {
        self.silence.write().await
    }

    /// The recorder of the history.
    pub fn recorder(&self) -> &Recorder {
        &self.client.recorder
    }

    /// Cancelled when the run shall stop.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// A timeout, scaled as the user asked for.
    pub fn scaled(&self, bound: Duration) -> Duration {
        self.options.asked.timeout_scale.scaled(bound)
    }

    /// The labels of all objects that this run creates.
    pub fn labels(&self) -> Labels {
        self.labels.clone()
    }

    /// Sends a call for a case, or for the run itself, and records its begin and end.
    pub async fn call(&self, case: Option<CaseRun>, request: Request) -> Result<Reply, CallFault> {
        self.client.call(case, request).await
    }

    /// A pod as the kubelet would describe it, with a UID of its own.
    pub fn sandbox_spec(&self, binding: &str, owner: &str) -> Arc<SandboxSpec> {
        let uid = uuid::Uuid::new_v4().to_string();
        let name = format!("{}-{binding}-{}", owner.to_lowercase(), &uid[..UID_IN_NAME]);
        let mut labels = self.labels();
        let values = [name.as_str(), NAMESPACE, uid.as_str()];
        for (label, value) in KUBELET_LABELS.into_iter().zip(values) {
            labels.insert(label.to_owned(), value.to_owned());
        }
        Arc::new(SandboxSpec {
            binding: binding.to_owned(),
            name,
            namespace: NAMESPACE.to_owned(),
            uid: PodUid::from(uid),
            labels,
            runtime_handler: self.options.asked.pods.runtime_handler.clone(),
            cgroup_parent: self.options.cgroup_parent.clone(),
            log_directory: self.options.log_directory.display().to_string(),
            ..SandboxSpec::default()
        })
    }

    /// A container as the kubelet would describe it.
    pub fn container_spec(
        &self,
        (sandbox, sandbox_spec): (&SandboxId, &Arc<SandboxSpec>),
        binding: &str,
        attempt: u32,
        workload: &Workload,
    ) -> ContainerSpec {
        let mut labels = sandbox_spec.labels.clone();
        labels.insert(
            "io.kubernetes.container.name".to_owned(),
            binding.to_owned(),
        );
        ContainerSpec {
            sandbox: sandbox.clone(),
            sandbox_spec: sandbox_spec.clone(),
            binding: binding.to_owned(),
            attempt,
            image: self.options.image.clone(),
            command: workload.command(),
            declared_exit: workload.declared_exit(),
            labels,
            log_path: format!("{}_{binding}_{attempt}.log", sandbox_spec.name),
            ..ContainerSpec::default()
        }
    }

    pub(super) fn new_cgroup(&self) -> PodCgroup {
        let number = self.cgroups.fetch_add(1, Ordering::Relaxed);
        let driver = self.options.cgroup_driver;
        let driver = driver.unwrap_or(CgroupDriver::Cgroupfs);
        PodCgroup::new(&self.options.run, number, driver)
    }

    /// Makes a cgroup of this name, and gives it to a pod.
    pub(super) fn give_cgroup(
        &self,
        cgroup: &PodCgroup,
        memory_mib: u32,
        spec: &mut SandboxSpec,
    ) -> Result<(), CgroupError> {
        let bytes = u64::from(memory_mib) << 20;
        self.options.kernel.make_cgroup(cgroup, bytes)?;
        spec.cgroup_parent = cgroup.parent();
        spec.memory_bytes = Some(bytes);
        Ok(())
    }

    /// Removes a cgroup whose pod is gone. If that fails, it is swept at the run's end.
    pub(super) async fn remove_cgroup(&self, cgroup: &PodCgroup) {
        let _ = leftovers::remove_cgroup(&self.options.kernel, cgroup).await;
    }

    pub fn checkpoint_location(&self, of: &ContainerId) -> String {
        let folder = self.options.log_directory.display();
        format!("{folder}/checkpoint-{of}.tar")
    }

    /// Makes sure that the event stream is open and live.
    pub async fn ensure_stream(&self) -> Result<(), StreamError> {
        let mut stream = self.stream.lock().await;
        if stream.as_ref().is_some_and(Subscription::is_open) {
            return Ok(());
        }
        *stream = Some(self.open_proven().await?);
        Ok(())
    }

    /// Gives up the event stream and opens a new one, live when this returns.
    pub async fn resubscribe(&self) -> Result<(), StreamError> {
        self.unsubscribe().await;
        self.ensure_stream().await
    }

    /// Opens the event stream with a new marker pod, on a runtime that was ended and may be back.
    pub(super) async fn reopen(&self) -> Result<(), StreamError> {
        self.marker_pod.lock().await.take();
        self.ensure_stream().await
    }

    /// Opens a new stream with a new marker pod, on a runtime that was lost and may be back: the
    /// marker pod may have ended with it.
    pub async fn renew(&self, bound: Duration) -> Result<(), StreamError> {
        self.unsubscribe().await;
        self.marker_pod.lock().await.take();
        let began = host::now();
        let mut pace = tokio::time::interval(limits::RUNTIME_LOOK);
        loop {
            pace.tick().await;
            match self.ensure_stream().await {
                Err(StreamError::Interrupted) => return Err(StreamError::Interrupted),
                // Only the success of all of this shows that a runtime is back.
                Err(_) if host::elapsed(began) < bound && !self.stop.is_cancelled() => {}
                done => return done,
            }
        }
    }

    /// Gives up the event stream.
    pub async fn unsubscribe(&self) {
        self.stream.lock().await.take();
    }

    /// Opens a stream in addition to those that are open; it is live when this returns.
    pub async fn open_proven(&self) -> Result<Subscription, StreamError> {
        let mut reader = self.client.recorder.reader();
        let subscription =
            Subscription::open(&self.options.endpoint, &self.client.recorder).await?;
        self.pass_marker(&mut reader, subscription.id())
            .await
            .map_err(StreamError::at_opening)?;
        self.client.recorder.record(Body::SubscriptionProven {
            subscription: subscription.id(),
        });
        Ok(subscription)
    }

    /// Returns once everything that the runtime sent before this call has arrived.
    pub async fn barrier(&self) -> Result<(), StreamError> {
        let subscription = self.stream().await?;
        let mut reader = self.client.recorder.reader();
        self.pass_marker(&mut reader, subscription).await
    }

    /// The event stream, which must be open.
    pub async fn stream(&self) -> Result<SubscriptionId, StreamError> {
        match &*self.stream.lock().await {
            Some(subscription) if subscription.is_open() => Ok(subscription.id()),
            _ => Err(StreamError::Ended("it is no longer open".to_owned())),
        }
    }

    /// Sends markers until the event of one of them arrives on the subscription. One that the
    /// runtime refuses has a second one, so that a single failed call ends no run.
    pub(super) async fn pass_marker(
        &self,
        reader: &mut Reader,
        subscription: SubscriptionId,
    ) -> Result<(), StreamError> {
        let bound = self.scaled(limits::EVENT_WAIT);
        let began = host::now();
        let (mut sent, mut others) = (Vec::new(), 0);
        let mut may_fail = true;
        while host::elapsed(began) < bound || sent.len() < limits::FEWEST_MARKERS {
            if self.stop.is_cancelled() {
                return Err(StreamError::Interrupted);
            }
            match self.send_marker().await {
                Ok(marker) => sent.push(marker),
                // The stream's own end says more than the marker's trouble.
                Err(fault) => match seen(&reader.drain()?, subscription, &sent) {
                    Seen::End(end) => return Err(stream_ended(&end)),
                    Seen::Marker => return Ok(()),
                    Seen::Nothing(seen) if may_fail && fault.is_refused_marker() => {
                        may_fail = false;
                        others += seen;
                        continue;
                    }
                    Seen::Nothing(_) => return Err(fault),
                },
            }
            let wait = self.scaled(limits::MARKER_WAIT);
            match self
                .wait_for_marker(reader, subscription, &sent, wait)
                .await?
            {
                Seen::Marker => return Ok(()),
                Seen::End(end) => return Err(stream_ended(&end)),
                Seen::Nothing(seen) => others += seen,
            }
        }
        Err(StreamError::silent(bound, others))
    }

    async fn wait_for_marker(
        &self,
        reader: &mut Reader,
        subscription: SubscriptionId,
        sent: &[ContainerId],
        wait: Duration,
    ) -> Result<Seen, StreamError> {
        let deadline = tokio::time::Instant::now() + wait;
        let mut others = 0;
        loop {
            match seen(&reader.drain()?, subscription, sent) {
                Seen::Nothing(seen) => others += seen,
                news => return Ok(news),
            }
            tokio::select! {
                // A flood of events must not keep it from ending.
                biased;
                () = tokio::time::sleep_until(deadline) => return Ok(Seen::Nothing(others)),
                () = reader.changed() => {}
                () = self.stop.cancelled() => return Err(StreamError::Interrupted),
            }
        }
    }

    /// Creates and removes a container in the marker pod.
    pub(super) async fn send_marker(&self) -> Result<ContainerId, StreamError> {
        let (sandbox, spec) = self.marker_pod().await?;
        let attempt = self.markers.fetch_add(1, Ordering::Relaxed);
        let spec = self.container_spec((&sandbox, &spec), "marker", attempt, &Workload::UntilTerm);
        let created = self
            .call(None, Request::CreateContainer(Arc::new(spec)))
            .await;
        let id = match created {
            Ok(Reply::Container(id)) => id,
            Ok(_) => unreachable!("CreateContainer is answered by a container"),
            Err(fault) => {
                // It may have ended with a runtime that was restarted: the next marker has another.
                self.marker_pod.lock().await.take();
                return Err(StreamError::Marker {
                    method: "CreateContainer",
                    fault,
                });
            }
        };
        // A runtime may give even a container that never ran the grace period that a removal has.
        // The removal alone decides: some runtimes refuse to stop what never started.
        let stop = Request::StopContainer {
            container: id.clone(),
            grace: Duration::ZERO,
        };
        let _ = self.call(None, stop).await;
        let remove = Request::RemoveContainer(id.clone());
        let method = remove.method();
        let removed = self.call(None, remove).await;
        removed.map_err(|fault| StreamError::Marker { method, fault })?;
        Ok(id)
    }

    /// The UID of the marker pod, if there is one yet.
    pub(super) async fn marker_uid(&self) -> Option<PodUid> {
        let pod = self.marker_pod.lock().await;
        pod.as_ref().map(|(_, spec)| spec.uid.clone())
    }

    pub(super) async fn marker_pod(&self) -> Result<(SandboxId, Arc<SandboxSpec>), StreamError> {
        let mut pod = self.marker_pod.lock().await;
        if let Some(pod) = &*pod {
            return Ok(pod.clone());
        }
        let spec = self.sandbox_spec("marker", "run");
        match self.call(None, Request::RunSandbox(spec.clone())).await {
            Ok(Reply::Sandbox(id)) => Ok(pod.insert((id, spec)).clone()),
            Ok(_) => unreachable!("RunPodSandbox is answered by a sandbox"),
            Err(fault) => Err(StreamError::Marker {
                method: "RunPodSandbox",
                fault,
            }),
        }
    }
}

/// Whether these entries hold a marker's event, or the subscription's end.
fn seen(entries: &[Arc<Entry>], on: SubscriptionId, sent: &[ContainerId]) -> Seen {
    let news = entries.iter().find_map(|entry| match &entry.body {
        Body::Event {
            subscription,
            event,
            ..
        } if *subscription == on => sent.contains(&event.container).then_some(Seen::Marker),
        Body::SubscriptionEnded { subscription, end } if *subscription == on => {
            Some(Seen::End(end.clone()))
        }
        _ => None,
    });
    let of_others = || {
        let events = entries.iter().filter(|entry| match &entry.body {
            Body::Event { subscription, .. } => *subscription == on,
            _ => false,
        });
        Seen::Nothing(events.count() as u64)
    };
    news.unwrap_or_else(of_others)
}
