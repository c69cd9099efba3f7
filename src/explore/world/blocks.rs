//! Operations around others.

use std::collections::BTreeSet;

use super::{Container, End, Life, PodState, Remains, Taken, World, plan_of};
use crate::case::Need;
use crate::explore::plan::{ContainerKind, Moment, Op, Plan, Work};

impl World {
    pub(super) fn take_block(&mut self, op: Op) -> Option<Taken> {
        let before = self.clone();
        let taken = self.try_block(op);
        if taken.is_none() {
            *self = before;
        }
        taken
    }

    pub(super) fn try_block(&mut self, op: Op) -> Option<Taken> {
        match op {
            Op::Resubscribe(ops) => {
                if self.around.concurrent || self.around.unsubscribed {
                    return None;
                }
                let inner = self.without_stream(ops, false);
                Some(block(Op::Resubscribe, inner))
            }
            Op::OnEvent(name, event, ops) => {
                let had = self.containers.get(&name)?.has(event);
                let inner = self.take_all(ops);
                let has = self.containers.get(&name)?.has(event);
                let is_new = has && !had && !self.around.unsubscribed;
                self.containers.get_mut(&name)?.asked |= is_new && event != Moment::Deleted;
                is_new.then(|| block(|ops| Op::OnEvent(name, event, ops), inner))
            }
            Op::Poll(name, ops) => self.poll(name, ops),
            Op::Prompt(seconds, ops) => {
                let inner = self.take_all(ops);
                (!inner.is_empty()).then(|| block(|ops| Op::Prompt(seconds, ops), inner))
            }
            Op::Silence(seconds, ops) => {
                if !self.is_quiet() {
                    return None;
                }
                let inner = self.take_all(ops.into_iter().filter(is_silent).collect());
                Some(block(|ops| Op::Silence(seconds, ops), inner))
            }
            Op::StepClock(back, ops) => {
                let can = self.can.meets(Need::ClockSteps) && !self.around.concurrent;
                if !can || self.around.unsubscribed {
                    return None;
                }
                let inner = self.take_all(ops);
                self.clock_stepped |= !inner.is_empty();
                (!inner.is_empty()).then(|| block(|ops| Op::StepClock(back, ops), inner))
            }
            Op::FreezeMonitor(name, ops) => self.freeze_monitor(name, ops),
            Op::FillDisk(name, ops) => self.fill_disk(name, ops),
            Op::Repeat(times, workers, ops) => {
                let bulky =
                    |it: &Container| it.kind == ContainerKind::Bulky && it.life != Life::Removed;
                // Each event of its pod shows it, and a history has its limit.
                if times > 10 && self.containers.values().any(bulky) {
                    return None;
                }
                let inner = self.apart(ops)?;
                Some(block(|ops| Op::Repeat(times, workers, ops), inner))
            }
            Op::EachHandler(ops) => {
                if !self.can.meets(Need::Handlers) {
                    return None;
                }
                let before: BTreeSet<String> = self.pods.keys().cloned().collect();
                let inner = self.apart(ops)?;
                for (name, pod) in &mut self.pods {
                    pod.names_handler |= !before.contains(name);
                }
                Some(block(Op::EachHandler, inner))
            }
            Op::Restart {
                kill,
                back_off,
                during,
                meanwhile,
            } => self.restart((kill, back_off), during, meanwhile),
            _ => None,
        }
    }

    pub(super) fn poll(&mut self, name: String, ops: Plan) -> Option<Taken> {
        let of_container = self.containers.get(&name).map(|it| it.scope.clone());
        let of_pod = self.pods.get(&name).map(|it| it.scope.clone());
        // What is read while another client removes it is no state at rest.
        if self.is_contested(&name) || !self.is_in_scope(&of_container.or(of_pod)?) {
            return None;
        }
        let inner = self.take_all(ops);
        (!inner.is_empty()).then(|| block(|ops| Op::Poll(name, ops), inner))
    }

    pub(super) fn freeze_monitor(&mut self, name: String, ops: Plan) -> Option<Taken> {
        let allowed = self.can.disruption && self.can.meets(Need::Monitor);
        let container = self.containers.get(&name)?;
        let pod = container.pod.clone();
        let is_calm = self.around.frozen.is_none() && !self.around.concurrent;
        if !allowed || container.life != Life::Running || !is_calm {
            return None;
        }
        self.around.frozen = Some((pod, name.clone()));
        let inner = self.take_all(ops);
        self.around.frozen = None;
        (!inner.is_empty()).then(|| block(|ops| Op::FreezeMonitor(name, ops), inner))
    }

    /// Exits while a monitor has no room on its disk: they are reported once it has room again.
    /// Other calls may fail meanwhile, whichever container they are about.
    pub(super) fn fill_disk(&mut self, name: String, ops: Plan) -> Option<Taken> {
        let allowed = self.can.disruption && self.can.meets(Need::SmallDisk);
        let is_calm =
            self.around.frozen.is_none() && !self.around.concurrent && !self.around.unsubscribed;
        if !allowed || !is_calm || self.containers.get(&name)?.life != Life::Running {
            return None;
        }
        let is_exit = |op: &Op| matches!(op, Op::Kill(_) | Op::ProcessExited(_));
        let inner = self.take_all(ops.into_iter().filter(is_exit).collect());
        (!inner.is_empty()).then(|| block(|ops| Op::FillDisk(name, ops), inner))
    }

