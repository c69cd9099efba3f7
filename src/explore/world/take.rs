//! Taking one step after the other; calls that change nothing; subscriptions.

use super::parallel::names;
use super::{Container, Life, PodState, Stream, World};
use crate::case::{CallOutcome, Need, Step, SubscribeStep};
use crate::explore::capabilities::Behaviour;
use crate::explore::plan::{Plan, inner, needs, signal, stop_sandbox, wait, wait_for_end};
use crate::history::{EventKind, Flaw};

impl World {
    /// Takes all steps that are legal at their places, with those that have to follow them.
    pub(in crate::explore) fn take_all(&mut self, plan: Plan) -> Plan {
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
            Step::Relist(it) => self.relist(&it.sandbox),
            Step::ListWithFilters(it) => self.filtered(&it.sandbox),
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

    /// A sandbox that is listed by all filters.
    fn filtered(&mut self, pod: &str) -> Option<CallOutcome> {
        let asked = self.asked(pod)?;
        let alone = !self.around.concurrent;
        self.pods.get_mut(pod)?.listed |= alone;
        for container in self.names_in(pod) {
            if let Some(container) = self.containers.get_mut(&container) {
                container.listed |= alone && container.life != Life::Removed;
            }
        }
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
    pub(super) fn is_quiet(&self) -> bool {
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
        _ => {}
    }
}

/// The steps that have to follow a step: what is stopped runs on, what ends is awaited, and what a
/// dead sandbox leaves behind is stopped.
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
