//! Conversion between the CRI's messages, as bytes, and the types of [`history`](super). The only
//! list of the CRI's fields. Pure.
//!
//! Nothing is judged or repaired: a field that a runtime omits stays absent, a wrong one stays
//! wrong.

mod configs;
mod no_event_call;

use std::collections::HashMap;
use std::sync::Arc;

use k8s_cri::v1;
use prost::{DecodeError, Message as _};

pub use self::no_event_call::{NoEventCall, NoEventCallTarget};

use super::protobuf::{Message, Unreadable};
use super::{
    ContainerFilter, ContainerId, Event, Labels, Reply, Request, SandboxFilter, SandboxId,
    SandboxSpec,
};
use crate::limits;

/// The runtime service of the CRI.
pub const RUNTIME_SERVICE: &str = "runtime.v1.RuntimeService";
/// The image service of the CRI.
pub const IMAGE_SERVICE: &str = "runtime.v1.ImageService";
/// The methods of [`IMAGE_SERVICE`]; all others are of [`RUNTIME_SERVICE`].
const IMAGE_METHODS: [&str; 5] = [
    "ImageFsInfo",
    "ImageStatus",
    "ListImages",
    "PullImage",
    "RemoveImage",
];
/// The methods of both services, with those that the suite never calls.
pub const METHODS: &str = "Attach CheckpointContainer CheckpointPod ContainerStats ContainerStatus \
    CreateContainer Exec ExecSync GetContainerEvents ImageFsInfo ImageStatus ListContainerStats \
    ListContainers ListImages ListMetricDescriptors ListPodSandbox ListPodSandboxMetrics \
    ListPodSandboxStats PodSandboxStats PodSandboxStatus PortForward PullImage RemoveContainer \
    RemoveImage RemovePodSandbox ReopenContainerLog RestorePod RunPodSandbox RuntimeConfig \
    StartContainer Status StopContainer StopPodSandbox StreamContainerStats StreamContainers \
    StreamImages StreamPodSandboxMetrics StreamPodSandboxStats StreamPodSandboxes \
    UpdateContainerResources UpdatePodSandboxResources UpdateRuntimeConfig Version";
/// How many items one message of a streamed list has at most: few, so that there are several.
const BATCH: usize = 2;

/// Why a reply cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplyError {
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error("the runtime answered {0} with OK and without a status")]
    NoStatus(String),
    /// It has more items than the suite reads.
    #[error("the answer lists {listed}, and the suite looks at no more than {limit}")]
    TooLong {
        /// How many items it has.
        listed: usize,
        /// The most that are accepted.
        limit: usize,
    },
    /// It has many items without the requested labels.
    #[error("the answer lists {0} that do not have the labels that were asked for")]
    Unasked(usize),
    #[error("no such response")]
    UnknownResponse,
}

/// Why a request cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestError {
    #[error("the request cannot be read: {0}")]
    Unreadable(#[from] Unreadable),
    #[error("no such method")]
    UnknownMethod,
}

impl From<RequestError> for Unreadable {
    fn from(fault: RequestError) -> Self {
        match fault {
            RequestError::Unreadable(fault) => fault,
            RequestError::UnknownMethod => Self::Lacks("method"),
        }
    }
}

impl From<ReplyError> for Unreadable {
    fn from(fault: ReplyError) -> Self {
        match fault {
            ReplyError::Unreadable(fault) => fault,
            ReplyError::NoStatus(_) => Self::Lacks("status"),
            ReplyError::TooLong { .. } | ReplyError::Unasked(_) => Self::Lacks("list"),
            ReplyError::UnknownResponse => Self::Lacks("response"),
        }
    }
}

impl From<DecodeError> for RequestError {
    fn from(fault: DecodeError) -> Self {
        Self::Unreadable(fault.into())
    }
}

/// Whether a request goes to the image service.
pub fn is_of_images(request: &Request) -> bool {
    IMAGE_METHODS.contains(&request.method())
}

pub fn decode_event(bytes: &[u8]) -> Result<Event, Unreadable> {
    Event::read(bytes)
}

pub fn encode_event(event: &Event) -> Vec<u8> {
    event.to_bytes()
}

fn labels(map: HashMap<String, String>) -> Labels {
    map.into_iter().collect()
}

fn to_map(labels: &Labels) -> HashMap<String, String> {
    labels
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect()
}

/// An image by its reference. CRI-O needs the reference that the user wrote as well.
fn image_spec(reference: &str) -> v1::ImageSpec {
    v1::ImageSpec {
        image: reference.to_owned(),
        user_specified_image: reference.to_owned(),
        ..Default::default()
    }
}

