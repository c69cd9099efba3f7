//! Keeps a node busy: kills a container at a steady pace and replaces it once its exit is known.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::arrivals::Arrivals;
use super::error::MeasureError;
use super::population::{Pod, Population};
use super::sample::Sample;
use crate::drive::Session;
use crate::limits;

pub(super) struct Churn<'a> {
    population: &'a Population,
    arrivals: Arrivals,
    changes: JoinSet<Result<Vec<Duration>, MeasureError>>,
    next: usize,
}

impl<'a> Churn<'a> {
    pub(super) fn new(population: &'a Population, arrivals: Arrivals) -> Self {
        Self {
            population,
            arrivals,
            changes: JoinSet::new(),
            next: 0,
        }
    }

    /// Begins a change at each beat until the deadline. The pace does not depend on the duration of
    /// changes: a late event does not delay the next change.
    pub(super) async fn until(&mut self, deadline: Instant) {
        let mut pace = tokio::time::interval(limits::BUSY_PACE);
        loop {
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(deadline) => return,
                _ = pace.tick() => self.begin_one(),
            }
        }
    }

    /// Waits until all changes are known or have timed out.
    pub(super) async fn ended(self) -> Result<Sample, MeasureError> {
        let mut sample = Sample::default();
        for delays in self.changes.join_all().await {
            sample.add(&delays?, 1);
        }
        Ok(sample)
    }

    /// Changes the next idle pod; does nothing if a change is under way in each.
    fn begin_one(&mut self) {
        let pods = self.population.pods();
        let all = (0..pods.len()).map(|nth| (self.next + nth) % pods.len());
        let mut free = all.filter_map(|nth| Some((nth, pods[nth].clone().try_lock_owned().ok()?)));
        let Some((nth, mut pod)) = free.next() else {
            return;
        };
        self.next = nth + 1;
        let (session, arrivals) = (Arc::clone(self.population.session()), self.arrivals.clone());
        self.changes
            .spawn(async move { change(&session, &mut pod, &arrivals, 1).await });
    }
}

/// Kills a container of the pod, waits until the given number of watchers know, and replaces it.
/// Returns the delay of each watcher after the end in the kernel; fewer if some exceed the timeout.
pub(super) async fn change(
    session: &Session,
    pod: &mut Pod,
    arrivals: &Arrivals,
    watchers: usize,
) -> Result<Vec<Duration>, MeasureError> {
    let (place, container) = pod.next();
    arrivals.expect(&container);
    let kernel = &session.options().kernel;
    let own = session.client().own(container.as_str());
    let ended = kernel.end_process(&own, limits::KILL_WAIT).await?;
    let bound = session.scaled(limits::EVENT_WAIT);
    let known = arrivals.of(&container, watchers, bound).await;
    pod.replace(place).await?;
    Ok(known.into_iter().map(|at| at.since(ended)).collect())
}
