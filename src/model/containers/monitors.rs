//! The monitors of containers: each container has one, without which its exit is not detected.

use super::super::behaviour::{MonitorDeath, MonitorFreeze};
use super::super::machine::Machine;
use super::super::process::ProcessExit;
use crate::history::{ContainerId, EventKind, HostInstant};

impl Machine {
    /// Kills the monitor of a container from outside the runtime, optionally after the container's
    /// process. Returns whether the container was running.
    pub fn kill_monitor(
        &mut self,
        now: HostInstant,
        id: &ContainerId,
        with_container: bool,
    ) -> bool {
        self.advance(now);
        let Some(container) = self.containers.get_mut(id) else {
            return false;
        };
        if container.process.is_none() {
            return false;
        }
        self.frozen_monitors.remove(id);
        let death = self.behaviour.monitor_death;
        container.process_left = death == MonitorDeath::LeavesProcess && !with_container;
        if death == MonitorDeath::Unwatched {
            self.unwatched.insert(id.clone());
            if !with_container {
                return true;
            }
        }
        self.end_process(id, ProcessExit::exit(137));
        if !matches!(death, MonitorDeath::Unnoticed | MonitorDeath::Unwatched) {
            self.detect_exit(id, true);
        }
        if death == MonitorDeath::EndsContainerTwice {
            self.announce_container(EventKind::Stopped, id);
        }
        true
    }

    /// Freezes the monitor of a container. Returns whether the container is running.
    pub fn freeze_monitor(&mut self, now: HostInstant, id: &ContainerId) -> bool {
        self.advance(now);
        let container = self.containers.get(id);
        let runs = container.is_some_and(|container| container.process.is_some());
        if runs {
            self.frozen_monitors.insert(id.clone());
        }
        runs
    }

    /// Lets the monitor of a container continue.
    pub fn thaw_monitor(&mut self, now: HostInstant, id: &ContainerId) {
        self.advance(now);
        if !self.frozen_monitors.remove(id) {
            return;
        }
        match self.behaviour.monitor_freeze {
            MonitorFreeze::DelaysExit => self.detect_exit(id, true),
            MonitorFreeze::DelaysAllExits => self.detect_all_exits(true),
            MonitorFreeze::LosesExit => {}
        }
    }

    /// Fills the file system on which the monitor of a container writes. Returns whether the
    /// container is running.
    pub fn fill_disk(&mut self, now: HostInstant, id: &ContainerId) -> bool {
        self.advance(now);
        let container = self.containers.get(id);
        let runs = container.is_some_and(|container| container.process.is_some());
        if runs {
            self.full_disks.insert(id.clone());
        }
        runs
    }

    /// Frees the file system. An exit that was lost meanwhile stays lost.
    pub fn free_disk(&mut self, now: HostInstant, id: &ContainerId) {
        self.advance(now);
        let container = self.containers.get(id);
        if self.full_disks.remove(id)
            && self.behaviour.loses_exits_on_full_disk
            && container.is_some_and(|container| container.ended.is_some())
        {
            self.unwatched.insert(id.clone());
        }
    }

    /// Whether the exit of a container is detected only when a monitor continues.
    pub(in crate::model) fn awaits_monitor(&self, id: &ContainerId) -> bool {
        let all = self.behaviour.monitor_freeze == MonitorFreeze::DelaysAllExits;
        self.frozen_monitors.contains(id) || all && !self.frozen_monitors.is_empty()
    }
}
