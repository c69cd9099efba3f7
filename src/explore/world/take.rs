//! Taking one operation.

use super::parallel::names;
use super::{End, Life, PodState, Taken, World};
use crate::case::Need;
use crate::explore::plan::Op;

impl World {
    /// Takes an operation; returns nothing if it is not legal here.
    pub(in crate::explore) fn take(&mut self, op: Op) -> Vec<Taken> {
        if self.around.down && !matches!(op, Op::Kill(_)) || !self.is_apart_from_frozen(&op) {
            return Vec::new();
        }
        let end = match &op {
            Op::Parallel(_) => return self.take_parallel(op),
            _ if !op.inner().is_empty() => return self.take_block(op).into_iter().collect(),
            Op::Sandbox {
                name,
                attempt_of,
                kind,
            } => self.sandbox(name, attempt_of.as_deref(), *kind),
            Op::Create { .. } => self.create(&op),
            Op::Start(name, abandoned) => self.start(name, abandoned.is_some()),
            Op::Stop(name, grace_s, abandoned) => self.stop(name, *grace_s, abandoned.is_some()),
            Op::Remove(name) => self.remove(name),
            Op::RemoveByPrefix(name) if self.is_contested(name) => None,
            Op::RemoveByPrefix(name) => self.remove(name).filter(|end| *end == End::Success),
            Op::Kill(name) => self.kill(name),
            Op::Freeze(name) => self.freeze(name),
            Op::Await(name, event) => self.wait(name, *event),
            Op::Exec(name, command) => self.exec(name, *command),
            Op::Relist(pod) => self.relist(pod),
            Op::ListWithFilters(pod, streamed) => self.filtered(pod, *streamed),
            Op::Call(_, of) => self.call(of.as_deref()),
            Op::ProcessExited(name) => self.process_exited(name),
            Op::OutsideCri => self.can.meets(Need::OutsideCri).then_some(End::Success),
            Op::Deadline(name) => self.deadline(name),
            Op::CallUnknown(_) => Some(End::Either),
            Op::StopSandbox(pod) => self.stop_sandbox(pod),
            Op::RemoveSandbox(pod) => self.remove_sandbox(pod),
            Op::Subscribe(name, reader) => self.subscribe(name, *reader),
            Op::Unsubscribe(name, _) => self.streams.remove(name).map(|_| End::Success),
            Op::Resume(name) => self.resume(name),
            Op::KillSandbox(pod) => self.kill_sandbox(pod),
            Op::KillMonitor(name) => self.kill_monitor(name),
            Op::Resubscribe(_)
            | Op::OnEvent(..)
            | Op::Poll(..)
            | Op::Prompt(..)
            | Op::Silence(..)
            | Op::StepClock(..)
            | Op::FreezeMonitor(..)
            | Op::FillDisk(..)
            | Op::Repeat(..)
            | Op::EachHandler(_)
            | Op::Restart { .. } => None,
        };
        let taken = end.map(|end| Taken {
            op,
            end,
            inner: Vec::new(),
            ends: Vec::new(),
        });
        taken.into_iter().collect()
    }

    /// Whether an operation leaves the pod alone whose monitor is frozen.
    fn is_apart_from_frozen(&self, op: &Op) -> bool {
        let Some((frozen, victim)) = &self.around.frozen else {
            return true;
        };
        let in_frozen = |name: &String| {
            name == frozen
                || self
                    .containers
                    .get(name)
                    .is_some_and(|it| it.pod == *frozen)
        };
        match op {
            Op::Kill(name) if name == victim => true,
            Op::Create { pod, .. } => pod != frozen,
            Op::Parallel(_) | Op::Silence(..) => false,
            _ => !names(op).iter().any(|(name, _)| in_frozen(name)),
        }
    }

    fn relist(&mut self, pod: &str) -> Option<End> {
        let asked = self.asked(pod)?;
        self.pods.get_mut(pod)?.relisted = true;
        Some(asked)
    }

    /// A sandbox that is listed by all filters.
    fn filtered(&mut self, pod: &str, streamed: bool) -> Option<End> {
        if streamed && !self.can.meets(Need::StreamedLists) {
            return None;
        }
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
    fn asked(&self, pod: &str) -> Option<End> {
        let pod = self.pods.get(pod)?;
        (pod.state != PodState::Removed && self.is_in_scope(&pod.scope)).then_some(End::Either)
    }

    fn call(&self, of: Option<&str>) -> Option<End> {
        let Some(of) = of else {
            return Some(End::Either);
        };
        let of_pod = self.asked(of);
        of_pod.or_else(|| {
            let container = self.containers.get(of)?;
            (container.life == Life::Running && self.is_in_scope(&container.scope))
                .then_some(End::Either)
        })
    }
}
