//! A fake CRI server: pods and containers are entries in a list, and its event stream has a flaw
//! selected by the test.
//!
//! Long, because it has every method of the CRI, and the event stream of each flaw.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::future::{Future, pending};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cri_event_conformance::testing::drive::{KUBELET_LABELS, NAMESPACE, PROCESS_LABEL, run_labels};
use cri_event_conformance::testing::history::RunId;
use cri_event_conformance::testing::host::now;
use cri_event_conformance::testing::workload;
use k8s_cri::v1::image_service_server::{ImageService, ImageServiceServer};
use k8s_cri::v1::runtime_service_server::{RuntimeService, RuntimeServiceServer};
use k8s_cri::v1::*;
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::runtime::Runtime;
use tokio::sync::broadcast;
use tokio_stream::wrappers::{BroadcastStream, UnixListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};

/// A successful call takes far less.
const BOUND: Duration = Duration::from_secs(20);

/// The flaw of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The event stream ends with OK at once, as CRI-O's does unless `enable_pod_events` is set.
    EventsOff,
    /// There is no event stream, as in containerd before 1.7.
    NoEvents,
    /// The event stream stays open without events.
    Silent,
    /// The same, and its version is containerd 1.7, which sends each event to one subscriber.
    SingleConsumer,
    /// `Version` is never answered.
    Stuck,
    /// There is only an image service.
    ImagesOnly,
    /// All names contain terminal control characters, and so does this method's error.
    Evil(&'static str),
    /// There are more foreign containers than fit into memory.
    Crowded,
    /// An endless sequence of events, each of another container.
    Flood,
    /// The same, each with 2 MB of its own annotations, and every other one of another pod.
    LargeEvents,
    /// Four events of a container and a pod that are in no list.
    Unlisted,
    /// No container can be started.
    NoStarts,
}

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: &'static str,
    /// The request, as `Debug` shows it.
    pub(crate) message: String,
    /// Whether it has a deadline.
    pub(crate) has_deadline: bool,
}

/// Terminal control characters: a title, a bell, a cleared screen, NUL, a carriage return, a colour
/// in 8 bits, and text from right to left.
pub(crate) const EVIL: &str =
    "evil\u{1b}]0;x\u{7}\u{1b}[2J\0\r\u{9b}31m\u{202e}\u{2066}\u{200f}\nend";