/// Decodes the CRI's response message of this name, see [`Request::response`]; of a streamed list,
/// its messages one after another, which are parts of the list since they have its fields. Fails if
/// the message is not of that name, or would use up our memory.
pub fn decode_reply(response: &str, bytes: &[u8]) -> Result<Reply, ReplyError> {
    let reply = Reply::read(response, bytes).map_err(|fault| match fault {
        Unreadable::Lacks("status") => {
            ReplyError::NoStatus(response.trim_end_matches("Response").to_owned())
        }
        other => other.into(),
    })?;
    let reply = reply.ok_or(ReplyError::UnknownResponse)?;
    let (listed, limit) = match &reply {
        Reply::Sandboxes(listed) => (listed.len(), limits::LISTED),
        Reply::Containers(listed) => (listed.len(), limits::LISTED),
        _ => return Ok(reply),
    };
    if listed > limit {
        return Err(ReplyError::TooLong { listed, limit });
    }
    Ok(reply)
}

/// Refuses a list that shows more than a few items without the labels that were asked for: they
/// would use up our memory.
pub fn check_asked(request: &Request, reply: &Reply) -> Result<(), ReplyError> {
    let asked = match request {
        Request::ListSandboxes { labels, .. } | Request::ListContainers { labels, .. } => labels,
        Request::FindSandboxes(filter) => &filter.labels,
        Request::FindContainers(filter) => &filter.labels,
        _ => return Ok(()),
    };
    let unasked = match reply {
        Reply::Sandboxes(listed) => unasked(listed.iter().map(|item| &item.labels), asked),
        Reply::Containers(listed) => unasked(listed.iter().map(|item| &item.labels), asked),
        _ => 0,
    };
    if unasked > limits::UNASKED {
        return Err(ReplyError::Unasked(unasked));
    }
    Ok(())
}

fn unasked<'a>(listed: impl Iterator<Item = &'a Labels>, asked: &Labels) -> usize {
    let carries = |labels: &Labels| {
        let mut asked = asked.into_iter();
        asked.all(|(key, value)| labels.get(key).is_some_and(|found| found == value))
    };
    listed.filter(|labels| !carries(labels)).count()
}

/// The replies to a streamed list, one after another; none if it is no list.
pub fn batches(reply: Reply) -> Option<Vec<Reply>> {
    Some(match reply {
        Reply::Sandboxes(listed) => {
            let batches = listed.chunks(BATCH).map(<[_]>::to_vec);
            batches.map(Reply::Sandboxes).collect()
        }
        Reply::Containers(listed) => {
            let batches = listed.chunks(BATCH).map(<[_]>::to_vec);
            batches.map(Reply::Containers).collect()
        }
        _ => return None,
    })
}

/// The CRI's message of a request.
pub fn encode_request(request: &Request) -> Vec<u8> {
    match request {
        Request::Version => v1::VersionRequest {
            version: "v1".to_owned(),
        }
        .encode_to_vec(),
        Request::RunSandbox(spec) => v1::RunPodSandboxRequest {
            config: Some(configs::encode_sandbox(spec)),
            runtime_handler: spec.runtime_handler.clone(),
        }
        .encode_to_vec(),
        Request::CreateContainer(spec) => {
            configs::encode_create(configs::encode_container(spec), spec.stop_signal)
        }
        Request::ListSandboxes { labels, .. } => encode_sandbox_filter(&SandboxFilter {
            labels: labels.clone(),
            ..SandboxFilter::default()
        }),
        Request::FindSandboxes(filter) => encode_sandbox_filter(filter),
        Request::ListContainers {
            sandbox, labels, ..
        } => encode_container_filter(&ContainerFilter {
            sandbox: sandbox.clone(),
            labels: labels.clone(),
            ..ContainerFilter::default()
        }),
        Request::FindContainers(filter) => encode_container_filter(filter),
        Request::NoEventCall(call, id) => no_event_call::encode(*call, id.clone()),
        _ => request.to_bytes(),
    }
}

