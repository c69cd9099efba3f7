//! Steps on sandboxes and containers: their conditions and effects.

use std::time::Duration;

use super::{Container, EndedBy, Life, Pod, PodState, Remains, Unmade, World, names_of};
use crate::case::{CallOutcome, ExecStep, SandboxStep, WorkloadSpec};
use crate::explore::plan::{ends, lasts};
use crate::history::{EventKind, Flaw};

impl World {
    pub(super) fn sandbox(&mut self, it: &SandboxStep) -> Option<CallOutcome> {
        let spec = match &it.attempt_of {
            Some(earlier) => {
                let earlier = self.pods.get(earlier)?;
                let can_follow = earlier.state != PodState::Ready
                    && !earlier.followed
                    && earlier.spec.memory_mib.is_none()
                    && self.is_own(&earlier.scope);
                can_follow.then(|| earlier.spec.clone())?
            }
            None => it.clone(),
        };
        if !self.bind(&it.binding) {
            return None;
        }
        let earlier = it.attempt_of.as_ref();
        if let Some(earlier) = earlier.and_then(|earlier| self.pods.get_mut(earlier)) {
            earlier.followed = true;
        }
        if spec.runtime_handler.is_some() {
            let unmade = Unmade {
                remains: Remains::Absent,
                pod: None,
                lacks_image: false,
            };
            self.unmade.insert(it.binding.clone(), unmade);
            return Some(CallOutcome::Failure);
        }
        let pod = Pod {
            state: PodState::Ready,
            spec,
            has_certain_events: !self.around.unsubscribed,
            scope: self.scopes.clone(),
            seen: false,
            followed: false,
            relisted: false,
        };
        self.pods.insert(it.binding.clone(), pod);
        Some(CallOutcome::Success)
    }

    pub(super) fn stop_sandbox(&mut self, name: &str) -> Option<CallOutcome> {
        self.end_sandbox(name, PodState::Stopped)?;
        Some(CallOutcome::Success)
    }

    /// Ends a sandbox with its containers. Returns their names; none if that is not legal here.
    fn end_sandbox(&mut self, name: &str, state: PodState) -> Option<Vec<String>> {
        let will_crash = self.will_crash(name);
        let pod = self.pods.get(name)?;
        if will_crash || !self.is_own(&pod.scope) || pod.state == PodState::Removed {
            return None;
        }
        self.pods.get_mut(name)?.state = state;
        let containers = self.names_in(name);
        for container in &containers {
            self.end_with_sandbox(container);
        }
        Some(containers)
    }

    pub(super) fn end_with_sandbox(&mut self, name: &str) {
        if self.is_contested(name)
            && let Some(container) = self.containers.get_mut(name)
        {
            container.become_uncertain();
        }
        self.end(name, EndedBy::Other);
    }

    pub(super) fn remove_sandbox(&mut self, name: &str) -> Option<CallOutcome> {
        for container in self.end_sandbox(name, PodState::Removed)? {
            let container = self.containers.get_mut(&container);
            if let Some(container) = container.filter(|it| it.life != Life::Removed) {
                container.push(EventKind::Deleted);
                container.life = Life::Removed;
            }
        }
        Some(CallOutcome::Success)
    }

    /// Whether the low-level runtime is still to crash at a container of a sandbox.
    pub(super) fn will_crash(&self, pod: &str) -> bool {
        let will_crash = |it: &Container| {
            it.spec.flaw.is_some() && it.spec.sandbox == pod && it.life != Life::Removed
        };
        self.containers.values().any(will_crash)
    }

    pub(in crate::explore) fn names_in(&self, pod: &str) -> Vec<String> {
        names_of(&self.containers, |it| it.spec.sandbox == pod)
    }

    pub(super) fn kill_sandbox(&mut self, name: &str) -> Option<CallOutcome> {
        let pod = self.pods.get(name)?;
        let can_await =
            pod.has_certain_events && !self.around.unsubscribed && !self.around.concurrent;
        if pod.state != PodState::Ready || !can_await || self.will_crash(name) {
            return None;
        }
        self.stop_sandbox(name)?;
        Some(CallOutcome::Success)
    }

    /// A container that a step here can name, if nothing else acts on it.
    pub(super) fn own(&mut self, name: &str) -> Option<&mut Container> {
        if !self.is_own(&self.containers.get(name)?.scope) {
            return None;
        }
        let contested = self.is_contested(name);
        let container = self.containers.get_mut(name)?;
        if contested {
            container.become_uncertain();
        }
        Some(container)
    }

