//! `measure events`: latencies of STOPPED, and the rate of changes at which they grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::follower::{Arrivals, Follower};
use super::measurement::{EventsCell, RampStep, Results, Sample};
use super::options::{EventsOptions, ascending};
use super::population::{Pod, Population, change};
use super::{MeasureError, session};
use crate::cri::Subscription;
use crate::doctor::is_single_consumer;
use crate::drive::Session;
use crate::history::SubscriptionId;
use crate::report::{counted, nanos};
use crate::workload::Workload;
use crate::{host, limits};

/// Measures all cells. Fails if the runtime cannot be used any more; the results then hold the
/// figures so far.
pub(super) async fn measure(
    session: Arc<Session>,
    options: EventsOptions,
    results: Results,
) -> Result<(), MeasureError> {
    let subscribers = ascending(&options.subscribers);
    let alone = subscribers.iter().all(|streams| *streams == 1);
    if is_single_consumer(session.client().client.version()) && !alone {
        return Err(MeasureError::SingleConsumer);
    }
    let mut population = Population::new(session, 1, Workload::UntilTerm);
    for pods in ascending(&options.node.pods) {
        session::progress(&format!("making {pods} pods"));
        population.grow(pods).await?;
        for streams in &subscribers {
            let cell = Cell::open(&population, *streams).await?;
            results.add_events(cell.measure(&options).await?);
        }
    }
    Ok(())
}

/// The pods and the streams of a cell.
struct Cell<'a> {
    population: &'a Population,
    arrivals: Arrivals,
    follower: Follower,
    streams: usize,
    /// The subscriptions besides the session's own.
    _others: Vec<Subscription>,
}

impl<'a> Cell<'a> {
    /// Opens the given number of streams, including the session's own.
    async fn open(population: &'a Population, streams: usize) -> Result<Self, MeasureError> {
        let session = population.session();
        let mut ids: Vec<SubscriptionId> = vec![session.stream().await?];
        let mut others = Vec::new();
        while ids.len() < streams {
            let other = session.open_proven().await?;
            ids.push(other.id());
            others.push(other);
        }
        let arrivals = Arrivals::default();
        Ok(Self {
            population,
            follower: Follower::begin(session, ids, arrivals.clone()),
            arrivals,
            streams,
            _others: others,
        })
    }

    async fn measure(&self, options: &EventsOptions) -> Result<EventsCell, MeasureError> {
        let pods = self.population.pods().len();
        let mut steps: Vec<RampStep> = Vec::new();
        let (mut alone, mut deadline) = (None, None);
        for parallel in ramp(pods) {
            session::progress(&format!(
                "{}, {}, {} at once",
                counted(pods, "pod", "pods"),
                counted(self.streams, "subscriber", "subscribers"),
                counted(parallel, "change", "changes"),
            ));
            let began = host::now();
            let sample = self.step(parallel, options.changes, deadline).await?;
            let took = host::elapsed(began);
            self.follower.check()?;
            let is_first = steps.is_empty();
            if !is_first && !is_representative(sample.changes, options.changes) {
                break;
            }
            let lags = !is_first && lags(alone, sample.median(), sample.missing);
            steps.push(self.figures(parallel, &sample, took, lags));
            if is_first {
                alone = sample.median();
                // The first step shows the latency, however long it takes.
                deadline = Some(Instant::now() + options.ramp);
            }
            if lags || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break;
            }
        }
        Ok(EventsCell::from_steps(pods, self.streams, steps))
    }

    /// Makes a number of changes, some in parallel, or as many as begin before the deadline.
    async fn step(
        &self,
        parallel: usize,
        changes: usize,
        deadline: Option<Instant>,
    ) -> Result<Sample, MeasureError> {
        let begun = Arc::new(AtomicUsize::new(0));
        let mut workers = JoinSet::new();
        for _ in 0..parallel {
            let worker = Worker {
                session: self.population.session().clone(),
                pods: self.population.pods().to_vec(),
                arrivals: self.arrivals.clone(),
                watchers: self.streams,
                begun: begun.clone(),
                changes,
                deadline,
            };
            workers.spawn(worker.work());
        }
        let mut whole = Sample::default();
        for sample in workers.join_all().await {
            whole.merge(&sample?);
        }
        Ok(whole)
    }

    fn figures(&self, parallel: usize, sample: &Sample, took: Duration, lags: bool) -> RampStep {
        let simulated = self.population.session().options().kernel.is_simulated();
        let rate = rate(sample.changes, took);
        RampStep {
            parallel,
            killed: sample.changes,
            took_ns: nanos(took),
            // How long the model's calls take says nothing of any runtime.
            changes_per_second: rate.filter(|_| !simulated),
            latency: sample.times(),
            missing: sample.missing,
            lags,
        }
    }
}

