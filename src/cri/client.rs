//! Unary calls, and the gRPC codec for messages as bytes.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use k8s_cri::v1;
use prost::Message;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Response, Status, Streaming};

use super::connect::{ConnectError, channel, diagnose, reply_fault, status_fault};
use super::endpoint::Endpoint;
use super::oci::{self, Beneath};
use crate::history::messages::{self, IMAGE_SERVICE, RUNTIME_SERVICE};
use crate::history::{CallFault, ContainerId, Reply, Request, RuntimeVersion, StatusCode};
use crate::{host, limits};

/// A connection to a runtime and to its image service, for unary calls. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    runtime: Channel,
    images: Channel,
    deadline: Duration,
    version: Arc<RuntimeVersion>,
}

impl Client {
    /// Connects to a runtime and asks for its version; `deadline` is that of every later call.
    pub async fn connect(
        runtime: &Endpoint,
        images: &Endpoint,
        deadline: Duration,
    ) -> Result<Self, ConnectError> {
        let runtime_channel = channel(runtime).await?;
        let images_channel = if images == runtime {
            runtime_channel.clone()
        } else {
            channel(images).await?
        };
        let mut client = Self {
            runtime: runtime_channel,
            images: images_channel,
            deadline,
            version: Arc::default(),
        };
        let first = first_within(deadline);
        match client.call_within(&Request::Version, first).await {
            Ok(Reply::Version(version)) => client.version = Arc::new(version),
            Ok(_) => unreachable!("`Version` is answered by a version"),
            Err(fault) => return Err(diagnose(runtime, fault)),
        }
        Ok(client)
    }

    /// Another client of the same runtime, with its own connection.
    pub async fn another(&self, runtime: &Endpoint) -> Result<Self, ConnectError> {
        Ok(Self {
            runtime: channel(runtime).await?,
            ..self.clone()
        })
    }

    pub fn version(&self) -> &RuntimeVersion {
        &self.version
    }

    /// The default deadline of calls.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The deadline of a call to a runtime that may answer none.
    pub fn first_deadline(&self) -> Duration {
        first_within(self.deadline)
    }

    /// The OCI runtime of a handler, empty for the default one, and the cgroup driver, if verbose
    /// `Status` and `RuntimeConfig` report them.
    pub async fn beneath(&self, handler: &str) -> Beneath {
        let status = v1::StatusRequest { verbose: true };
        let status = self.ask("Status", &status).await;
        let info = status.map(|status: v1::StatusResponse| status.info);
        let mut beneath = Beneath::from_info(&info.unwrap_or_default(), handler);
        let config = self
            .ask("RuntimeConfig", &v1::RuntimeConfigRequest {})
            .await;
        let linux = config.and_then(|config: v1::RuntimeConfigResponse| config.linux);
        beneath.cgroup_driver = match linux {
            Some(linux) => Some(oci::cgroup_driver(linux.cgroup_driver())),
            None => beneath.cgroup_driver,
        };
        beneath
    }

    /// The pid of a container's process according to verbose `ContainerStatus`, 0 if not reported;
    /// `None` for a container that is not running.
    pub async fn pid_if_running(&self, container: &ContainerId) -> Result<Option<u32>, CallFault> {
        let message = v1::ContainerStatusRequest {
            container_id: container.to_string(),
            verbose: true,
        };
        let within = self.deadline.min(limits::CONNECT_DEADLINE);
        let reply = self.send("ContainerStatus", &message, within).await;
        let reply: v1::ContainerStatusResponse =
            reply.map_err(|status| status_fault(&status, within))?;
        let running = v1::ContainerState::ContainerRunning;
        let status = reply.status.filter(|status| status.state() == running);
        Ok(status.map(|_| oci::pid(&reply.info)))
    }

    /// Makes a call that is optional for runtimes; `None` if it fails.
    async fn ask<T: Message + Default>(&self, method: &str, message: &impl Message) -> Option<T> {
        let within = self.deadline.min(limits::CONNECT_DEADLINE);
        self.send(method, message, within).await.ok()
    }

