//! What a case does: its steps, and what the containers run in them.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::subscriptions::{
    AwaitEndStep, Branch, PromptStep, QuietStep, SubscribeStep, SubscriptionStep, UnsubscribeStep,
};
use super::{
    AnotherClientStep, AsideStep, ContainerRef, ExecStep, FiltersStep, ImageStep, MeanwhileStep,
    OnEventStep, OutsideCriStep, RestartRuntimeStep, StepClockStep, StopSignal, UnknownStep,
    WorkloadSpec, duration, event,
};
use crate::history::{EventKind, Flaw};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "a step such as `sandbox: {as: pod}`"
)]
pub enum Step {
    /// Run a sandbox.
    Sandbox(SandboxStep),
    /// Create a container.
    Create(CreateStep),
    /// Start a container.
    Start(StartStep),
    /// Stop a container: the stop signal, and after the grace period the kill.
    Stop(StopStep),
    /// Remove a container.
    Remove(RemoveStep),
    /// Stop a sandbox.
    StopSandbox(SandboxRef),
    /// Remove a sandbox.
    RemoveSandbox(SandboxRef),
    /// Kill a sandbox's own process from the host.
    KillSandbox(SandboxRef),
    /// Kill a container's process from the host.
    Kill(ContainerRef),
    /// Wait until an event has arrived.
    Await(AwaitStep),
    /// Look on the host whether a container's process is gone, which it must be.
    Gone(GoneStep),
    /// List a sandbox's containers and read the status of each.
    Relist(SandboxRef),
    /// Give up the event stream and open a new one, proven live before the next step.
    Resubscribe(Resubscribe),
    /// Subscribe beside the stream that all cases read.
    Subscribe(SubscribeStep),
    /// Give a subscription up.
    Unsubscribe(UnsubscribeStep),
    /// Let a subscriber that has stopped reading read on.
    Resume(SubscriptionStep),
    /// Wait until the runtime has ended a subscription.
    AwaitEnd(AwaitEndStep),
    /// Do nothing for a time, in which nothing may come.
    Quiet(QuietStep),
    /// Do some steps, each call of which must return soon.
    Prompt(PromptStep),
    /// Ask for the runtime's version.
    Version(Version),
    /// Take lists of steps side by side. Names bound in one stand for nothing outside it.
    Parallel(Vec<Branch>),
    /// List containers and sandboxes by each filter that there is.
    Filters(FiltersStep),
    /// Take steps once for each handler that the runtime offers, in whose sandboxes they are.
    EachHandler(Branch),
    /// Take steps, and read the moment an event arrives.
    OnEvent(OnEventStep),
    /// Take steps, and read all the while.
    Meanwhile(MeanwhileStep),
    /// Run a command in a container.
    Exec(ExecStep),
    /// Make a call that changes no state.
    Aside(AsideStep),
    /// Make a call to the image service that changes nothing of containers.
    Image(ImageStep),
    /// Make a call on something that has never been.
    Unknown(UnknownStep),
    /// Take steps as another client of the runtime.
    AnotherClient(AnotherClientStep),
    /// Take steps while the host's wall clock is wrong.
    StepClock(StepClockStep),
    /// Let a container live that is not made through the CRI.
    OutsideCri(OutsideCriStep),
    /// Stop the runtime and start it again.
    RestartRuntime(RestartRuntimeStep),
    /// Do some steps several times.
    Repeat(RepeatStep),
}

/// How a call may end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// It must fail.
    pub fails: bool,
    /// It may succeed or fail.
    pub races: bool,
    /// When we give up on it; it may have succeeded or failed by then.
    pub deadline: Option<Duration>,
}

impl Terms {
    fn of(fails: bool, races: bool, deadline: Option<Duration>) -> Self {
        Self {
            fails,
            races,
            deadline,
        }
    }

    /// Whether it must succeed.
    #[must_use]
    pub fn are_usual(self) -> bool {
        self == Self::default()
    }
}

