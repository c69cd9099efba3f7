//! Lists by any filter, also as streams, and what the runtime says of itself.
//!
//! A stream of a list has the messages of the list itself, several of them: the same fields by the
//! same numbers, in the CRI's definition.

use std::collections::HashMap;
use std::time::Duration;

use k8s_cri::v1;
use k8s_cri::v1::runtime_service_client::RuntimeServiceClient;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};
use tonic_prost::ProstCodec;

use super::client::{ready, timed};
use super::convert;
use crate::history::{Labels, Reply, Request};
use crate::limits;

/// Where lists are streamed (KEP-5825).
pub(super) const STREAM_SANDBOXES: &str = "/runtime.v1.RuntimeService/StreamPodSandboxes";
pub(super) const STREAM_CONTAINERS: &str = "/runtime.v1.RuntimeService/StreamContainers";

/// A connection, as itself and as the service that is called on it.
#[derive(Debug)]
pub(super) struct Lists {
    pub(super) runtime: RuntimeServiceClient<Channel>,
    pub(super) connection: Channel,
}

impl Lists {
    /// Sends such a call.
    pub(super) async fn ask(
        mut self,
        request: &Request,
        within: Option<Duration>,
    ) -> Result<Reply, Status> {
        match request {
            Request::FindSandboxes(filter) => {
                let ask = convert::find_sandboxes(filter);
                let answer = if filter.streamed {
                    let mut whole = v1::ListPodSandboxResponse::default();
                    let mut parts = self.stream(STREAM_SANDBOXES, ask, within).await?;
                    while let Some(v1::ListPodSandboxResponse { items }) = parts.message().await? {
                        whole.items.extend(items);
                        bounded(whole.items.len(), 0)?;
                    }
                    whole
                } else {
                    let answer = self.runtime.list_pod_sandbox(timed(ask, within)).await?;
                    answer.into_inner()
                };
                sandboxes(answer, &filter.labels)
            }
            Request::FindContainers(filter) => {
                let ask = convert::find_containers(filter);
                let answer = if filter.streamed {
                    let mut whole = v1::ListContainersResponse::default();
                    let mut parts = self.stream(STREAM_CONTAINERS, ask, within).await?;
                    while let Some(part) = parts.message().await? {
                        let v1::ListContainersResponse { containers } = part;
                        whole.containers.extend(containers);
                        bounded(whole.containers.len(), 0)?;
                    }
                    whole
                } else {
                    let answer = self.runtime.list_containers(timed(ask, within)).await?;
                    answer.into_inner()
                };
                containers(answer, &filter.labels)
            }
            _ => {
                let ask = v1::StatusRequest { verbose: false };
                let answer = self.runtime.status(timed(ask, within)).await?;
                Ok(convert::runtime_status(answer.into_inner()))
            }
        }
    }

    async fn stream<A, T>(
        self,
        path: &'static str,
        ask: A,
        within: Option<Duration>,
    ) -> Result<Streaming<T>, Status>
    where
        A: prost::Message + Default + Send + Sync + 'static,
        T: prost::Message + Default + Send + Sync + 'static,
    {
        stream(self.connection, path, timed(ask, within))
            .await
            .map(Response::into_inner)
    }
}

/// The sandboxes of an answer, where these labels were asked for.
pub(super) fn sandboxes(
    answer: v1::ListPodSandboxResponse,
    asked: &Labels,
) -> Result<Reply, Status> {
    let items = answer.items.iter();
    let unasked = items.filter(|item| !carries(&item.labels, asked)).count();
    bounded(answer.items.len(), unasked)?;
    Ok(convert::sandboxes(answer))
}

/// The containers of an answer, where these labels were asked for.
pub(super) fn containers(
    answer: v1::ListContainersResponse,
    asked: &Labels,
) -> Result<Reply, Status> {
    let items = answer.containers.iter();
    let unasked = items.filter(|item| !carries(&item.labels, asked)).count();
    bounded(answer.containers.len(), unasked)?;
    Ok(convert::containers(answer))
}

fn carries(labels: &HashMap<String, String>, asked: &Labels) -> bool {
    let mut asked = asked.into_iter();
    asked.all(|(key, value)| labels.get(&**key).is_some_and(|found| **found == **value))
}

/// Refuses an answer that would use up our memory, for its items and all that is made of them.
fn bounded(listed: usize, unasked: usize) -> Result<(), Status> {
    let fault = if listed > limits::LISTED {
        format!(
            "the answer lists {listed}, and the suite looks at no more than {}",
            limits::LISTED
        )
    } else if unasked > limits::UNASKED {
        format!("the answer lists {unasked} that do not have the labels that were asked for")
    } else {
        return Ok(());
    };
    Err(Status::resource_exhausted(fault))
}

/// Asks for a stream of messages by a method that the generated clients do not have.
pub(super) async fn stream<A, T>(
    connection: Channel,
    path: &'static str,
    ask: tonic::Request<A>,
) -> Result<Response<Streaming<T>>, Status>
where
    A: prost::Message + Default + Send + Sync + 'static,
    T: prost::Message + Default + Send + Sync + 'static,
{
    let mut client = ready(connection).await?;
    let codec = ProstCodec::<A, T>::default();
    let path = PathAndQuery::from_static(path);
    client.server_streaming(ask, path, codec).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(own: usize, foreign: usize) -> v1::ListContainersResponse {
        let container = |run: &str| v1::Container {
            labels: HashMap::from([("run".to_owned(), run.to_owned())]),
            ..v1::Container::default()
        };
        let own = std::iter::repeat_n(container("mine"), own);
        let foreign = std::iter::repeat_n(container("theirs"), foreign);
        v1::ListContainersResponse {
            containers: own.chain(foreign).collect(),
        }
    }

    #[track_caller]
    fn check(own: usize, foreign: usize, asked: &Labels, expect: &str) {
        let said = match containers(listing(own, foreign), asked) {
            Ok(Reply::Containers(listed)) => {
                assert_eq!(listed.len(), own + foreign);
                String::new()
            }
            Ok(other) => panic!("{other:?}"),
            Err(status) => status.message().to_owned(),
        };
        assert_eq!(said, expect);
    }

    #[test]
    fn what_would_use_up_our_memory_is_refused() {
        let (all, mine) = (Labels::new(), Labels::from([("run", "mine")]));
        let (listed, unasked) = (limits::LISTED, limits::UNASKED);
        check(0, listed, &all, "");
        check(listed - unasked, unasked, &mine, "");
        let refused = "the answer lists 20001, and the suite looks at no more than 20000";
        check(0, listed + 1, &all, refused);
        check(listed + 1, 0, &mine, refused);
        let refused = "the answer lists 1001 that do not have the labels that were asked for";
        check(1, unasked + 1, &mine, refused);
    }
}
