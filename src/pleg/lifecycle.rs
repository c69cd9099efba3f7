//! A PLEG's output: lifecycle events, and the bounded channel to the sync loop.
//!
//! Source: kubernetes `pkg/kubelet/pleg/pleg.go` (`PodLifecycleEvent`); the channel's capacity is
//! `plegChannelCapacity` in `pkg/kubelet/kubelet.go`.

use std::collections::VecDeque;
use std::fmt;

use super::shared_id::{SharedId, SharedUid};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LifecycleKind {
    /// A container or a sandbox is running.
    ContainerStarted,
    /// It has exited.
    ContainerDied,
    /// It was removed. The kubelet does not sync the pod for it.
    ContainerRemoved,
    /// The pod was inspected on request, and nothing had changed.
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

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LifecycleEvent {
    pub pod: SharedUid,
    pub kind: LifecycleKind,
    /// The container or sandbox; absent for [`LifecycleKind::PodSync`].
    pub container: Option<SharedId>,
}

/// The channel to the kubelet's sync loop, which both PLEGs share.
#[derive(Clone, Debug)]
pub struct Channel {
    capacity: usize,
    waiting: VecDeque<LifecycleEvent>,
    discarded: u64,
}

impl Channel {
    pub const KUBELET_CAPACITY: usize = 1000;

    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            waiting: VecDeque::new(),
            discarded: 0,
        }
    }

    /// Sends an event without blocking; a full channel discards and counts it.
    pub fn send(&mut self, event: LifecycleEvent) {
        if self.is_full() {
            self.discarded += 1;
        } else {
            self.waiting.push_back(event);
        }
    }

    pub fn receive(&mut self) -> Option<LifecycleEvent> {
        self.waiting.pop_front()
    }

    /// Removes all events, oldest first.
    pub fn drain(&mut self) -> impl Iterator<Item = LifecycleEvent> + '_ {
        self.waiting.drain(..)
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether the next event will be discarded. Only this makes an Evented PLEG of kubelet 1.26 to
    /// 1.36 unhealthy.
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.capacity
    }

    /// The number of discarded events (`kubelet_pleg_discard_events`).
    pub fn discarded(&self) -> u64 {
        self.discarded
    }
}