/// Run a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a name such as `{as: pod}`"
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a key of its own in a case file"
)]
pub struct SandboxStep {
    /// The name for it.
    #[serde(rename = "as")]
    pub binding: String,
    /// Labels beside the kubelet's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The sandbox whose pod it is made for, anew: the next attempt of the same pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// The pod has no UID.
    #[serde(default)]
    pub without_uid: bool,
    /// The runtime handler; the run's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_handler: Option<String>,
    /// The runtime handler is the one whose low-level runtime dies on demand.
    #[serde(default)]
    pub faulty: bool,
    /// Kernel parameters to set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, String>,
    /// It has a network of its own, and not the host's.
    #[serde(default)]
    pub own_network: bool,
    /// Its containers share a PID namespace.
    #[serde(default)]
    pub shared_pid: bool,
    /// Memory limit in MiB, without swap, of the pod's own cgroup, for all that is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// The call must fail. If it succeeds, the case is inconclusive.
    #[serde(default)]
    pub fails: bool,
    /// Something else may make it fail: whatever the call returns is right.
    #[serde(default)]
    pub races: bool,
    /// When we give up on the call. Whatever it has come to by then is right.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<duration::Text>")]
    pub deadline: Option<Duration>,
}

impl SandboxStep {
    /// How the call may end.
    #[must_use]
    pub fn terms(&self) -> Terms {
        Terms::of(self.fails, self.races, self.deadline)
    }
}

/// Create a container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container such as `{as: c, in: pod, workload: obey}`"
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a key of its own in a case file"
)]
pub struct CreateStep {
    /// The name for it.
    #[serde(rename = "as")]
    pub binding: String,
    /// The sandbox to create it in.
    #[serde(rename = "in")]
    pub sandbox: String,
    /// What it shall do.
    pub workload: WorkloadSpec,
    /// The container that it is the next attempt of, and whose name in the pod it bears.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_of: Option<String>,
    /// Whether it has a terminal.
    #[serde(default)]
    pub tty: bool,
    /// Whether a file of the host is mounted into it: `/dev/null`, which cannot be written to.
    #[serde(default)]
    pub mounted: bool,
    /// Memory limit in MiB, without swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// An OOM kill takes all of it, as a kubelet asks for where cgroups are of version 2.
    #[serde(default)]
    pub oom_group: bool,
    /// A runtime may refuse this already here. The case is then inconclusive.
    #[serde(default)]
    pub may_fail: bool,
    /// Labels beside the kubelet's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether it goes without the labels that a kubelet gives.
    #[serde(default)]
    pub unlabelled: bool,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// One more annotation, so many KiB long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation_kib: Option<u32>,
    /// The image; the suite's own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageName>,
    /// The container whose name and attempt it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<Flaw>,
    /// The signal that a stop of it sends first; the runtime's own choice if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<StopSignal>,
    /// The container whose PID namespace it joins, as a kubelet's ephemeral containers do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_target: Option<String>,
    /// The call must fail. If it succeeds, the case is inconclusive.
    #[serde(default)]
    pub fails: bool,
    /// Something else may make it fail: whatever the call returns is right.
    #[serde(default)]
    pub races: bool,
    /// When we give up on the call. Whatever it has come to by then is right.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<duration::Text>")]
    pub deadline: Option<Duration>,
}

/// An image that is not the suite's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", expecting = "an image: `missing`")]
pub enum ImageName {
    /// One that the runtime does not have.
    Missing,
}

impl CreateStep {
    /// How the call may end.
    #[must_use]
    pub fn terms(&self) -> Terms {
        Terms::of(self.fails, self.races, self.deadline)
    }
}

/// Start a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container such as `{container: c}`"
)]
pub struct StartStep {
    /// Which container.
    pub container: String,
    /// By the beginning of its id, as people do, and not by the whole. If the runtime refuses that,
    /// the case is inconclusive.
    #[serde(default)]
    pub by_prefix: bool,
    /// The call must fail. If it succeeds, the case is inconclusive.
    #[serde(default)]
    pub fails: bool,
    /// Something else may make it fail: whatever the call returns is right.
    #[serde(default)]
    pub races: bool,
    /// When we give up on the call. Whatever it has come to by then is right.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<duration::Text>")]
    pub deadline: Option<Duration>,
}