/// The request of the CRI's method of this name.
pub fn decode_request(method: &str, bytes: &[u8]) -> Result<Request, RequestError> {
    Ok(match method {
        "Version" => Request::Version,
        "RunPodSandbox" => {
            let request = v1::RunPodSandboxRequest::decode(bytes)?;
            let config = request.config.ok_or(Unreadable::Lacks("config"))?;
            Request::RunSandbox(Arc::new(SandboxSpec {
                runtime_handler: request.runtime_handler,
                ..configs::decode_sandbox(config)?
            }))
        }
        "CreateContainer" => {
            let (request, stop_signal) = configs::decode_create(bytes)?;
            Request::CreateContainer(Arc::new(configs::decode_container(request, stop_signal)?))
        }
        "ListPodSandbox" => listed_sandboxes(decode_sandbox_filter(bytes, false)?),
        "StreamPodSandboxes" => listed_sandboxes(decode_sandbox_filter(bytes, true)?),
        "ListContainers" => listed_containers(decode_container_filter(bytes, false)?),
        "StreamContainers" => listed_containers(decode_container_filter(bytes, true)?),
        _ => {
            if let Some(request) = Request::read(method, bytes)? {
                return Ok(request);
            }
            let call = NoEventCall::named(method).ok_or(RequestError::UnknownMethod)?;
            Request::NoEventCall(call, no_event_call::decode(call, bytes)?)
        }
    })
}

fn encode_sandbox_filter(filter: &SandboxFilter) -> Vec<u8> {
    let state = filter.state.map(|state| v1::PodSandboxStateValue {
        state: state.into(),
    });
    let filter = v1::PodSandboxFilter {
        id: text(filter.id.as_ref()),
        state,
        label_selector: to_map(&filter.labels),
    };
    v1::ListPodSandboxRequest {
        filter: Some(filter),
    }
    .encode_to_vec()
}

fn decode_sandbox_filter(bytes: &[u8], streamed: bool) -> Result<SandboxFilter, RequestError> {
    let request = v1::ListPodSandboxRequest::decode(bytes)?;
    let filter = request.filter.unwrap_or_default();
    Ok(SandboxFilter {
        id: given(filter.id).map(SandboxId::from),
        state: filter.state.map(|value| value.state.into()),
        labels: labels(filter.label_selector),
        streamed,
    })
}

/// A filter by labels alone is that of a relist.
fn listed_sandboxes(filter: SandboxFilter) -> Request {
    if filter.id.is_none() && filter.state.is_none() {
        Request::ListSandboxes {
            labels: filter.labels,
            streamed: filter.streamed,
        }
    } else {
        Request::FindSandboxes(filter)
    }
}

fn encode_container_filter(filter: &ContainerFilter) -> Vec<u8> {
    let state = filter.state.map(|state| v1::ContainerStateValue {
        state: state.into(),
    });
    let filter = v1::ContainerFilter {
        id: text(filter.id.as_ref()),
        state,
        pod_sandbox_id: text(filter.sandbox.as_ref()),
        label_selector: to_map(&filter.labels),
    };
    v1::ListContainersRequest {
        filter: Some(filter),
    }
    .encode_to_vec()
}

fn decode_container_filter(bytes: &[u8], streamed: bool) -> Result<ContainerFilter, RequestError> {
    let request = v1::ListContainersRequest::decode(bytes)?;
    let filter = request.filter.unwrap_or_default();
    Ok(ContainerFilter {
        id: given(filter.id).map(ContainerId::from),
        state: filter.state.map(|value| value.state.into()),
        sandbox: given(filter.pod_sandbox_id).map(SandboxId::from),
        labels: labels(filter.label_selector),
        streamed,
    })
}

/// A filter by sandbox and labels alone is that of a relist.
fn listed_containers(filter: ContainerFilter) -> Request {
    if filter.id.is_none() && filter.state.is_none() {
        Request::ListContainers {
            sandbox: filter.sandbox,
            labels: filter.labels,
            streamed: filter.streamed,
        }
    } else {
        Request::FindContainers(filter)
    }
}

fn text(id: Option<&impl ToString>) -> String {
    id.map(ToString::to_string).unwrap_or_default()
}

