//! Stop signals of containers (KEP-4960), which the generated messages do not know.
//!
//! Protobuf merges the parts of an embedded message, wherever they stand. So the configuration and
//! the status of a container pass as bytes: those of the generated message, and behind them those
//! of what it lacks. Whoever reads takes of all of them what he knows.

use std::time::Duration;

use k8s_cri::v1;
use prost::Message;
use tonic::Status;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

use super::client::{ready, timed};
use super::convert::{self, created};
use crate::history::{ContainerReport, ContainerSpec, Reply, Signal};

pub(super) const CREATE_CONTAINER: &str = "/runtime.v1.RuntimeService/CreateContainer";
pub(super) const CONTAINER_STATUS: &str = "/runtime.v1.RuntimeService/ContainerStatus";

/// `CreateContainerRequest`, whose configuration is in parts.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CreateContainer {
    #[prost(string, tag = "1")]
    pod_sandbox_id: String,
    #[prost(bytes = "vec", repeated, tag = "2")]
    config: Vec<Vec<u8>>,
    #[prost(message, optional, tag = "3")]
    sandbox_config: Option<v1::PodSandboxConfig>,
}

/// What the generated `ContainerConfig` lacks.
#[derive(Clone, PartialEq, Message)]
struct ConfigBeyond {
    #[prost(int32, tag = "18")]
    stop_signal: i32,
}

/// `ContainerStatusResponse`, whose status is in parts.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StatusAnswer {
    #[prost(bytes = "vec", repeated, tag = "1")]
    status: Vec<Vec<u8>>,
}

/// What the generated `ContainerStatus` lacks.
#[derive(Clone, PartialEq, Message)]
struct StatusBeyond {
    #[prost(int32, tag = "19")]
    stop_signal: i32,
}

impl CreateContainer {
    fn of(ask: v1::CreateContainerRequest, Signal(stop_signal): Signal) -> Self {
        let mut config = ask.config.unwrap_or_default().encode_to_vec();
        config.extend(ConfigBeyond { stop_signal }.encode_to_vec());
        Self {
            pod_sandbox_id: ask.pod_sandbox_id,
            config: vec![config],
            sandbox_config: ask.sandbox_config,
        }
    }

    /// What the generated message has of it, and the stop signal.
    pub(super) fn parts(&self) -> Result<(v1::CreateContainerRequest, Signal), Status> {
        let config = self.config.concat();
        let has_config = !self.config.is_empty();
        let beyond: ConfigBeyond = read(&config)?;
        let ask = v1::CreateContainerRequest {
            pod_sandbox_id: self.pod_sandbox_id.clone(),
            config: has_config.then(|| read(&config)).transpose()?,
            sandbox_config: self.sandbox_config.clone(),
        };
        Ok((ask, Signal(beyond.stop_signal)))
    }
}

impl StatusAnswer {
    pub(super) fn of(status: &v1::ContainerStatus, Signal(stop_signal): Signal) -> Self {
        let mut bytes = status.encode_to_vec();
        bytes.extend(StatusBeyond { stop_signal }.encode_to_vec());
        let status = vec![bytes];
        Self { status }
    }

    fn report(&self) -> Result<ContainerReport, Status> {
        let status = self.status.concat();
        let has_status = !self.status.is_empty();
        let beyond: StatusBeyond = read(&status)?;
        let status = has_status.then(|| read(&status)).transpose()?;
        Ok(ContainerReport {
            stop_signal: Signal(beyond.stop_signal),
            ..convert::container_report(status)?
        })
    }
}

/// Reads a message as a peer has written it.
fn read<M: Message + Default>(bytes: &[u8]) -> Result<M, Status> {
    M::decode(bytes).map_err(|fault| Status::internal(format!("no such message: {fault}")))
}

/// `CreateContainer`.
pub(super) async fn create(
    connection: Channel,
    spec: &ContainerSpec,
    within: Option<Duration>,
) -> Result<Reply, Status> {
    let ask = CreateContainer::of(convert::create_container(spec), spec.stop_signal);
    let answer: v1::CreateContainerResponse =
        unary(connection, CREATE_CONTAINER, timed(ask, within)).await?;
    Ok(created(answer))
}

/// `ContainerStatus`.
pub(super) async fn status(
    connection: Channel,
    ask: v1::ContainerStatusRequest,
    within: Option<Duration>,
) -> Result<Reply, Status> {
    let answer: StatusAnswer = unary(connection, CONTAINER_STATUS, timed(ask, within)).await?;
    answer.report().map(Reply::ContainerStatus)
}

async fn unary<A, T>(
    connection: Channel,
    path: &'static str,
    ask: tonic::Request<A>,
) -> Result<T, Status>
where
    A: Message + Default + Send + Sync + 'static,
    T: Message + Default + Send + Sync + 'static,
{
    let mut client = ready(connection).await?;
    let codec = ProstCodec::<A, T>::default();
    let path = PathAndQuery::from_static(path);
    Ok(client.unary(ask, path, codec).await?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_knows_no_stop_signals_reads_the_rest() {
        let config = v1::ContainerConfig {
            working_dir: "/here".to_owned(),
            tty: true,
            ..Default::default()
        };
        let ask = v1::CreateContainerRequest {
            pod_sandbox_id: "pod".to_owned(),
            config: Some(config),
            ..Default::default()
        };
        let sent = CreateContainer::of(ask.clone(), Signal::USER_1).encode_to_vec();
        assert_eq!(v1::CreateContainerRequest::decode(&sent[..]), Ok(ask));
        let status = v1::ContainerStatus {
            id: "c".to_owned(),
            ..Default::default()
        };
        let told = StatusAnswer::of(&status, Signal::USER_1).encode_to_vec();
        let answer = v1::ContainerStatusResponse::decode(&told[..]);
        assert_eq!(answer.unwrap().status, Some(status));
    }

    #[test]
    fn a_signal_is_where_the_cri_has_it() {
        let sent = CreateContainer::of(v1::CreateContainerRequest::default(), Signal::USER_1);
        assert_eq!(sent.encode_to_vec(), [0x12, 3, 0x90, 1, 29]);
        let told = StatusAnswer::of(&v1::ContainerStatus::default(), Signal::USER_1);
        assert_eq!(told.encode_to_vec(), [0x0a, 3, 0x98, 1, 29]);
    }

    #[test]
    fn parts_of_a_configuration_are_put_together() {
        let config = v1::ContainerConfig {
            tty: true,
            ..Default::default()
        };
        let stop_signal = Signal::USER_2.0;
        let parts = CreateContainer {
            config: vec![
                ConfigBeyond { stop_signal }.encode_to_vec(),
                config.encode_to_vec(),
            ],
            ..CreateContainer::default()
        };
        let (ask, signal) = parts.parts().unwrap();
        assert_eq!((ask.config, signal), (Some(config), Signal::USER_2));
    }

    #[test]
    fn an_answer_without_a_status_is_none() {
        let fault = StatusAnswer::default().report().unwrap_err();
        assert_eq!(fault.code(), tonic::Code::DataLoss);
        let garbled = StatusAnswer {
            status: vec![vec![0xff]],
        };
        assert!(garbled.report().is_err());
    }
}
