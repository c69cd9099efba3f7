//! Executes the steps of a case on a runtime, and cleans up after it.
//!
//! The driver decides nothing about the runtime: it sends calls, waits on conditions of the history
//! with a timeout, and leaves the verdict to the oracle. No task or object of a case outlives it.

mod active_case;
mod case_run;
mod heartbeat;
mod leftovers;
mod live_pleg;
mod options;
mod probes;
mod recording_client;
mod session;
mod steps;
mod stream_error;
mod sweep;

pub use case_run::{CaseRunner, TeardownPolicy};
pub use heartbeat::Heartbeat;
pub use live_pleg::{BackgroundRelist, LivePleg, Relist, RelistFault, RelistRequests};
#[cfg(test)]
pub use options::ListStreaming;
pub use options::{
    Allowance, DriveOptions, PANIC_IN, PANIC_JUDGING, PodOptions, Sabotage, UserHooks,
};
pub use recording_client::RecordingClient;
pub use session::{
    KUBELET_LABELS, NAMESPACE, PROCESS_LABEL, RUN_LABEL, Session, SessionOptions, run_labels,
};
pub use stream_error::StreamError;
pub use sweep::{
    ForeignPods, SweepError, foreign_pods, image_tag, list_leftovers, listed_ids, sweep, sweep_host,
};
