//! The creation of containers: its conditions and its effect.

use super::{Container, Life, PodState, Remains, Unmade, World};
use crate::case::{CallOutcome, CreateStep, SandboxStep, WorkloadSpec};
use crate::explore::plan::{Behaviour, ends};
use crate::history::{EventKind, Flaw};

impl World {
    pub(super) fn create(&mut self, it: &CreateStep) -> Option<CallOutcome> {
        let home = self.pods.get(&it.sandbox)?;
        let others = [&it.attempt_of, &it.pid_target, &it.same_as];
        let mut names = others.into_iter().flatten().chain([&it.sandbox]);
        let contested = names.any(|name| self.is_contested(name));
        if !self.is_in_scope(&home.scope)
            || !self.can_run(it, &home.spec)
            || !self.fits(it)
            || self.names.contains(&it.binding)
        {
            return None;
        }
        // A runtime may answer with the container that has the name already.
        let is_twin = it.same_as.is_some() && !self.tries_again(it);
        let refusal = match (&it.image, is_twin) {
            (Some(_), _) => Some(CallOutcome::Failure),
            (None, true) => Some(CallOutcome::Either),
            (None, false) => None,
        };
        let unmade = match home.state {
            PodState::Ready if !contested && refusal.is_some() => {
                refusal.map(|end| (Remains::Absent, end))
            }
            _ if refusal.is_some() => return None,
            PodState::Removed if it.abandon_after.is_some() => return None,
            PodState::Removed if !contested => Some((Remains::Absent, CallOutcome::Failure)),
            _ if it.abandon_after.is_some() => Some((Remains::Consistent, CallOutcome::Success)),
            PodState::Removed | PodState::Stopped => {
                Some((Remains::Consistent, CallOutcome::Either))
            }
            PodState::Dead => return None,
            PodState::Ready if contested => Some((Remains::Consistent, CallOutcome::Either)),
            PodState::Ready => None,
        };
        self.bind(&it.binding);
        if let Some((remains, end)) = unmade {
            let unmade = Unmade {
                remains,
                pod: Some(it.sandbox.clone()),
                lacks_image: it.image.is_some(),
            };
            self.unmade.insert(it.binding.clone(), unmade);
            return Some(end);
        }
        let earlier = it
            .same_as
            .as_ref()
            .and_then(|name| self.unmade.get_mut(name));
        if let Some(earlier) = earlier {
            earlier.lacks_image = false;
        }
        let container = Container {
            spec: it.clone(),
            life: Life::Created,
            events: (!self.around.unsubscribed).then(|| vec![EventKind::Created]),
            tail: Vec::new(),
            seen: 0,
            ended_by: None,
            started: None,
            failed: false,
            stops: 0,
            has_begun: false,
            scope: self.scopes.clone(),
        };
        self.containers.insert(it.binding.clone(), container);
        Some(CallOutcome::Success)
    }

    /// Whether a new container in a sandbox can refer to the others that it names.
    fn fits(&self, it: &CreateStep) -> bool {
        let fits = |other: &Option<String>, can_be: fn(&Container) -> bool| {
            other.as_ref().is_none_or(|other| {
                let other = self.containers.get(other);
                let mut other = other.into_iter();
                other.any(|other| {
                    can_be(other) && other.spec.sandbox == it.sandbox && self.is_own(&other.scope)
                })
            })
        };
        let is_over =
            |it: &Container| !matches!(it.life, Life::Running | Life::Created | Life::Unsure);
        // One that has joined a namespace itself has none that would end with it.
        let is_target = |it: &Container| it.life == Life::Running && it.spec.pid_target.is_none();
        let is_there = |it: &Container| !matches!(it.life, Life::Removed | Life::Unsure);
        fits(&it.attempt_of, is_over)
            && fits(&it.pid_target, is_target)
            && (fits(&it.same_as, is_there) || self.tries_again(it))
    }

    /// Whether it has the name of a container that was not created, as its image was missing.
    fn tries_again(&self, it: &CreateStep) -> bool {
        let earlier = it.same_as.as_ref().and_then(|name| self.unmade.get(name));
        earlier
            .is_some_and(|earlier| earlier.lacks_image && earlier.pod.as_ref() == Some(&it.sandbox))
    }

    /// Whether this runtime, and this pod, can have such a container.
    fn can_run(&self, it: &CreateStep, home: &SandboxStep) -> bool {
        let can_crash = match it.flaw {
            None => true,
            Some(Flaw::CrashAtDelete) => home.faulty && ends(it),
            Some(_) => home.faulty && it.workload == WorkloadSpec::UntilTerm,
        };
        let can_work = match it.workload {
            WorkloadSpec::MissingProgram => self.can.has(Behaviour::CreatesWithoutProgram),
            WorkloadSpec::Allocate(_) => it.memory_mib.or(home.memory_mib).is_some(),
            WorkloadSpec::AllocateOnTerm(_) | WorkloadSpec::AllocateInChild(_) => {
                it.memory_mib.is_some()
            }
            _ => true,
        };
        // Many of them would not fit into one event.
        let is_alone = self.around.isolated == 0 && !self.around.concurrent;
        can_crash
            && can_work
            && (is_alone || it.annotation_kib.is_none())
            // There no container is the first process of its namespace.
            && (it.pid_target.is_none() || !home.shared_pid)
            && (it.same_as.is_none()
                || self.tries_again(it)
                || self.can.has(Behaviour::RefusesTwins))
            && (it.memory_mib.is_some() || !it.oom_group)
    }
}
