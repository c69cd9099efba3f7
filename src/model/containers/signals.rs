//! Signals that a container's process receives. A fatal one takes effect after its core dump has
//! been written; a frozen process does nothing until it is continued.

use super::super::machine::{Machine, Timer};
use super::super::process::{ProcessExit, ProcessPlan};
use super::super::timer_queue::later;
use super::super::transition::NonTransition;
use super::Container;
use crate::history::{ContainerId, EventKind, HostInstant, Signal};

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

    /// Sends a signal to a container's process from outside the runtime. Returns whether it exists.
    pub fn signal_container(&mut self, now: HostInstant, id: &ContainerId, signal: Signal) -> bool {
        self.advance(now);
        let Some(container) = self.containers.get_mut(id) else {
            return false;
        };
        let Some(process) = container.process else {
            return false;
        };
        match signal {
            Signal::KILL => self.exit(id.clone(), ProcessExit::exit(137)),
            Signal::STOP => {
                container.held.get_or_insert_default();
                if self.behaviour.reports_spuriously(NonTransition::Freeze) {
                    self.announce_container(EventKind::Stopped, id);
                }
            }
            Signal::CONTINUE => {
                for timer in container.held.take().unwrap_or_default() {
                    self.fire(timer);
                }
            }
            _ => {
                if let Some(end) = process.on_signal(signal) {
                    self.fire(Timer::Exit(id.clone(), end));
                }
            }
        }
        true
    }

    /// Returns a timer of a container's process, unless the process is frozen: then it fires
    /// afterwards.
    pub(in crate::model) fn unless_frozen(&mut self, timer: Timer) -> Option<Timer> {
        let (Timer::Exit(id, _) | Timer::Signal(id, _) | Timer::KillChild(id)) = &timer else {
            return Some(timer);
        };
        match self.containers.get_mut(id) {
            Some(Container {
                held: Some(held),
                process: Some(_),
                ..
            }) => {
                held.push(timer);
                None
            }
            _ => Some(timer),
        }
    }

    /// Handles the fatal signal of a process: reports the exit at once if so configured.
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

    /// Whether a container's process exists, independent of its reported state.
    pub fn runs(&self, id: &ContainerId) -> bool {
        match self.containers.get(id) {
            Some(container) => container.process.is_some() || container.process_left,
            None => self.behaviour.leaks_processes,
        }
    }
}
