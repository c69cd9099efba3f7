//! Lists by any filter, also as streams, and what the runtime says of itself.
//!
//! A stream of a list has the messages of the list itself, several of them: the same fields by the
//! same numbers, in the CRI's definition.

use std::time::Duration;

use k8s_cri::v1;
use k8s_cri::v1::runtime_service_client::RuntimeServiceClient;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};
use tonic_prost::ProstCodec;

use super::client::{ready, timed};
use super::convert;
use crate::history::{Reply, Request};

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
                    }
                    whole
                } else {
                    let answer = self.runtime.list_pod_sandbox(timed(ask, within)).await?;
                    answer.into_inner()
                };
                Ok(convert::sandboxes(answer))
            }
            Request::FindContainers(filter) => {
                let ask = convert::find_containers(filter);
                let answer = if filter.streamed {
                    let mut whole = v1::ListContainersResponse::default();
                    let mut parts = self.stream(STREAM_CONTAINERS, ask, within).await?;
                    while let Some(part) = parts.message().await? {
                        let v1::ListContainersResponse { containers } = part;
                        whole.containers.extend(containers);
                    }
                    whole
                } else {
                    let answer = self.runtime.list_containers(timed(ask, within)).await?;
                    answer.into_inner()
                };
                Ok(convert::containers(answer))
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
