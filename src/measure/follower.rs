//! Follows the growing history: records when each consumer learned that containers have exited, and
//! counts the calls and events of a watcher.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::MeasureError;
use crate::drive::Session;
use crate::history::{
    Body, CallId, ContainerId, Entry, EventKind, HostInstant, Request, SubscriptionId,
};
use crate::recorder::{Overrun, Reader};

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

/// The traffic of a watcher. Bytes are those of the messages, without HTTP/2 framing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) calls: u64,
    /// The bytes of their requests and replies.
    pub(super) call_bytes: u64,
    pub(super) events: u64,
    pub(super) event_bytes: u64,
    under_way: BTreeSet<CallId>,
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

impl Traffic {
    /// Adds an entry: a call of a PLEG, or an event of one of these streams.
    pub(super) fn take(&mut self, entry: &Entry, streams: &[SubscriptionId]) {
        match &entry.body {
            Body::CallBegan {
                call,
                request,
                message,
                ..
            } if is_of_pleg(request) => {
                self.under_way.insert(*call);
                self.call_bytes += message.len() as u64;
            }
            Body::CallEnded { call, message, .. } if self.under_way.remove(call) => {
                self.calls += 1;
                self.call_bytes += message.len() as u64;
            }
            Body::Event {
                subscription,
                message,
                ..
            } if streams.contains(subscription) => {
                self.events += 1;
                self.event_bytes += message.len() as u64;
            }
            _ => {}
        }
    }
}

/// Whether a PLEG makes such a call; the calls that create and remove pods are excluded.
fn is_of_pleg(request: &Request) -> bool {
    matches!(
        request,
        Request::ListSandboxes { .. }
            | Request::ListContainers { .. }
            | Request::SandboxStatus(_)
            | Request::ContainerStatus(_)
    )
}

/// Follows some streams, and all calls, until dropped.
#[derive(Debug)]
pub(super) struct Follower {
    seen: Arc<Mutex<Seen>>,
    _task: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Seen {
    traffic: Traffic,
    stream_ended: bool,
    overrun: Option<Overrun>,
}

impl Follower {
    /// Starts to follow these streams; `arrivals` gets their events.
    pub(super) fn begin(
        session: &Session,
        streams: Vec<SubscriptionId>,
        arrivals: Arrivals,
    ) -> Self {
        let seen = Arc::default();
        let mut task = JoinSet::new();
        let reader = session.recorder().reader();
        task.spawn(follow(reader, streams, arrivals, Arc::clone(&seen)));
        Self { seen, _task: task }
    }

    /// The traffic since the beginning.
    pub(super) fn traffic(&self) -> Traffic {
        lock(&self.seen).traffic.clone()
    }

    /// Checks for losses. Fails if a stream has ended, or the follower fell behind.
    pub(super) fn check(&self) -> Result<(), MeasureError> {
        let seen = lock(&self.seen);
        if let Some(overrun) = seen.overrun {
            return Err(overrun.into());
        }
        if seen.stream_ended {
            return Err(MeasureError::StreamEnded);
        }
        Ok(())
    }
}

async fn follow(
    mut reader: Reader,
    streams: Vec<SubscriptionId>,
    arrivals: Arrivals,
    seen: Arc<Mutex<Seen>>,
) {
    loop {
        match reader.drain() {
            Ok(entries) => {
                for entry in entries {
                    arrived(&entry, &streams, &arrivals);
                    lock(&seen).take(&entry, &streams);
                }
            }
            Err(overrun) => {
                lock(&seen).overrun = Some(overrun);
                return;
            }
        }
        reader.changed().await;
    }
}

fn arrived(entry: &Entry, streams: &[SubscriptionId], arrivals: &Arrivals) {
    if let Body::Event {
        subscription,
        event,
        ..
    } = &entry.body
        && event.kind == EventKind::Stopped
        && streams.contains(subscription)
    {
        arrivals.note(&event.container, Source::Stream(*subscription), entry.at);
    }
}

impl Seen {
    fn take(&mut self, entry: &Entry, streams: &[SubscriptionId]) {
        self.traffic.take(entry, streams);
        if let Body::SubscriptionEnded { subscription, .. } = &entry.body {
            self.stream_ended |= streams.contains(subscription);
        }
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::history::{ContainerId, Event, Labels, Reply, Seq};

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

    fn took(bodies: Vec<Body>) -> Traffic {
        let mut traffic = Traffic::default();
        for (seq, body) in (0..).zip(bodies) {
            let entry = Entry {
                seq: Seq(seq),
                at: crate::history::HostInstant::default(),
                body,
            };
            traffic.take(&entry, &[SubscriptionId(1)]);
        }
        traffic
    }

    fn began(call: u64, request: Request) -> Body {
        Body::CallBegan {
            call: CallId(call),
            case: None,
            request,
            message: Bytes::from_static(b"12345"),
        }
    }

    fn ended(call: u64) -> Body {
        Body::CallEnded {
            call: CallId(call),
            result: Ok(Reply::Sandboxes(Vec::new())),
            message: Bytes::from_static(b"1234567"),
        }
    }

    fn event(subscription: u32) -> Body {
        Body::Event {
            subscription: SubscriptionId(subscription),
            event: Event {
                container: ContainerId::from("c"),
                kind: crate::history::EventKind::Stopped,
                created_at: crate::history::RuntimeNanos(0),
                sandbox: None,
                containers: Vec::new(),
            },
            message: Bytes::from_static(b"123"),
        }
    }

    #[test]
    fn calls_of_a_pleg_count_and_those_that_make_changes_do_not() {
        let removal = Request::RemoveContainer(ContainerId::from("c"));
        let traffic = took(vec![
            began(1, Request::sandboxes(Labels::new())),
            began(2, removal),
            ended(2),
            ended(1),
            ended(7),
        ]);
        assert_eq!((traffic.calls, traffic.call_bytes), (1, 12));
    }

    #[test]
    fn events_of_the_watchers_own_streams_count() {
        let traffic = took(vec![event(1), event(2), event(1)]);
        assert_eq!((traffic.events, traffic.event_bytes), (2, 6));
    }
}
