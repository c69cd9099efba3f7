//! `measure` reports the cost of a runtime's events, their latency, and a kubelet's savings by
//! them.
//!
//! It creates pods of its own, in a session like that of a run, and kills their containers: the
//! kernel reports the end of a process, and the measurement is the time until a consumer knows it.
//! `table` and `growth` are pure; the others drive the runtime.
//!
//! One invariant: a figure that was not measured is absent, never zero.

mod events;
mod follower;
mod growth;
mod measurement;
mod options;
mod pleg;
mod population;
mod session;
mod table;

use std::io;

use crate::drive::StreamError;
use crate::files::OutputError;
use crate::history::CallFault;
use crate::host::ProcessError;
use crate::limits;
use crate::recorder::Overrun;
use crate::run::{Exit, PrepareError, RunError};

pub use growth::growth;
pub use options::MeasureOptions;
pub use session::measure;

#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    #[error(
        "{pods} pods of {in_pod} containers are too many: measure makes at most {} containers",
        limits::MEASURED_CONTAINERS
    )]
    TooMany { pods: usize, in_pod: usize },
    #[error(
        "the containers would write logs of more than {} MiB: write more rarely, or measure for a \
         shorter time or with fewer containers",
        limits::MEASURED_LOG_BYTES >> 20
    )]
    LongLogs,
    #[error(
        "a kubelet runs on this node: {0}. It removes pods that it does not know, including the \
         suite's; nothing was measured\n\
         Stop the kubelet, or measure another node\n\
         To measure anyway, if the kubelet uses another runtime: --allow kubelet"
    )]
    Kubelet(String),
    #[error(transparent)]
    Run(RunError),
    #[error("there are no events to measure: {0}")]
    NoEvents(String),
    /// A runtime sends each event to only one of its subscribers.
    #[error(
        "this runtime sends each event to only one of its subscribers: more than one cannot be \
         measured; use --subscribers 1"
    )]
    SingleConsumer,
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("an event stream ended while it was measured")]
    StreamEnded,
    /// The suite was too slow to read the recorded entries.
    #[error(transparent)]
    Overrun(#[from] Overrun),
    #[error("{method}: {fault}")]
    Call {
        method: &'static str,
        fault: CallFault,
    },
    #[error("{0}; the suite has to run on the runtime's node, in its PID namespace, as root")]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("print: {0}")]
    Print(#[from] io::Error),
}

impl MeasureError {
    pub fn exit(&self) -> Exit {
        match self {
            Self::TooMany { .. } | Self::LongLogs | Self::Output(_) => Exit::Usage,
            Self::Run(fault) => fault.exit(),
            Self::Kubelet(_)
            | Self::NoEvents(_)
            | Self::SingleConsumer
            | Self::Stream(_)
            | Self::StreamEnded
            | Self::Overrun(_)
            | Self::Call { .. }
            | Self::Process(_)
            | Self::Print(_) => Exit::Undecided,
        }
    }
}

impl From<RunError> for MeasureError {
    fn from(fault: RunError) -> Self {
        match fault {
            // A run can pause the kubelet: a measurement takes longer than a node can do without.
            RunError::Prepare(PrepareError::Kubelet(sign)) => Self::Kubelet(sign),
            fault => Self::Run(fault),
        }
    }
}
