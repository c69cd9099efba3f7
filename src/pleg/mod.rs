//! The kubelet's PLEGs: what a kubelet would have believed, given what a runtime said.
//!
//! A PLEG (pod lifecycle event generator) tells the kubelet's sync loop what happened to pods, and
//! keeps the cache that pod workers act on. There are two. The [`Generic`] one lists all pods and
//! compares. The Evented one takes the runtime's events: up to kubelet 1.36 it puts their payload
//! into the cache ([`receive`]); as from 1.37 it takes STOPPED as a hint to relist
//! ([`relist_hint`]).
//!
//! Pure: no I/O, no clock, nothing asynchronous. The caller asks the runtime and reads the clock;
//! every [`Moment`] comes from outside. So every interleaving can be tried.
//!
//! The behaviour is that of kubernetes 1.36.2; `fixtures/pleg` holds what its real code did, and
//! `tests/pleg_vectors` holds this module to it. Where the real kubelet panics, this module has a
//! finding: [`KubeletPanic`].
//!
//! Invariants: with the gate on, the cache never goes back in time; an event is sent only after the
//! status that proves it was cached; a relist in which nothing changed allocates nothing.

mod cache;
mod changes;
mod evented;
mod gauges;
mod generic;
mod hint;
mod inspect;
mod kubelet;
mod lifecycle;
mod list;
mod listing;
mod moment;
mod reconnect;
mod records;
mod shared_id;
mod state;
mod status;

pub use cache::{Cache, Entry, Released, Waiter};
pub use evented::{GLOBAL_TIME_PERIOD, Receipt, receive};
pub use gauges::Gauges;
pub use generic::{Generic, Health, Wanted};
pub use hint::{Hint, relist_hint};
pub use inspect::{StatusFault, Statuses, pod_status};
pub use kubelet::{Features, Kubelet};
pub use lifecycle::{Channel, LifecycleEvent, LifecycleKind};
pub use list::{ListedPod, PodList, Seen};
pub use listing::{POD_UID_LABEL, list_pods};
pub use moment::Moment;
pub use reconnect::{Next, Policy, Reconnect, StreamFate, Then};
pub use shared_id::{SharedId, SharedUid};
pub use state::{Phase, State};
pub use status::{InspectError, Inspection, KubeletPanic, PodContainer, PodSandbox, PodStatus};
