//! Doing what a case says, on a runtime, and cleaning up after it.
//!
//! The driver decides nothing about the runtime: it sends calls, waits on conditions of the history
//! with a bound, and leaves the verdict to the oracle. Nothing that it starts outlives the case.

mod active_case;
mod background_relist;
mod case_run;
mod extra_subscription;
mod heartbeat;
mod inspection;
mod leftovers;
mod live_pleg;
mod options;
mod pod_cgroup;
mod probes;
mod recording_client;
mod remaining;
mod sabotage;
mod session;
mod steps;
mod stream_error;
mod sweep;
mod user_hooks;

pub use background_relist::BackgroundRelist;
pub use case_run::{CaseRunner, TeardownPolicy};
pub use heartbeat::Heartbeat;
pub use live_pleg::{LivePleg, Relist, RelistFault, RelistRequests};
pub use options::{Allowance, DriveOptions, PodOptions};
pub use recording_client::RecordingClient;
pub use sabotage::{PANIC_IN, PANIC_JUDGING, Sabotage};
pub use session::{
    KUBELET_LABELS, NAMESPACE, PROCESS_LABEL, RUN_LABEL, Session, SessionOptions, run_labels,
};
pub use stream_error::StreamError;
pub use sweep::{
    ForeignPods, Sweep, SweepError, foreign_pods, image_tag, list_leftovers, listed_ids, sweep,
    sweep_host,
};
pub use user_hooks::UserHooks;
