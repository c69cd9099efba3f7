//! Relists like a kubelet's Generic PLEG, and records the exits that they show.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use super::arrivals::{Arrivals, Source};
use super::error::MeasureError;
use crate::drive::{LivePleg, Relist, Session};
use crate::history::ContainerId;
use crate::host;
use crate::metrics::Metrics;
use crate::pleg::LifecycleKind;

/// A PLEG that knows the current pods.
pub(super) struct Relisting {
    pleg: LivePleg,
}

/// The relists, until dropped.
#[derive(Debug)]
pub(super) struct Relists {
    counts: Arc<Counts>,
    _task: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Counts {
    all: AtomicU64,
    failed: AtomicU64,
}

impl Relisting {
    /// Relists once, to learn the current pods.
    pub(super) async fn prepare(session: &Session) -> Result<Self, MeasureError> {
        let (client, metrics) = (session.client().clone(), Metrics::default());
        let mut pleg = LivePleg::new(client, metrics, session.labels());
        let relisted = pleg.relist().await;
        relisted.map_err(|(method, fault)| MeasureError::Call { method, fault })?;
        Ok(Self { pleg })
    }

    /// Relists at once, and then a period after each relist.
    pub(super) fn begin(self, period: Duration, arrivals: Arrivals) -> Relists {
        let counts = Arc::<Counts>::default();
        let mut task = JoinSet::new();
        task.spawn(relist(self.pleg, period, arrivals, counts.clone()));
        Relists {
            counts,
            _task: task,
        }
    }
}

impl Relists {
    /// The number of relists, and of failed ones.
    pub(super) fn counts(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.counts.all), count(&self.counts.failed))
    }
}

async fn relist(mut pleg: LivePleg, period: Duration, arrivals: Arrivals, counts: Arc<Counts>) {
    let mut tick = tokio::time::interval(period);
    loop {
        tick.tick().await;
        match pleg.relist().await {
            Ok(relist) => note(&relist, &arrivals),
            Err(_) => {
                counts.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
        counts.all.fetch_add(1, Ordering::Relaxed);
        tick.reset();
    }
}

/// Records the containers that the PLEG reports as dead. A kubelet learns of them at the end of the
/// relist at the latest.
fn note(relist: &Relist, arrivals: &Arrivals) {
    let at = host::now();
    let died = relist
        .lifecycle
        .iter()
        .filter(|event| event.kind == LifecycleKind::ContainerDied);
    for container in died.filter_map(|event| event.container.as_ref()) {
        arrivals.note(&ContainerId::from(container.as_str()), Source::Relist, at);
    }
}
