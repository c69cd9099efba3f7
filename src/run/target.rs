//! The runtime under test: a real one at its socket, or the model in this process.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::PrepareError;

use crate::cri::{self, Client, ConnectError, Endpoint, Listener, SocketError};
use crate::history::{MODEL, RunId, RunInfo};
use crate::host::{Kernel, Reactor};
use crate::limits;
use crate::model::{Behaviour, Model, NamedFault, Relay};
use crate::report::Document;

#[derive(Clone, Debug)]
pub struct Endpoints {
    pub runtime: Endpoint,
    pub images: Endpoint,
    /// The deadline of each call.
    pub deadline: Duration,
}

#[derive(Clone, Debug)]
pub enum Target {
    Runtime(Endpoints),
    /// A real runtime behind a relay in this process, which injects defects.
    Relayed {
        endpoints: Endpoints,
        /// The defects that the relay injects.
        defects: Vec<NamedFault>,
    },
    /// The model, created for the run, in simulated time.
    Model {
        behaviour: Box<Behaviour>,
        /// The seed of its random choices: equal seeds give equal ids.
        seed: u64,
        /// The deadline of each call.
        deadline: Duration,
    },
}

impl Target {
    /// The command that removes the leftovers of a run, which had its logs below `logs`.
    pub(super) fn clean_up_command(&self, run: &RunId, logs: Option<&Path>) -> String {
        let endpoint = match self {
            Self::Runtime(endpoints) | Self::Relayed { endpoints, .. } => {
                format!(" --runtime-endpoint {}", endpoints.runtime)
            }
            Self::Model { .. } => String::new(),
        };
        let logs = logs.map(|logs| {
            let absolute = std::path::absolute(logs).unwrap_or_else(|_| logs.to_owned());
            format!(" --log-dir '{}'", absolute.display())
        });
        let logs = logs.unwrap_or_default();
        format!("cri-event-conformance cleanup{endpoint} --run-id {run}{logs}")
    }
}

/// A runtime that can be connected to, and its kernel.
#[derive(Debug)]
pub struct Connected {
    pub endpoints: Endpoints,
    /// The runtime's socket, even behind a relay; `None` for the model.
    pub socket: Option<PathBuf>,
    pub kernel: Kernel,
}

impl Default for Target {
    fn default() -> Self {
        Self::model(Behaviour::default(), 0)
    }
}

impl Target {
    /// The model with this behaviour and this seed for its random choices.
    pub fn model(behaviour: Behaviour, seed: u64) -> Self {
        Self::Model {
            behaviour: Box::new(behaviour),
            seed,
            deadline: limits::CALL_DEADLINE,
        }
    }

    /// The facts about a run before its runtime is connected.
    pub(super) fn info(&self) -> RunInfo {
        let endpoint = match self {
            Self::Runtime(endpoints) | Self::Relayed { endpoints, .. } => {
                endpoints.runtime.to_string()
            }
            Self::Model { .. } => MODEL.to_owned(),
        };
        RunInfo {
            suite: crate::VERSION.to_owned(),
            endpoint,
            ..RunInfo::default()
        }
    }

    fn check(&self) -> Result<(), SocketError> {
        match self {
            Self::Runtime(endpoints) | Self::Relayed { endpoints, .. } => endpoints
                .runtime
                .check()
                .and_then(|()| endpoints.images.check()),
            Self::Model { .. } => Ok(()),
        }
    }

    /// The runtime's socket, even behind a relay; `None` for the model.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            Self::Runtime(endpoints) | Self::Relayed { endpoints, .. } => {
                endpoints.runtime.socket()
            }
            Self::Model { .. } => None,
        }
    }

    /// A client of the runtime itself: a relay forwards only the parts of a call that the suite
    /// reads.
    pub async fn connect_past_relay(&self, client: &Client) -> Result<Client, ConnectError> {
        match self {
            Self::Runtime(_) | Self::Model { .. } => Ok(client.clone()),
            Self::Relayed { endpoints, .. } => {
                let Endpoints {
                    runtime,
                    images,
                    deadline,
                } = endpoints;
                Client::connect(runtime, images, *deadline).await
            }
        }
    }

    pub(super) fn reactor(&self) -> io::Result<Reactor> {
        match self {
            Self::Runtime(_) | Self::Relayed { .. } => Reactor::real(),
            Self::Model { .. } => Reactor::simulated(),
        }
    }
}

impl Connected {
    /// Starts the model or the relay, if there is one, on the current reactor.
    pub fn start(target: &Target) -> Result<Self, PrepareError> {
        target.check().map_err(ConnectError::from)?;
        let socket = target.socket().map(Path::to_owned);
        Ok(match target {
            Target::Runtime(endpoints) => Self {
                endpoints: endpoints.clone(),
                socket,
                kernel: Kernel::Host,
            },
            Target::Relayed { endpoints, defects } => {
                let injected = defects
                    .iter()
                    .map(|defect| defect.name)
                    .collect::<Vec<_>>()
                    .join(",");
                let through = match injected.as_str() {
                    "" => " through a relay".to_owned(),
                    injected => Document::INJECTS.to_owned() + injected,
                };
                let name = format!("{}{through}", endpoints.runtime);
                let (endpoint, mut listener) = Listener::in_process(&name);
                let (runtime, images) = (endpoints.runtime.clone(), endpoints.images.clone());
                let relay = Arc::new(Relay::new(runtime, images, endpoints.deadline, defects));
                tokio::spawn(async move { cri::serve(relay, &mut listener).await });
                Self {
                    endpoints: Endpoints {
                        runtime: endpoint.clone(),
                        images: endpoint,
                        deadline: endpoints.deadline,
                    },
                    socket,
                    kernel: Kernel::Host,
                }
            }
            Target::Model {
                behaviour,
                seed,
                deadline,
            } => {
                let (endpoint, mut listener) = Listener::in_process(MODEL);
                let model = Arc::new(Model::start((**behaviour).clone(), *seed));
                let kernel = model.kernel();
                tokio::spawn(async move { cri::serve(model, &mut listener).await });
                Self {
                    endpoints: Endpoints {
                        runtime: endpoint.clone(),
                        images: endpoint,
                        deadline: *deadline,
                    },
                    socket,
                    kernel,
                }
            }
        })
    }
}
