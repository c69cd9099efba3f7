//! The start of containers, and crashes of the OCI runtime.

use super::containers::no_container;
use super::machine::{Machine, Timer, fault};
use super::process::ProcessPlan;
use super::timer_queue::later;
use super::transition::{NonTransition, Transition};
use crate::history::{
    CallFault, ContainerId, ContainerSpec, ContainerState, EventKind, Flaw, Reply, RuntimeNanos,
    StatusCode,
};

impl Machine {
    pub(super) fn start_container(&mut self, requested: &ContainerId) -> Result<Reply, CallFault> {
        let id = &self.resolve_id(requested);
        let container = self.containers.get(id).ok_or_else(|| no_container(id))?;
        let (spec, state) = (container.spec.clone(), container.status.state);
        if state != ContainerState::Created {
            if self
                .behaviour
                .reports_spuriously(NonTransition::RefusedStart)
            {
                self.announce_container(EventKind::Started, id);
            }
            let message =
                format!("container {id} is {state}, and can be started from CREATED only");
            return Err(fault(StatusCode::FAILED_PRECONDITION, message));
        }
        self.running_sandbox(&spec.sandbox)?;
        let now = RuntimeNanos(self.now.realtime_ns);
        let process = match spec.flaw {
            Some(Flaw::User | Flaw::Directory | Flaw::Mount | Flaw::Checkpoint) => {
                Err(format!("cannot be run: {:?}", spec.flaw))
            }
            _ if self.crashes(id, Flaw::CrashAtCreate) || self.crashes(id, Flaw::CrashAtStart) => {
                Err("the OCI runtime was killed".to_owned())
            }
            _ => ProcessPlan::new(&spec.command, self.memory_limit(id), self.now),
        };
        let ends_as_one = spec.oom_group && self.behaviour.honours_oom_groups;
        let process = process.map(|process| {
            if ends_as_one {
                process.in_oom_group()
            } else {
                process
            }
        });
        let Some(container) = self.containers.get_mut(id) else {
            return Err(no_container(id));
        };
        let process = match process {
            Ok(process) => process,
            Err(message) => {
                container.status.state = ContainerState::Exited;
                container.status.finished_at = now;
                container.status.exit_code = 128;
                container.status.reason = "StartError".into();
                container.status.message.clone_from(&message);
                self.announce_failed_start(id, &spec);
                return Err(fault(StatusCode::UNKNOWN, message));
            }
        };
        container.status.state = ContainerState::Running;
        container.status.started_at = now;
        container.process = Some(process);
        if spec.checkpoint().is_none() || self.behaviour.reports(Transition::Restore) {
            self.announce(EventKind::Started, id.clone(), &spec.sandbox);
        }
        if let Some(after) = process.child_killed {
            let timer = Timer::KillChild(id.clone());
            self.timers.put(later(self.now, after), timer);
        }
        self.schedule_signal(id, &process);
        if let Some((after, end)) = process.own_end {
            let timer = Timer::Exit(id.clone(), end);
            self.timers.put(later(self.now, after), timer);
        }
        Ok(Reply::Done)
    }

    fn announce_failed_start(&mut self, id: &ContainerId, spec: &ContainerSpec) {
        let failed = match spec.checkpoint() {
            Some(_) => Transition::FailedRestore,
            None => Transition::FailedStart,
        };
        if self.behaviour.reports(failed) {
            self.announce(EventKind::Stopped, id.clone(), &spec.sandbox);
        }
    }

    /// Whether the OCI runtime crashes at this point, which happens once.
    pub(super) fn crashes(&mut self, id: &ContainerId, at: Flaw) -> bool {
        let Some(container) = self.containers.get_mut(id) else {
            return false;
        };
        let crashes = container.pending_crash == Some(at);
        container.pending_crash.take_if(|_| crashes);
        crashes
    }
}
