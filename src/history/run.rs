//! The run as a whole: its beginning, its plan and its end.

use std::time::Duration;

use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::any;
use super::{RunId, RuntimeVersion};

/// The run, the suite, the runtime and the host of a history.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    pub run: RunId,
    /// Version and commit of this suite.
    pub suite: String,
    pub endpoint: String,
    pub runtime: RuntimeVersion,
    /// Its OCI runtime; absent if it does not report one.
    pub oci: Option<OciRuntime>,
    /// Its cgroup driver; absent if it does not report one.
    pub cgroup_driver: Option<CgroupDriver>,
    /// The host of the suite and the runtime; absent for a runtime that is simulated.
    pub host: Option<Host>,
    /// The deadline of a call, unless a case sets another one; absent if it was not recorded.
    #[cfg_attr(test, arbitrary(with = any::span_or_none))]
    pub call_deadline: Option<Duration>,
}

/// The OCI runtime of the pods, as the CRI runtime reports it.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OciRuntime {
    /// The runtime handler by which pods ask for it.
    pub handler: String,
    /// The name of its program, such as `runc`; absent if not reported.
    pub name: Option<String>,
    /// Its version; absent if not reported.
    pub version: Option<String>,
}

#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CgroupDriver {
    /// systemd creates the cgroups.
    Systemd,
    /// The OCI runtime creates the cgroups.
    Cgroupfs,
}

impl CgroupDriver {
    /// The driver of this name; none if there is no such one.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Systemd, Self::Cgroupfs]
            .into_iter()
            .find(|driver| driver.name() == name)
    }

    /// Its name, as the configurations of kubelets and runtimes have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::Cgroupfs => "cgroupfs",
        }
    }
}

/// The host that a run had, when it began.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The kernel's release, as `uname -r` has it.
    pub kernel: String,
    /// Which cgroups are mounted: `1`, `2` or `hybrid`; absent if none are.
    pub cgroup: Option<String>,
    /// Processors that the suite may use.
    pub cpus: u32,
    /// The load of the last minute, in percent of one processor; absent if it cannot be read.
    pub load_percent: Option<u32>,
}

/// What a run is about to do, and what its reports say besides what is observed.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlan {
    /// The cases, each once.
    pub cases: Vec<PlannedCase>,
    /// Which of them is executed when. An execution's number is its place here; the invariants have
    /// the numbers after them.
    pub executions: Vec<PlannedExecution>,
    /// The ids of the invariants that are judged.
    pub invariants: Vec<String>,
    pub image: String,
    /// Pods on the node that the run did not make.
    pub foreign_pods: u64,
    /// The expectation file with the runtime's known failures.
    pub expectations: Option<ExpectationFile>,
    /// Whether cases of the tier were left out by the user's selection.
    pub partial: bool,
    /// The words for the kinds of consumer for which the runtime is judged; none means all.
    pub profiles: Vec<String>,
    /// The word for how large the run was to be; absent if all cases were meant.
    pub tier: Option<String>,
    /// How late an event may be in a watch, which makes no pods and is about those of others;
    /// absent for a run.
    #[cfg_attr(test, arbitrary(with = any::span_or_none))]
    pub watch_within: Option<Duration>,
    /// How events are delivered to several subscribers; absent if no case needed to know.
    pub fan_out: Option<FanOut>,
    /// The other capabilities that the run has probed.
    pub probed: ProbedCapabilities,
}

/// Optional capabilities of a runtime. Absent if no case needed to know.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbedCapabilities {
    pub events: Option<bool>,
    pub streamed_lists: Option<bool>,
    /// Several named runtime handlers.
    pub handlers: Option<bool>,
    /// Sandboxes with their own network.
    pub network: Option<bool>,
    pub stop_signal: Option<bool>,
}

/// How a runtime delivers an event to several subscribers.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FanOut {
    Broadcast,
    /// To one of them, so that subscribers take events from each other, as containerd 1.7 does.
    SingleConsumer,
}

/// A case of the plan.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCase {
    /// The name by which it is listed.
    pub name: String,
    pub definition: String,
}

#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedExecution {
    /// The place of its case in [`RunPlan::cases`].
    pub case: u32,
    /// Which repetition of it, from 1; absent unless cases are repeated.
    pub repetition: Option<u32>,
}

/// A file of known failures, as it was when the run began.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpectationFile {
    /// Its name, as the user gave it.
    pub path: String,
    pub text: String,
}

#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// Whether all that the cases made is removed, but for what was to be kept.
    pub removed: bool,
    /// What went wrong outside the cases, one sentence each.
    pub faults: Vec<String>,
}
