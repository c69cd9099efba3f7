//! What a PLEG says: lifecycle events, and the bounded channel that they wait in.
//!
//! Source: kubernetes `pkg/kubelet/pleg/pleg.go` (`PodLifecycleEvent`); the channel's capacity is
//! `plegChannelCapacity` in `pkg/kubelet/kubelet.go`.

use std::collections::VecDeque;
use std::fmt;

use super::shared_id::{SharedId, SharedUid};

/// What happened in a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LifecycleKind {
    /// A container, or a sandbox, runs.
    ContainerStarted,
    /// It ran no more.
    ContainerDied,
    /// It is gone. The kubelet syncs no pod for it.
    ContainerRemoved,
    /// The pod was inspected on request, and nothing was found to have changed.
    PodSync,
}

impl fmt::Display for LifecycleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ContainerStarted => "ContainerStarted",
            Self::ContainerDied => "ContainerDied",
            Self::ContainerRemoved => "ContainerRemoved",
            Self::PodSync => "PodSync",
        })
    }
}

/// One event of a PLEG.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LifecycleEvent {
    /// In which pod.
    pub pod: SharedUid,
    /// What.
    pub kind: LifecycleKind,
    /// To which container or sandbox; absent for [`LifecycleKind::PodSync`].
    pub container: Option<SharedId>,
}

/// Where events wait for the kubelet's sync loop. Both PLEGs share one.
#[derive(Clone, Debug)]
pub struct Channel {
    capacity: usize,
    waiting: VecDeque<LifecycleEvent>,
    discarded: u64,
}

impl Channel {
    /// How many events a kubelet's channel holds.
    pub const KUBELET_CAPACITY: usize = 1000;

    /// An empty channel.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            waiting: VecDeque::new(),
            discarded: 0,
        }
    }

    /// Puts an event in without waiting; a full channel loses and counts it.
    pub fn send(&mut self, event: LifecycleEvent) {
        if self.is_full() {
            self.discarded += 1;
        } else {
            self.waiting.push_back(event);
        }
    }

    /// Takes the oldest event.
    pub fn receive(&mut self) -> Option<LifecycleEvent> {
        self.waiting.pop_front()
    }

    /// Takes all events, oldest first.
    pub fn drain(&mut self) -> impl Iterator<Item = LifecycleEvent> + '_ {
        self.waiting.drain(..)
    }

    /// How many events wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether the next event is lost. This is the only thing that makes an Evented PLEG of
    /// kubelet 1.26 to 1.36 unhealthy.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.capacity
    }

    /// How many events were lost (`kubelet_pleg_discard_events`).
    #[must_use]
    pub fn discarded(&self) -> u64 {
        self.discarded
    }
}
