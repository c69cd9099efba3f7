//! The record of what a run did and observed: append-only, typed, and the only input of verdicts.
//! Pure data, without clock, files or network.
//!
//! Start with [`Entry`]. [`CaseHistory`] is the part of a history that one case caused, [`codec`]
//! encodes and decodes histories, and [`messages`] the CRI's messages in them.

#[cfg(test)]
mod any;
mod call;
mod case_history;
mod clock;
pub mod codec;
mod container_setup;
mod container_spec;
mod entry;
mod foreign;
mod held_up;
mod ids;
pub mod messages;
mod no_event_call;
mod observed;
mod protobuf;
mod resource;
mod rpc;
mod run;
mod shared;
mod signal;
mod status;
mod subject;

pub use call::{
    CallFault, ContainerFilter, Reply, Request, RuntimeStatus, RuntimeVersion, SandboxFilter,
    SandboxSpec, StatusCode,
};
pub use case_history::CaseHistory;
pub use container_setup::{ContainerSetup, Mount, User};
pub use container_spec::{ContainerSpec, Flaw};
pub use entry::{Body, Entry, HostFact, Observer, StepsEnd, StreamEnd, Took};
pub use ids::{
    CallId, CaseRun, ContainerId, HostInstant, PodUid, RunId, RuntimeNanos, SandboxId, Seq,
    SubscriptionId,
};
pub use no_event_call::{NoEventCall, NoEventCallTarget};
pub use observed::Observed;
pub use protobuf::Unreadable;
pub use resource::{Holder, Resource};
pub use rpc::Call;
pub use run::{
    CgroupDriver, ExpectationFile, FanOut, Host, OciRuntime, PlannedCase, PlannedExecution,
    ProbedCapabilities, RunEnd, RunInfo, RunPlan,
};
pub use shared::{Shared, Text};
pub use signal::Signal;
pub use status::{
    ContainerListing, ContainerMetadata, ContainerReport, ContainerState, ContainerStatus, Event,
    EventKind, ImageListing, Labels, POD_UID_LABEL, SandboxListing, SandboxMetadata, SandboxReport,
    SandboxState, SandboxStatus,
};
pub use subject::{EventArrival, Subject, SubjectKind};
