//! The daemon: its end and restart, while its containers keep running; its images; and the
//! resources that the simulated kernel shows.

use std::collections::BTreeSet;
use std::time::Duration;

use super::behaviour::Restart;
use super::containers::Container;
use super::machine::{Machine, fault};
use super::timer_queue::later;
use crate::history::{
    ContainerId, ContainerState, HostInstant, ImageListing, Reply, Request, Resource, RuntimeNanos,
    SandboxId, StatusCode,
};
use crate::host::RuntimeEnd;

/// The stopping time of a daemon that waits for its subscribers.
const ENDLESS: Duration = Duration::from_secs(24 * 3600);
/// The time for which a daemon counts as just started.
const EARLY: Duration = Duration::from_secs(6);
/// The file descriptors of an idle runtime.
const DESCRIPTORS: u64 = 20;
const THREADS: u64 = 12;
const MEMORY_KIB: u64 = 40_000;
/// The number of lines logged for each call.
const LOGGED_EACH: u64 = 2;
/// The memory left by a container: garbage, or a leak.
const GARBAGE_KIB: u64 = 1;
const LEAK_KIB: u64 = 100;

impl Machine {
    /// Ends the daemon; returns the time this takes. Containers keep running; calls and streams
    /// fail.
    pub fn end_daemon(&mut self, now: HostInstant, how: RuntimeEnd) -> Duration {
        self.advance(now);
        self.up = false;
        self.generation += 1;
        let gone = fault(StatusCode::UNAVAILABLE, "the runtime is shutting down");
        for (ticket, (request, container)) in std::mem::take(&mut self.waiting) {
            let is_stop = matches!(request, Request::StopContainer { .. });
            if is_stop && self.behaviour.loses_interrupted_stops {
                self.unwatched.insert(container);
            }
            self.hand_out(ticket, Err(gone.clone()));
        }
        if how == RuntimeEnd::Kill && self.behaviour.loses_created_containers {
            self.containers
                .retain(|_, container| container.status.state != ContainerState::Created);
        }
        let waits = self.behaviour.stops_after_streams
            && how == RuntimeEnd::Stop
            && self.event_bus.has_open_stream();
        if self.behaviour.streams_outlive_daemon {
            self.event_bus.detach_all();
        } else {
            self.event_bus.end_all(&gone);
        }
        if waits { ENDLESS } else { Duration::ZERO }
    }

    /// Restarts the daemon, which recovers its state.
    pub fn start_daemon(&mut self, now: HostInstant) {
        self.advance(now);
        self.up = true;
        self.early_until = later(self.now, self.behaviour.scaled(EARLY));
        self.recover_exits();
        self.forget_failed_starts();
        self.forget_addresses();
        self.lose_monitors();
    }

    /// Whether the daemon is able to detect the exit of this container now.
    pub(super) fn detects_exit_of(&self, container: &ContainerId) -> bool {
        let listens = self.up && self.now.monotonic_ns >= self.deaf_until.monotonic_ns;
        let is_lost =
            self.behaviour.loses_exits_on_full_disk && self.full_disks.contains(container);
        listens && !is_lost && !self.unwatched.contains(container)
    }

    /// Handles the exits that happened while the daemon was down.
    fn recover_exits(&mut self) {
        match self.behaviour.restart {
            Restart::Recovers => self.detect_all_exits(true),
            Restart::RecoversAsOfNow => {
                let running =
                    |container: &&mut Container| container.status.state == ContainerState::Running;
                for container in self.containers.values_mut().filter(running) {
                    if let Some((_, at)) = &mut container.ended {
                        *at = self.now;
                    }
                }
                self.detect_all_exits(true);
            }
            Restart::RecoversSilently => self.detect_all_exits(false),
            Restart::Reports(exit_code, reason) => {
                let undetected = |container: &&mut Container| {
                    container.ended.is_some() && container.status.state == ContainerState::Running
                };
                for container in self.containers.values_mut().filter(undetected) {
                    let status = &mut container.status;
                    status.state = ContainerState::Exited;
                    status.finished_at = RuntimeNanos(self.now.realtime_ns);
                    status.exit_code = exit_code;
                    status.reason = reason.into();
                }
            }
            Restart::MissesExitsFor(time) => {
                self.detect_all_exits(true);
                self.deaf_until = later(self.now, self.behaviour.scaled(time));
            }
            Restart::Forgets => {}
        }
    }

