//! Replies, in both directions.

use super::errors::ReplyError;
use crate::history::protobuf::Unreadable;
use crate::history::{Labels, Reply, Request};
use crate::limits;

/// How many items one message of a streamed list has at most: few, so that there are several.
const BATCH: usize = 2;

/// What a runtime has answered, in the CRI's message of this name, as [`Request::response`] gives
/// it. Of a streamed list, the messages one after another: they have the fields of the list itself,
/// and so are its parts. Fails if the message is not of that name, or would use up our memory.
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use k8s_cri::v1;
    use prost::Message as _;

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
