//! A run in progress, by its growing history: the PLEG metrics of a kubelet on the node, and the
//! verdicts, by the code that `check` uses for a recorded run.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::drive::{BackgroundRelist, Heartbeat, Session};
use crate::history::{Body, CaseRun, Entry, StreamEnd, SubscriptionId};
use crate::metrics::{Endpoint, EndpointError, Metrics};
use crate::outcome::{Outcome, RunReport};
use crate::recorder::{Overrun, Reader};
use crate::verdicts::{EndedCase, JudgedCase, Known, Scope, Verdicts};
use crate::{host, oracle, terminal};

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

/// Reads the run's history as it grows, and judges it.
#[derive(Debug)]
pub(super) struct LiveVerdicts {
    reader: Reader,
    verdicts: Verdicts,
    ended: BTreeMap<CaseRun, EndedCase>,
    overrun: Option<Overrun>,
}

impl LiveVerdicts {
    /// The verdicts on an empty history.
    pub(super) fn new(reader: Reader) -> Self {
        Self {
            reader,
            verdicts: Verdicts::new(Scope::default()),
            ended: BTreeMap::new(),
            overrun: None,
        }
    }

    /// Processes the entries recorded since the last call.
    pub(super) fn catch_up(&mut self) {
        match self.reader.drain() {
            Ok(entries) => {
                for entry in &entries {
                    if let Some(ended) = self.verdicts.push(entry) {
                        self.ended.insert(ended.run(), ended);
                    }
                }
            }
            Err(fault) => self.overrun = Some(fault),
        }
    }

    /// Removes an ended case from the verdicts, to be judged. Fails if entries were lost because
    /// the reader fell behind.
    pub(super) fn ended(&mut self, run: CaseRun) -> Result<EndedCase, Overrun> {
        self.catch_up();
        let ended = self.ended.remove(&run);
        ended.ok_or_else(|| self.overrun.unwrap_or(Overrun))
    }

    /// Stores the verdict on a case.
    pub(super) fn settle(&mut self, judged: JudgedCase) {
        self.verdicts.settle(judged);
    }

    /// The outcome of a case or an invariant; `None` before its end.
    pub(super) fn outcome(&mut self, run: CaseRun) -> Option<Outcome> {
        self.catch_up();
        self.verdicts.outcome(run)
    }

    pub(super) fn known(&self) -> &Known {
        self.verdicts.known()
    }

    pub(super) fn report(&mut self) -> RunReport {
        self.catch_up();
        let overrun = self.overrun.map(|fault| fault.to_string());
        self.verdicts.report(overrun)
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
