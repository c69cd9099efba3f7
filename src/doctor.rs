//! `doctor` reports whether a node is fit for Evented PLEG, and whether it is enabled at both ends,
//! in the runtime and in the kubelet.
//!
//! It is read-only: on a runtime whose subscribers compete for events it does not open the event
//! stream. On the runtime it calls `Version`, `Status`, `RuntimeConfig`, the lists and
//! `GetContainerEvents`; on the host it reads `/proc`, configuration files and the kubelet's log,
//! and runs `kubelet --version` and `journalctl`. [`examine()`] collects these facts; each of the
//! other modules derives findings from a part of them, without input and output.
//!
//! One invariant: each [`finding::Finding`] names the evidence and its source; one that is wrong or
//! unknown also explains the effect and the fix.

mod configz;
mod crio;
mod examine;
mod finding;
mod kubelet;
mod kubelet_traces;
mod runtime;
#[cfg(test)]
mod tests;

pub use examine::{DoctorError, DoctorOptions, examine};
pub use finding::{Diagnosis, schema};
pub use runtime::is_single_consumer;
