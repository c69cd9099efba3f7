//! A conformance case as data: steps in the words of the CRI, and the expected events and states.
//!
//! A case names intent, never polling, sleeping or retrying. [`load`] reads cases from files; the
//! rest is pure. [`parse()`] returns a [`Case`] or all its problems. `cases/README.md` teaches how
//! to write a case; `cases/REFERENCE.md` is generated from the types here, and lists the
//! vocabulary.

mod diagnose;
mod file;
mod limits;
mod lists;
pub mod load;
mod locate;
mod steps;
#[cfg(test)]
mod tests;
mod validate;
mod workload;

use std::fmt;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::checks::duration::Span;
use crate::checks::{CallEdge, Claim, Expectation, Situation, kind_words};
use crate::outcome::Levels;

pub use diagnose::{Diagnostics, did_you_mean, successor, wrong_value, wrong_yaml};
pub use file::{parse, schema};
pub use lists::{Defect, Requirement};
pub(crate) use steps::for_each_step;
pub use steps::*;
pub(crate) use validate::needs;
pub use workload::{
    AllocateInChildSpec, AllocateOnTermSpec, AllocateSpec, Delay, DieSpec, ExitAtSpec, ExitSpec,
    Number, StopSignal, UntilSignalSpec, WorkloadSpec,
};

/// One conformance case, from one file `cases/<area>/<name>.yaml`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Case {
    /// `<area>::<name>`, from the file's path.
    pub name: String,
    /// The catalogue's id, such as `ORD-01`. Never reused.
    pub id: String,
    pub title: String,
    /// Why it matters to a consumer of events.
    pub why: String,
    pub sources: Vec<String>,
    /// The ids of the requirements that it checks, such as `R9`.
    pub requirements: Vec<String>,
    /// The smallest tier that includes the case.
    pub tier: Tier,
    /// Words to select it by.
    pub tags: Vec<String>,
    pub levels: Levels,
    /// Invariants with the levels of the case in place of their own.
    pub exempt: Vec<Exemption>,
    /// The needs beyond the socket.
    pub needs: Vec<Need>,
    /// Whether no other case may run at the same time.
    pub exclusive: bool,
    /// Whether only the steps make calls: no relist runs at the same time.
    pub silent: bool,
    /// The situation without which the case proves nothing.
    pub provokes: Option<Situation>,
    pub steps: Vec<Step>,
    /// Whether one of its subscribers stops reading.
    #[serde(skip)]
    pub stalls_a_subscriber: bool,
    /// The checks of the history after the steps.
    pub expect: Vec<Expectation>,
    #[serde(skip)]
    pub definition: String,
}

/// Invariants that a case breaks by what no kubelet does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "rules and a reason, as in `{rules: [X-1], because: …}`")]
pub struct Exemption {
    /// The ids of invariants.
    pub rules: Vec<String>,
    /// What the case does that no kubelet does.
    pub because: String,
}

impl Case {
    /// The levels of an invariant in the case, of its own levels.
    pub fn levels_of(&self, rule: &str, own: Levels) -> Levels {
        let mut exempt = self.exempt.iter().flat_map(|it| &it.rules);
        if exempt.any(|exempt| exempt == rule) {
            own.capped_by(&self.levels)
        } else {
            own
        }
    }

    /// The part of the case on which its verdict depends.
    pub fn claim(&self) -> Claim<'_> {
        Claim {
            id: &self.id,
            title: &self.title,
            expectations: &self.expect,
            provokes: self.provokes,
            sets_clock: self.sets_clock(),
        }
    }

    /// Whether it stops the runtime.
    pub fn restarts_runtime(&self) -> bool {
        self.needs.contains(&Need::RuntimeRestart)
    }

    /// Whether it sets the host's wall clock.
    pub fn sets_clock(&self) -> bool {
        self.needs.contains(&Need::ClockSteps)
    }
}

/// The size of a run, and the smallest size that includes a case.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
#[serde(expecting = "a tier: `core`, `extended` or `full`")]
pub enum Tier {
    /// The most telling cases of `core`: over before a node without a kubelet is not ready, 50 s.
    #[value(help = "The most telling cases: 40 seconds at most, the time for --pause-kubelet")]
    Smoke,
    /// The basics that every runtime should have: one or two minutes, through the socket alone.
    #[value(help = "What no runtime should be without: one or two minutes")]
    Core,
    /// All cases that need no more than the node.
    #[value(help = "All that needs no more than the node: three to five minutes")]
    #[default]
    Extended,
    /// Also slow cases, and those that need the node alone.
    #[value(help = "Also what is slow, or needs the node alone: some minutes more")]
    Full,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Requirements of a case beyond the CRI socket.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case", expecting = "a need such as `memory-limit`")]
pub enum Need {
    /// Memory limits are enforced, and the host's count of OOM kills can be read.
    MemoryLimit,
    /// All cgroups of the host are of version 2.
    CgroupV2,
    /// A pod can have a cgroup that the suite has made on this host.
    PodCgroup,
    /// Each of several subscribers gets every event.
    Broadcast,
    /// The sandboxes' own processes can be found on this host, and killed.
    HostPid,
    /// The containers' processes can be seen on this host.
    ContainerPid,
    /// The runtime makes checkpoints of containers, for which its node needs CRIU.
    Checkpoint,
    /// It also creates containers from checkpoints.
    Restore,
    /// The runtime's monitors of containers, such as containerd-shim and conmon, can be found on
    /// this host, and killed.
    Monitor,
    /// Those monitors write to a small file system, which can be filled.
    SmallDisk,
    /// The host's core dumps go to a program, which a dying process waits for.
    CorePipe,
    /// The runtime reports two runtime handlers or more.
    Handlers,
    /// Sandboxes can have their own network.
    Network,
    /// The runtime has the calls that stream lists (KEP-5825).
    StreamedLists,
    /// `PodSandboxStatus` reports its timestamp.
    Timestamp,
    /// Containers can have a stop signal of their own (KEP-4960).
    StopSignal,
    /// The runtime has no event stream, or events are switched off. Such a case runs on no other
    /// runtime.
    NoEvents,
    /// The user allows the host's wall clock to be set, and it can be.
    ClockSteps,
    /// The user has a command that runs a container outside the CRI.
    OutsideCri,
    /// The user has a runtime handler whose low-level runtime dies on demand.
    FaultyHandler,
    /// The process of the runtime can be found on this host, and its resources can be counted.
    RuntimeProcess,
    /// The user has a command that prints the runtime's log.
    RuntimeLog,
    /// The user has commands that stop and start the runtime, and allows that.
    RuntimeRestart,
    /// The runtime can also be killed, by the user's command or as a process of this host.
    RuntimeKill,
}
