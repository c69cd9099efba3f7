//! The errors of a watch.

use std::io;

use crate::cri::ConnectError;
use crate::drive::StreamError;
use crate::metrics::EndpointError;
use crate::run::{Exit, RunError};

#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error(transparent)]
    Metrics(#[from] EndpointError),
    #[error(transparent)]
    Report(#[from] RunError),
    /// A kubelet would miss the events that the watch gets.
    #[error(
        "{runtime} sends each event to only one of its subscribers, and {sign}: it would miss the \
         events that this command gets. To watch nevertheless, where the kubelet has EventedPLEG \
         switched off: --allow event-theft"
    )]
    EventTheft {
        runtime: String,
        /// The evidence of a kubelet.
        sign: String,
    },
    #[error("no rule of a watch binds the chosen profiles: choose --profile cache or hint")]
    NothingToJudge,
    #[error("print: {0}")]
    Output(io::Error),
    #[error("start: {0}")]
    System(#[from] io::Error),
}

impl WatchError {
    pub fn exit(&self) -> Exit {
        match self {
            Self::Metrics(_) | Self::NothingToJudge => Exit::Usage,
            Self::Report(fault) => fault.exit(),
            Self::Connect(_)
            | Self::Stream(_)
            | Self::EventTheft { .. }
            | Self::Output(_)
            | Self::System(_) => Exit::Undecided,
        }
    }
}
