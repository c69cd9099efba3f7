//! Commands that run in a container beside its own process, and calls that change no state.

use std::time::Duration;

use super::agenda::later;
use super::behaviour::NonTransition;
use super::machine::{Deed, Machine, Outcome, fault};
use super::process::Life;
use crate::history::{
    Aside, AsideOf, CallFault, ContainerId, ContainerState, EventKind, Reply, SandboxId, StatusCode,
};
use crate::workload::Workload;

/// How a command ends, and how long after its beginning; it does not end by itself without a time.
type CommandEnd = (Option<Duration>, Result<Reply, CallFault>);

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
        let life = Life::of(command, self.memory_of(container), self.now);
        let own_end = life.as_ref().ok().and_then(|life| life.own_end);
        let (after, result) = match end_of(command, life) {
            (Some(after), result) if timeout.is_zero() || after <= timeout => (Some(after), result),
            (None, result) if timeout.is_zero() => (None, result),
            (_, _) => {
                let message = format!("the command has run for {timeout:?}");
                let late = fault(StatusCode::DEADLINE_EXCEEDED, message);
                (Some(timeout), Err(late))
            }
        };
        if let Some((eaten, end)) = own_end
            && end.oom
            && after == Some(eaten)
        {
            // It is killed beside the container's own process.
            let deed = Deed::KillChild(container.clone());
            self.agenda.put(later(self.now, eaten), deed);
        }
        Outcome::AtEnd {
            container: container.clone(),
            after,
            result,
        }
    }

    /// A command has ended, or was ended.
    pub(super) fn command_ended(&mut self, container: &ContainerId) {
        if self.behaviour.also_tells(NonTransition::ExecEnd) {
            self.tell_again(EventKind::Stopped, container);
        }
    }

    /// A call that changes no state.
    pub(super) fn aside(&mut self, aside: Aside, id: &str) -> Result<Reply, CallFault> {
        let (container, sandbox) = (ContainerId::from(id), SandboxId::from(id));
        let known = match aside.of() {
            AsideOf::Container => self.containers.contains_key(&container),
            AsideOf::Sandbox => self.sandboxes.contains_key(&sandbox),
            AsideOf::Nothing => true,
        };
        if !known {
            return Err(fault(StatusCode::NOT_FOUND, format!("no {id}")));
        }
        if self.behaviour.also_tells(NonTransition::Aside) {
            self.tell_again(EventKind::Started, &container);
        }
        Ok(Reply::Done)
    }

    /// A call to the image service that changes nothing of containers.
    pub(super) fn image_call(&mut self) {
        if self.behaviour.also_tells(NonTransition::ImageCall) {
            let all: Vec<ContainerId> = self.containers.keys().cloned().collect();
            for container in all {
                self.tell_again(EventKind::Created, &container);
            }
        }
    }
}

fn end_of(command: &[String], life: Result<Life, String>) -> CommandEnd {
    let exits = |code: i32| Ok(Reply::Exec(code));
    // A command is no init: every signal kills it that it does not take.
    if let Some(Workload::Die { signal, after }) = Workload::parse(command) {
        return (Some(after), exits(128 + i32::from(signal)));
    }
    match life {
        Ok(life) => match life.own_end {
            Some((after, end)) => (Some(after), exits(end.code)),
            None => (None, exits(0)),
        },
        Err(message) => {
            let refused = fault(StatusCode::UNKNOWN, message);
            (Some(Duration::ZERO), Err(refused))
        }
    }
}
