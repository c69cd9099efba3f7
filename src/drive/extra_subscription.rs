//! Subscriptions in addition to the run's own.

use std::time::Duration;

use super::session::Session;
use super::stream_error::StreamError;
use crate::cri::{Over, Subscription};
use crate::history::{Body, Observer};

/// When a subscription counts as live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Liveness {
    /// An event has arrived that was caused after the opening.
    Proven,
    /// This time has passed.
    After(Duration),
}

impl Session {
    /// Opens a subscription in addition to the run's own; it is live when this returns.
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
                // The time is the requirement: a subscriber gets no sign that it is subscribed.
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
}