    /// Makes a call of the runtime service.
    async fn send<T: Message + Default>(
        &self,
        method: &str,
        message: &impl Message,
        within: Duration,
    ) -> Result<T, Status> {
        let message = timed(message.encode_to_vec().into(), Some(within));
        let asked = unary(&self.runtime, method_path(RUNTIME_SERVICE, method), message);
        let late = |_| Status::deadline_exceeded("no answer");
        let reply = tokio::time::timeout(within, asked).await.map_err(late)??;
        T::decode(reply).map_err(|fault| Status::data_loss(fault.to_string()))
    }

    pub(super) fn connection(&self) -> Channel {
        self.runtime.clone()
    }

    /// Makes a call and waits for its reply. Fails with the gRPC status that the runtime returned,
    /// or `DEADLINE_EXCEEDED`. A stop's grace period and a command's timeout are added to the
    /// deadline.
    pub async fn call(&self, request: &Request) -> Result<Reply, CallFault> {
        self.exchange(request, encode(request), None).await.result
    }

    /// Makes a call with its own deadline, which is sent to the runtime.
    pub async fn call_within(
        &self,
        request: &Request,
        deadline: Duration,
    ) -> Result<Reply, CallFault> {
        let message = encode(request);
        self.exchange(request, message, Some(deadline)).await.result
    }

    /// Sends a request's message and waits for the reply, with the client's deadline unless the
    /// call has its own.
    ///
    /// The deadline is sent to the runtime, as a kubelet does, unless the runtime would use the
    /// client's deadline as the grace period of containers.
    pub async fn exchange(
        &self,
        request: &Request,
        message: Bytes,
        deadline: Option<Duration>,
    ) -> Answer {
        let lasts = match request {
            Request::StopContainer { grace, .. } => *grace,
            Request::ExecSync { timeout, .. } => *timeout,
            _ => Duration::ZERO,
        };
        let wait = deadline.unwrap_or(self.deadline + lasts);
        if lacks_log(request) {
            return Answer::from(CallFault {
                code: StatusCode::INVALID_ARGUMENT,
                message: "not sent: a container without a log path lets a kubelet on the node \
                          delete files in its own working directory"
                    .to_owned(),
                deadline: wait,
            });
        }
        let sends_deadline = deadline.is_some() || !deadline_is_grace(request);
        let began = host::now();
        let answer = self.dispatch(request, message, sends_deadline.then_some(wait));
        match tokio::time::timeout(wait, answer).await {
            Ok(Ok(message)) => Answer::read(request, message, wait),
            Ok(Err(status)) if host::elapsed(began) < wait => status_fault(&status, wait).into(),
            // Our clock, tonic's and the runtime's run out at once; the last two say CANCELLED.
            Ok(Err(_)) | Err(_) => Answer::from(CallFault {
                code: StatusCode::DEADLINE_EXCEEDED,
                message: "no answer".to_owned(),
                deadline: wait,
            }),
        }
    }

    /// The message of the reply.
    async fn dispatch(
        &self,
        request: &Request,
        message: Bytes,
        within: Option<Duration>,
    ) -> Result<Bytes, Status> {
        let connection = if messages::is_of_images(request) {
            &self.images
        } else {
            &self.runtime
        };
        let message = timed(message, within);
        if request.is_streamed() {
            return whole_list(connection, request, message).await;
        }
        unary(connection, path(request), message).await
    }
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub result: Result<Reply, CallFault>,
    /// The response message, readable or not; empty if none arrived.
    pub message: Bytes,
}

impl Answer {
    fn read(request: &Request, message: Bytes, deadline: Duration) -> Self {
        let result = messages::decode_reply(request.response(), &message);
        let result = result.and_then(|reply| {
            messages::check_asked(request, &reply)?;
            Ok(reply)
        });
        let result = result.map_err(|fault| reply_fault(&fault, deadline));
        Self { result, message }
    }
}

