//! What is there after the steps so far, as far as it is sure: which steps are legal, how
//! their calls must end, and which events must come.
//!
//! A plan is *taken* step by step. What is not legal at its place is left out, so any part of a
//! plan becomes a legal plan: the shrinker relies on it. What has been taken says how its calls
//! must end, and contains the steps that have to follow others.

mod blocks;
mod containers;
mod parallel;
mod sandboxes;
mod take;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::capabilities::Capabilities;
use crate::case::{CreateStep, SandboxStep};
use crate::history::EventKind;

/// What could not be made, or may not have been.
#[derive(Clone, Debug)]
pub(super) struct Unmade {
    pub(super) remains: Remains,
    /// The sandbox that it was to be in.
    pub(super) pod: Option<String>,
}

/// What may remain of what could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remains {
    Absent,
    Consistent,
    /// Nobody listened to what came of it.
    Unobserved,
}

/// What is there.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) pods: BTreeMap<String, Pod>,
    pub(super) containers: BTreeMap<String, Container>,
    /// Subscriptions that are open.
    pub(super) streams: BTreeMap<String, Stream>,
    /// What a call was to make that has failed, or may have.
    pub(super) unmade: BTreeMap<String, Unmade>,
    names: BTreeSet<String>,
    can: Capabilities,
    /// The branches around, from the outermost: what they bind stands for nothing outside.
    scopes: Vec<usize>,
    branches: usize,
    starts: u32,
    /// Whether the host's wall clock was wrong for a time.
    pub(super) clock_stepped: bool,
    around: Around,
}

/// What surrounds a step.
#[derive(Clone, Debug, Default)]
struct Around {
    /// Whether other clients act at the same time.
    concurrent: bool,
    /// What they act on, too.
    contested: BTreeSet<String>,
    /// Whether nobody listens, or the runtime is down.
    unsubscribed: bool,
    down: bool,
    /// How many scopes what is acted on has at least: what is repeated acts on what it makes.
    isolated: usize,
    /// The pod whose monitor is frozen, and the container that may be killed.
    frozen: Option<(String, String)>,
}

#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is certain or not by itself"
)]
pub(super) struct Pod {
    pub(super) state: PodState,
    /// The step that made its first attempt.
    pub(super) spec: SandboxStep,
    /// Whether it asks for a runtime handler by its name, which its status should have.
    pub(super) names_handler: bool,
    /// Whether its events are certain.
    pub(super) has_certain_events: bool,
    scope: Vec<usize>,
    /// Whether its STARTED has been awaited.
    seen: bool,
    /// Whether it has a next attempt already.
    followed: bool,
    /// Whether its containers were listed by filters while nothing else happened.
    pub(super) listed: bool,
    /// Whether a step lists its containers.
    pub(super) relisted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PodState {
    Ready,
    Stopped,
    Removed,
    /// Its monitor was killed.
    Dead,
}

#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is certain or not by itself"
)]
pub(super) struct Container {
    pub(super) spec: CreateStep,
    pub(super) life: Life,
    /// The events that must come; none if that is not certain.
    pub(super) events: Option<Vec<EventKind>>,
    /// The events that must come after a time in which nobody listened.
    pub(super) tail: Vec<EventKind>,
    /// Whether the runtime is asked for its status at its events.
    pub(super) asked: bool,
    /// How many of them have been awaited.
    seen: usize,
    /// How it is ended from outside, if it is.
    pub(super) ended_by: Option<EndedBy>,
    /// Whether it was listed by filters while nothing else happened.
    pub(super) listed: bool,
    /// Which start it was, if it was started.
    started: Option<u32>,
    /// Whether its start had to fail.
    pub(super) failed: bool,
    /// How often it was stopped.
    pub(super) stops: u8,
    /// Whether its program has had time to begin.
    has_begun: bool,
    scope: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Created,
    /// It surely runs.
    Running,
    /// It has been started, and ends by itself.
    Ending,
    Exited,
    Failed,
    Removed,
    /// Another client may have changed it.
    Unsure,
}

/// What ends a container that does not end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// A stop with this grace period, when its program had time to begin or not.
    Stop { grace: Duration, has_begun: bool },
    /// SIGKILL.
    Kill,
    /// Its removal, before which a runtime may stop it with a grace period.
    Removal,
    /// Something else, or several things.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    /// Whether it does not read now.
    pub(super) stalled: bool,
    /// Whether it has not always read, so that the runtime may have ended it.
    pub(super) behind: bool,
    /// Whether the first subscription has been there all the time.
    pub(super) accompanied: bool,
}

impl World {
    /// An empty one, on a runtime that can do this.
    pub(super) fn new(can: Capabilities) -> Self {
        Self {
            pods: BTreeMap::new(),
            containers: BTreeMap::new(),
            streams: BTreeMap::new(),
            unmade: BTreeMap::new(),
            names: BTreeSet::new(),
            can,
            scopes: Vec::new(),
            branches: 0,
            starts: 0,
            clock_stepped: false,
            around: Around::default(),
        }
    }

    /// The pods that a step here can name, in a state.
    pub(super) fn pods_in(&self, state: PodState) -> Vec<String> {
        let pods = self.pods.iter();
        let pods = pods.filter(|(_, pod)| pod.state == state && self.is_in_scope(&pod.scope));
        pods.map(|(name, _)| name.clone()).collect()
    }

    /// The containers that a step here can name, with one of these lives.
    pub(super) fn containers_in(&self, lives: &[Life]) -> Vec<String> {
        let containers = self.containers.iter();
        let containers =
            containers.filter(|(_, it)| lives.contains(&it.life) && self.is_own(&it.scope));
        containers.map(|(name, _)| name.clone()).collect()
    }

    fn is_in_scope(&self, scope: &[usize]) -> bool {
        self.scopes.starts_with(scope)
    }

    /// Whether a step here can act on what has this scope.
    fn is_own(&self, scope: &[usize]) -> bool {
        self.is_in_scope(scope) && scope.len() >= self.around.isolated
    }

    fn bind(&mut self, name: &str) -> bool {
        self.names.insert(name.to_owned())
    }

    fn is_contested(&self, name: &str) -> bool {
        self.around.contested.contains(name)
    }
}

impl Container {
    fn push(&mut self, event: EventKind) {
        if let Some(events) = &mut self.events {
            events.push(event);
        }
    }

    /// An event comes, unless nobody listens.
    fn push_unless(&mut self, unsubscribed: bool, event: EventKind) {
        match &mut self.events {
            Some(events) => events.push(event),
            None if !unsubscribed => self.tail.push(event),
            None => {}
        }
    }

    /// Nothing is certain of it any more.
    fn become_uncertain(&mut self) {
        self.events = None;
        self.tail.clear();
        if self.life != Life::Removed {
            self.life = Life::Unsure;
        }
    }

    pub(super) fn has(&self, event: EventKind) -> bool {
        self.events
            .as_ref()
            .is_some_and(|events| events.contains(&event))
    }

    /// Whether SIGTERM cannot end it, if its program ignores SIGTERM: the program has had time to
    /// begin, or the kernel protects it as the first process of its PID namespace.
    pub(super) fn withstands_term(&self, home: Option<&SandboxStep>) -> bool {
        let shares_pid = home.is_some_and(|home| home.shared_pid);
        let is_first = self.spec.pid_target.is_none() && !shares_pid;
        is_first || self.has_begun
    }
}