impl StartStep {
    /// How the call may end.
    #[must_use]
    pub fn terms(&self) -> Terms {
        Terms::of(self.fails, self.races, self.deadline)
    }
}

/// Stop a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container and a grace period such as `{container: c, grace: 2s}`"
)]
pub struct StopStep {
    /// Which container.
    pub container: String,
    /// By the beginning of its id, as people do, and not by the whole. If the runtime refuses that,
    /// the case is inconclusive.
    #[serde(default)]
    pub by_prefix: bool,
    /// Time between the stop signal and the kill; whole seconds.
    #[serde(with = "duration")]
    #[schemars(with = "duration::Text")]
    pub grace: Duration,
    /// Something else may make it fail: whatever the call returns is right.
    #[serde(default)]
    pub races: bool,
    /// When we give up on the call. Whatever it has come to by then is right.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<duration::Text>")]
    pub deadline: Option<Duration>,
}

impl StopStep {
    /// How the call may end.
    #[must_use]
    pub fn terms(&self) -> Terms {
        Terms::of(false, self.races, self.deadline)
    }
}

/// Remove a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container such as `{container: c}`"
)]
pub struct RemoveStep {
    /// Which container.
    pub container: String,
    /// By the beginning of its id, as people do, and not by the whole. If the runtime refuses that,
    /// the case is inconclusive.
    #[serde(default)]
    pub by_prefix: bool,
    /// Something else may make it fail: whatever the call returns is right.
    #[serde(default)]
    pub races: bool,
    /// How long after the first call the container must be removed, which is a requirement of the
    /// case. A runtime may refuse it until then: the call is made again.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<duration::Text>")]
    pub within: Option<Duration>,
}

impl RemoveStep {
    /// How the call may end.
    #[must_use]
    pub fn terms(&self) -> Terms {
        Terms::of(false, self.races, None)
    }
}

/// A sandbox by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a sandbox such as `{sandbox: pod}`")]
pub struct SandboxRef {
    /// Which sandbox.
    pub sandbox: String,
}

/// Look on the host whether a container's process is gone, which is a requirement of the case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a container such as `{container: c}`"
)]
pub struct GoneStep {
    /// Which container.
    pub container: String,
    /// How long a conformant runtime may take until it is; no time at all if absent.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<duration::Text>")]
    pub within: Option<Duration>,
}

/// Wait until an event has arrived. That it does is a requirement of the case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an event such as `{of: c, event: started}`"
)]
pub struct AwaitStep {
    /// The sandbox or container that the event is about.
    pub of: String,
    /// Which event.
    #[serde(deserialize_with = "event::one")]
    #[schemars(with = "event::Word")]
    pub event: EventKind,
    /// The longest time that a conformant runtime may take; the run's event time-out if absent.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "duration::Text")]
    pub within: Option<Duration>,
}

/// Give up the event stream and open a new one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "nothing, as in `resubscribe: {}`")]
pub struct Resubscribe {
    /// What is done between the two, while the run does not listen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub meanwhile: Vec<Step>,
}

/// Ask for the runtime's version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "nothing, as in `version: {}`")]
pub struct Version {}

/// Do some steps several times. Names bound inside are bound anew each time; no later step can use
/// them, and in an expectation they stand for those of all rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a mapping with `times` or `items`, and `steps`"
)]
pub struct RepeatStep {
    /// How often. Either this or `items`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Once for each of these; `item` stands for it where a step takes a number, the innermost one
    /// where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<u8>,
    /// How many rounds may be under way at once.
    #[serde(default = "one")]
    pub workers: u32,
    /// What to do in each round.
    pub steps: Vec<Step>,
}

fn one() -> u32 {
    1
}
