//! `measure pleg`: the same pods watched by relists and by events, idle and busy.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::arrivals::Arrivals;
use super::churn::Churn;
use super::cpu_meter::CpuMeter;
use super::error::MeasureError;
use super::follower::Follower;
use super::measurement::Results;
use super::measurement::{Load, PlegCell, Watching};
use super::options::{PlegOptions, ascending};
use super::population::Population;
use super::relisting::{Relisting, Relists};
use super::sample::nanos;
use super::session;
use crate::drive::Session;
use crate::history::SubscriptionId;
use crate::host;
use crate::pleg::Generic;
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

impl Window<'_> {
    async fn measure(&self, load: Load, watching: Watching) -> Result<PlegCell, MeasureError> {
        let session = self.population.session();
        let streams = streams(session, watching).await?;
        let relisting = match watching.relist_period() {
            Some(period) => Some((Relisting::prepare(session).await?, period)),
            None => None,
        };
        let arrivals = Arrivals::default();
        let follower = Follower::begin(session, streams, arrivals.clone());
        let (cpu, began) = (self.meter.read(), host::now());
        let relists =
            relisting.map(|(relisting, period)| relisting.begin(period, arrivals.clone()));
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
