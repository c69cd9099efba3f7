//! What operations on sandboxes need, and what comes of them.

use super::{Container, End, EndedBy, Life, Pod, PodState, Remains, Unmade, World};
use crate::case::Need;
use crate::explore::plan::{ContainerKind, Moment, PodKind};

impl World {
    pub(super) fn sandbox(
        &mut self,
        name: &str,
        attempt_of: Option<&str>,
        kind: PodKind,
    ) -> Option<End> {
        let need = match kind {
            PodKind::Plain | PodKind::SharedPid | PodKind::Labelled | PodKind::Refused => None,
            PodKind::Network => Some(Need::Network),
            PodKind::Memory => Some(Need::PodCgroup),
            PodKind::Faulty => Some(Need::FaultyHandler),
        };
        let is_met = need.is_none_or(|need| self.can.meets(need));
        let kind = match attempt_of {
            Some(earlier) => {
                let earlier = self.pods.get(earlier)?;
                if earlier.state == PodState::Ready
                    || earlier.followed
                    || !self.is_own(&earlier.scope)
                {
                    return None;
                }
                earlier.kind
            }
            None => kind,
        };
        if !is_met || kind == PodKind::Memory && attempt_of.is_some() || !self.bind(name) {
            return None;
        }
        if let Some(earlier) = attempt_of.and_then(|earlier| self.pods.get_mut(earlier)) {
            earlier.followed = true;
        }
        if kind == PodKind::Refused {
            let remains = Remains::Absent;
            self.unmade
                .insert(name.to_owned(), Unmade { remains, pod: None });
            return Some(End::Failure);
        }
        let pod = Pod {
            state: PodState::Ready,
            kind,
            names_handler: kind == PodKind::Faulty,
            has_certain_events: !self.around.unsubscribed,
            scope: self.scopes.clone(),
            seen: false,
            followed: false,
            listed: false,
            relisted: false,
        };
        self.pods.insert(name.to_owned(), pod);
        Some(End::Success)
    }

    pub(super) fn stop_sandbox(&mut self, name: &str) -> Option<End> {
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
        Some(End::Success)
    }

    pub(super) fn end_with_sandbox(&mut self, name: &str) {
        if self.is_contested(name)
            && let Some(container) = self.containers.get_mut(name)
        {
            container.become_uncertain();
        }
        self.end(name, EndedBy::Other);
    }

    pub(super) fn remove_sandbox(&mut self, name: &str) -> Option<End> {
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
                container.push(Moment::Deleted);
                container.life = Life::Removed;
            }
        }
        Some(End::Success)
    }

    /// Whether the low-level runtime is still to crash at a container of a sandbox.
    pub(super) fn will_crash(&self, pod: &str) -> bool {
        let is_faulty = |it: &Container| {
            let crashes = matches!(
                it.kind,
                ContainerKind::CrashAtCreate
                    | ContainerKind::CrashAtStart
                    | ContainerKind::CrashAtKill
                    | ContainerKind::CrashAtDelete
            );
            crashes && it.pod == pod && it.life != Life::Removed
        };
        self.containers.values().any(is_faulty)
    }

    pub(in crate::explore) fn names_in(&self, pod: &str) -> Vec<String> {
        let inside = self.containers.iter().filter(|(_, it)| it.pod == pod);
        inside.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn kill_sandbox(&mut self, name: &str) -> Option<End> {
        let allowed = self.can.disruption && self.can.meets(Need::HostPid);
        let pod = self.pods.get(name)?;
        let can_await =
            pod.has_certain_events && !self.around.unsubscribed && !self.around.concurrent;
        if !allowed || pod.state != PodState::Ready || !can_await || self.will_crash(name) {
            return None;
        }
        self.stop_sandbox(name)?;
        Some(End::Success)
    }
}
