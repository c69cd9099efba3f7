//! Serves the model at a socket, in real time, for any CRI client.

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use super::behaviour::Behaviour;
use super::live::Model;
use crate::cri::{self, Endpoint, ListenError, Listener, ServerError};
use crate::host::{self, Reactor};
use crate::terminal;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error("start: {0}")]
    System(#[from] io::Error),
}

/// Serves a model until SIGINT or SIGTERM.
pub fn serve(endpoint: &Endpoint, behaviour: Behaviour) -> Result<(), ServeError> {
    let reactor = Reactor::real()?;
    let served = reactor.runtime().block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut listener = Listener::bind(endpoint).await?;
        let seed = host::now().realtime_ns.unsigned_abs();
        let model = Arc::new(Model::start(behaviour, seed));
        terminal::say(&format!(
            "the model runtime listens on {endpoint}; press Ctrl-C to stop it"
        ));
        tokio::select! {
            served = cri::serve(model, &mut listener) => Ok(served?),
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
        }
    });
    drop(reactor);
    served
}
