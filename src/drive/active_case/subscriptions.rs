//! The subscriptions that a case has opened and not given up.

use std::collections::BTreeMap;

use tokio::sync::Mutex;

use crate::cri::Subscription;
use crate::drive::session::Session;
use crate::history::SubscriptionId;

/// The subscriptions that a case has opened and not given up.
#[derive(Debug, Default)]
pub(in crate::drive) struct CaseSubscriptions(Mutex<BTreeMap<SubscriptionId, Subscription>>);

impl CaseSubscriptions {
    pub(in crate::drive) async fn add(&self, subscription: Subscription) {
        let mut open = self.0.lock().await;
        open.insert(subscription.id(), subscription);
    }

    /// Cancels a subscription, or closes its connection as a killed subscriber does.
    pub(in crate::drive) async fn give_up(&self, id: SubscriptionId, hang_up: bool) {
        let subscription = self.0.lock().await.remove(&id);
        match subscription {
            Some(subscription) if hang_up => subscription.hang_up().await,
            Some(subscription) => subscription.cancel().await,
            None => {}
        }
    }

    /// Lets a subscriber that has stopped reading read on.
    pub(in crate::drive) async fn resume(&self, id: SubscriptionId) {
        if let Some(subscription) = self.0.lock().await.get(&id) {
            subscription.set_reading(true);
        }
    }

    /// Waits until all that was sent has arrived at those who read. Whether it has is for the
    /// oracle to judge.
    pub(in crate::drive) async fn catch_up(&self, session: &Session) {
        for (id, subscription) in &*self.0.lock().await {
            let mut reader = session.recorder().reader();
            if subscription.is_open() && subscription.is_reading() {
                let _ = session.pass_marker(&mut reader, *id).await;
            }
        }
    }

    /// Gives up all of them, those first that do not read: they may hold up all others.
    pub(in crate::drive) async fn give_up_all(&self) {
        let open = std::mem::take(&mut *self.0.lock().await);
        let (reading, stalled): (Vec<_>, Vec<_>) =
            open.into_values().partition(Subscription::is_reading);
        for subscription in stalled {
            subscription.hang_up().await;
        }
        for subscription in reading {
            subscription.cancel().await;
        }
    }
}
