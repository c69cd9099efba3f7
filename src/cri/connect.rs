//! Connects to an endpoint, and explains failures.

use std::time::Duration;

use tonic::transport::Channel;

use super::endpoint::{Endpoint, SocketError};
use super::faults::deepest;
use crate::history::{CallFault, StatusCode};
use crate::limits;

/// The reason why a connection to an endpoint failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Its file is not a socket, or access is denied.
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("no server listens on {endpoint}: {detail}; is the runtime running?")]
    Refused { endpoint: Endpoint, detail: String },
    /// The server accepts connections and does not reply.
    #[error(
        "{endpoint} takes connections but did not answer `Version` within {deadline:?}; \
         is the runtime stuck, or is this another program's socket?"
    )]
    Silent {
        endpoint: Endpoint,
        deadline: Duration,
    },
    /// A gRPC server that does not serve the CRI.
    #[error(
        "{endpoint} does not offer the CRI (runtime.v1.RuntimeService): {fault}; \
         if it is containerd, is its `cri` plugin disabled?"
    )]
    NotCri {
        endpoint: Endpoint,
        fault: CallFault,
    },
    /// The runtime replied with an error, or the server does not speak gRPC.
    #[error(
        "{endpoint} did not answer `Version` as a CRI runtime does: {fault}; \
         has the runtime just been started, or is this another program's socket?"
    )]
    Failed {
        endpoint: Endpoint,
        fault: CallFault,
    },
}

/// Opens a separate connection to an endpoint.
pub(super) async fn channel(endpoint: &Endpoint) -> Result<Channel, ConnectError> {
    endpoint.check()?;
    let refused = |fault: tonic::transport::Error| refused(endpoint, &fault);
    let address = match endpoint {
        Endpoint::Socket(_) => endpoint.to_string(),
        // gRPC requires a host name, which is not used.
        Endpoint::InProcess(_) => "http://in-process".to_owned(),
    };
    let transport = tonic::transport::Endpoint::from_shared(address)
        .map_err(refused)?
        .connect_timeout(limits::CONNECT_DEADLINE);
    let connected = match endpoint {
        Endpoint::Socket(_) => transport.connect().await,
        Endpoint::InProcess(server) => transport.connect_with_connector(server.clone()).await,
    };
    connected.map_err(refused)
}

/// No process listens, or the server closes the connection.
pub(super) fn refused(endpoint: &Endpoint, fault: &tonic::transport::Error) -> ConnectError {
    let endpoint = endpoint.clone();
    let cause = deepest(fault);
    let kind = cause.downcast_ref().map(std::io::Error::kind);
    if kind == Some(std::io::ErrorKind::ConnectionRefused) {
        let detail = cause.to_string();
        return ConnectError::Refused { endpoint, detail };
    }
    let fault = CallFault {
        code: StatusCode::UNAVAILABLE,
        message: cause.to_string(),
        deadline: limits::CONNECT_DEADLINE,
    };
    ConnectError::Failed { endpoint, fault }
}

/// Explains the failure of the first call.
pub(super) fn diagnose(endpoint: &Endpoint, fault: CallFault) -> ConnectError {
    let endpoint = endpoint.clone();
    match fault.code {
        StatusCode::DEADLINE_EXCEEDED => ConnectError::Silent {
            endpoint,
            deadline: fault.deadline,
        },
        StatusCode::UNIMPLEMENTED => ConnectError::NotCri { endpoint, fault },
        _ => ConnectError::Failed { endpoint, fault },
    }
}
