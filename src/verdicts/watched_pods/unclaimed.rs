//! Events whose pod is still unknown.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::history::{Body, ContainerId, Entry, PodUid};
use crate::limits;

/// The latest events, limited in number and bytes.
#[derive(Debug, Default)]
pub(super) struct Unclaimed {
    entries: VecDeque<Arc<Entry>>,
    bytes: usize,
}

impl Unclaimed {
    /// Adds an event; returns the number of oldest events dropped for it.
    pub(super) fn push(&mut self, entry: &Arc<Entry>) -> usize {
        self.bytes += entry.approximate_bytes();
        self.entries.push_back(entry.clone());
        let mut dropped = 0;
        while self.entries.len() > limits::UNASKED || self.bytes > limits::WATCH_ASIDE_BYTES {
            let Some(oldest) = self.entries.pop_front() else {
                break;
            };
            self.bytes -= oldest.approximate_bytes();
            dropped += 1;
        }
        dropped
    }

    /// Removes the events of ids in a relist, each with its pod.
    pub(super) fn claim(
        &mut self,
        owners: &HashMap<ContainerId, PodUid>,
    ) -> Vec<(PodUid, Arc<Entry>)> {
        let mut claimed = Vec::new();
        for entry in std::mem::take(self).entries {
            let pod = match &entry.body {
                Body::Event { event, .. } => owners.get(&event.container),
                _ => None,
            };
            if let Some(pod) = pod {
                claimed.push((pod.clone(), entry));
            } else {
                self.push(&entry);
            }
        }
        claimed
    }
}
