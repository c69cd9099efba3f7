//! A plan: the steps of a walk, as cases have them, and the capabilities that they may use. Names
//! are bound to pods, containers and subscriptions.
//!
//! A plan has the calls. The outcome that a call must have follows from the steps before it:
//! [`World`](super::world::World) sets it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::case::{self, CreateStep, Delay, Need, ParallelStep, Step, WorkloadSpec};
use crate::history::EventKind;

/// The steps of a walk, in order.
pub(super) type Plan = Vec<Step>;

/// A step by its word and its keys, as a case file has them.
pub(super) fn step(word: &str, keys: Value) -> Step {
    with_word(word, keys)
}

/// A step or check by its word and its keys.
pub(super) fn with_word<T: DeserializeOwned>(word: &str, keys: Value) -> T {
    let item = Map::from_iter([(word.to_owned(), keys)]);
    serde_json::from_value(item.into()).expect("it has the keys of its word")
}

/// The creation of a container with more keys, of which later ones take precedence.
pub(super) fn create(name: &str, pod: &str, more: &[&Value]) -> CreateStep {
    let mut keys = Map::new();
    keys.insert("as".to_owned(), name.into());
    keys.insert("in".to_owned(), pod.into());
    let more = more.iter().filter_map(|keys| keys.as_object());
    keys.extend(
        more.flatten()
            .map(|(key, value)| (key.clone(), value.clone())),
    );
    serde_json::from_value(keys.into()).expect("a container has the keys of `create`")
}

pub(super) fn sandbox(name: &str) -> Step {
    step("sandbox", json!({"as": name}))
}

pub(super) fn start(name: &str) -> Step {
    step("start", json!({"container": name}))
}

pub(super) fn stop(name: &str, grace_s: u8) -> Step {
    step(
        "stop",
        json!({"container": name, "grace": format!("{grace_s}s")}),
    )
}

pub(super) fn remove(name: &str) -> Step {
    step("remove", json!({"container": name}))
}

pub(super) fn kill(name: &str) -> Step {
    step("kill", json!({"container": name}))
}

pub(super) fn signal(name: &str, signal: &str) -> Step {
    step("signal", json!({"container": name, "signal": signal}))
}

pub(super) fn wait(name: &str, event: EventKind) -> Step {
    step("await", json!({"of": name, "event": event}))
}

pub(super) fn wait_for_end(stream: &str) -> Step {
    step("await-end", json!({"of": stream, "within": "10s"}))
}

pub(super) fn relist(pod: &str) -> Step {
    step("relist", json!({"sandbox": pod}))
}

pub(super) fn stop_sandbox(pod: &str) -> Step {
    step("stop-sandbox", json!({"sandbox": pod}))
}

pub(super) fn process_exited(name: &str) -> Step {
    step(
        "process-exited",
        json!({"container": name, "within": "10s"}),
    )
}

/// Whether a client has a connection of its own, and its steps.
pub(super) type Branch = (bool, Plan);

/// A block of several clients.
pub(super) fn parallel(branches: impl IntoIterator<Item = Branch>) -> Step {
    let branches = branches.into_iter().map(|(other_client, steps)| {
        let steps = json!({ "steps": steps });
        if other_client {
            json!({"steps": [{"another-client": steps}]})
        } else {
            steps
        }
    });
    step("parallel", branches.collect())
}

/// The clients of a block, with their steps.
pub(super) fn branches(block: ParallelStep) -> Vec<Branch> {
    let branches = block.branches.into_iter().map(|mut branch| {
        if let [Step::AnotherClient(client)] = &mut branch.steps[..] {
            return (true, std::mem::take(&mut client.steps));
        }
        (false, branch.steps)
    });
    branches.collect()
}

/// The sandbox, container or subscription that a step makes, acts on or asks about.
pub(super) fn subject(step: &Step) -> Option<&str> {
    Some(match step {
        Step::Sandbox(it) => &it.binding,
        Step::Create(it) => &it.binding,
        Step::Start(it) => &it.container,
        Step::Stop(it) => &it.container,
        Step::Remove(it) => &it.container,
        Step::Kill(it) => &it.container,
        Step::Signal(it) => &it.container,
        Step::Exec(it) => &it.container,
        Step::Update(it) => &it.container,
        Step::ProcessExited(it) => &it.container,
        Step::KillMonitor(it) => &it.container,
        Step::FreezeMonitor(it) => &it.container,
        Step::FillDisk(it) => &it.container,
        Step::Await(it) => &it.of,
        Step::OnEvent(it) => &it.of,
        Step::PollDuring(it) => &it.of,
        Step::Relist(it) => &it.sandbox,
        Step::ListWithFilters(it) => &it.sandbox,
        Step::StopSandbox(it) => &it.sandbox,
        Step::RemoveSandbox(it) => &it.sandbox,
        Step::KillSandbox(it) => &it.sandbox,
        Step::Subscribe(it) => &it.binding,
        Step::AwaitEnd(it) => &it.of,
        Step::Unsubscribe(it) => &it.subscription,
        Step::Resume(it) => &it.subscription,
        Step::Call(it) => it.of.as_deref()?,
        _ => return None,
    })
}