    pub(super) fn start(&mut self, name: &str, abandoned: bool) -> Option<CallOutcome> {
        let unsubscribed = self.around.unsubscribed;
        self.starts += 1;
        let nth = self.starts;
        let spec = &self.containers.get(name)?.spec;
        let pod = self.pods.get(&spec.sandbox)?;
        let (is_ready, is_faulty) = (pod.state == PodState::Ready, pod.spec.faulty);
        let joins = match &spec.pid_target {
            Some(target) => Some(self.containers.get(target)?.life == Life::Running),
            None => None,
        };
        let container = self.own(name)?;
        match container.life {
            Life::Running | Life::Exited if is_ready => return Some(CallOutcome::Failure),
            Life::Unsure if is_ready => return Some(CallOutcome::Either),
            Life::Created if is_ready && joins != Some(false) => {}
            _ => return None,
        }
        if abandoned {
            container.become_uncertain();
            return Some(CallOutcome::Success);
        }
        let crashes = matches!(
            container.spec.flaw,
            Some(Flaw::CrashAtStart | Flaw::CrashAtCreate)
        );
        if is_faulty && crashes {
            container.become_uncertain();
            return Some(CallOutcome::Either);
        }
        if container.spec.workload == WorkloadSpec::MissingProgram {
            container.life = Life::Failed;
            container.failed = true;
            container.events = None;
            return Some(CallOutcome::Failure);
        }
        container.push(EventKind::Started);
        container.started = Some(nth);
        if ends(&container.spec) {
            container.push(EventKind::Stopped);
            container.life = Life::Ending;
            if unsubscribed {
                container.events = None;
            }
        } else {
            container.life = Life::Running;
        }
        Some(CallOutcome::Success)
    }

    pub(super) fn stop(
        &mut self,
        name: &str,
        grace: Duration,
        abandoned: bool,
    ) -> Option<CallOutcome> {
        let container = self.own(name)?;
        if abandoned && !matches!(container.life, Life::Running | Life::Ending) {
            return None;
        }
        container.stops = container.stops.saturating_add(1);
        let end = match container.life {
            Life::Unsure | Life::Failed => CallOutcome::Either,
            Life::Removed | Life::Created => return None,
            Life::Exited => return Some(CallOutcome::Success),
            Life::Running | Life::Ending if container.spec.flaw == Some(Flaw::CrashAtKill) => {
                container.become_uncertain();
                container.life = Life::Unsure;
                return Some(CallOutcome::Either);
            }
            Life::Running | Life::Ending => CallOutcome::Success,
        };
        if end == CallOutcome::Either {
            return Some(end);
        }
        if abandoned {
            container.become_uncertain();
            self.end_joined(name);
            return Some(CallOutcome::Success);
        }
        let has_begun = container.has_begun;
        self.end(name, EndedBy::Stop { grace, has_begun });
        Some(CallOutcome::Success)
    }

    /// Ends a running container, and the containers that share its PID namespace.
    pub(super) fn end(&mut self, name: &str, by: EndedBy) {
        let unsubscribed = self.around.unsubscribed;
        let Some(container) = self.containers.get_mut(name) else {
            return;
        };
        match container.life {
            Life::Running => container.push_unless(unsubscribed, EventKind::Stopped),
            Life::Ending => {}
            Life::Unsure => {
                self.end_joined(name);
                return;
            }
            _ => return,
        }
        let first = container.ended_by.is_none() && container.life == Life::Running;
        container.ended_by = Some(if first { by } else { EndedBy::Other });
        container.life = Life::Exited;
        self.end_joined(name);
    }

