//! Sends the machine's events to its subscribers.

use super::event_bus::ScheduledDelivery;
use super::machine::{Machine, Timer};
use super::transition::NonTransition;
use crate::history::{ContainerId, Event, EventKind, RuntimeNanos, SandboxId};

impl Machine {
    /// Sends an event about a container, or about a sandbox under its own id, to the subscribers.
    pub(super) fn announce(&mut self, kind: EventKind, id: ContainerId, sandbox: &SandboxId) {
        let Some(sandbox) = self.sandboxes.get(sandbox) else {
            return;
        };
        let mut status = sandbox.status();
        if self.behaviour.resolves_sandbox_by_pod_uid {
            status = self.latest_of_pod(status);
        }
        let event = Event {
            container: id,
            kind,
            created_at: self.next_timestamp(),
            containers: self.statuses_in(&status.id),
            sandbox: Some(status.into()),
        };
        self.send(&event);
    }

    /// Sends an event about an unknown id, if so configured.
    pub(super) fn announce_unknown_id(&mut self, kind: EventKind, id: &ContainerId) {
        if self.behaviour.reports_spuriously(NonTransition::UnknownId) {
            self.announce_without_sandbox(kind, id);
        }
    }

    /// Sends an event without a sandbox or container statuses.
    pub(super) fn announce_without_sandbox(&mut self, kind: EventKind, id: &ContainerId) {
        let event = Event {
            container: id.clone(),
            kind,
            created_at: self.next_timestamp(),
            containers: Vec::new(),
            sandbox: None,
        };
        self.send(&event);
    }

    fn send(&mut self, event: &Event) {
        let scheduled = self
            .event_bus
            .send(&self.behaviour, self.now, event, &mut self.random);
        self.schedule(scheduled);
    }

    /// The current time as a runtime timestamp, later than all timestamps before.
    pub(super) fn next_timestamp(&mut self) -> RuntimeNanos {
        self.event_bus.next_timestamp(self.now)
    }

    pub(super) fn send_backlog(&mut self) {
        let scheduled = self
            .event_bus
            .send_backlog(&self.behaviour, self.now, &mut self.random);
        self.schedule(scheduled);
    }

    pub(super) fn schedule(&mut self, scheduled: Vec<ScheduledDelivery>) {
        for ScheduledDelivery {
            at,
            subscriber,
            delivery,
        } in scheduled
        {
            self.timers.put(at, Timer::Deliver(subscriber, delivery));
        }
    }
}