/// The lists of steps inside a step, by references of one kind.
macro_rules! lists {
    ($step:expr, $iter:ident, $($ref:tt)+) => {
        match $step {
            Step::Resubscribe(it) => vec![$($ref)+ it.meanwhile],
            Step::OnEvent(it) => vec![$($ref)+ it.steps],
            Step::PollDuring(it) => vec![$($ref)+ it.steps],
            Step::CallsReturnWithin(it) => vec![$($ref)+ it.steps],
            Step::StaysSilent(it) => vec![$($ref)+ it.steps],
            Step::StepClock(it) => vec![$($ref)+ it.steps],
            Step::FreezeMonitor(it) => vec![$($ref)+ it.steps],
            Step::FillDisk(it) => vec![$($ref)+ it.steps],
            Step::Repeat(it) => vec![$($ref)+ it.steps],
            Step::ForEachHandler(it) => vec![$($ref)+ it.steps],
            Step::AnotherClient(it) => vec![$($ref)+ it.steps],
            Step::RestartRuntime(it) => vec![$($ref)+ it.during, $($ref)+ it.meanwhile],
            Step::Parallel(it) => it.branches.$iter().map(|it| $($ref)+ it.steps).collect(),
            _ => Vec::new(),
        }
    };
}

/// The lists of steps inside a step.
pub(super) fn inner(step: &Step) -> Vec<&Plan> {
    lists!(step, iter, &)
}

/// The same to be changed.
pub(super) fn inner_mut(step: &mut Step) -> Vec<&mut Plan> {
    lists!(step, iter_mut, &mut)
}

/// The needs of a step, apart from those of the steps inside it.
pub(super) fn needs(step: &Step) -> Vec<Need> {
    let mut alone = step.clone();
    for list in inner_mut(&mut alone) {
        list.clear();
    }
    case::needs(alone)
}

/// All steps without others inside them.
pub(super) fn flat(plan: &[Step]) -> Vec<&Step> {
    let mut all = Vec::new();
    for step in plan {
        let inner = inner(step);
        if inner.is_empty() {
            all.push(step);
        }
        all.extend(inner.into_iter().flat_map(|steps| flat(steps)));
    }
    all
}

/// How many steps a plan has, without those that only say how others are taken.
pub(super) fn size(plan: &[Step]) -> usize {
    let own = plan.iter().filter(|step| !step.is_block()).count();
    let inner = plan.iter().flat_map(inner);
    own + inner.map(|steps| size(steps)).sum::<usize>()
}

/// Whether a container exits by itself.
pub(super) fn ends(container: &CreateStep) -> bool {
    matches!(
        container.workload,
        WorkloadSpec::Exit(_)
            | WorkloadSpec::Die(_)
            | WorkloadSpec::DumpCore(_)
            | WorkloadSpec::Allocate(_)
            | WorkloadSpec::AllocateInChild(_)
            | WorkloadSpec::OrphanChild(_)
    )
}

/// How long a container lasts, if that is certain.
pub(super) fn lasts(container: &CreateStep) -> Option<Duration> {
    let after = match &container.workload {
        WorkloadSpec::Exit(exit) => exit.after,
        WorkloadSpec::Die(die) => die.after,
        _ => return None,
    };
    match after {
        Delay::Given(after) => Some(after),
        Delay::Item => None,
    }
}

/// The capabilities of a runtime and its node that walks use: the needs that are met, the behaviour
/// of the runtime, and the permissions of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The needs of cases that are met.
    pub met: BTreeSet<Need>,
    /// In which ways the runtime behaves that not every runtime does.
    pub behaviours: BTreeSet<Behaviour>,
    /// Whether the runtime may be restarted, and monitors and sandboxes killed.
    pub disruption: bool,
}

/// A way in which a runtime may behave or not. Unless it is known to behave so, a walk has no steps
/// that would end otherwise then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behaviour {
    /// A container whose program is missing is created, and fails to start.
    CreatesWithoutProgram,
    /// A second container of the same name and attempt is refused.
    RefusesTwins,
    /// A subscriber that does not read is not known to hold up all else.
    OutlivesStalledSubscriber,
}

impl Behaviour {
    pub const ALL: [Self; 3] = [
        Self::CreatesWithoutProgram,
        Self::RefusesTwins,
        Self::OutlivesStalledSubscriber,
    ];

    /// The name of the steps that walks leave out where the runtime does not behave so.
    pub fn allows(self) -> &'static str {
        match self {
            Self::CreatesWithoutProgram => "missing-program",
            Self::RefusesTwins => "twins",
            Self::OutlivesStalledSubscriber => "stalled-subscriber",
        }
    }
}

impl Capabilities {
    /// The needs that walks can make use of.
    pub const USED: [Need; 17] = [
        Need::MemoryLimit,
        Need::CgroupV2,
        Need::PodCgroup,
        Need::Broadcast,
        Need::HostPid,
        Need::ContainerPid,
        Need::Monitor,
        Need::CorePipe,
        Need::Handlers,
        Need::Network,
        Need::StreamedLists,
        Need::StopSignal,
        Need::FaultyHandler,
        Need::OutsideCri,
        Need::ClockSteps,
        Need::RuntimeKill,
        Need::SmallDisk,
    ];

    /// Whether the runtime behaves so.
    pub fn has(&self, behaviour: Behaviour) -> bool {
        self.behaviours.contains(&behaviour)
    }

    /// Whether these needs are met.
    pub fn meet(&self, needs: &[Need]) -> bool {
        needs.iter().all(|need| self.met.contains(need))
    }
}
