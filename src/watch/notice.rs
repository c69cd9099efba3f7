//! What there is to say, as data: one [`Notice`] is one line of output.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

/// A container or a sandbox, and its pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// The pod's namespace; empty if nobody has told it.
    pub namespace: String,
    /// The pod's name; empty if nobody has told it.
    pub pod: String,
    /// The pod's UID; empty if nobody has told it.
    pub uid: String,
    /// The container's name; none for a sandbox.
    pub container: Option<String>,
    /// The id of the container or the sandbox.
    pub id: String,
}

/// One line of output. The module's documentation tells every field.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Notice {
    /// An event came.
    Event(EventSeen),
    /// The Generic PLEG would have sent something.
    Relist {
        /// Of what.
        #[serde(flatten)]
        subject: Subject,
        /// What it would have sent.
        lifecycle: String,
    },
    /// A relist has shown what no event told in time.
    Missed {
        /// Of what.
        #[serde(flatten)]
        subject: Subject,
        /// The kind of the event that did not come.
        kind: String,
        /// What the relist shows.
        listed: String,
        /// For how long it has been known.
        waited_ns: u64,
    },
    /// The caches of both PLEGs disagree about a pod that is quiet.
    Disagreement {
        /// The pod's namespace.
        namespace: String,
        /// The pod's name.
        pod: String,
        /// Its UID.
        uid: String,
        /// What the cache that relists fill has.
        generic: View,
        /// What the cache that events fill has.
        evented: View,
        /// Whether that is because there was no stream.
        outage: bool,
    },
    /// They agree again.
    Agreement {
        /// The pod's namespace.
        namespace: String,
        /// The pod's name.
        pod: String,
        /// Its UID.
        uid: String,
    },
    /// Something became of the connection.
    Stream {
        /// `opened`, `live`, `ended`, `overrun`, `relist-failed` or `relist-works`.
        what: &'static str,
        /// The same in a sentence.
        detail: String,
    },
    /// The last line.
    Summary(Summary),
}

/// An event, and what the Evented PLEG of kubelet 1.26 to 1.36 makes of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EventSeen {
    /// Of what.
    #[serde(flatten)]
    pub subject: Subject,
    /// `CREATED`, `STARTED`, `STOPPED`, `DELETED`.
    pub kind: String,
    /// The state of what it is about, if it tells it.
    pub state: Option<String>,
    /// How it exited, if it has.
    pub exit_code: Option<i32>,
    /// A word for why it is in this state, if there is one.
    pub reason: Option<String>,
    /// When the runtime made it; 0 if it does not say.
    pub created_at_ns: i64,
    /// When it arrived.
    pub arrived_ns: i64,
    /// The difference.
    pub lag_ns: Option<i64>,
    /// Whether it was made before this stream was asked for.
    pub queued: bool,
    /// `taken`, `refused`, `ignored`, `panic` or `unfollowed`.
    pub evented: &'static str,
    /// What the PLEG would have sent.
    pub lifecycle: Vec<String>,
    /// Why a kubelet would have panicked.
    pub panic: Option<String>,
}

/// What a cache has of a pod; none if it has nothing.
pub type View = Option<BTreeMap<String, Viewed>>;

/// What a cache has of a container or a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Viewed {
    /// The container's name; none for a sandbox.
    pub container: Option<String>,
    /// Its state.
    pub state: String,
    /// How it exited, if it has.
    pub exit_code: Option<i32>,
}

/// What was seen, all in all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// How long it was watched.
    pub watched_ns: u64,
    /// Events by their kind.
    pub events: BTreeMap<String, u64>,
    /// Those that were made before their stream was asked for; they count in no lag.
    pub queued: u64,
    /// The median lag.
    pub lag_median_ns: Option<i64>,
    /// 95 of 100 lags are not greater.
    pub lag_p95_ns: Option<i64>,
    /// The greatest lag.
    pub lag_max_ns: Option<i64>,
    /// Transitions that a relist has shown and no event told in time.
    pub missed: u64,
    /// Transitions that were found while there was no stream to tell them.
    pub unheard: u64,
    /// Times that the caches came to disagree.
    pub disagreements: u64,
    /// Times that they did because there was no stream.
    pub disagreements_in_outages: u64,
    /// Events that would have made a kubelet panic.
    pub panics: u64,
    /// Streams after the first one.
    pub reconnects: u64,
    /// Relists that succeeded.
    pub relists: u64,
}

/// Nanoseconds, as JSON has them.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