    /// Takes operations that are taken several times: they act on what they make themselves.
    pub(super) fn apart(&mut self, ops: Plan) -> Option<Vec<Taken>> {
        if self.around.isolated > 0 || self.around.unsubscribed {
            return None;
        }
        self.branches += 1;
        self.scopes.push(self.branches);
        self.around.isolated = self.scopes.len();
        let concurrent = std::mem::replace(&mut self.around.concurrent, true);
        let inner = self.take_all(ops);
        self.around.concurrent = concurrent;
        self.around.isolated = 0;
        self.scopes.pop();
        (!inner.is_empty()).then_some(inner)
    }

    pub(super) fn restart(
        &mut self,
        (kill, back_off): (bool, bool),
        during: Plan,
        meanwhile: Plan,
    ) -> Option<Taken> {
        let can = self.can.disruption && self.can.meets(Need::RuntimeKill);
        if !can || self.around.concurrent || self.around.unsubscribed {
            return None;
        }
        let begun = self.begin(kill, during);
        let streams = std::mem::take(&mut self.streams).into_iter();
        let ends = streams.filter(|(_, stream)| !stream.stalled);
        let ends = ends.map(|(name, _)| name).collect();
        let inner = self.without_stream(meanwhile, true);
        let plans = (plan_of(&begun), plan_of(&inner));
        Some(Taken {
            op: Op::Restart {
                kill,
                back_off,
                during: plans.0,
                meanwhile: plans.1,
            },
            end: End::Success,
            inner: vec![begun, inner],
            ends,
        })
    }

    /// Stops that are under way when the runtime is killed: their grace periods are longer than it
    /// lives, and what they are to stop runs on.
    fn begin(&mut self, kill: bool, during: Plan) -> Vec<Taken> {
        let mut begun = Vec::new();
        for op in during {
            let Op::Stop(name, 10.., None) = &op else {
                continue;
            };
            let Some(container) = self.containers.get_mut(name) else {
                continue;
            };
            let stubborn = container.work == Work::IgnoreTerm;
            if kill && stubborn && container.life == Life::Running && begun.is_empty() {
                container.events = None;
                begun.push(Taken {
                    op,
                    end: End::Either,
                    inner: Vec::new(),
                    ends: Vec::new(),
                });
            }
        }
        begun
    }

    /// Takes operations while nobody listens: what comes meanwhile is uncertain, as is what has
    /// not been seen before.
    pub(super) fn without_stream(&mut self, ops: Plan, down: bool) -> Vec<Taken> {
        let before: Vec<(String, usize)> = self
            .containers
            .iter()
            .map(|(name, it)| (name.clone(), it.events.as_ref().map_or(0, Vec::len)))
            .collect();
        let around = std::mem::take(&mut self.around);
        self.around.unsubscribed = true;
        self.around.down = down;
        let pods: Vec<(String, PodState)> = self.pod_states();
        let inner = self.take_all(ops);
        self.around = around;
        for (name, container) in &mut self.containers {
            let had = before
                .iter()
                .find(|(other, _)| other == name)
                .map(|(_, count)| *count);
            let has = container.events.as_ref().map(Vec::len);
            if had != has || container.seen != has.unwrap_or(0) || container.life == Life::Ending {
                container.events = None;
            }
            // What has not been seen yet may come before there is a stream again.
            container.tail.clear();
        }
        for unmade in self.unmade.values_mut() {
            if unmade.remains == Remains::Consistent {
                unmade.remains = Remains::Unobserved;
            }
        }
        for stream in self.streams.values_mut() {
            stream.accompanied = false;
        }
        let after = self.pod_states();
        for (name, pod) in &mut self.pods {
            let is_same = |of: &[(String, PodState)]| {
                of.iter()
                    .find(|(other, _)| other == name)
                    .map(|(_, state)| *state)
            };
            if is_same(&pods) != is_same(&after) || !pod.seen || pod.state != PodState::Ready {
                pod.has_certain_events = false;
            }
        }
        inner
    }

    pub(super) fn pod_states(&self) -> Vec<(String, PodState)> {
        let pods = self.pods.iter();
        pods.map(|(name, pod)| (name.clone(), pod.state)).collect()
    }
}

/// A block with the operations inside it that were taken.
fn block(of: impl FnOnce(Plan) -> Op, inner: Vec<Taken>) -> Taken {
    Taken {
        op: of(plan_of(&inner)),
        end: End::Success,
        inner: vec![inner],
        ends: Vec::new(),
    }
}

/// Whether an operation causes no event.
fn is_silent(op: &Op) -> bool {
    matches!(
        op,
        Op::Exec(..)
            | Op::Call(..)
            | Op::CallUnknown(_)
            | Op::Relist(_)
            | Op::ListWithFilters(..)
            | Op::Freeze(_)
            | Op::OutsideCri
    )
}
