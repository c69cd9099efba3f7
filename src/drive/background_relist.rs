//! Relists of all pods that a run made, each second, as a kubelet's Generic PLEG makes them. What
//! a list shows and no event has reported is a missed event.

use std::sync::Arc;

use tokio::task::JoinHandle;

use super::live_pleg::LivePleg;
use super::session::Session;
use crate::pleg::Generic;

/// Relists until this is dropped.
#[derive(Debug)]
pub struct BackgroundRelist {
    task: JoinHandle<()>,
}

impl BackgroundRelist {
    /// Relists the pods of a run each second, except while a case wants silence.
    pub fn begin(session: &Arc<Session>) -> Self {
        let session = session.clone();
        let (client, metrics) = (session.client().clone(), session.metrics().clone());
        let mut pleg = LivePleg::new(client, metrics, session.labels());
        let task = tokio::spawn(async move {
            let mut period = tokio::time::interval(Generic::PERIOD);
            // The first tick comes at once, when there is nothing to list yet.
            period.tick().await;
            loop {
                period.tick().await;
                let _quiet = session.relisting().await;
                // A list that fails shows nothing; it stands in the history all the same.
                let _ = pleg.relist().await;
                period.reset();
            }
        });
        Self { task }
    }
}

impl Drop for BackgroundRelist {
    fn drop(&mut self) {
        self.task.abort();
    }
}
