//! The certain state after the steps so far: which steps are legal, how their calls must end, and
//! which events must come.
//!
//! A plan is *taken* step by step. A step that is not legal at its place is left out, so any part
//! of a plan becomes a legal plan: the shrinker relies on it. A taken plan has the outcomes that
//! its calls must have, and the steps that have to follow others.

mod blocks;
mod creation;
mod subjects;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::plan::{
    Behaviour, Capabilities, Plan, inner, needs, signal, stop_sandbox, wait, wait_for_end,
};
use crate::case::{CallOutcome, CreateStep, Need, SandboxStep, Step, SubscribeStep};
use crate::history::{EventKind, Flaw};

use blocks::names;

/// An object whose creation has failed, or may have.
#[derive(Clone, Debug)]
pub(super) struct Unmade {
    pub(super) remains: Remains,
    /// The sandbox of the object.
    pub(super) pod: Option<String>,
    /// Whether it failed for its image, so that another try has its name and attempt.
    pub(super) lacks_image: bool,
}

/// The possible remains of a failed creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remains {
    Absent,
    Consistent,
    /// Uncertain: no stream was open.
    Unobserved,
}

/// The certain state.
#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) pods: BTreeMap<String, Pod>,
    pub(super) containers: BTreeMap<String, Container>,
    /// Subscriptions that are open.
    pub(super) streams: BTreeMap<String, Stream>,
    /// The objects of calls that have failed, or may have.
    pub(super) unmade: BTreeMap<String, Unmade>,
    names: BTreeSet<String>,
    can: Capabilities,
    /// The branches around, from the outermost. Names are local to the branch that binds them.
    scopes: Vec<usize>,
    branches: usize,
    starts: u32,
    /// Whether the host's wall clock was wrong for a time.
    pub(super) clock_stepped: bool,
    around: Around,
}

/// The context of a step.
#[derive(Clone, Debug, Default)]
struct Around {
    /// Whether other clients act at the same time.
    concurrent: bool,
    /// The names on which they act, too.
    contested: BTreeSet<String>,
    /// Whether no stream is open.
    unsubscribed: bool,
    down: bool,
    /// The least depth of the scope of a subject: repeated steps act on their own objects.
    isolated: usize,
    /// The pod whose monitor is frozen, and the container that may be killed.
    frozen: Option<(String, String)>,
}

#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is certain or not by itself"
)]
pub(super) struct Pod {
    pub(super) state: PodState,
    /// The step that made its first attempt.
    pub(super) spec: SandboxStep,
    /// Whether its events are certain.
    pub(super) has_certain_events: bool,
    scope: Vec<usize>,
    /// Whether its STARTED has been awaited.
    seen: bool,
    /// Whether it has a next attempt already.
    followed: bool,
    /// Whether a step lists its containers.
    pub(super) relisted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodState {
    Ready,
    Stopped,
    Removed,
    /// Its monitor was killed.
    Dead,
}

#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) spec: CreateStep,
    pub(super) life: Life,
    /// The events that must come; none if that is not certain.
    pub(super) events: Option<Vec<EventKind>>,
    /// The events that must come after a time without a stream.
    pub(super) tail: Vec<EventKind>,
    /// How many of them have been awaited.
    seen: usize,
    /// How it is ended from outside, if it is.
    pub(super) ended_by: Option<EndedBy>,
    /// Which start it was, if it was started.
    started: Option<u32>,
    /// Whether its start had to fail.
    pub(super) failed: bool,
    /// How often it was stopped.
    pub(super) stops: u8,
    /// Whether its program has had time to begin.
    has_begun: bool,
    scope: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Created,
    /// It surely runs.
    Running,
    /// It has been started, and ends by itself.
    Ending,
    Exited,
    Failed,
    Removed,
    /// Another client may have changed it.
    Unsure,
}

/// How a container is ended that does not end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// A stop with this grace period, when its program had time to begin or not.
    Stop { grace: Duration, has_begun: bool },
    /// SIGKILL.
    Kill,
    /// Its removal, before which a runtime may stop it with a grace period.
    Removal,
    /// Something else, or several things.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    /// Whether it does not read now.
    pub(super) stalled: bool,
    /// Whether it has not always read, so that the runtime may have ended it.
    pub(super) behind: bool,
    /// Whether the first subscription has been there all the time.
    pub(super) accompanied: bool,
}

impl World {
    /// An empty one, on a runtime that can do this.
    pub(super) fn new(can: Capabilities) -> Self {
        Self {
            can,
            ..Self::default()
        }
    }

    /// The pods that a step here can name, in a state.
    pub(super) fn pods_in(&self, state: PodState) -> Vec<String> {
        let is_named = |pod: &Pod| pod.state == state && self.is_in_scope(&pod.scope);
        names_of(&self.pods, is_named)
    }

    /// The containers that a step here can name, with one of these lives.
    pub(super) fn containers_in(&self, lives: &[Life]) -> Vec<String> {
        let is_named = |it: &Container| lives.contains(&it.life) && self.is_own(&it.scope);
        names_of(&self.containers, is_named)
    }

