//! Replies, in both directions.

use k8s_cri::v1;
use prost::Message as _;

use super::errors::ReplyError;
use crate::history::protobuf::{Message, Unreadable, message};
use crate::history::{
    ContainerId, ContainerListing, ContainerReport, ImageListing, Labels, Reply, Request,
    RuntimeStatus, RuntimeVersion, SandboxId, SandboxListing, SandboxReport,
};
use crate::limits;

/// How many items one message of a streamed list has at most: few, so that there are several.
const BATCH: usize = 2;

/// What a runtime has answered, in the CRI's message of this name, as [`Request::response`] gives
/// it. Of a streamed list, the messages one after another: they have the fields of the list itself,
/// and so are its parts. Fails if the message is not of that name, or would use up our memory.
pub fn decode_reply(response: &str, bytes: &[u8]) -> Result<Reply, ReplyError> {
    Ok(match response {
        "VersionResponse" => {
            let reply = v1::VersionResponse::decode(bytes)?;
            Reply::Version(RuntimeVersion {
                runtime_name: reply.runtime_name,
                runtime_version: reply.runtime_version,
                api_version: reply.runtime_api_version,
            })
        }
        "RunPodSandboxResponse" => {
            let reply = v1::RunPodSandboxResponse::decode(bytes)?;
            Reply::Sandbox(SandboxId::from(reply.pod_sandbox_id))
        }
        "CreateContainerResponse" => {
            let reply = v1::CreateContainerResponse::decode(bytes)?;
            Reply::Container(ContainerId::from(reply.container_id))
        }
        "PodSandboxStatusResponse" => Reply::SandboxStatus(
            SandboxReport::read(bytes).map_err(|fault| report_error(fault, "PodSandboxStatus"))?,
        ),
        "ContainerStatusResponse" => Reply::ContainerStatus(
            ContainerReport::read(bytes).map_err(|fault| report_error(fault, "ContainerStatus"))?,
        ),
        "ListPodSandboxResponse" => decode_sandboxes(bytes)?,
        "ListContainersResponse" => decode_containers(bytes)?,
        "StatusResponse" => decode_runtime_status(bytes)?,
        "ImageStatusResponse" => Reply::Image(Image::read(bytes)?.image),
        "PullImageResponse" => {
            let reply = v1::PullImageResponse::decode(bytes)?;
            Reply::Pulled(reply.image_ref)
        }
        "ListImagesResponse" => Reply::Images(Images::read(bytes)?.images),
        "ExecSyncResponse" => {
            let reply = v1::ExecSyncResponse::decode(bytes)?;
            Reply::Exec(reply.exit_code)
        }
        "" => {
            // Whatever fields it has: the reply is that there is one.
            <()>::decode(bytes)?;
            Reply::Done
        }
        _ => return Err(ReplyError::UnknownResponse),
    })
}

