//! The output as data: one [`Notice`] is one line.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

/// A container or a sandbox, and its pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// The pod's namespace; empty if unknown.
    pub namespace: String,
    /// The pod's name; empty if unknown.
    pub pod: String,
    /// The pod's UID; empty if unknown.
    pub uid: String,
    /// The container's name; none for a sandbox.
    pub container: Option<String>,
    /// The id of the container or the sandbox.
    pub id: String,
}

/// One line of output. The module's documentation describes every field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Notice {
    Event(EventSeen),
    /// A lifecycle event that the Generic PLEG would have sent.
    Relist {
        #[serde(flatten)]
        subject: Subject,
        lifecycle: String,
        /// Whether it was a relist of this pod alone, after an inferred sync or a hint.
        on_demand: bool,
    },
    Violation {
        rule: String,
        level: String,
        finding: String,
        subject: String,
        expected: String,
        actual: String,
        known: bool,
    },
    /// Further violations of a rule, too many to be shown.
    MoreViolations {
        rule: String,
        count: u64,
    },
    /// The state of the connection has changed.
    Stream {
        /// `opened`, `live`, `ended`, `overrun`, `relist-failed` or `relist-works`.
        what: &'static str,
        detail: String,
    },
    Summary(Summary),
}

/// An event, and the reaction of an Evented PLEG.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EventSeen {
    #[serde(flatten)]
    pub subject: Subject,
    /// `CREATED`, `STARTED`, `STOPPED`, `DELETED`.
    pub kind: String,
    /// The state of its subject, if it contains it.
    pub state: Option<String>,
    /// The exit code, if it has exited.
    pub exit_code: Option<i32>,
    /// The reason for the state, if there is one.
    pub reason: Option<String>,
    /// When the runtime created it; 0 if not set.
    pub created_at_ns: i64,
    pub arrived_ns: i64,
    /// The time from creation to arrival.
    pub lag_ns: Option<i64>,
    /// Whether it was created before this stream was requested.
    pub queued: bool,
    /// `taken`, `refused`, `ignored`, `panic` or `unfollowed`; or `relist` or `sampled`.
    pub evented: &'static str,
    /// The lifecycle events that the PLEG would have sent.
    pub lifecycle: Vec<String>,
    /// Why a kubelet would have panicked.
    pub panic: Option<String>,
}

/// The totals of a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The duration of the watch.
    pub watched_ns: u64,
    pub events: BTreeMap<String, u64>,
    /// Events created before their stream was requested; they are excluded from the lag.
    pub queued: u64,
    pub lag_median_ns: Option<i64>,
    /// The 95th percentile of the lag.
    pub lag_p95_ns: Option<i64>,
    pub lag_max_ns: Option<i64>,
    /// Events that did not arrive although a relist shows the change.
    pub missed: u64,
    /// Differences between a kubelet's view by relists and its view by events.
    pub disagreements: u64,
    pub other_violations: u64,
    /// How often the stream ended.
    pub outages: u64,
    /// The time without a stream.
    pub without_stream_ns: u64,
    /// Events that would have made a kubelet panic.
    pub panics: u64,
    /// Streams after the first one.
    pub reconnects: u64,
    pub relists: u64,
    /// Relists of one pod, each after a sync that is inferred or after a hint.
    pub pod_relists: u64,
}

/// A duration in nanoseconds, for JSON.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
