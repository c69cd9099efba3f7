//! The kubelet's PLEGs: the state that a kubelet would derive from a runtime's answers and events.
//!
//! A PLEG (pod lifecycle event generator) reports changes of pods to the kubelet's sync loop, and
//! maintains the cache that pod workers act on. There are two. The [`Generic`] PLEG lists all pods
//! and compares. The Evented PLEG consumes the runtime's events: up to kubelet 1.36 it stores their
//! payload in the cache ([`receive`]); from 1.37 on STOPPED is a hint to relist ([`relist_hint`]).
//! From 1.36 on the Generic PLEG also relists one pod on demand, after each sync of it
//! ([`Generic::relist_pod`], [`Generic::is_due`]).
//!
//! Pure: no I/O, no clock, no async. The caller calls the runtime and reads the clock; every
//! [`Moment`] is passed in. So every interleaving can be tested.
//!
//! The behaviour is that of kubernetes 1.36.2; `tests/pleg_vectors` checks it against recordings of
//! the real code in `fixtures/pleg`. Where the real kubelet panics, this module returns a
//! [`KubeletPanic`].
//!
//! Invariants: with the gate on, the cache never goes back in time; an event is sent only after the
//! status that proves it was cached; a relist in which nothing changed allocates nothing.

mod cache;
mod evented;
mod generic;
mod kubelet;
mod pod_list;
mod pod_status;
mod reconnect;
mod state;

pub use cache::{Cache, Entry, Released, Waiter};
pub use evented::{Hint, Receipt, receive, relist_hint};
pub use generic::{Generic, Health};
pub use kubelet::{Channel, Features, Kubelet, LifecycleEvent, LifecycleKind};
pub use pod_list::{ListedItem, ListedPod, POD_UID_LABEL, PodIdentity, PodList, list_pods};
pub use pod_status::{
    InspectError, Inspection, KubeletPanic, PodContainer, PodSandbox, PodStatus, StatusFault,
    Statuses, pod_status,
};
pub use reconnect::{Next, Policy, Reconnect, StreamFate};
pub use state::{Moment, State};

/// The id of a container or a sandbox, which PLEGs do not distinguish.
pub use crate::history::ContainerId as SharedId;
pub use crate::history::PodUid as SharedUid;