    /// Loses the addresses of sandboxes, if so configured.
    fn forget_addresses(&mut self) {
        if self.behaviour.forgets_addresses {
            self.sandboxes
                .values_mut()
                .for_each(|it| it.addresses.clear());
        }
    }

    /// Shows containers whose start failed as created, if so configured.
    fn forget_failed_starts(&mut self) {
        let forgets = self.behaviour.forgets_failed_starts;
        let all = self.containers.values_mut().filter(|_| forgets);
        for container in all.filter(|it| it.status.started_at.0 == 0) {
            let status = &mut container.status;
            status.state = ContainerState::Created;
            (status.finished_at, status.exit_code) = (RuntimeNanos(0), 0);
            (status.reason, status.message) = Default::default();
        }
    }

    /// Stops monitoring the running containers if so configured.
    fn lose_monitors(&mut self) {
        if self.behaviour.loses_monitors {
            let running = self
                .containers
                .iter()
                .filter(|(_, it)| it.process.is_some());
            self.unwatched = running.map(|(id, _)| id.clone()).collect();
        }
    }

    /// The amount of a resource in use; `ids` are those of the pods.
    pub fn held(&self, resource: Resource, ids: &BTreeSet<String>) -> u64 {
        let leaks = self.behaviour.leaks == Some(resource);
        let present =
            |id: &str| self.is_sandbox(id) || self.containers.contains_key(&ContainerId::from(id));
        match resource {
            Resource::Descriptors if leaks => DESCRIPTORS + self.event_bus.streams_opened(),
            Resource::Descriptors => DESCRIPTORS + self.event_bus.streams_open(),
            Resource::Threads if leaks => THREADS + self.created_count,
            Resource::Threads => THREADS,
            Resource::MemoryKib => {
                let each = if leaks { LEAK_KIB } else { GARBAGE_KIB };
                MEMORY_KIB + each * self.created_count
            }
            Resource::NetworkNamespaces if leaks => self.created_count,
            Resource::NetworkNamespaces => {
                let own = self.sandboxes.values().filter(|it| it.spec.own_network);
                own.count() as u64
            }
            Resource::Monitors => count(ids, |id| leaks || self.is_sandbox(id)),
            Resource::LogLines => {
                LOGGED_EACH * self.calls_made() + self.event_bus.discards_logged()
            }
            Resource::Cgroups | Resource::Mounts => count(ids, |id| leaks || present(id)),
        }
    }

    fn is_sandbox(&self, id: &str) -> bool {
        self.sandboxes.contains_key(&SandboxId::from(id))
    }

    pub(super) fn image(&self, reference: &str) -> Option<&ImageListing> {
        self.images.iter().find(|image| names(image, reference))
    }

    /// Pulls an image: every reference exists and is the suite's image.
    pub(super) fn pull_image(&mut self, reference: &str) -> Reply {
        if self.image(reference).is_none() {
            let image = ImageListing {
                id: format!("sha256:{}", self.random.id()),
                tags: vec![reference.to_owned()],
            };
            self.images.push(image);
        }
        let id = self.image(reference).map(|image| image.id.clone());
        Reply::Pulled(id.unwrap_or_default())
    }
}

fn count(ids: &BTreeSet<String>, holds: impl Fn(&str) -> bool) -> u64 {
    ids.iter().filter(|id| holds(id)).count() as u64
}

/// Whether a reference names this image, by id or tag.
pub(super) fn names(image: &ImageListing, reference: &str) -> bool {
    image.id == reference || image.tags.iter().any(|tag| tag == reference)
}