    fn is_in_scope(&self, scope: &[usize]) -> bool {
        self.scopes.starts_with(scope)
    }

    /// Whether a step here can act on an object of this scope.
    fn is_own(&self, scope: &[usize]) -> bool {
        self.is_in_scope(scope) && scope.len() >= self.around.isolated
    }

    fn bind(&mut self, name: &str) -> bool {
        self.names.insert(name.to_owned())
    }

    fn is_contested(&self, name: &str) -> bool {
        self.around.contested.contains(name)
    }
}

fn names_of<T>(all: &BTreeMap<String, T>, is_wanted: impl Fn(&T) -> bool) -> Vec<String> {
    let wanted = all.iter().filter(|(_, it)| is_wanted(it));
    wanted.map(|(name, _)| name.clone()).collect()
}

impl Container {
    fn push(&mut self, event: EventKind) {
        if let Some(events) = &mut self.events {
            events.push(event);
        }
    }

    /// An event comes, if a stream is open.
    fn push_unless(&mut self, unsubscribed: bool, event: EventKind) {
        match &mut self.events {
            Some(events) => events.push(event),
            None if !unsubscribed => self.tail.push(event),
            None => {}
        }
    }

    /// Nothing is certain of it any more.
    fn become_uncertain(&mut self) {
        self.events = None;
        self.tail.clear();
        if self.life != Life::Removed {
            self.life = Life::Unsure;
        }
    }

    pub(super) fn has(&self, event: EventKind) -> bool {
        self.events
            .as_ref()
            .is_some_and(|events| events.contains(&event))
    }

    /// Whether SIGTERM cannot end it, if its program ignores SIGTERM: the program has had time to
    /// begin, or the kernel protects it as the first process of its PID namespace.
    pub(super) fn withstands_term(&self, home: Option<&SandboxStep>) -> bool {
        let shares_pid = home.is_some_and(|home| home.shared_pid);
        let is_first = self.spec.pid_target.is_none() && !shares_pid;
        is_first || self.has_begun
    }
}

impl World {
    /// Takes all steps that are legal at their places, with those that have to follow them.
    pub(super) fn take_all(&mut self, plan: Plan) -> Plan {
        let mut taken = Vec::new();
        let mut rest = plan.into_iter().peekable();
        while let Some(step) = rest.next() {
            let is_followed = matches!(
                step,
                Step::Signal(_)
                    | Step::Subscribe(_)
                    | Step::KillSandbox(_)
                    | Step::RestartRuntime(_)
            );
            let new = self.take(step);
            if is_followed {
                // A plan that was taken before has them already.
                for follower in new.iter().skip(1) {
                    rest.next_if_eq(follower);
                }
            }
            taken.extend(new);
        }
        taken
    }

    /// Takes a step; returns nothing if it is not legal here, and more steps than it if others have
    /// to follow.
    fn take(&mut self, mut step: Step) -> Plan {
        let is_down = self.around.down && !matches!(step, Step::Kill(_));
        if is_down || !self.can.meet(&needs(&step)) || !self.is_apart_from_frozen(&step) {
            return Vec::new();
        }
        match step {
            Step::Parallel(block) => return self.take_parallel(block),
            Step::AnotherClient(client) => return self.take_all(client.steps),
            _ if !inner(&step).is_empty() => return self.take_block(step),
            _ => {}
        }
        let Some(end) = self.end_of(&step) else {
            return Vec::new();
        };
        set_end(&mut step, end);
        let followers = followers(&step);
        [vec![step], followers].concat()
    }

    /// How the call of a step without others inside it must end; none if it is not legal here.
    fn end_of(&mut self, step: &Step) -> Option<CallOutcome> {
        match step {
            Step::Sandbox(it) => self.sandbox(it),
            Step::Create(it) => self.create(it),
            Step::Start(it) => self.start(&it.container, it.abandon_after.is_some()),
            Step::Stop(it) => self.stop(&it.container, it.grace, it.abandon_after.is_some()),
            Step::Remove(it) if it.by_prefix && self.is_contested(&it.container) => None,
            Step::Remove(it) => {
                let end = self.remove(&it.container);
                end.filter(|end| !it.by_prefix || *end == CallOutcome::Success)
            }
            Step::Kill(it) => self.kill(&it.container),
            Step::Signal(it) if *step == signal(&it.container, "SIGSTOP") => {
                let runs = self.own(&it.container)?.life == Life::Running;
                runs.then_some(CallOutcome::Success)
            }
            Step::Await(it) => self.wait(&it.of, it.event),
            Step::Exec(it) => self.exec(it),
            Step::Update(it) => self.adjust(&it.container),
            Step::Relist(it) => self.relist(&it.sandbox),
            Step::ListWithFilters(it) => self.asked(&it.sandbox),
            Step::Call(it) => self.call(it.of.as_deref()),
            Step::ProcessExited(it) => self.process_exited(&it.container),
            Step::OutsideCri(_) => Some(CallOutcome::Success),
            Step::StopSandbox(it) => self.stop_sandbox(&it.sandbox),
            Step::RemoveSandbox(it) => self.remove_sandbox(&it.sandbox),
            Step::Subscribe(it) => self.subscribe(it),
            Step::Unsubscribe(it) => {
                let stream = self.streams.remove(&it.subscription);
                stream.map(|_| CallOutcome::Success)
            }
            Step::Resume(it) => {
                let stream = self.streams.get_mut(&it.subscription)?;
                std::mem::take(&mut stream.stalled).then_some(CallOutcome::Success)
            }
            Step::KillSandbox(it) => self.kill_sandbox(&it.sandbox),
            Step::KillMonitor(it) => self.kill_monitor(&it.container),
            _ => None,
        }
    }

