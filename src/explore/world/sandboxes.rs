//! What steps on sandboxes need, and what comes of them.

use super::{Container, EndedBy, Life, Pod, PodState, Remains, Unmade, World};
use crate::case::{CallOutcome, SandboxStep};
use crate::history::EventKind;

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
            };
            self.unmade.insert(it.binding.clone(), unmade);
            return Some(CallOutcome::Failure);
        }
        let pod = Pod {
            state: PodState::Ready,
            names_handler: spec.faulty,
            spec,
            has_certain_events: !self.around.unsubscribed,
            scope: self.scopes.clone(),
            seen: false,
            followed: false,
            listed: false,
            relisted: false,
        };
        self.pods.insert(it.binding.clone(), pod);
        Some(CallOutcome::Success)
    }

    pub(super) fn stop_sandbox(&mut self, name: &str) -> Option<CallOutcome> {
        let will_crash = self.will_crash(name);
        let pod = self.pods.get(name)?;
        if will_crash || !self.is_own(&pod.scope) || pod.state == PodState::Removed {
            return None;
        }
        let pod = self.pods.get_mut(name)?;
        pod.state = PodState::Stopped;
        for container in self.names_in(name) {
            self.end_with_sandbox(&container);
        }
        Some(CallOutcome::Success)
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
        let will_crash = self.will_crash(name);
        let pod = self.pods.get(name)?;
        if will_crash || !self.is_own(&pod.scope) || pod.state == PodState::Removed {
            return None;
        }
        let pod = self.pods.get_mut(name)?;
        pod.state = PodState::Removed;
        for container in self.names_in(name) {
            self.end_with_sandbox(&container);
            let Some(container) = self.containers.get_mut(&container) else {
                continue;
            };
            if container.life != Life::Removed {
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
        let inside = self
            .containers
            .iter()
            .filter(|(_, it)| it.spec.sandbox == pod);
        inside.map(|(name, _)| name.clone()).collect()
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
}
