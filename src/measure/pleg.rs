//! `measure pleg`: the same pods watched by relists and by events, idle and busy, and the CPU time
//! of the runtime and of the suite meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::follower::{Arrivals, Follower, Source};
use super::measurement::{Load, PlegCell, Results, Watching};
use super::options::{PlegOptions, ascending};
use super::population::{Churn, Population};
use super::{MeasureError, session};
use crate::drive::{LivePleg, Relist, Session};
use crate::history::{ContainerId, SubscriptionId};
use crate::host::{self, RuntimeProcess};
use crate::metrics::Metrics;
use crate::pleg::{Generic, LifecycleKind};
use crate::report::nanos;
use crate::workload::Workload;

/// Measures all cells. Fails if the runtime cannot be used any more; the results then hold the
/// figures so far.
pub(super) async fn measure(
    session: Arc<Session>,
    options: PlegOptions,
    results: Results,
) -> Result<(), MeasureError> {
    let (meter, unknown) = CpuMeter::find(&session).await;
    if let Some(note) = unknown {
        results.note(note);
    }
    let workload = match options.write_every {
        Some(every) => Workload::WriteUntilTerm { every },
        None => Workload::UntilTerm,
    };
    let mut population = Population::new(session, options.containers, workload);
    for pods in ascending(&options.node.pods) {
        session::progress(&format!("making {pods} pods"));
        population.grow(pods).await?;
        for load in Load::ALL {
            for watching in Watching::ALL {
                session::progress(&format!(
                    "{pods} pods, {}, watched by {}",
                    load.name(),
                    watching.name()
                ));
                let window = Window {
                    population: &population,
                    meter: &meter,
                    duration: options.duration,
                };
                let cell = window.measure(load, watching).await?;
                results.add_pleg(PlegCell {
                    containers: options.containers,
                    write_every_ns: options.write_every.map(nanos),
                    ..cell
                });
            }
        }
    }
    Ok(())
}

/// The time in which the pods are watched in one way.
struct Window<'a> {
    population: &'a Population,
    meter: &'a CpuMeter,
    duration: Duration,
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

#[derive(Debug)]
pub(super) struct CpuMeter {
    /// The runtime's process; `None` if unknown.
    runtime: Option<RuntimeProcess>,
    simulated: bool,
}

/// CPU times; `None` if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuTimes {
    /// The runtime's process, without its children.
    pub(super) runtime: Option<Duration>,
    pub(super) own: Option<Duration>,
}

impl Window<'_> {
    async fn measure(&self, load: Load, watching: Watching) -> Result<PlegCell, MeasureError> {
        let session = self.population.session();
        let streams = streams(session, watching).await?;
        let pleg = match watching.relist_period() {
            Some(period) => Some((prepared(session).await?, period)),
            None => None,
        };
        let arrivals = Arrivals::default();
        let follower = Follower::begin(session, streams, arrivals.clone());
        let (cpu, began) = (self.meter.read(), host::now());
        let relists = pleg.map(|(pleg, period)| Relists::begin(pleg, period, arrivals.clone()));
        let mut churn = Churn::new(self.population, arrivals.clone());
        let deadline = Instant::now() + self.duration;
        match load {
            // Only the window has to pass.
            Load::Idle => tokio::time::sleep_until(deadline).await,
            Load::Busy => churn.until(deadline).await,
        }
        let (cpu, window) = (self.meter.read().since(cpu), host::elapsed(began));
        let (traffic, counts) = (follower.traffic(), relists.as_ref().map(Relists::counts));
        // The watcher continues until it knows of the last changes.
        let sample = churn.ended().await?;
        follower.check()?;
        let (relists, failed_relists) = counts.unwrap_or_default();
        Ok(PlegCell {
            pods: self.population.pods().len(),
            containers: 0,
            write_every_ns: None,
            load,
            watching,
            window_ns: nanos(window),
            relists,
            failed_relists,
            calls: traffic.calls,
            call_bytes: traffic.call_bytes,
            events: traffic.events,
            event_bytes: traffic.event_bytes,
            runtime_cpu_ns: cpu.runtime.map(nanos),
            own_cpu_ns: cpu.own.map(nanos),
            changes: sample.changes,
            delay: sample.times(),
            lost: sample.missing,
        })
    }
}