impl From<CallFault> for Answer {
    fn from(fault: CallFault) -> Self {
        Self {
            result: Err(fault),
            message: Bytes::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BytesCodec;

impl Codec for BytesCodec {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for BytesCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let length = from.remaining();
        Ok(Some(from.copy_to_bytes(length)))
    }
}

/// The CRI's message of a request, as [`Client::exchange`] sends it.
pub fn encode(request: &Request) -> Bytes {
    messages::encode_request(request).into()
}

fn path(request: &Request) -> PathAndQuery {
    let service = if messages::is_of_images(request) {
        IMAGE_SERVICE
    } else {
        RUNTIME_SERVICE
    };
    method_path(service, request.method())
}

pub(super) fn method_path(service: &str, method: &str) -> PathAndQuery {
    let path = format!("/{service}/{method}");
    path.parse().expect("names of the CRI are plain words")
}

/// Makes a call that has one reply.
async fn unary(
    connection: &Channel,
    path: PathAndQuery,
    message: tonic::Request<Bytes>,
) -> Result<Bytes, Status> {
    let mut client = ready(connection).await?;
    let reply = client.unary(message, path, BytesCodec).await?;
    Ok(reply.into_inner())
}

/// The messages of a streamed list, one after another.
async fn whole_list(
    connection: &Channel,
    request: &Request,
    message: tonic::Request<Bytes>,
) -> Result<Bytes, Status> {
    let longest = limits::MESSAGE_BYTES;
    let mut parts = stream(connection, path(request), message)
        .await?
        .into_inner();
    let mut whole = BytesMut::new();
    while let Some(part) = parts.message().await? {
        if whole.len() + part.len() > longest {
            return Err(Status::out_of_range(format!(
                "the list is longer than the {longest} bytes that the suite reads"
            )));
        }
        whole.extend_from_slice(&part);
    }
    Ok(whole.freeze())
}

pub(super) async fn stream(
    connection: &Channel,
    path: PathAndQuery,
    message: tonic::Request<Bytes>,
) -> Result<Response<Streaming<Bytes>>, Status> {
    let mut client = ready(connection).await?;
    client.server_streaming(message, path, BytesCodec).await
}

/// A client once the connection takes calls.
async fn ready(connection: &Channel) -> Result<Grpc<Channel>, Status> {
    let mut client = Grpc::new(connection.clone()).max_decoding_message_size(limits::MESSAGE_BYTES);
    let ready = client.ready().await;
    ready.map_err(|fault| Status::unavailable(fault.to_string()))?;
    Ok(client)
}

/// Whether a runtime may use the deadline of this call as the grace period of the containers that
/// it ends. CRI-O does, less a second or two (`stopTimeoutFromContext` in `server/utils.go`), and
/// has 10 s without a deadline: with a deadline of 30 s, the removal of a container that ignores
/// SIGTERM would take nearly all of them.
fn deadline_is_grace(request: &Request) -> bool {
    matches!(
        request,
        Request::StopSandbox(_) | Request::RemoveSandbox(_) | Request::RemoveContainer(_)
    )
}

fn lacks_log(request: &Request) -> bool {
    let Request::CreateContainer(spec) = request else {
        return false;
    };
    spec.log_path.is_empty() || spec.sandbox_spec.log_directory.is_empty()
}

/// The deadline of the first call, given the usual one.
fn first_within(deadline: Duration) -> Duration {
    deadline.min(limits::CONNECT_DEADLINE.max(deadline / limits::FIRST_PART))
}

/// A request with a deadline, if it is to be sent.
fn timed(message: Bytes, within: Option<Duration>) -> tonic::Request<Bytes> {
    let mut request = tonic::Request::new(message);
    if let Some(within) = within {
        request.set_timeout(within);
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_has_more_time_where_all_others_have() {
        let first = |seconds| first_within(Duration::from_secs(seconds)).as_secs();
        assert_eq!([2, 5, 30, 150, 300].map(first), [2, 5, 5, 25, 50]);
    }
}
