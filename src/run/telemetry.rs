//! What a kubelet's metrics would tell of a run, counted while its history grows.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::drive::{BackgroundRelist, Heartbeat, Session};
use crate::history::{Body, Entry, StreamEnd, SubscriptionId};
use crate::host;
use crate::metrics::{Endpoint, EndpointError, Metrics};
use crate::verdicts::JudgedCase;
use crate::{oracle, terminal};

/// The numbers, and where they are served, as long as this lives.
#[derive(Debug, Default)]
pub(super) struct Telemetry {
    metrics: Metrics,
    _endpoint: Option<Endpoint>,
}

/// Relists and counts as long as this lives.
#[derive(Debug)]
pub(super) struct Counting {
    _relist: BackgroundRelist,
    _heartbeat: Heartbeat,
    _task: JoinSet<()>,
}

impl Telemetry {
    /// Serves the numbers, if there is an address.
    ///
    /// # Errors
    /// If that cannot be used.
    pub(super) async fn serve(address: Option<SocketAddr>) -> Result<Self, EndpointError> {
        let metrics = Metrics::default();
        let Some(address) = address else {
            return Ok(Self {
                metrics,
                _endpoint: None,
            });
        };
        let endpoint = Endpoint::serve(metrics.clone(), address).await?;
        terminal::say(&endpoint.announcement());
        Ok(Self {
            metrics,
            _endpoint: Some(endpoint),
        })
    }

    /// The numbers.
    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

impl Counting {
    /// Begins to relist a run's pods and to count what its history tells.
    pub(super) fn begin(session: &Arc<Session>) -> Self {
        let mut reader = session.recorder().reader();
        let metrics = session.metrics().clone();
        // The run's stream has been opened and proven already.
        let mut count = Count {
            successes: 1,
            errors: 0,
            observers: BTreeSet::new(),
        };
        count.tell(&metrics);
        let mut task = JoinSet::new();
        task.spawn(async move {
            // What an overrun loses is told as an error by the cases that lose it.
            while let Ok(entries) = reader.drain() {
                for entry in entries {
                    count.take(&metrics, &entry);
                }
                reader.changed().await;
            }
        });
        if let Some((every, by)) = session.options().asked.sabotage.hold_up {
            task.spawn(hold_up(every, by));
        }
        Self {
            _relist: BackgroundRelist::begin(session),
            _heartbeat: Heartbeat::begin(session.recorder()),
            _task: task,
        }
    }
}

/// Holds all tasks up, so often and for so long, in simulated time.
async fn hold_up(every: Duration, by: Duration) {
    let mut times = tokio::time::interval(every);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    times.tick().await;
    loop {
        times.tick().await;
        host::hold_up(by).await;
    }
}

/// Counts what the verdict on a case says of missed events and of kubelets that disagree.
pub(super) fn count_broken(judged: &JudgedCase, metrics: &Metrics) {
    for invariant in judged.broken_invariants() {
        match invariant {
            oracle::NO_MISSED_EVENT => metrics.missed(),
            oracle::PLEGS_AGREE => metrics.disagreed(),
            _ => {}
        }
    }
}

#[derive(Debug)]
struct Count {
    successes: u64,
    errors: u64,
    /// Streams beside the one that a kubelet would have.
    observers: BTreeSet<SubscriptionId>,
}

impl Count {
    fn take(&mut self, metrics: &Metrics, entry: &Entry) {
        match &entry.body {
            Body::Event {
                subscription,
                event,
                ..
            } if event.created_at.0 != 0 && !self.observers.contains(subscription) => {
                let lag_ns = entry.at.realtime_ns.saturating_sub(event.created_at.0);
                metrics.event_arrived(lag_ns);
            }
            Body::SubscriptionOpened {
                subscription,
                observer: Some(_),
            } => {
                self.observers.insert(*subscription);
            }
            Body::SubscriptionOpened { .. } => {
                self.successes += 1;
                self.tell(metrics);
            }
            Body::SubscriptionEnded { subscription, .. } if self.observers.remove(subscription) => {
            }
            Body::SubscriptionEnded { end, .. } if *end != StreamEnd::Cancelled => {
                self.errors += 1;
                self.tell(metrics);
            }
            _ => {}
        }
    }

    fn tell(&self, metrics: &Metrics) {
        metrics.connections(self.errors, self.successes);
    }
}
