//! `watch` is read-only: it streams a node's pod events with their latency, shows the lifecycle
//! events a kubelet derives from them, and judges them by the rules of a run.
//!
//! It creates no pod, so it cannot prove the event stream with a marker: a stream is live with its
//! first event, or if it is still open after half a second. `observer` is pure and selects the
//! notices about events and relists. The record is a history like that of a run (`record`), and
//! [`crate::verdicts`] judges each pod in it when it is idle; `check` judges the file in the same
//! way.
//!
//! # As JSON
//!
//! One object a line. Each has a `time` of printing (RFC 3339, UTC) and a `type`. Numbers whose
//! name ends in `_ns` are 64-bit integers of nanoseconds, points in time since 1970. Each object
//! about a container or a sandbox has `namespace`, `pod`, `uid`, `container` (null for a sandbox)
//! and `id`.
//!
//! | type | fields |
//! |---|---|
//! | `event` | `kind` (`CREATED`, `STARTED`, `STOPPED`, `DELETED`), `state`, `exit_code`, `reason` (null if unknown), `created_at_ns`, `arrived_ns`, `lag_ns` (null without a `created_at`), `queued` (created before the stream was requested), `evented` (the reaction of the Evented PLEG of kubelet 1.26 to 1.36: `taken`, `refused`, `ignored`, `panic`; `unfollowed` if there are too many containers to track, or too large ones; with `--profile hint` alone that of 1.37: `relist`, `sampled`, `ignored`), `lifecycle` (the lifecycle events it sends, such as `ContainerDied`), `panic` (why) |
//! | `relist` | `lifecycle`: the lifecycle events that the Generic PLEG sends; `on_demand`: whether in a relist of this pod alone, after an inferred sync or a hint |
//! | `violation` | `rule` (its id), `guarantee` (that it breaks, such as `Complete`), `level` (`must`, `should`, `may`), `finding` (its kind), `subject`, `expected`, `actual`, `known` (whether it is listed as known) |
//! | `more-violations` | `rule`, `count`, `known`: further violations of a rule, too many to be shown |
//! | `stream` | `what` (`opened`, `live`, `relisted`, `ended`, `overrun`, `relist-failed`, `relist-late`, `relist-works`), `detail` |
//! | `summary` | the last line: `watched_ns`, `events` (by kind), `queued`, `lag_median_ns`, `lag_p95_ns`, `lag_max_ns` (null without events), `missed`, `disagreements`, `other_violations`, `outages` (of the stream), `without_stream_ns`, `panics`, `reconnects`, `relists`, `pod_relists` (on demand) |

mod announce;
mod notice;
mod observer;
mod options;
mod processes;
mod record;
mod redact;
mod session;
mod stream;
mod table;
#[cfg(test)]
mod tests;
mod verdict;

use std::io;

use crate::cri::ConnectError;
use crate::drive::StreamError;
use crate::metrics::EndpointError;
use crate::run::{Exit, RunError};

pub use options::WatchOptions;
pub use session::watch;

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
