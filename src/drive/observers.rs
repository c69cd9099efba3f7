//! Subscriptions beside the run's own: those of cases, and one that finds out who gets what.

use std::time::Duration;

use super::session::Session;
use super::stream_error::StreamError;
use crate::cri::{Over, Subscription};
use crate::history::{Audience, Body, ContainerId, Entry, EventKind, Observer, SubscriptionId};
use crate::limits;
use crate::recorder::Reader;

/// From when on a subscription counts as live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Liveness {
    /// An event has come that was caused after the opening.
    Proven,
    /// So much time has passed.
    After(Duration),
}

impl Session {
    /// Opens a subscription beside the run's own; it is live when this returns.
    pub(super) async fn observe(
        &self,
        over: Over<'_>,
        observer: Observer,
        liveness: Liveness,
    ) -> Result<Subscription, StreamError> {
        let mut reader = self.recorder().reader();
        let stalls = observer.stalls;
        let subscription = Subscription::observe(over, self.recorder(), observer).await?;
        match liveness {
            Liveness::Proven => self.pass_marker(&mut reader, subscription.id()).await?,
            Liveness::After(time) => {
                let stopped = self.stop().cancelled();
                // The time is the requirement: nothing tells a subscriber that it is one.
                if tokio::time::timeout(time, stopped).await.is_ok() {
                    return Err(StreamError::Interrupted);
                }
            }
        }
        subscription.set_reading(!stalls);
        self.recorder().record(Body::SubscriptionProven {
            subscription: subscription.id(),
        });
        Ok(subscription)
    }

    /// Finds out whether each of several subscribers gets every event.
    pub(super) async fn find_audience(&self) -> Result<Audience, StreamError> {
        let own = self.stream().await?;
        let mut reader = self.recorder().reader();
        let observer = Observer {
            binding: "a second subscriber".to_owned(),
            ..Observer::default()
        };
        let over = Over::Own(&self.options().endpoint);
        let second = Subscription::observe(over, self.recorder(), observer).await?;
        let mut heard = Heard::default();
        let mut audience = Audience::One;
        for _ in 0..limits::AUDIENCE_MARKERS {
            heard.marker = Some(self.send_marker().await?);
            if self
                .both_hear(&mut reader, [own, second.id()], &mut heard)
                .await?
            {
                audience = Audience::Everyone;
                break;
            }
        }
        second.cancel().await;
        // Whatever the second one has taken with it, the run's own stream is live again.
        self.barrier().await?;
        Ok(audience)
    }

    /// Whether an event of the marker comes to both.
    async fn both_hear(
        &self,
        reader: &mut Reader,
        both: [SubscriptionId; 2],
        heard: &mut Heard,
    ) -> Result<bool, StreamError> {
        let wait = self.stretched(limits::MARKER_WAIT);
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            for entry in reader.drain()? {
                heard.take(&entry);
            }
            if heard.by_both(both) {
                return Ok(true);
            }
            tokio::select! {
                () = reader.changed() => {}
                () = tokio::time::sleep_until(deadline) => return Ok(false),
                () = self.stop().cancelled() => return Err(StreamError::Interrupted),
            }
        }
    }
}

/// Which streams have brought what of a marker.
#[derive(Debug, Default)]
struct Heard {
    marker: Option<ContainerId>,
    events: Vec<(SubscriptionId, ContainerId, EventKind)>,
}

impl Heard {
    fn take(&mut self, entry: &Entry) {
        if let Body::Event {
            subscription,
            event,
            ..
        } = &entry.body
        {
            let event = (*subscription, event.container.clone(), event.kind);
            self.events.push(event);
        }
    }

    fn by_both(&self, [one, other]: [SubscriptionId; 2]) -> bool {
        let by = |stream| {
            let events = self.events.iter().filter(move |(on, ..)| *on == stream);
            let of_marker = events.filter(|(_, of, _)| Some(of) == self.marker.as_ref());
            of_marker.map(|(.., kind)| *kind)
        };
        by(one).any(|kind| by(other).any(|same| same == kind))
    }
}
