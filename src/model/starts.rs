//! Starts of containers, and the low-level runtime that does them, as far as it can die.

use super::agenda::later;
use super::behaviour::{NonTransition, Transition};
use super::containers::no_container;
use super::machine::{Deed, Machine, fault};
use super::process::Life;
use crate::history::{
    CallFault, ContainerId, ContainerState, EventKind, Flaw, Reply, RuntimeNanos, StatusCode,
};

impl Machine {
    pub(super) fn start_container(&mut self, asked: &ContainerId) -> Result<Reply, CallFault> {
        let id = &self.whole_id(asked);
        let container = self.containers.get(id).ok_or_else(|| no_container(id))?;
        let (spec, state) = (container.spec.clone(), container.status.state);
        if state != ContainerState::Created {
            if self.behaviour.also_tells(NonTransition::RefusedStart) {
                self.tell_again(EventKind::Started, id);
            }
            let message =
                format!("container {id} is {state}, and can be started from CREATED only");
            return Err(fault(StatusCode::FAILED_PRECONDITION, message));
        }
        self.running_sandbox(&spec.sandbox)?;
        let now = RuntimeNanos(self.now.realtime_ns);
        let life = match spec.flaw {
            Some(Flaw::User | Flaw::Directory | Flaw::Mount) => {
                Err(format!("cannot be run: {:?}", spec.flaw))
            }
            _ if self.dies(id, Flaw::CrashAtCreate) || self.dies(id, Flaw::CrashAtStart) => {
                Err("the low-level runtime was killed".to_owned())
            }
            _ => Life::of(&spec.command, self.memory_of(id), self.now),
        };
        let ends_as_one = spec.oom_group && self.behaviour.heeds_oom_groups;
        let life = life.map(|life| {
            if ends_as_one {
                life.in_oom_group()
            } else {
                life
            }
        });
        let Some(container) = self.containers.get_mut(id) else {
            return Err(no_container(id));
        };
        let life = match life {
            Ok(life) => life,
            Err(message) => {
                container.status.state = ContainerState::Exited;
                container.status.finished_at = now;
                container.status.exit_code = 128;
                container.status.reason = "StartError".into();
                container.status.message.clone_from(&message);
                if self.behaviour.tells(Transition::FailedStart) {
                    self.announce(EventKind::Stopped, id.clone(), &spec.sandbox);
                }
                return Err(fault(StatusCode::UNKNOWN, message));
            }
        };
        container.status.state = ContainerState::Running;
        container.status.started_at = now;
        container.life = Some(life);
        self.announce(EventKind::Started, id.clone(), &spec.sandbox);
        if let Some(after) = life.child_killed {
            let deed = Deed::KillChild(id.clone());
            self.agenda.put(later(self.now, after), deed);
        }
        self.await_signal(id, &life);
        if let Some((after, end)) = life.own_end {
            let deed = Deed::Exit(id.clone(), end);
            self.agenda.put(later(self.now, after), deed);
        }
        Ok(Reply::Done)
    }

    /// Whether the low-level runtime dies by this flaw, which it does once.
    pub(super) fn dies(&mut self, id: &ContainerId, of: Flaw) -> bool {
        let Some(container) = self.containers.get_mut(id) else {
            return false;
        };
        let dies = container.demands == Some(of);
        container.demands.take_if(|_| dies);
        dies
    }
}
