//! When each consumer learned that containers have exited.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::history::{ContainerId, HostInstant, SubscriptionId};

/// The source of the knowledge of an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// A STOPPED event on this stream.
    Stream(SubscriptionId),
    Relist,
}

/// The expected exits. Cheap to clone; all clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    awaited: Mutex<BTreeMap<ContainerId, BTreeMap<Source, HostInstant>>>,
    changes: watch::Sender<()>,
}

impl Arrivals {
    /// Starts collecting for a container. Arrivals for other containers are dropped.
    pub(super) fn expect(&self, container: &ContainerId) {
        self.awaited().entry(container.clone()).or_default();
    }

    /// Records that a container's exit is known; only the first time counts for each source.
    pub(super) fn note(&self, container: &ContainerId, source: Source, at: HostInstant) {
        let mut awaited = self.awaited();
        let Some(sources) = awaited.get_mut(container) else {
            return;
        };
        sources.entry(source).or_insert(at);
        drop(awaited);
        self.shared.changes.send_replace(());
    }

    /// Waits until the given number of sources know of an exit, with a timeout; returns the time of
    /// each, in order, and stops collecting for the container.
    pub(super) async fn of(
        &self,
        container: &ContainerId,
        wanted: usize,
        bound: Duration,
    ) -> Vec<HostInstant> {
        // Before the first look, so that no change is missed between the two.
        let mut changes = self.shared.changes.subscribe();
        let enough = async {
            while self.known_to(container) < wanted {
                // The sender lives as long as `self`.
                let _ = changes.changed().await;
            }
        };
        // Later arrivals count as missing.
        let _ = tokio::time::timeout(bound, enough).await;
        let known = self.awaited().remove(container).unwrap_or_default();
        let mut known: Vec<HostInstant> = known.into_values().collect();
        known.sort_unstable();
        known
    }

    fn known_to(&self, container: &ContainerId) -> usize {
        self.awaited().get(container).map_or(0, BTreeMap::len)
    }

    fn awaited(&self) -> MutexGuard<'_, BTreeMap<ContainerId, BTreeMap<Source, HostInstant>>> {
        let awaited = self.shared.awaited.lock();
        awaited.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_secs(10);

    fn at(monotonic_ns: u64) -> HostInstant {
        HostInstant {
            monotonic_ns,
            ..HostInstant::default()
        }
    }

    fn stream(number: u32) -> Source {
        Source::Stream(SubscriptionId(number))
    }

    #[tokio::test(start_paused = true)]
    async fn each_source_counts_once_and_the_earliest_stands_first() {
        let (arrivals, id) = (Arrivals::default(), ContainerId::from("c"));
        arrivals.expect(&id);
        for (source, time) in [(stream(1), 7), (stream(0), 5), (stream(1), 3)] {
            arrivals.note(&id, source, at(time));
        }
        let known = arrivals.of(&id, 3, BOUND).await;
        assert_eq!(
            known,
            [at(5), at(7)],
            "a repeated event is no third arrival"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_later_is_waited_for_and_what_never_comes_is_not() {
        let (arrivals, id) = (Arrivals::default(), ContainerId::from("c"));
        arrivals.expect(&id);
        let began = tokio::time::Instant::now();
        let late = arrivals.clone();
        let noting = tokio::spawn(async move {
            tokio::task::yield_now().await;
            late.note(&ContainerId::from("c"), Source::Relist, at(1));
        });
        assert_eq!(arrivals.of(&id, 1, BOUND).await, [at(1)]);
        noting.await.unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO);
        // It is forgotten, and no wait lasts forever.
        arrivals.note(&id, Source::Relist, at(2));
        assert_eq!(arrivals.of(&id, 1, BOUND).await, []);
        assert_eq!(began.elapsed(), BOUND);
    }
}
