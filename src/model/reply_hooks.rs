//! Applies the reply hooks: every answer of the model passes through here.

use std::time::Duration;

use super::behaviour::Answer;
use super::machine::Machine;
use crate::history::{CallFault, Reply, Request};

impl Machine {
    /// The answer after the hooks, with its delay.
    pub(super) fn apply_reply_hooks(
        &self,
        request: &Request,
        result: Result<Reply, CallFault>,
    ) -> Answer {
        let after = (!self.is_blocked(request)).then_some(Duration::ZERO);
        let answer = Answer { after, result };
        let hooks = self.behaviour.replies.iter();
        hooks.fold(answer, |answer, hook| hook(request, answer))
    }

    /// Whether a list call blocks because a full subscriber queue blocks the event stream.
    fn is_blocked(&self, request: &Request) -> bool {
        let lists = matches!(
            request,
            Request::ListContainers { .. } | Request::FindContainers(_)
        );
        lists && self.behaviour.lists_wait_for_events && self.event_bus.is_blocked(&self.behaviour)
    }
}