/// Makes changes sequentially.
struct Worker {
    session: Arc<Session>,
    pods: Vec<Arc<Mutex<Pod>>>,
    arrivals: Arrivals,
    watchers: usize,
    /// The number of changes that all workers have begun.
    begun: Arc<AtomicUsize>,
    changes: usize,
    deadline: Option<Instant>,
}

impl Worker {
    async fn work(self) -> Result<Sample, MeasureError> {
        let mut sample = Sample::default();
        while self
            .deadline
            .is_none_or(|deadline| Instant::now() < deadline)
        {
            let nth = self.begun.fetch_add(1, Ordering::Relaxed);
            if nth >= self.changes {
                break;
            }
            let mut pod = self.pods[nth % self.pods.len()].lock().await;
            let delays = change(&self.session, &mut pod, &self.arrivals, self.watchers).await?;
            sample.add(&delays, self.watchers);
        }
        Ok(sample)
    }
}

/// The number of parallel changes in each step: twice that of the previous one, and finally one in
/// each pod.
fn ramp(pods: usize) -> impl Iterator<Item = usize> {
    let doubled = move |parallel: &usize| match *parallel {
        all if all == pods => None,
        parallel => Some((parallel * 2).min(pods)),
    };
    std::iter::successors((pods > 0).then_some(1), doubled)
}

/// Whether events lag: some are missing, or their median latency is more than twice that of
/// sequential changes, and exceeds the delay of the host's scheduler.
fn lags(alone: Option<Duration>, now: Option<Duration>, missing: usize) -> bool {
    let doubled = |alone: Duration, now| now > alone.max(limits::LAG_FLOOR) * 2;
    match (alone, now) {
        (Some(alone), Some(now)) => missing > 0 || doubled(alone, now),
        // Events that came before come no more.
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// Whether a step cut short by the time limit is representative.
fn is_representative(changes: usize, wanted: usize) -> bool {
    changes * 2 >= wanted
}

/// Create, start, exit and remove of the containers as changes per second; `None` if no time has
/// passed.
fn rate(containers: usize, took: Duration) -> Option<f64> {
    const CHANGES_OF_EACH: f64 = 4.0;
    let containers = u32::try_from(containers).unwrap_or(u32::MAX);
    let seconds = took.as_secs_f64();
    (seconds > 0.0).then(|| CHANGES_OF_EACH * f64::from(containers) / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_doubled_until_each_pod_changes() {
        let of = |pods| ramp(pods).collect::<Vec<_>>();
        assert_eq!(of(10), [1, 2, 4, 8, 10]);
        assert_eq!(of(8), [1, 2, 4, 8]);
        assert_eq!(of(1), [1]);
        assert!(of(0).is_empty());
    }

    #[test]
    fn a_doubled_median_is_a_lag_unless_it_is_the_schedulers() {
        let us = |micros| Some(Duration::from_micros(micros));
        assert!(!lags(us(3_000), us(6_000), 0));
        assert!(lags(us(3_000), us(6_001), 0));
        assert!(!lags(us(100), us(2_000), 0));
        assert!(lags(us(100), us(2_001), 0));
        assert!(lags(us(100), us(100), 1));
        assert!(lags(us(100), None, 9));
        assert!(!lags(None, us(100), 0));
    }

    #[test]
    fn half_a_step_shows_something() {
        assert!(is_representative(50, 100));
        assert!(!is_representative(49, 100));
    }

    #[test]
    fn a_container_is_four_changes() {
        let found = rate(30, Duration::from_secs(10)).unwrap();
        assert!((found - 12.0).abs() < 1e-9, "{found}");
        assert_eq!(rate(30, Duration::ZERO), None);
    }
}
