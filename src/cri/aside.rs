//! The calls that change no state. What they answer is of no interest here.

use std::time::Duration;

use k8s_cri::v1;
use k8s_cri::v1::image_service_client::ImageServiceClient;
use k8s_cri::v1::runtime_service_client::RuntimeServiceClient;
use tonic::Status;
use tonic::transport::Channel;

use super::client::timed;
use crate::history::{Aside, AsideOf};

/// Both services of a runtime.
#[derive(Debug)]
pub(super) struct Services {
    pub(super) runtime: RuntimeServiceClient<Channel>,
    pub(super) images: ImageServiceClient<Channel>,
}

impl Services {
    /// Sends such a call about what has this id.
    pub(super) async fn aside(
        self,
        aside: Aside,
        id: String,
        within: Option<Duration>,
    ) -> Result<(), Status> {
        match aside.of() {
            AsideOf::Container => self.of_container(aside, id, within).await,
            AsideOf::Sandbox => self.of_sandbox(aside, id, within).await,
            AsideOf::Nothing => self.of_nothing(aside, within).await,
        }
    }

    async fn of_container(
        mut self,
        aside: Aside,
        id: String,
        within: Option<Duration>,
    ) -> Result<(), Status> {
        let runtime = &mut self.runtime;
        match aside {
            Aside::UpdateContainerResources => {
                let ask = v1::UpdateContainerResourcesRequest {
                    container_id: id,
                    linux: Some(v1::LinuxContainerResources::default()),
                    ..Default::default()
                };
                runtime
                    .update_container_resources(timed(ask, within))
                    .await?;
            }
            Aside::ReopenContainerLog => {
                let ask = v1::ReopenContainerLogRequest { container_id: id };
                runtime.reopen_container_log(timed(ask, within)).await?;
            }
            Aside::ContainerStats => {
                let ask = v1::ContainerStatsRequest { container_id: id };
                runtime.container_stats(timed(ask, within)).await?;
            }
            Aside::ListContainerStats => {
                let filter = v1::ContainerStatsFilter {
                    id,
                    ..Default::default()
                };
                let filter = Some(filter);
                let ask = v1::ListContainerStatsRequest { filter };
                runtime.list_container_stats(timed(ask, within)).await?;
            }
            Aside::Exec => {
                let ask = v1::ExecRequest {
                    container_id: id,
                    cmd: vec!["true".to_owned()],
                    stdout: true,
                    ..Default::default()
                };
                runtime.exec(timed(ask, within)).await?;
            }
            _ => {
                let ask = v1::AttachRequest {
                    container_id: id,
                    stdout: true,
                    ..Default::default()
                };
                runtime.attach(timed(ask, within)).await?;
            }
        }
        Ok(())
    }

    async fn of_sandbox(
        mut self,
        aside: Aside,
        id: String,
        within: Option<Duration>,
    ) -> Result<(), Status> {
        let runtime = &mut self.runtime;
        match aside {
            Aside::PodSandboxStats => {
                let ask = v1::PodSandboxStatsRequest { pod_sandbox_id: id };
                runtime.pod_sandbox_stats(timed(ask, within)).await?;
            }
            Aside::ListPodSandboxStats => {
                let filter = v1::PodSandboxStatsFilter {
                    id,
                    ..Default::default()
                };
                let filter = Some(filter);
                let ask = v1::ListPodSandboxStatsRequest { filter };
                runtime.list_pod_sandbox_stats(timed(ask, within)).await?;
            }
            _ => {
                let ask = v1::PortForwardRequest {
                    pod_sandbox_id: id,
                    port: Vec::new(),
                };
                runtime.port_forward(timed(ask, within)).await?;
            }
        }
        Ok(())
    }

    async fn of_nothing(mut self, aside: Aside, within: Option<Duration>) -> Result<(), Status> {
        let runtime = &mut self.runtime;
        match aside {
            Aside::Status => {
                let ask = v1::StatusRequest { verbose: false };
                runtime.status(timed(ask, within)).await?;
            }
            Aside::RuntimeConfig => {
                let ask = v1::RuntimeConfigRequest {};
                runtime.runtime_config(timed(ask, within)).await?;
            }
            Aside::UpdateRuntimeConfig => {
                let ask = v1::UpdateRuntimeConfigRequest {
                    runtime_config: Some(v1::RuntimeConfig {
                        network_config: Some(v1::NetworkConfig::default()),
                    }),
                };
                runtime.update_runtime_config(timed(ask, within)).await?;
            }
            _ => {
                let ask = v1::ImageFsInfoRequest {};
                self.images.image_fs_info(timed(ask, within)).await?;
            }
        }
        Ok(())
    }
}
