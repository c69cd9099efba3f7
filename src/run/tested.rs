//! What a run tests: a runtime at its socket, or the model within this process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::PrepareError;
use crate::cri::{self, ConnectError, Endpoint, Listener, SocketError};
use crate::host::{Kernel, Reactor};
use crate::limits;
use crate::model::{Behaviour, Model, NamedFault, Relay};

/// Which runtime to talk to.
#[derive(Clone, Debug)]
pub struct Target {
    /// The runtime service.
    pub runtime: Endpoint,
    /// The image service.
    pub images: Endpoint,
    /// The deadline of each call.
    pub deadline: Duration,
}

/// What is tested.
#[derive(Clone, Debug)]
pub enum Tested {
    /// A runtime that goes its own way.
    Runtime(Target),
    /// One that is seen through defects, by a relay in this process.
    Relayed {
        /// The runtime.
        target: Target,
        /// What the relay does besides.
        defects: Vec<NamedFault>,
    },
    /// The model, made for the run and gone after it, in simulated time.
    Model {
        /// What it does.
        behaviour: Box<Behaviour>,
        /// What looks random in it follows from this; with the same one, it gives the same ids.
        seed: u64,
        /// The deadline of each call.
        deadline: Duration,
    },
}

/// A runtime that can be talked to, and its kernel.
#[derive(Debug)]
pub(super) struct Stand {
    pub(super) target: Target,
    pub(super) kernel: Kernel,
}

impl Default for Tested {
    fn default() -> Self {
        Self::model(Behaviour::default(), 0)
    }
}

impl Tested {
    /// The model that behaves so; what looks random in it follows from the seed.
    #[must_use]
    pub fn model(behaviour: Behaviour, seed: u64) -> Self {
        Self::Model {
            behaviour: Box::new(behaviour),
            seed,
            deadline: limits::CALL_DEADLINE,
        }
    }

    /// Looks whether there is something to test.
    fn check(&self) -> Result<(), SocketError> {
        match self {
            Self::Runtime(target) | Self::Relayed { target, .. } => {
                target.runtime.check().and_then(|()| target.images.check())
            }
            Self::Model { .. } => Ok(()),
        }
    }

    /// What drives a run on it.
    pub(super) fn reactor(&self) -> io::Result<Reactor> {
        match self {
            Self::Runtime(_) | Self::Relayed { .. } => Reactor::real(),
            Self::Model { .. } => Reactor::simulated(),
        }
    }
}

impl Stand {
    /// Starts the model if that is meant, on the reactor that this is called on.
    ///
    /// # Errors
    /// If there is no socket where a runtime should be.
    pub(super) fn of(tested: &Tested) -> Result<Self, PrepareError> {
        tested.check().map_err(ConnectError::from)?;
        Ok(match tested {
            Tested::Runtime(target) => Self {
                target: target.clone(),
                kernel: Kernel::Host,
            },
            Tested::Relayed { target, defects } => {
                let injected = defects.iter().map(|defect| defect.name);
                let injected = injected.collect::<Vec<_>>().join(",");
                let through = match injected.as_str() {
                    "" => "a relay".to_owned(),
                    injected => format!("a relay that injects {injected}"),
                };
                let name = format!("{} through {through}", target.runtime);
                let (endpoint, mut listener) = Listener::in_process(&name);
                let ends = (target.runtime.clone(), target.images.clone());
                let relay = Arc::new(Relay::new(ends, target.deadline, defects));
                tokio::spawn(async move { cri::serve(relay, &mut listener).await });
                Self {
                    target: Target {
                        runtime: endpoint.clone(),
                        images: endpoint,
                        deadline: target.deadline,
                    },
                    kernel: Kernel::Host,
                }
            }
            Tested::Model {
                behaviour,
                seed,
                deadline,
            } => {
                let (endpoint, mut listener) = Listener::in_process(Self::MODEL);
                let model = Arc::new(Model::start((**behaviour).clone(), *seed));
                let kernel = model.kernel();
                tokio::spawn(async move { cri::serve(model, &mut listener).await });
                Self {
                    target: Target {
                        runtime: endpoint.clone(),
                        images: endpoint,
                        deadline: *deadline,
                    },
                    kernel,
                }
            }
        })
    }

    const MODEL: &str = "model";
}