fn given(id: String) -> Option<String> {
    Some(id).filter(|id| !id.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fmt::Debug;

    use arbitrary::{Arbitrary, Unstructured};
    use k8s_cri::v1;
    use proptest::prelude::{any, proptest};
    use prost::Message as _;

    use super::*;
    use crate::history::{
        ContainerListing, ContainerReport, ImageListing, SandboxListing, SandboxReport, Signal,
    };

    /// Checks that a message of the CRI has all that one of ours has.
    fn check<Own, Generated>(bytes: &[u8], adapt: impl FnOnce(&mut Own))
    where
        Own: for<'a> Arbitrary<'a> + Debug + Message + PartialEq,
        Generated: prost::Message + Default,
    {
        let mut own = Own::arbitrary(&mut Unstructured::new(bytes)).expect("there are bytes");
        adapt(&mut own);
        let generated = Generated::decode(&*own.to_bytes()).expect("it is a message of the CRI");
        assert_eq!(Own::read(&generated.encode_to_vec()), Ok(own));
    }

    #[test]
    fn the_name_and_the_version_of_a_runtime_are_cut() {
        let message = v1::VersionResponse {
            runtime_name: "x".repeat(15 << 20),
            runtime_version: "é".repeat(3 << 10),
            ..v1::VersionResponse::default()
        };
        let reply = decode_reply("VersionResponse", &message.encode_to_vec());
        let Ok(Reply::Version(version)) = reply else {
            panic!("{reply:?}");
        };
        assert_eq!(
            version.runtime_name,
            "x".repeat(4 << 10) + "… (15728640 bytes)"
        );
        assert_eq!(
            version.runtime_version,
            "é".repeat(2 << 10) + "… (6144 bytes)"
        );
    }

    proptest! {
        #[test]
        fn messages_are_those_of_the_cri(bytes in proptest::collection::vec(any::<u8>(), 2_000)) {
            check::<Event, v1::ContainerEventResponse>(&bytes, |event| {
                for status in &mut event.containers {
                    status.setup.stop_signal = Signal::DEFAULT; // Which the generated ones lack.
                }
            });
            check::<SandboxReport, v1::PodSandboxStatusResponse>(&bytes, |report| {
                for status in &mut report.containers {
                    status.setup.stop_signal = Signal::DEFAULT;
                }
            });
            check::<ContainerReport, v1::ContainerStatusResponse>(&bytes, |report| {
                report.status.setup.stop_signal = Signal::DEFAULT;
            });
            check::<SandboxListing, v1::PodSandbox>(&bytes, |_| ());
            check::<ContainerListing, v1::Container>(&bytes, |_| ());
            check::<ImageListing, v1::Image>(&bytes, |_| ());
        }
    }

    #[track_caller]
    fn check_list(own: usize, foreign: usize, labels: &Labels, refused: Option<&ReplyError>) {
        let container = |run: &str| v1::Container {
            labels: HashMap::from([("run".to_owned(), run.to_owned())]),
            ..v1::Container::default()
        };
        let own = std::iter::repeat_n(container("mine"), own);
        let containers = own.chain(std::iter::repeat_n(container("theirs"), foreign));
        let message = v1::ListContainersResponse {
            containers: containers.collect(),
        };
        let request = Request::containers(None, labels.clone());
        let reply = decode_reply(request.response(), &message.encode_to_vec());
        let found = reply.and_then(|reply| check_asked(&request, &reply)).err();
        assert_eq!(found.as_ref(), refused);
    }

    #[test]
    fn a_list_that_would_use_up_our_memory_is_refused() {
        let (all, mine) = (Labels::new(), Labels::from([("run", "mine")]));
        let (limit, unasked) = (limits::LISTED, limits::UNASKED);
        check_list(0, limit, &all, None);
        check_list(limit - unasked, unasked, &mine, None);
        let listed = limit + 1;
        let too_long = ReplyError::TooLong { listed, limit };
        check_list(0, listed, &all, Some(&too_long));
        check_list(listed, 0, &mine, Some(&too_long));
        let unasked = unasked + 1;
        check_list(1, unasked, &mine, Some(&ReplyError::Unasked(unasked)));
    }

    #[test]
    fn the_messages_of_a_streamed_list_are_parts_of_the_list() {
        let listed = |ids: &[&str]| {
            let of = |id: &&str| v1::Container {
                id: (*id).to_owned(),
                ..v1::Container::default()
            };
            let containers = ids.iter().map(of).collect();
            v1::ListContainersResponse { containers }.encode_to_vec()
        };
        let parts = [listed(&["a", "b"]), listed(&["c"])].concat();
        let read = |bytes: &[u8]| decode_reply("ListContainersResponse", bytes);
        let whole = read(&listed(&["a", "b", "c"]));
        assert_eq!(read(&parts), whole);
        let reply = whole.unwrap();
        let batches = batches(reply.clone()).unwrap();
        assert_eq!(batches.len(), 2);
        let parts: Vec<u8> = batches.iter().flat_map(Reply::to_bytes).collect();
        assert_eq!(read(&parts), Ok(reply));
    }

    #[test]
    fn a_report_without_a_status_is_refused() {
        let refused = decode_reply("ContainerStatusResponse", &[]).unwrap_err();
        let message = "the runtime answered ContainerStatus with OK and without a status";
        assert_eq!(refused.to_string(), message);
        assert!(decode_reply("PodSandboxStatusResponse", &[]).is_err());
        assert!(decode_reply("PodSandboxStatusResponse", &[0xff]).is_err());
    }

    #[test]
    fn a_response_that_the_suite_does_not_read_is_refused() {
        let refused = decode_reply("CheckpointContainerResponse", &[]);
        assert_eq!(refused, Err(ReplyError::UnknownResponse));
    }
}
