//! The record of what a run did and observed: append-only, typed, and the only input of verdicts.
//! Pure data, without clock, files or network.
//!
//! Start with [`Entry`]. [`CaseHistory`] is the part of a history that one case caused, [`codec`]
//! encodes and decodes histories, and [`messages`] the CRI's messages in them.

#[cfg(test)]
mod any;
mod call;
mod case_history;
pub mod codec;
mod container;
mod disturbances;
mod entry;
mod ids;
pub mod messages;
mod protobuf;
mod run;
mod status;
mod views;

pub use call::{
    CallFault, ContainerFilter, Reply, Request, RuntimeStatus, RuntimeVersion, SandboxFilter,
    SandboxSpec, StatusCode,
};
pub use case_history::CaseHistory;
pub use container::{ContainerSetup, ContainerSpec, Flaw, Mount, Signal, User};
pub use disturbances::Unavailable;
pub use entry::{
    Body, CONTINUED, Entry, Holder, HostFact, Observer, Resource, StepsEnd, StreamEnd, Took,
};
pub(crate) use ids::cut;
pub use ids::{
    CallId, CaseRun, ContainerId, HostInstant, PodUid, RunId, RuntimeNanos, SandboxId, Seq, Shared,
    SubscriptionId, Text,
};
pub use messages::{NoEventCall, NoEventCallTarget};
pub use protobuf::Unreadable;
pub use run::{
    CgroupDriver, ExpectationFile, FanOut, Host, MODEL, OciRuntime, PlannedCase, PlannedExecution,
    ProbedCapabilities, RunEnd, RunInfo, RunPlan,
};
pub use status::{
    ContainerListing, ContainerMetadata, ContainerReport, ContainerState, ContainerStatus, Event,
    EventKind, ImageListing, Labels, NamespaceMode, Namespaces, POD_UID_LABEL, SandboxListing,
    SandboxMetadata, SandboxReport, SandboxState, SandboxStatus,
};
pub use views::{Call, EventArrival, Observed, Subject, SubjectKind};
