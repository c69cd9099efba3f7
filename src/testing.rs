//! The parts of this crate that its tests, benchmarks and fuzz targets use; nothing else is public.

pub mod case {
    pub use crate::case::{Case, Diagnostics, Need, Step, load, parse, schema};
}

pub mod catalogue {
    pub use crate::catalogue::{Catalogue, Checker};
}

pub mod checks {
    pub use crate::checks::{Check, Claim, Expectation, Undecided, judge, pending};
}

pub mod cli {
    pub use crate::cli::Cli;
}

pub mod cri {
    pub use crate::cri::{
        Backend, Client, Endpoint, InProcess, Listener, Subscription, events, serve,
    };
}

pub mod drive {
    pub use crate::drive::{
        Allowance, DriveOptions, KUBELET_LABELS, NAMESPACE, PANIC_IN, PANIC_JUDGING, PROCESS_LABEL,
        RUN_LABEL, RecordingClient, run_labels, sweep_host,
    };
}

pub mod explore {
    pub use crate::explore::{ExploreOptions, Explored, explore};
}

pub mod history {
    pub use crate::history::{
        Body, CallFault, CallId, CaseHistory, CaseRun, ContainerId, ContainerListing,
        ContainerMetadata, ContainerSpec, ContainerState, ContainerStatus, Entry, Event, EventKind,
        ExpectationFile, HostFact, HostInstant, Labels, Observer, POD_UID_LABEL, PlannedCase,
        PlannedExecution, PodUid, Reply, Request, RunEnd, RunId, RunInfo, RunPlan, RuntimeNanos,
        RuntimeVersion, SandboxId, SandboxListing, SandboxMetadata, SandboxReport, SandboxSpec,
        SandboxState, SandboxStatus, Seq, Shared, StatusCode, StepsEnd, StreamEnd, SubjectKind,
        SubscriptionId, Text, codec,
    };
}

pub mod host {
    pub use crate::host::{LogDirectory, Reactor, elapsed, now};
}

pub mod metrics {
    pub use crate::metrics::Metrics;
}

pub mod model {
    pub use crate::model::{Behaviour, NamedFault, VARIATIONS, faults};
}

pub mod oracle {
    pub use crate::oracle::{INVARIANTS, Index, WholeRun, context, invariants, unannounced};
}

pub mod outcome {
    pub use crate::outcome::{
        Capabilities, Conformance, Guarantee, Kind, Level, Levels, Outcome, RunReport, Verdict,
        Violation,
    };
}

pub mod plan {
    pub use crate::plan::{Selection, label};
}

pub mod pleg {
    pub use crate::pleg::{
        Cache, Entry, Features, Generic, Health, Hint, InspectError, Inspection, Kubelet,
        KubeletPanic, LifecycleEvent, LifecycleKind, ListedItem, Moment, Next, POD_UID_LABEL,
        PodContainer, PodIdentity, PodList, PodSandbox, PodStatus, Policy, Receipt, Reconnect,
        Released, SharedId, SharedUid, State, StatusFault, Statuses, StreamFate, Waiter, list_pods,
        pod_status, receive, relist_hint,
    };
}

pub mod recorder {
    pub use crate::recorder::Reader;
}

pub mod report {
    pub use crate::report::{Document, Evidence, Timeline, failure, json, junit, summary};
}

pub mod run {
    pub use crate::run::{
        Endpoints, Rehearsal, RunError, RunOptions, Target, image, read_cases, rehearse, run,
    };
}

pub mod verdicts {
    pub use crate::verdicts::{
        Accepted, Known, KnownFailure, RuntimeFacts, Scope, Signatures, Texts, Verdicts, When,
        builtin, builtin_files, kinds_by_id,
    };
}

pub mod workload {
    pub use crate::workload::{Image, PROGRAM, REPOSITORY, Registry, Workload};
}
