//! Stop signals of containers (KEP-4960), which the generated messages lack.
//!
//! The configuration of a container is encoded as the generated message followed by the missing
//! field. Decoders accept that, since protobuf merges the parts of an embedded message.

use k8s_cri::v1;
use prost::{DecodeError, Message};

use crate::history::Signal;

/// `CreateContainerRequest` with its configuration in parts.
#[derive(Clone, PartialEq, Message)]
struct CreateContainer {
    #[prost(string, tag = "1")]
    pod_sandbox_id: String,
    #[prost(bytes = "vec", repeated, tag = "2")]
    config: Vec<Vec<u8>>,
    #[prost(message, optional, tag = "3")]
    sandbox_config: Option<v1::PodSandboxConfig>,
}

/// What the generated `ContainerConfig` lacks.
#[derive(Clone, PartialEq, Message)]
struct ConfigExtra {
    #[prost(int32, tag = "18")]
    stop_signal: i32,
}

/// A request for a container with this stop signal.
pub(super) fn encode_create(
    request: v1::CreateContainerRequest,
    Signal(stop_signal): Signal,
) -> Vec<u8> {
    let mut config = request.config.unwrap_or_default().encode_to_vec();
    config.extend(ConfigExtra { stop_signal }.encode_to_vec());
    let request = CreateContainer {
        pod_sandbox_id: request.pod_sandbox_id,
        config: vec![config],
        sandbox_config: request.sandbox_config,
    };
    request.encode_to_vec()
}

/// The request, and the stop signal in it.
pub(super) fn decode_create(
    bytes: &[u8],
) -> Result<(v1::CreateContainerRequest, Signal), DecodeError> {
    let parts = CreateContainer::decode(bytes)?;
    let extra = ConfigExtra::decode(&*parts.config.concat())?;
    let request = v1::CreateContainerRequest::decode(bytes)?;
    Ok((request, Signal(extra.stop_signal)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_knows_no_stop_signals_reads_the_rest() {
        let config = v1::ContainerConfig {
            working_dir: "/here".to_owned(),
            tty: true,
            ..Default::default()
        };
        let request = v1::CreateContainerRequest {
            pod_sandbox_id: "pod".to_owned(),
            config: Some(config),
            ..Default::default()
        };
        let sent = encode_create(request.clone(), Signal::USER_1);
        let read = v1::CreateContainerRequest::decode(&sent[..]);
        assert_eq!(read, Ok(request.clone()));
        assert_eq!(decode_create(&sent), Ok((request, Signal::USER_1)));
    }

    #[test]
    fn a_signal_is_where_the_cri_has_it() {
        let sent = encode_create(v1::CreateContainerRequest::default(), Signal::USER_1);
        assert_eq!(sent, [0x12, 3, 0x90, 1, 29]);
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
                ConfigExtra { stop_signal }.encode_to_vec(),
                config.encode_to_vec(),
            ],
            ..CreateContainer::default()
        };
        let (request, signal) = decode_create(&parts.encode_to_vec()).unwrap();
        assert_eq!((request.config, signal), (Some(config), Signal::USER_2));
    }
}
