//! A pod whose changes are being recorded, events whose pod is still unknown, and changes that are
//! missing in all histories of pods: with them nothing is decided.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::history::{Body, CaseHistory, ContainerId, Entry, HostInstant, PodUid};
use crate::limits;

#[derive(Debug)]
pub(super) struct Followed {
    pub(super) history: CaseHistory,
    pub(super) since: HostInstant,
    pub(super) changed: HostInstant,
    /// The end of a relist that began after the last change.
    pub(super) relisted: Option<HostInstant>,
}

/// The latest events, limited in number and bytes.
#[derive(Debug, Default)]
pub(super) struct Unclaimed {
    entries: VecDeque<Arc<Entry>>,
    bytes: usize,
}

/// The reason why changes were not tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::verdicts) enum Loss {
    /// The queue of entries has overflowed.
    Overrun,
    Pods,
    /// The histories of pods have exceeded their bytes.
    Bytes,
    Statuses,
    Containers,
    /// An id or a name is too long.
    Names,
    Unclaimed,
    Unlisted,
}

#[derive(Debug, Default)]
pub(in crate::verdicts) struct Untracked {
    losses: BTreeMap<Loss, (u64, HostInstant)>,
    /// The first event of each id that neither a list nor a status has shown yet.
    unlisted: BTreeMap<ContainerId, HostInstant>,
}

impl Followed {
    pub(super) fn changed(&mut self, at: HostInstant) {
        (self.changed, self.relisted) = (at, None);
    }

    pub(super) fn is_overlong(&self) -> bool {
        self.history.entries().len() > limits::WATCH_POD_ENTRIES
    }

    /// Whether the relist after its last change is older than `within`, after which an event is
    /// late, and than the maximum duration of a relist. Delays of the suite itself do not count.
    pub(super) fn is_quiet(&self, within: Duration, now: HostInstant) -> bool {
        let passed = |since| self.history.not_held_up(since, now);
        let is_settled = passed(self.changed) > within + limits::WATCH_SETTLING;
        is_settled && self.relisted.is_some_and(|at| passed(at) > within)
    }
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

impl Untracked {
    pub(in crate::verdicts) fn add(&mut self, loss: Loss, at: HostInstant) {
        self.losses.entry(loss).or_insert((0, at)).0 += 1;
    }

    /// Records an event of an id that nothing has shown.
    pub(super) fn unlisted(&mut self, id: &ContainerId, at: HostInstant) {
        if self.unlisted.len() < limits::UNASKED {
            self.unlisted.entry(id.clone()).or_insert(at);
        } else if !self.unlisted.contains_key(id) {
            self.add(Loss::Unlisted, at);
        }
    }

    /// Records that an id is shown.
    pub(super) fn shown(&mut self, id: &ContainerId) {
        self.unlisted.remove(id);
    }

    /// Processes the ids of a relist that began at a time: an id that was announced more than
    /// `within` earlier and never listed is untracked.
    pub(super) fn relisted(
        &mut self,
        listed: &HashMap<ContainerId, PodUid>,
        began: HostInstant,
        within: Duration,
    ) {
        for (id, at) in std::mem::take(&mut self.unlisted) {
            if listed.contains_key(&id) {
                continue;
            }
            if began.since(at) > within {
                self.add(Loss::Unlisted, at);
            } else {
                self.unlisted.insert(id, at);
            }
        }
    }

    /// A sentence for each reason, in a watch that ended at `ended`.
    pub(in crate::verdicts) fn faults(&self, ended: HostInstant) -> impl Iterator<Item = String> {
        self.losses.iter().map(move |(loss, (times, first))| {
            let first = ended.since(*first).as_secs_f64();
            let what = match loss {
                Loss::Overrun => "times events arrived faster than they could be read".to_owned(),
                Loss::Pods => format!(
                    "changes were not tracked, of more than {} pods at once",
                    limits::FOLLOWED_PODS
                ),
                Loss::Bytes => format!(
                    "times the history of a pod was cut, as those of all pods had {} MiB",
                    limits::WATCHED_BYTES >> 20
                ),
                Loss::Statuses => format!(
                    "statuses were not kept, as those of all pods had {} MiB",
                    limits::WATCHED_BYTES >> 20
                ),
                Loss::Containers => format!(
                    "events were not tracked, of more than {} containers at once",
                    limits::WATCHED
                ),
                Loss::Names => format!(
                    "events were not tracked, with ids or names of more than {} bytes",
                    limits::WATCHED_NAME
                ),
                Loss::Unclaimed => "events were not tracked, whose pods are unknown".to_owned(),
                Loss::Unlisted => "ids of events are in no list and no status".to_owned(),
            };
            format!("{times} {what}; the first {first:.1} s before the end")
        })
    }
}
