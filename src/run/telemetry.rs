//! The metrics of a run: the PLEG metrics of a kubelet on the node, derived from the growing
//! history.

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

/// The metrics and their HTTP endpoint, which ends when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Telemetry {
    metrics: Metrics,
    _endpoint: Option<Endpoint>,
}

/// The tasks that relist and count; they end when this is dropped.
#[derive(Debug)]
pub(super) struct BackgroundTasks {
    _relist: BackgroundRelist,
    _heartbeat: Heartbeat,
    _task: JoinSet<()>,
}

impl Telemetry {
    /// Serves the metrics, if an address is given.
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

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

impl BackgroundTasks {
    /// Starts relisting the run's pods and counting the events of its history.
    pub(super) fn begin(session: &Arc<Session>) -> Self {
        let mut reader = session.recorder().reader();
        let metrics = session.metrics().clone();
        // The run's stream is already open.
        let mut count = StreamCounts {
            successes: 1,
            errors: 0,
            observers: BTreeSet::new(),
        };
        count.export(&metrics);
        let mut task = JoinSet::new();
        task.spawn(async move {
            // Cases report the entries that an overrun loses as errors.
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

/// Blocks all tasks periodically, in simulated time.
async fn hold_up(every: Duration, by: Duration) {
    let mut times = tokio::time::interval(every);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    times.tick().await;
    loop {
        times.tick().await;
        host::hold_up(by).await;
    }
}

/// Counts missed events and PLEG disagreements of a judged case.
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
struct StreamCounts {
    successes: u64,
    errors: u64,
    /// Streams other than the kubelet's.
    observers: BTreeSet<SubscriptionId>,
}

impl StreamCounts {
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
                self.export(metrics);
            }
            Body::SubscriptionEnded { subscription, .. } if self.observers.remove(subscription) => {
            }
            Body::SubscriptionEnded { end, .. } if *end != StreamEnd::Cancelled => {
                self.errors += 1;
                self.export(metrics);
            }
            _ => {}
        }
    }

    fn export(&self, metrics: &Metrics) {
        metrics.connections(self.errors, self.successes);
    }
}
