//! Relists of pods that a run made, as a kubelet's Generic PLEG makes them: of all pods each
//! second, and from kubelet 1.36 on of one pod on demand, after each sync of it. A change that a
//! list shows and no event has reported is a missed event.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::live_pleg::LivePleg;
use super::session::Session;
use crate::limits;
use crate::pleg::{Generic, SharedUid};

/// Relists until this is dropped.
#[derive(Debug)]
pub struct BackgroundRelist {
    task: JoinHandle<()>,
}

impl BackgroundRelist {
    /// Relists the pods of a run, except while a case wants silence. A pod is relisted on demand
    /// [`limits::RELISTS_OF_A_POD`] times between two relists of all pods, and once for requests
    /// that wait at the same time.
    pub fn begin(session: &Arc<Session>) -> Self {
        let session = session.clone();
        let (client, metrics) = (session.client().clone(), session.metrics().clone());
        let mut pleg = LivePleg::new(client, metrics, session.labels());
        session.take_requests(pleg.requests());
        let task = tokio::spawn(async move {
            let mut period = tokio::time::interval(Generic::PERIOD);
            // The first tick comes at once, when there is nothing to list yet.
            period.tick().await;
            let mut relisted = BTreeMap::<SharedUid, usize>::new();
            loop {
                // A list that fails shows nothing; it stands in the history all the same.
                tokio::select! {
                    // As in a kubelet, a relist of all pods that is due goes first.
                    biased;
                    _ = period.tick() => {
                        let _quiet = session.relisting().await;
                        let _ = pleg.relist().await;
                        period.reset();
                        relisted.clear();
                    }
                    pods = pleg.requested() => {
                        for pod in pods {
                            let times = relisted.entry(pod.clone()).or_default();
                            if *times < limits::RELISTS_OF_A_POD {
                                *times += 1;
                                let _quiet = session.relisting().await;
                                let _ = pleg.relist_pod(&pod).await;
                            }
                        }
                    }
                }
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
