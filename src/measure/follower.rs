//! Follows the growing history: records the arrivals of STOPPED, and counts calls and events.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;

use super::arrivals::{Arrivals, Source};
use super::error::MeasureError;
use super::traffic::Traffic;
use crate::drive::Session;
use crate::history::{Body, Entry, EventKind, SubscriptionId};
use crate::recorder::{Overrun, Reader};

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
