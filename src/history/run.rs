//! The run as a whole: its beginning, its plan and its end.

use std::time::Duration;

use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::any;
use super::protobuf::{message, written_as};
use super::{RunId, RuntimeVersion};
use crate::limits;

/// The endpoint of the model runtime, in whose runs time is simulated.
pub const MODEL: &str = "model";

message! {
    /// The run, the suite, the runtime and the host of a history.
    #[derive(Default, Eq)]
    pub part RunInfo {
        run: RunId = 2,
        /// Version and commit of this suite.
        suite: String = 3,
        endpoint: String = 4,
        runtime: RuntimeVersion = 5,
        /// Its OCI runtime; absent if it does not report one.
        oci: Option<OciRuntime> = 6,
        /// The host of the suite and the runtime; absent for a runtime that is simulated.
        host: Option<Host> = 7,
        /// The deadline of a call, unless a case sets another one; absent if it was not recorded.
        #[cfg_attr(test, arbitrary(with = any::span_or_none))]
        call_deadline: Option<Duration> = 8,
        /// Its cgroup driver; absent if it does not report one.
        cgroup_driver: Option<CgroupDriver> = 9,
    }
}

message! {
    /// The OCI runtime of the pods, as the CRI runtime reports it.
    #[derive(Default, Eq)]
    pub struct OciRuntime {
        /// The runtime handler by which pods ask for it.
        handler: String = 1,
        /// The name of its program, such as `runc`; absent if not reported.
        name: Option<String> = 2,
        /// Its version; absent if not reported.
        version: Option<String> = 3,
    }
}

#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

message! {
    /// The host that a run had, when it began.
    #[derive(Default, Eq, Serialize, Deserialize)]
    pub struct Host {
        /// The kernel's release, as `uname -r` has it.
        kernel: String = 1,
        /// Which cgroups are mounted: `1`, `2` or `hybrid`; absent if none are.
        cgroup: Option<String> = 2,
        /// Processors that the suite may use.
        cpus: u32 = 3,
        /// The load of the last minute, in percent of one processor; absent if it cannot be read.
        load_percent: Option<u32> = 4,
        /// Its host name; absent if it cannot be read, and in older histories.
        name: Option<String> = 5,
    }
}

message! {
    /// The work ahead of a run, and the facts of its reports that are not observed.
    #[derive(Default, Eq)]
    pub struct RunPlan {
        /// The cases, each once.
        cases: Vec<PlannedCase> = 1,
        /// Which of them is executed when. An execution's number is its place here; the invariants
        /// have the numbers after them.
        executions: Vec<PlannedExecution> = 2,
        /// The ids of the invariants that are judged.
        invariants: Vec<String> = 3,
        image: String = 4,
        /// Pods on the node that the run did not make.
        foreign_pods: u64 = 5,
        /// The expectation file with the runtime's known failures.
        expectations: Option<ExpectationFile> = 6,
        /// Whether cases of the tier were left out by the user's selection.
        partial: bool = 7,
        /// The words for the kinds of consumer for which the runtime is judged; none means all.
        profiles: Vec<String> = 8,
        /// The word for how large the run was to be; absent if all cases were meant.
        tier: Option<String> = 9,
        /// How events are delivered to several subscribers; absent if no case needed to know.
        fan_out: Option<FanOut> = 10,
        /// The other capabilities that the run has probed.
        probed: ProbedCapabilities,
        /// How late an event may be in a watch, which is about foreign pods; absent for a run.
        #[cfg_attr(test, arbitrary(with = any::span_or_none))]
        watch_within: Option<Duration> = 16,
        /// Remarks for the reports, one sentence each.
        notes: Vec<String> = 17,
    }
}

message! {
    /// Optional capabilities of a runtime. Absent if no case needed to know.
    #[derive(Copy, Default, Eq)]
    pub part ProbedCapabilities {
        streamed_lists: Option<bool> = 11,
        /// Several named runtime handlers.
        handlers: Option<bool> = 12,
        /// Sandboxes with their own network.
        network: Option<bool> = 13,
        events: Option<bool> = 14,
        stop_signal: Option<bool> = 15,
    }
}

/// How a runtime delivers an event to several subscribers.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanOut {
    Broadcast,
    /// To one of them, so that subscribers take events from each other, as containerd 1.7 does.
    SingleConsumer,
}

message! {
    /// A case of the plan.
    #[derive(Default, Eq)]
    pub struct PlannedCase {
        /// The name by which it is listed.
        name: String = 1,
        definition: String = 2,
    }
}

message! {
    #[derive(Copy, Default, Eq)]
    pub struct PlannedExecution {
        /// The place of its case in [`RunPlan::cases`].
        case: u32 = 1,
        /// Which repetition of it, from 1; absent unless cases are repeated.
        repetition: Option<u32> = 2,
    }
}

message! {
    /// A file of known failures, as it was when the run began.
    #[derive(Default, Eq)]
    pub struct ExpectationFile {
        /// Its name, as the user gave it.
        path: String = 1,
        text: String = 2,
    }
}

message! {
    #[derive(Default, Eq)]
    pub struct RunEnd {
        /// Whether all objects of the cases are removed, except for those to be kept.
        removed: bool = 1,
        /// Faults outside the cases, one sentence each.
        faults: Vec<String> = 2,
        /// For how long a kubelet was paused; zero if none was.
        #[cfg_attr(test, arbitrary(with = any::span))]
        kubelet_paused: Duration = 3,
    }
}

impl RunEnd {
    /// For how long a kubelet was paused, as a sentence.
    pub fn pause(&self) -> Option<String> {
        let seconds = self.kubelet_paused.as_secs_f64();
        let text = format!("the kubelet was paused for {seconds:.1} s");
        let warned = self.kubelet_paused > limits::KUBELET_PAUSE_WARNED;
        let text = if warned {
            format!(
                "warning: {text}, and after 50 s its node is not ready: drain it before, or select \
                 fewer cases, as --tier smoke does"
            )
        } else {
            text
        };
        (!self.kubelet_paused.is_zero()).then_some(text)
    }
}

written_as! {
    CgroupDriver as String {
        |driver| driver.name().to_owned(),
        |name| CgroupDriver::parse(&name).ok_or(Unreadable::Lacks("cgroup driver"))
    }
    // Whether events are shared among the subscribers.
    FanOut as bool {
        |fan_out| *fan_out == FanOut::SingleConsumer,
        |shared| Ok(if shared { FanOut::SingleConsumer } else { FanOut::Broadcast })
    }
}
