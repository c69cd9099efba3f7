//! `ExecSync`, and calls that change no state.

use std::time::Duration;

use super::machine::{Machine, Outcome, Timer, fault};
use super::process::ProcessPlan;
use super::timer_queue::later;
use super::transition::NonTransition;
use crate::history::{
    CallFault, ContainerId, ContainerState, EventKind, NoEventCall, NoEventCallTarget, Reply,
    SandboxId, StatusCode,
};
use crate::workload::Workload;

struct CommandEnd {
    /// Its duration; forever if `None`.
    after: Option<Duration>,
    result: Result<Reply, CallFault>,
}

impl Machine {
    pub(super) fn exec_sync(
        &mut self,
        container: &ContainerId,
        command: &[String],
        timeout: Duration,
    ) -> Outcome {
        if self.state_of(container) != Some(ContainerState::Running) {
            let message = format!("container {container} does not run");
            return Outcome::Done(Err(fault(StatusCode::FAILED_PRECONDITION, message)));
        }
        let process = ProcessPlan::new(command, self.memory_limit(container), self.now);
        let own_end = process.as_ref().ok().and_then(|process| process.own_end);
        let mut end = command_end(command, process);
        let in_time = end.after.is_some_and(|after| after <= timeout);
        if !timeout.is_zero() && !in_time {
            let message = format!("the command has run for {timeout:?}");
            end = CommandEnd {
                after: Some(timeout),
                result: Err(fault(StatusCode::DEADLINE_EXCEEDED, message)),
            };
        }
        let CommandEnd { after, result } = end;
        if let Some((killed_after, exit)) = own_end
            && exit.oom
            && after == Some(killed_after)
        {
            // The command is a child process of the container, not its init.
            let timer = Timer::KillChild(container.clone());
            self.timers.put(later(self.now, killed_after), timer);
        }
        Outcome::AtEnd {
            container: container.clone(),
            after,
            result,
        }
    }

    /// Handles the end of a command in a container.
    pub(super) fn command_ended(&mut self, container: &ContainerId) {
        if self.behaviour.reports_spuriously(NonTransition::ExecEnd) {
            self.announce_container(EventKind::Stopped, container);
        }
    }

    /// Answers a call that changes no state.
    pub(super) fn answer_no_event_call(
        &mut self,
        call: NoEventCall,
        id: &str,
    ) -> Result<Reply, CallFault> {
        let (container, sandbox) = (ContainerId::from(id), SandboxId::from(id));
        let known = match call.target() {
            NoEventCallTarget::Container => self.containers.contains_key(&container),
            NoEventCallTarget::Sandbox => self.sandboxes.contains_key(&sandbox),
            NoEventCallTarget::Nothing => true,
        };
        if !known {
            return Err(fault(StatusCode::NOT_FOUND, format!("no {id}")));
        }
        if self
            .behaviour
            .reports_spuriously(NonTransition::NoEventCall)
        {
            self.announce_container(EventKind::Started, &container);
        }
        Ok(Reply::Done)
    }

    /// Handles the side effects of a call to the image service: none, if the runtime is correct.
    pub(super) fn image_call(&mut self) {
        if self.behaviour.reports_spuriously(NonTransition::ImageCall) {
            let all: Vec<ContainerId> = self.containers.keys().cloned().collect();
            for container in all {
                self.announce_container(EventKind::Created, &container);
            }
        }
    }
}

fn command_end(command: &[String], process: Result<ProcessPlan, String>) -> CommandEnd {
    let exits = |after, code| CommandEnd {
        after,
        result: Ok(Reply::Exec(code)),
    };
    // A command is not the init of its PID namespace: every signal without a handler kills it.
    if let Some(Workload::Die { signal, after }) = Workload::parse(command) {
        return exits(Some(after), 128 + i32::from(signal));
    }
    match process {
        Ok(process) => match process.own_end {
            Some((after, end)) => exits(Some(after), end.code),
            None => exits(None, 0),
        },
        Err(message) => CommandEnd {
            after: Some(Duration::ZERO),
            result: Err(fault(StatusCode::UNKNOWN, message)),
        },
    }
}