/// The number of containers that just fit into a message.
const CROWD: usize = 100_000;

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct FakeCri {
    folder: TempDir,
    state: Arc<State>,
    calls: Receiver<&'static str>,
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct State {
    flaw: Flaw,
    sandboxes: Mutex<BTreeMap<String, PodSandbox>>,
    asked: Mutex<Vec<Asked>>,
    calls: Sender<&'static str>,
    events: broadcast::Sender<ContainerEventResponse>,
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send + 'a>>;
type Events = Pin<Box<dyn Stream<Item = Result<ContainerEventResponse, Status>> + Send>>;

/// The id of a run that has ended.
pub(crate) const ENDED_RUN: &str = "6f1c2f0e-0f6a-4c1e-9b52-9a256f2f3c1d";

impl FakeCri {
    pub(crate) fn start(flaw: Flaw) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (sender, calls) = mpsc::channel();
        let state = Arc::new(State {
            flaw,
            sandboxes: Mutex::default(),
            asked: Mutex::default(),
            calls: sender,
            events: broadcast::Sender::new(1000),
        });
        let runtime = serve(&state, &folder.path().join("cri"));
        Self {
            folder,
            state,
            calls,
            runtime: Some(runtime),
        }
    }

    /// Serves again after a crash.
    pub(crate) fn restart(&mut self) {
        std::fs::remove_file(self.socket()).unwrap();
        self.runtime = Some(serve(&self.state, &self.socket()));
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("cri")
    }

    /// A directory for a test's files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Waits until a method has been called.
    #[track_caller]
    pub(crate) fn wait_for(&self, method: &str) {
        loop {
            let called = self.calls.recv_timeout(BOUND);
            if called.unwrap_or_else(|_| panic!("{method} was not called")) == method {
                return;
            }
        }
    }

    /// Adds a sandbox like a kubelet's.
    pub(crate) fn add_pod_of_a_kubelet(&self) {
        let labels = ["name", "namespace", "uid"];
        let labels = labels.map(|label| (format!("io.kubernetes.pod.{label}"), label.to_owned()));
        self.add_pod("kubelets", PodSandboxMetadata::default(), labels.into());
    }

    /// Adds a leftover sandbox of this run.
    pub(crate) fn add_pod_of_a_run(&self, run: &str) {
        let mut labels = run_labels(&RunId::from(run));
        labels.insert(PROCESS_LABEL, "1-1");
        let name = "ord-01-pod-0a1b2c3d";
        let uid = "0a1b2c3d-0000-4000-8000-000000000000";
        for (label, value) in KUBELET_LABELS.into_iter().zip([name, NAMESPACE, uid]) {
            labels.insert(label, value);
        }
        let labels = labels.iter();
        let labels = labels.map(|(label, value)| (label.to_string(), value.to_string()));
        let metadata = PodSandboxMetadata {
            name: name.to_owned(),
            namespace: NAMESPACE.to_owned(),
            uid: uid.to_owned(),
            attempt: 0,
        };
        self.add_pod("left", metadata, labels.collect());
    }

    fn add_pod(&self, id: &str, of: PodSandboxMetadata, labels: HashMap<String, String>) {
        let mut sandbox = PodSandbox::default();
        (sandbox.id, sandbox.metadata, sandbox.labels) = (id.to_owned(), Some(of), labels);
        self.state.sandboxes().insert(id.to_owned(), sandbox);
    }

    pub(crate) fn sandboxes(&self) -> usize {
        self.state.sandboxes().len()
    }

    /// The received calls of known methods, in order.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }

    /// Ends the server; its socket stays, as after a crash.
    pub(crate) fn crash(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn serve(state: &Arc<State>, socket: &Path) -> Runtime {
    let runtime = Runtime::new().unwrap();
    let incoming = runtime.block_on(async { UnixListener::bind(socket) });
    let incoming = UnixListenerStream::new(incoming.unwrap());
    let mut server = tonic::transport::Server::builder();
    let images = ImageServiceServer::from_arc(state.clone());
    let router = if state.flaw == Flaw::ImagesOnly {
        server.add_service(images)
    } else {
        let runtime = RuntimeServiceServer::from_arc(state.clone());
        server.add_service(images).add_service(runtime)
    };
    runtime.spawn(router.serve_with_incoming(incoming));
    runtime
}

impl Drop for FakeCri {
    fn drop(&mut self) {
        self.crash();
    }
}

impl State {
    fn sandboxes(&self) -> MutexGuard<'_, BTreeMap<String, PodSandbox>> {
        self.sandboxes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn note<T: fmt::Debug>(&self, method: &'static str, ask: &Request<T>) {
        let asked = Asked {
            method,
            message: format!("{:?}", ask.get_ref()),
            has_deadline: ask.metadata().contains_key("grpc-timeout"),
        };
        self.asked.lock().unwrap().push(asked);
        let _ = self.calls.send(method);
    }

    /// The error of a method, if it fails.
    fn refuses(&self, method: &str) -> Option<Status> {
        match self.flaw {
            Flaw::Evil(evil) if evil == method => Some(Status::unknown(EVIL)),
            Flaw::Evil(_)
            | Flaw::Crowded
            | Flaw::Flood
            | Flaw::LargeEvents
            | Flaw::Unlisted
            | Flaw::NoStarts => None,
            _ => (method == "list_containers").then(|| Status::unimplemented(method)),
        }
    }

    /// A name chosen by this server.
    fn name(&self, name: &str) -> String {
        match self.flaw {
            Flaw::Evil(_) => format!("{name}{EVIL}"),
            _ => name.to_owned(),
        }
    }

    fn version(&self) -> Option<VersionResponse> {
        let answers = self.flaw != Flaw::Stuck;
        let is_single = self.flaw == Flaw::SingleConsumer;
        answers.then(|| VersionResponse {
            version: "0.1.0".to_owned(),
            runtime_name: self.name(if is_single { "containerd" } else { "fake" }),
            runtime_version: if is_single { "1.7.99" } else { "1" }.to_owned(),
            runtime_api_version: "v1".to_owned(),
        })
    }

    fn run(&self, ask: RunPodSandboxRequest) -> RunPodSandboxResponse {
        let config = ask.config.unwrap_or_default();
        let id = config.metadata.clone().unwrap_or_default().uid;
        let sandbox = PodSandbox {
            id: id.clone(),
            metadata: config.metadata,
            labels: config.labels,
            ..PodSandbox::default()
        };
        self.sandboxes().insert(id.clone(), sandbox);
        RunPodSandboxResponse { pod_sandbox_id: id }
    }

    fn list(&self, ask: ListPodSandboxRequest) -> ListPodSandboxResponse {
        let labels = ask.filter.unwrap_or_default().label_selector;
        let carries = |sandbox: &PodSandbox| {
            let mut labels = labels.iter();
            labels.all(|(name, value)| sandbox.labels.get(name) == Some(value))
        };
        let mut items: Vec<_> = self.sandboxes().values().cloned().collect();
        items.retain(carries);
        if matches!(self.flaw, Flaw::Evil(_)) {
            items.push(self.foreign_pod());
        }
        ListPodSandboxResponse { items }
    }

    fn foreign_pod(&self) -> PodSandbox {
        PodSandbox {
            id: self.name("pod-id"),
            metadata: Some(PodSandboxMetadata {
                name: self.name("pod"),
                uid: self.name("uid"),
                namespace: self.name("namespace"),
                attempt: 0,
            }),
            ..PodSandbox::default()
        }
    }

    fn foreign_event(&self) -> ContainerEventResponse {
        let pod = self.foreign_pod();
        ContainerEventResponse {
            container_id: self.name("container"),
            container_event_type: ContainerEventType::ContainerStartedEvent.into(),
            created_at: 1,
            pod_sandbox_status: Some(PodSandboxStatus {
                id: pod.id,
                metadata: pod.metadata,
                ..PodSandboxStatus::default()
            }),
            containers_statuses: vec![ContainerStatus {
                id: self.name("container"),
                reason: self.name("reason"),
                ..ContainerStatus::default()
            }],
        }
    }

    fn containers(&self) -> ListContainersResponse {
        let container = |number: usize| Container {
            id: self.name(&format!("{number:064}")),
            pod_sandbox_id: self.name("pod-id"),
            state: ContainerState::ContainerRunning.into(),
            metadata: Some(ContainerMetadata {
                name: self.name("app"),
                attempt: 0,
            }),
            labels: [("app".to_owned(), "others".to_owned())].into(),
            ..Container::default()
        };
        let containers = match self.flaw {
            Flaw::Crowded => (0..CROWD).map(container).collect(),
            Flaw::Evil(_) => vec![container(1)],
            _ => Vec::new(),
        };
        ListContainersResponse { containers }
    }

    fn create(&self, ask: &CreateContainerRequest) -> CreateContainerResponse {
        let container_id = format!("{}-c", ask.pod_sandbox_id);
        // Nobody may be listening.
        let _ = self.events.send(ContainerEventResponse {
            container_id: container_id.clone(),
            ..ContainerEventResponse::default()
        });
        CreateContainerResponse { container_id }
    }

    /// Events of unlisted containers, counted in `calls` by the 50,000.
    fn flood(&self) -> Events {
        let calls = self.calls.clone();
        let event = move |number: u64| {
            if number.is_multiple_of(50_000) {
                let _ = calls.send("flooded");
            }
            Ok(ContainerEventResponse {
                container_id: format!("{number:064}"),
                created_at: 1,
                ..ContainerEventResponse::default()
            })
        };
        Box::pin(tokio_stream::iter((1..).map(event)))
    }

    /// Events of 2 MB, counted in `calls` by the 50.
    fn large_events(&self) -> Events {
        let (calls, event) = (self.calls.clone(), self.foreign_event());
        let event = move |number: u64| {
            if number.is_multiple_of(50) {
                let _ = calls.send("flooded");
            }
            let mut event = event.clone();
            let pod = event.pod_sandbox_status.get_or_insert_default();
            if number.is_multiple_of(2) {
                pod.metadata.get_or_insert_default().uid = number.to_string();
            }
            event.container_id = format!("{number:064}");
            event.containers_statuses[0]
                .id
                .clone_from(&event.container_id);
            let own = format!("{number:010}").repeat(200_000);
            pod.annotations.insert("large".to_owned(), own);
            Ok(event)
        };
        Box::pin(tokio_stream::iter((1..).map(event)))
    }

    /// Four events of a container without a status.
    fn unlisted(&self) -> Events {
        let event = |kind| {
            Ok(ContainerEventResponse {
                container_event_type: kind,
                created_at: now().realtime_ns,
                containers_statuses: Vec::new(),
                ..self.foreign_event()
            })
        };
        let events: Vec<_> = (0..4).map(event).collect();
        Box::pin(tokio_stream::iter(events).chain(tokio_stream::pending()))
    }

    fn remove(&self, ask: &RemovePodSandboxRequest) -> RemovePodSandboxResponse {
        self.sandboxes().remove(&ask.pod_sandbox_id);
        RemovePodSandboxResponse {}
    }
}

/// Methods in the form of `async_trait`: those that are answered, and unimplemented ones.
macro_rules! methods {
    (
        answered: { $($name:ident($ask:ident) -> $answer:ident = $answered:expr;)* }
        missing: { $($missing:ident($missing_ask:ident) -> $missing_answer:ident;)* }
    ) => {
        $(fn $name<'a, 'b>(&'a self, ask: Request<$ask>) -> Answer<'b, $answer>
        where
            'a: 'b,
            Self: 'b,
        {
            self.note(stringify!($name), &ask);
            if let Some(refusal) = self.refuses(stringify!($name)) {
                return Box::pin(async { Err(refusal) });
            }
            let answer: Option<$answer> = $answered(self, ask.into_inner());
            Box::pin(async move {
                match answer {
                    Some(answer) => Ok(Response::new(answer)),
                    None => pending().await,
                }
            })
        })*
        $(fn $missing<'a, 'b>(&'a self, _: Request<$missing_ask>) -> Answer<'b, $missing_answer>
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(async { Err(Status::unimplemented(stringify!($missing))) })
        })*
    };
}

impl RuntimeService for State {
    methods! {
        answered: {
        version(VersionRequest) -> VersionResponse = |this: &Self, _| this.version();
        run_pod_sandbox(RunPodSandboxRequest) -> RunPodSandboxResponse =
            |this: &Self, ask| Some(this.run(ask));
        stop_pod_sandbox(StopPodSandboxRequest) -> StopPodSandboxResponse =
            |_, _| Some(StopPodSandboxResponse {});
        remove_pod_sandbox(RemovePodSandboxRequest) -> RemovePodSandboxResponse =
            |this: &Self, ask| Some(this.remove(&ask));
        list_pod_sandbox(ListPodSandboxRequest) -> ListPodSandboxResponse =
            |this: &Self, ask| Some(this.list(ask));
        create_container(CreateContainerRequest) -> CreateContainerResponse =
            |this: &Self, ask| Some(this.create(&ask));
        list_containers(ListContainersRequest) -> ListContainersResponse =
            |this: &Self, _| Some(this.containers());
        remove_container(RemoveContainerRequest) -> RemoveContainerResponse =
            |_, _| Some(RemoveContainerResponse {});
        stop_container(StopContainerRequest) -> StopContainerResponse =
            |_, _| Some(StopContainerResponse {});
        }
        missing: {
        pod_sandbox_status(PodSandboxStatusRequest) -> PodSandboxStatusResponse;
        start_container(StartContainerRequest) -> StartContainerResponse;
        container_status(ContainerStatusRequest) -> ContainerStatusResponse;
        update_container_resources(UpdateContainerResourcesRequest)
            -> UpdateContainerResourcesResponse;
        reopen_container_log(ReopenContainerLogRequest) -> ReopenContainerLogResponse;
        exec_sync(ExecSyncRequest) -> ExecSyncResponse;
        exec(ExecRequest) -> ExecResponse;
        attach(AttachRequest) -> AttachResponse;
        port_forward(PortForwardRequest) -> PortForwardResponse;
        container_stats(ContainerStatsRequest) -> ContainerStatsResponse;
        list_container_stats(ListContainerStatsRequest) -> ListContainerStatsResponse;
        pod_sandbox_stats(PodSandboxStatsRequest) -> PodSandboxStatsResponse;
        list_pod_sandbox_stats(ListPodSandboxStatsRequest) -> ListPodSandboxStatsResponse;
        update_runtime_config(UpdateRuntimeConfigRequest) -> UpdateRuntimeConfigResponse;
        status(StatusRequest) -> StatusResponse;
        checkpoint_container(CheckpointContainerRequest) -> CheckpointContainerResponse;
        list_metric_descriptors(ListMetricDescriptorsRequest) -> ListMetricDescriptorsResponse;
        list_pod_sandbox_metrics(ListPodSandboxMetricsRequest) -> ListPodSandboxMetricsResponse;
        runtime_config(RuntimeConfigRequest) -> RuntimeConfigResponse;
        }
    }

    type GetContainerEventsStream = Events;

    fn get_container_events<'a, 'b>(&'a self, _: Request<GetEventsRequest>) -> Answer<'b, Events>
    where
        'a: 'b,
        Self: 'b,
    {
        let events: Result<Events, Status> = match self.flaw {
            Flaw::EventsOff => Ok(Box::pin(tokio_stream::empty())),
            Flaw::NoEvents | Flaw::ImagesOnly => Err(Status::unimplemented("no such method")),
            Flaw::Silent | Flaw::SingleConsumer | Flaw::Stuck => {
                Ok(Box::pin(tokio_stream::pending()))
            }
            Flaw::Flood => Ok(self.flood()),
            Flaw::LargeEvents => Ok(self.large_events()),
            Flaw::Unlisted => Ok(self.unlisted()),
            Flaw::Evil(_) => {
                let event = Ok(self.foreign_event());
                Ok(Box::pin(
                    tokio_stream::once(event).chain(tokio_stream::pending()),
                ))
            }
            Flaw::Crowded | Flaw::NoStarts => {
                let events = BroadcastStream::new(self.events.subscribe());
                let lost = |_| Status::data_loss("the test was too slow");
                Ok(Box::pin(events.map(move |event| event.map_err(lost))))
            }
        };
        Box::pin(async move { events.map(Response::new) })
    }
}

impl ImageService for State {
    methods! {
        answered: {
        list_images(ListImagesRequest) -> ListImagesResponse =
            |_, _| Some(ListImagesResponse::default());
        image_status(ImageStatusRequest) -> ImageStatusResponse =
            |_, _| Some(ImageStatusResponse {
                image: Some(Image {
                    id: workload::Image::build(&BTreeMap::new()).id().to_owned(),
                    ..Image::default()
                }),
                ..ImageStatusResponse::default()
            });
        }
        missing: {
        pull_image(PullImageRequest) -> PullImageResponse;
        remove_image(RemoveImageRequest) -> RemoveImageResponse;
        image_fs_info(ImageFsInfoRequest) -> ImageFsInfoResponse;
        }
    }
}
