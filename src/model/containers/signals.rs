//! Fatal signals: the process remains until its core dump has been written.

use super::super::machine::{Machine, Timer};
use super::super::process::{ProcessExit, ProcessPlan};
use super::super::timer_queue::later;
use crate::history::{ContainerId, HostInstant};

impl Machine {
    /// Sets a timer for the fatal signal that a process is going to receive, if any.
    pub(in crate::model) fn schedule_signal(&mut self, id: &ContainerId, process: &ProcessPlan) {
        if let Some((after, end)) = process.signalled {
            let timer = Timer::Signal(id.clone(), end);
            self.timers.put(later(self.now, after), timer);
        }
    }

    /// Kills a container's process from outside the runtime. Returns whether it was running.
    pub fn kill_container(&mut self, now: HostInstant, id: &ContainerId) -> bool {
        self.advance(now);
        let running = self
            .containers
            .get(id)
            .is_some_and(|it| it.process.is_some());
        if running {
            self.exit(id.clone(), ProcessExit::exit(137));
        }
        running
    }

    /// A process has received its fatal signal: reports the exit already now if the behaviour says
    /// so.
    pub(in crate::model) fn exit_at_signal(&mut self, id: &ContainerId, end: ProcessExit) {
        if !self.behaviour.reports_exit_at_signal {
            return;
        }
        let now = self.now;
        if let Some(container) = self.containers.get_mut(id)
            && container.process.is_some()
        {
            container.ended = Some((end, now));
            self.detect_exit(id, true);
        }
    }

    /// Whether a container's process exists, whatever the runtime reports.
    #[must_use]
    pub fn runs(&self, id: &ContainerId) -> bool {
        match self.containers.get(id) {
            Some(container) => container.process.is_some(),
            None => self.behaviour.leaks_processes,
        }
    }
}
