//! The pods of a measurement: each with the same number of containers, which are killed at a steady
//! pace and replaced once their exits are known.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::MeasureError;
use super::follower::Arrivals;
use super::measurement::Sample;
use crate::drive::Session;
use crate::history::{ContainerId, Reply, Request, SandboxId, SandboxSpec};
use crate::limits;
use crate::workload::Workload;

/// All pods of a measurement. They are removed at the end of the session.
#[derive(Debug)]
pub(super) struct Population {
    session: Arc<Session>,
    in_pod: usize,
    workload: Workload,
    pods: Vec<Arc<Mutex<Pod>>>,
}

#[derive(Debug)]
pub(super) struct Pod {
    session: Arc<Session>,
    sandbox: SandboxId,
    spec: Arc<SandboxSpec>,
    workload: Workload,
    containers: Vec<ContainerId>,
    attempts: u32,
}

pub(super) struct Churn<'a> {
    population: &'a Population,
    arrivals: Arrivals,
    changes: JoinSet<Result<Vec<Duration>, MeasureError>>,
    next: usize,
}

impl Population {
    pub(super) fn new(session: Arc<Session>, in_pod: usize, workload: Workload) -> Self {
        Self {
            session,
            in_pod,
            workload,
            pods: Vec::new(),
        }
    }

    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(super) fn pods(&self) -> &[Arc<Mutex<Pod>>] {
        &self.pods
    }

    /// Creates pods up to the given number.
    pub(super) async fn grow(&mut self, to: usize) -> Result<(), MeasureError> {
        let places = Arc::new(Semaphore::new(limits::PODS_AT_ONCE));
        let mut making = JoinSet::new();
        for _ in self.pods.len()..to {
            let (session, in_pod) = (self.session.clone(), self.in_pod);
            let workload = self.workload.clone();
            let places = places.clone();
            making.spawn(async move {
                let _place = places.acquire().await;
                Pod::make(session, in_pod, workload).await
            });
        }
        for made in making.join_all().await {
            self.pods.push(Arc::new(Mutex::new(made?)));
        }
        Ok(())
    }
}

impl Pod {
    async fn make(
        session: Arc<Session>,
        in_pod: usize,
        workload: Workload,
    ) -> Result<Self, MeasureError> {
        let spec = session.sandbox_spec("pod", "measure");
        let run = Request::RunSandbox(spec.clone());
        let Reply::Sandbox(sandbox) = call(&session, run).await? else {
            unreachable!("RunPodSandbox is answered by a sandbox");
        };
        let mut pod = Self {
            session,
            sandbox,
            spec,
            workload,
            containers: Vec::new(),
            attempts: 0,
        };
        for place in 0..in_pod {
            let started = pod.start(place).await?;
            pod.containers.push(started);
        }
        Ok(pod)
    }

    /// The next container to kill, round-robin, and its index in the pod.
    pub(super) fn next(&self) -> (usize, ContainerId) {
        let place = self.attempts as usize % self.containers.len();
        (place, self.containers[place].clone())
    }

    /// Removes the ended container at this index, and starts its successor.
    pub(super) async fn replace(&mut self, place: usize) -> Result<(), MeasureError> {
        let ended = self.containers[place].clone();
        call(&self.session, Request::RemoveContainer(ended)).await?;
        self.attempts += 1;
        self.containers[place] = self.start(place).await?;
        Ok(())
    }

    async fn start(&self, place: usize) -> Result<ContainerId, MeasureError> {
        let (pod, name) = ((&self.sandbox, &self.spec), format!("c{place}"));
        let attempt = self.attempts;
        let spec = self
            .session
            .container_spec(pod, &name, attempt, &self.workload);
        let create = Request::CreateContainer(Arc::new(spec));
        let Reply::Container(id) = call(&self.session, create).await? else {
            unreachable!("CreateContainer is answered by a container");
        };
        call(&self.session, Request::StartContainer(id.clone())).await?;
        Ok(id)
    }
}

async fn call(session: &Session, request: Request) -> Result<Reply, MeasureError> {
    let method = request.method();
    let reply = session.call(None, request).await;
    reply.map_err(|fault| MeasureError::Call { method, fault })
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
