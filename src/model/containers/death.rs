//! Deaths by a signal: the process is held until its core has been read.

use super::super::agenda::later;
use super::super::machine::{Deed, Machine};
use super::super::process::{End, Life};
use crate::history::{ContainerId, HostInstant};

impl Machine {
    /// Notes when a process is going to get the signal that it dies of.
    pub(in crate::model) fn await_signal(&mut self, id: &ContainerId, life: &Life) {
        if let Some((after, end)) = life.signalled {
            let deed = Deed::Signal(id.clone(), end);
            self.agenda.put(later(self.now, after), deed);
        }
    }

    /// Somebody kills a container's process. Says whether there was one.
    pub fn kill_container(&mut self, now: HostInstant, id: &ContainerId) -> bool {
        self.advance(now);
        let lives = self.containers.get(id).is_some_and(|it| it.life.is_some());
        if lives {
            self.exit(id.clone(), End::exit(137));
        }
        lives
    }

    /// A process has got the signal that it dies of, and is there until its core has been read.
    pub(in crate::model) fn foresee(&mut self, id: &ContainerId, end: End) {
        if !self.behaviour.tells_deaths_at_the_signal {
            return;
        }
        let now = self.now;
        if let Some(container) = self.containers.get_mut(id)
            && container.life.is_some()
        {
            container.ended = Some((end, now));
            self.notice(id, true);
        }
    }

    /// Whether a container's process is there, whatever is told of it.
    #[must_use]
    pub fn runs(&self, id: &ContainerId) -> bool {
        match self.containers.get(id) {
            Some(container) => container.life.is_some(),
            None => self.behaviour.leaves_processes,
        }
    }
}