/// Refuses a list that shows more than a few items without the labels that were asked for: they
/// would use up our memory.
pub fn check_asked(request: &Request, reply: &Reply) -> Result<(), ReplyError> {
    let asked = match request {
        Request::ListSandboxes(labels) | Request::ListContainers { labels, .. } => labels,
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

/// The CRI's message of a reply.
pub fn encode_reply(reply: Reply) -> Vec<u8> {
    match reply {
        Reply::Done => Vec::new(),
        Reply::Version(version) => v1::VersionResponse {
            version: "0.1.0".to_owned(),
            runtime_name: version.runtime_name,
            runtime_version: version.runtime_version,
            runtime_api_version: version.api_version,
        }
        .encode_to_vec(),
        Reply::Sandbox(id) => v1::RunPodSandboxResponse {
            pod_sandbox_id: id.to_string(),
        }
        .encode_to_vec(),
        Reply::Container(id) => v1::CreateContainerResponse {
            container_id: id.to_string(),
        }
        .encode_to_vec(),
        Reply::SandboxStatus(report) => report.to_bytes(),
        Reply::ContainerStatus(report) => report.to_bytes(),
        Reply::Sandboxes(items) => Sandboxes { items }.to_bytes(),
        Reply::Containers(containers) => Containers { containers }.to_bytes(),
        Reply::RuntimeStatus(status) => encode_runtime_status(status),
        Reply::Image(image) => Image { image }.to_bytes(),
        Reply::Pulled(image_ref) => v1::PullImageResponse { image_ref }.encode_to_vec(),
        Reply::Images(images) => Images { images }.to_bytes(),
        Reply::Exec(exit_code) => v1::ExecSyncResponse {
            exit_code,
            ..Default::default()
        }
        .encode_to_vec(),
    }
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

/// Why an answer to a question about a status cannot be used.
fn report_error(fault: Unreadable, method: &'static str) -> ReplyError {
    match fault {
        Unreadable::Lacks("status") => ReplyError::NoStatus(method),
        other => other.into(),
    }
}

message! {
    struct Sandboxes {
        items: Vec<SandboxListing> = 1,
    }
}

message! {
    struct Containers {
        containers: Vec<ContainerListing> = 1,
    }
}

message! {
    struct Images {
        images: Vec<ImageListing> = 1,
    }
}

message! {
    struct Image {
        image: Option<ImageListing> = 1,
    }
}

fn decode_sandboxes(bytes: &[u8]) -> Result<Reply, ReplyError> {
    let Sandboxes { items } = Sandboxes::read(bytes)?;
    check_length(items.len())?;
    Ok(Reply::Sandboxes(items))
}

fn decode_containers(bytes: &[u8]) -> Result<Reply, ReplyError> {
    let Containers { containers } = Containers::read(bytes)?;
    check_length(containers.len())?;
    Ok(Reply::Containers(containers))
}

/// Refuses a list that would use up our memory.
fn check_length(listed: usize) -> Result<(), ReplyError> {
    let limit = limits::LISTED;
    if listed > limit {
        return Err(ReplyError::TooLong { listed, limit });
    }
    Ok(())
}

fn decode_runtime_status(bytes: &[u8]) -> Result<Reply, ReplyError> {
    let reply = v1::StatusResponse::decode(bytes)?;
    let conditions = reply.status.unwrap_or_default().conditions.into_iter();
    let holding = conditions.filter(|condition| condition.status);
    let handlers = reply.runtime_handlers.into_iter();
    Ok(Reply::RuntimeStatus(RuntimeStatus {
        conditions: holding.map(|condition| condition.r#type).collect(),
        handlers: handlers.map(|handler| handler.name).collect(),
    }))
}

fn encode_runtime_status(status: RuntimeStatus) -> Vec<u8> {
    let holding = |name| v1::RuntimeCondition {
        r#type: name,
        status: true,
        ..Default::default()
    };
    let handler = |name| v1::RuntimeHandler {
        name,
        ..Default::default()
    };
    v1::StatusResponse {
        status: Some(v1::RuntimeStatus {
            conditions: status.conditions.into_iter().map(holding).collect(),
        }),
        runtime_handlers: status.handlers.into_iter().map(handler).collect(),
        ..Default::default()
    }
    .encode_to_vec()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[track_caller]
    fn check(own: usize, foreign: usize, labels: &Labels, refused: Option<&ReplyError>) {
        let container = |run: &str| v1::Container {
            labels: HashMap::from([("run".to_owned(), run.to_owned())]),
            ..v1::Container::default()
        };
        let own = std::iter::repeat_n(container("mine"), own);
        let containers = own.chain(std::iter::repeat_n(container("theirs"), foreign));
        let message = v1::ListContainersResponse {
            containers: containers.collect(),
        };
        let request = Request::ListContainers {
            sandbox: None,
            labels: labels.clone(),
        };
        let reply = decode_reply(request.response(), &message.encode_to_vec());
        let found = reply.and_then(|reply| check_asked(&request, &reply)).err();
        assert_eq!(found.as_ref(), refused);
    }

    #[test]
    fn a_list_that_would_use_up_our_memory_is_refused() {
        let (all, mine) = (Labels::new(), Labels::from([("run", "mine")]));
        let (limit, unasked) = (limits::LISTED, limits::UNASKED);
        check(0, limit, &all, None);
        check(limit - unasked, unasked, &mine, None);
        let listed = limit + 1;
        let too_long = ReplyError::TooLong { listed, limit };
        check(0, listed, &all, Some(&too_long));
        check(listed, 0, &mine, Some(&too_long));
        let unasked = unasked + 1;
        check(1, unasked, &mine, Some(&ReplyError::Unasked(unasked)));
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
        let whole = decode_containers(&listed(&["a", "b", "c"]));
        assert_eq!(decode_containers(&parts), whole);
        let reply = whole.unwrap();
        let batches = batches(reply.clone()).unwrap();
        assert_eq!(batches.len(), 2);
        let parts: Vec<u8> = batches.into_iter().flat_map(encode_reply).collect();
        assert_eq!(decode_containers(&parts), Ok(reply));
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
