//! What a history tells of the run as a whole: its beginning, its plan, its end.

use std::time::Duration;

use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::any;
use super::{RunId, RuntimeVersion};

/// What a history is about.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// The run.
    pub run: RunId,
    /// Version and commit of this suite.
    pub suite: String,
    /// The runtime's endpoint.
    pub endpoint: String,
    /// What the runtime calls itself.
    pub runtime: RuntimeVersion,
    /// What starts processes for it; absent if the runtime does not tell.
    pub oci: Option<OciRuntime>,
    /// Who makes its cgroups; absent if the runtime does not tell.
    pub cgroup_driver: Option<CgroupDriver>,
    /// The host of the suite and the runtime; absent for a runtime that is simulated.
    pub host: Option<Host>,
    /// How long a call may take, unless a case says otherwise; absent in older histories.
    #[cfg_attr(test, arbitrary(with = any::span_or_none))]
    pub call_deadline: Option<Duration>,
}

/// The OCI runtime that pods run with, as the runtime tells of it.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OciRuntime {
    /// The runtime handler by which pods ask for it.
    pub handler: String,
    /// The name of its program, such as `runc`; absent if that is not told.
    pub name: Option<String>,
    /// Its version; absent if that is not told.
    pub version: Option<String>,
}

/// Who makes the cgroups of a runtime's containers.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CgroupDriver {
    /// systemd, at the runtime's request.
    Systemd,
    /// The OCI runtime itself.
    Cgroupfs,
}

impl CgroupDriver {
    /// The driver of this name; none if there is no such one.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Systemd, Self::Cgroupfs]
            .into_iter()
            .find(|driver| driver.name() == name)
    }

    /// Its name, as the configurations of kubelets and runtimes have it.
    #[must_use]
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

/// What a run is about to do, and all that its reports say beside what is seen.
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
    /// The image that containers run.
    pub image: String,
    /// Pods on the node that the run did not make.
    pub foreign_pods: u64,
    /// The failures that are known of the runtime.
    pub expectations: Option<ExpectationFile>,
    /// Whether cases of the tier were left out by the user's selection.
    pub partial: bool,
    /// The words for the kinds of consumer for which the runtime is judged; none means all.
    pub profiles: Vec<String>,
    /// The word for how large the run was to be; absent if all cases were meant.
    pub tier: Option<String>,
    /// Who gets an event, where a case needed to know and it was measured.
    pub audience: Option<Audience>,
    /// What else cases needed to know of it.
    pub offers: Offers,
}

/// Whether a runtime has what it need not have. Absent is what no case needed to know.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offers {
    /// Events.
    pub events: Option<bool>,
    /// Lists as streams.
    pub streamed_lists: Option<bool>,
    /// Several runtime handlers, by name.
    pub handlers: Option<bool>,
    /// A network of their own for sandboxes.
    pub network: Option<bool>,
    /// Stops that send the stop signal that a container was given.
    pub stop_signal: Option<bool>,
}

/// Who gets an event when there are several subscribers.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Audience {
    /// Each of them.
    Everyone,
    /// One of them, so that they take events from each other: containerd 1.7.
    One,
}

/// A case of the plan.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCase {
    /// The name by which it is listed.
    pub name: String,
    /// Its whole YAML.
    pub definition: String,
}

/// One execution to come.
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
    /// Its whole YAML.
    pub text: String,
}

/// How a run ended.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// Whether all that the cases made is removed, but for what was to be kept.
    pub removed: bool,
    /// What went wrong beside the cases, one sentence each.
    pub faults: Vec<String>,
}
