//! The one way by which answers leave the model.

use std::time::Duration;

use super::behaviour::Answer;
use super::machine::Machine;
use crate::history::{CallFault, Reply, Request};

impl Machine {
    /// What becomes of an answer, and when it is given.
    pub(super) fn hooked(&self, request: &Request, result: Result<Reply, CallFault>) -> Answer {
        let after = (!self.is_held_up(request)).then_some(Duration::ZERO);
        let answer = Answer { after, result };
        let hooks = self.behaviour.replies.iter();
        hooks.fold(answer, |answer, hook| hook(request, answer))
    }

    /// Whether a list waits for a lock that is held while an event waits for its reader.
    fn is_held_up(&self, request: &Request) -> bool {
        let lists = matches!(
            request,
            Request::ListContainers { .. } | Request::FindContainers(_)
        );
        lists && self.behaviour.lists_wait_for_events && self.stage.is_jammed(&self.behaviour)
    }
}