/// The streams of a watcher: the session's, which is closed if events must not be sent.
async fn streams(
    session: &Session,
    watching: Watching,
) -> Result<Vec<SubscriptionId>, MeasureError> {
    if watching == Watching::Relists {
        session.unsubscribe().await;
        return Ok(Vec::new());
    }
    session.ensure_stream().await?;
    Ok(vec![session.stream().await?])
}

impl Watching {
    /// The pause between relists; `None` without relists.
    fn relist_period(self) -> Option<Duration> {
        match self {
            Self::Relists => Some(Generic::PERIOD),
            Self::EventsAndRelists => Some(Generic::PERIOD_WITH_EVENTS),
            Self::Events => None,
        }
    }
}

impl Relists {
    /// Relists at once, and then a period after each relist.
    fn begin(pleg: LivePleg, period: Duration, arrivals: Arrivals) -> Self {
        let counts = Arc::<Counts>::default();
        let mut task = JoinSet::new();
        task.spawn(relist(pleg, period, arrivals, counts.clone()));
        Self {
            counts,
            _task: task,
        }
    }

    /// The number of relists, and of failed ones.
    pub(super) fn counts(&self) -> (u64, u64) {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (count(&self.counts.all), count(&self.counts.failed))
    }
}

/// A PLEG that has relisted once, to learn the current pods.
async fn prepared(session: &Session) -> Result<LivePleg, MeasureError> {
    let (client, metrics) = (session.client().clone(), Metrics::default());
    let mut pleg = LivePleg::new(client, metrics, session.labels());
    let relisted = pleg.relist().await;
    relisted.map_err(|(method, fault)| MeasureError::Call { method, fault })?;
    Ok(pleg)
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

impl CpuMeter {
    /// A meter of the session's runtime, and the reason if that one cannot be measured.
    pub(super) async fn find(session: &Session) -> (Self, Option<String>) {
        let options = session.options();
        let simulated = options.kernel.is_simulated();
        let found = match options.endpoint.socket() {
            _ if simulated => Err("the model runs in the suite's own process".to_owned()),
            Some(socket) => RuntimeProcess::find(socket)
                .await
                .map_err(|fault| fault.to_string()),
            None => Err("a relay stands between the suite and the runtime's socket".to_owned()),
        };
        let (runtime, unknown) = match found {
            Ok(runtime) => (Some(runtime), None),
            Err(fault) => (None, Some(fault)),
        };
        let note = unknown.map(|why| format!("the runtime's CPU time is not measurable: {why}"));
        (Self { runtime, simulated }, note)
    }

    /// The CPU times so far.
    pub(super) fn read(&self) -> CpuTimes {
        let runtime = self.runtime.as_ref();
        CpuTimes {
            runtime: runtime.and_then(|process| process.cpu_time().ok()),
            own: (!self.simulated).then(host::own_cpu_time),
        }
    }
}

impl CpuTimes {
    /// The CPU time since an earlier reading.
    pub(super) fn since(self, earlier: Self) -> Self {
        let used = |now: Option<Duration>, before: Option<Duration>| {
            let (now, before) = (now?, before?);
            Some(now.saturating_sub(before))
        };
        Self {
            runtime: used(self.runtime, earlier.runtime),
            own: used(self.own, earlier.own),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_at_both_ends_is_not_known() {
        let seconds = |number| Some(Duration::from_secs(number));
        let before = CpuTimes {
            runtime: seconds(3),
            own: None,
        };
        let after = CpuTimes {
            runtime: seconds(5),
            own: seconds(1),
        };
        let used = after.since(before);
        assert_eq!((used.runtime, used.own), (seconds(2), None));
    }
}