    /// Whether a step leaves the pod alone whose monitor is frozen.
    fn is_apart_from_frozen(&self, step: &Step) -> bool {
        let Some((frozen, victim)) = &self.around.frozen else {
            return true;
        };
        let in_frozen = |name: &str| {
            let container = self.containers.get(name);
            name == frozen || container.is_some_and(|it| it.spec.sandbox == *frozen)
        };
        match step {
            Step::Kill(it) if it.container == *victim => true,
            Step::Create(it) => it.sandbox != *frozen,
            Step::Parallel(_) | Step::StaysSilent(_) => false,
            _ => !names(step).iter().any(|(name, _)| in_frozen(name)),
        }
    }

    fn relist(&mut self, pod: &str) -> Option<CallOutcome> {
        let asked = self.asked(pod)?;
        self.pods.get_mut(pod)?.relisted = true;
        Some(asked)
    }

    /// A sandbox about which something is asked.
    fn asked(&self, pod: &str) -> Option<CallOutcome> {
        let pod = self.pods.get(pod)?;
        let can_ask = pod.state != PodState::Removed && self.is_in_scope(&pod.scope);
        can_ask.then_some(CallOutcome::Either)
    }

    fn call(&self, of: Option<&str>) -> Option<CallOutcome> {
        let Some(of) = of else {
            return Some(CallOutcome::Either);
        };
        self.asked(of).or_else(|| {
            let container = self.containers.get(of)?;
            let can_ask = container.life == Life::Running && self.is_in_scope(&container.scope);
            can_ask.then_some(CallOutcome::Either)
        })
    }

    fn subscribe(&mut self, it: &SubscribeStep) -> Option<CallOutcome> {
        if it.stalls && !self.can.has(Behaviour::OutlivesStalledSubscriber) {
            return None;
        }
        let can_subscribe = self.can.meet(&[Need::Broadcast])
            && !self.around.concurrent
            && !self.around.unsubscribed;
        if !can_subscribe || !self.bind(&it.binding) {
            return None;
        }
        if it.deadline.is_none() {
            let stream = Stream {
                stalled: it.stalls,
                behind: it.stalls,
                accompanied: true,
            };
            self.streams.insert(it.binding.clone(), stream);
        }
        Some(CallOutcome::Success)
    }

    /// Whether no event can come any more.
    fn is_quiet(&self) -> bool {
        let is_settled = |it: &Container| {
            let events = it.events.as_ref();
            events.is_some_and(|events| events.len() == it.seen) && it.life != Life::Ending
        };
        // A second subscriber may get late what the first one has got.
        !self.around.concurrent
            && !self.around.unsubscribed
            && self.unmade.is_empty()
            && self.streams.is_empty()
            && self.containers.values().all(is_settled)
            && self
                .pods
                .values()
                .all(|pod| pod.seen && pod.state == PodState::Ready)
    }
}

/// Sets how the call of a step must end, unless the client gives up on it.
fn set_end(step: &mut Step, end: CallOutcome) {
    match step {
        Step::Sandbox(it) => it.expect = end,
        Step::Create(it) => {
            it.expect = end;
            it.may_be_refused = it.pid_target.is_some() || it.flaw == Some(Flaw::CrashAtCreate);
        }
        Step::Start(it) if it.abandon_after.is_none() => it.expect = end,
        Step::Stop(it) if it.abandon_after.is_none() => it.expect = end,
        Step::Remove(it) => it.expect = end,
        Step::Exec(it) => it.expect = end,
        Step::Update(it) => it.expect = end,
        _ => {}
    }
}

/// The steps that have to follow a step: a stopped process is continued, the end of a subscription
/// is awaited, and a dead sandbox is stopped.
fn followers(step: &Step) -> Plan {
    match step {
        Step::Signal(it) => vec![signal(&it.container, "SIGCONT")],
        Step::Subscribe(it) if it.deadline.is_some() => vec![wait_for_end(&it.binding)],
        Step::KillSandbox(it) => {
            let stopped = wait(&it.sandbox, EventKind::Stopped);
            vec![stopped, stop_sandbox(&it.sandbox)]
        }
        _ => Vec::new(),
    }
}