    pub(super) fn end_joined(&mut self, target: &str) {
        let is_joined = |it: &Container| it.spec.pid_target.as_deref() == Some(target);
        let joined = names_of(&self.containers, is_joined);
        let is_sure = self
            .containers
            .get(target)
            .is_some_and(|it| it.life != Life::Unsure);
        for name in joined {
            if is_sure {
                self.end(&name, EndedBy::Kill);
            } else if let Some(container) = self.containers.get_mut(&name) {
                container.become_uncertain();
            }
        }
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<CallOutcome> {
        let container = self.own(name)?;
        let end = match container.life {
            Life::Unsure => return Some(CallOutcome::Either),
            Life::Removed => return None,
            Life::Running if container.spec.flaw == Some(Flaw::CrashAtKill) => return None,
            Life::Created | Life::Running | Life::Ending | Life::Exited | Life::Failed => {
                if container.spec.flaw == Some(Flaw::CrashAtDelete) {
                    container.become_uncertain();
                    return Some(CallOutcome::Either);
                }
                CallOutcome::Success
            }
        };
        self.end(name, EndedBy::Removal);
        let unsubscribed = self.around.unsubscribed;
        let container = self.containers.get_mut(name)?;
        container.push_unless(unsubscribed, EventKind::Deleted);
        container.life = Life::Removed;
        Some(end)
    }

    pub(super) fn kill(&mut self, name: &str) -> Option<CallOutcome> {
        let down = self.around.down;
        let container = self.own(name)?;
        if container.life != Life::Running {
            return None;
        }
        if down {
            container.events = None;
        }
        self.end(name, EndedBy::Kill);
        Some(CallOutcome::Success)
    }

    pub(super) fn wait(&mut self, name: &str, event: EventKind) -> Option<CallOutcome> {
        if self.around.unsubscribed {
            return None;
        }
        if let Some(pod) = self.pods.get_mut(name) {
            let is_sure = event == EventKind::Started && pod.has_certain_events;
            pod.seen |= is_sure;
            return is_sure.then_some(CallOutcome::Success);
        }
        let frozen = self.around.frozen.as_ref().map(|(pod, _)| pod.clone());
        let container = self.own(name)?;
        if frozen.is_some_and(|pod| pod == container.spec.sandbox) {
            return None;
        }
        let at = container
            .events
            .as_ref()?
            .iter()
            .position(|it| *it == event)?;
        container.seen = container.seen.max(at + 1);
        if event == EventKind::Stopped && container.life == Life::Ending {
            container.life = Life::Exited;
            let ended = (container.started, lasts(&container.spec));
            self.end_joined(name);
            self.end_shorter(ended);
        }
        if event == EventKind::Started {
            let others = self
                .containers
                .iter_mut()
                .filter(|(other, _)| *other != name);
            for (_, other) in others {
                other.has_begun |= other.life == Life::Running && other.seen >= 2;
            }
        }
        Some(CallOutcome::Success)
    }

    /// Ends the containers that were started before an ended one and last no longer, though their
    /// events may not have been awaited.
    fn end_shorter(&mut self, (started, time): (Option<u32>, Option<Duration>)) {
        for container in self.containers.values_mut() {
            let is_shorter = lasts(&container.spec) <= time && container.started < started;
            let is_certain = container.started.is_some() && lasts(&container.spec).is_some();
            let unheard = container.life == Life::Ending && container.events.is_none();
            if unheard && is_shorter && is_certain {
                container.life = Life::Exited;
            }
        }
    }

    pub(super) fn exec(&mut self, it: &ExecStep) -> Option<CallOutcome> {
        let end = self.adjust(&it.container)?;
        let may_fail = [WorkloadSpec::IgnoreTerm, WorkloadSpec::MissingProgram];
        if end != CallOutcome::Success || may_fail.contains(&it.runs) {
            return Some(CallOutcome::Either);
        }
        // A command that has run proves that the program has begun before.
        self.containers.get_mut(&it.container)?.has_begun = true;
        Some(end)
    }

    /// A call on a running container that does not end it.
    pub(super) fn adjust(&self, name: &str) -> Option<CallOutcome> {
        let container = self.containers.get(name)?;
        match container.life {
            _ if !self.is_own(&container.scope) => None,
            Life::Running if !self.is_contested(name) => Some(CallOutcome::Success),
            Life::Running | Life::Ending | Life::Unsure => Some(CallOutcome::Either),
            _ => None,
        }
    }

    /// A container of which no process is left, or soon will be none.
    pub(super) fn process_exited(&mut self, name: &str) -> Option<CallOutcome> {
        let container = self.own(name)?;
        let is_over = match container.life {
            Life::Removed | Life::Exited => true,
            Life::Ending => lasts(&container.spec).is_some(),
            _ => false,
        };
        if container.life == Life::Ending && is_over {
            container.life = Life::Exited;
            self.end_joined(name);
        }
        is_over.then_some(CallOutcome::Success)
    }

    pub(super) fn kill_monitor(&mut self, name: &str) -> Option<CallOutcome> {
        let container = self.containers.get(name)?;
        if container.life != Life::Running || self.around.concurrent {
            return None;
        }
        // A shim watches all containers of its sandbox: what becomes of others is not certain.
        let pod = container.spec.sandbox.clone();
        let is_alone = self.names_in(&pod).iter().all(|other| {
            let other_life = self.containers.get(other).map(|it| it.life);
            other == name || matches!(other_life, Some(Life::Removed | Life::Exited))
        });
        if !is_alone {
            return None;
        }
        self.end(name, EndedBy::Other);
        let pod = self.pods.get_mut(&pod)?;
        pod.has_certain_events = false;
        pod.state = PodState::Dead;
        Some(CallOutcome::Success)
    }
}
