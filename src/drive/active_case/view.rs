//! What a case has seen so far, and waiting until it has seen something.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::case::Case;
use crate::drive::session::Session;
use crate::drive::steps::Abort;
use crate::drive::stream_error::stream_ended;
use crate::history::{
    Body, CaseHistory, CaseRun, ContainerId, Entry, SandboxId, SandboxSpec, StreamEnd, SubjectKind,
    SubscriptionId,
};
use crate::recorder::{Overrun, Reader, Recorder};

/// What a case has seen so far: its part of the history, and the run's own stream.
#[derive(Debug)]
pub(in crate::drive) struct CaseView {
    seen: Mutex<Seen>,
    recorder: Recorder,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Seen {
    reader: Reader,
    history: CaseHistory,
    overrun: bool,
    stream: RunStream,
}

/// The run's own stream as a case has seen it.
#[derive(Debug, Default)]
struct RunStream {
    /// Whether the case alone opens streams while it runs: then one that it opens takes the place
    /// of one that broke.
    alone: bool,
    known: BTreeSet<SubscriptionId>,
    broken: Option<StreamEnd>,
}

impl CaseView {
    pub(super) fn new(session: &Session, case: &Case, run: CaseRun) -> Self {
        let recorder = session.recorder().clone();
        let seen = Seen {
            reader: recorder.reader(),
            history: CaseHistory::new(run),
            overrun: false,
            stream: RunStream {
                alone: case.exclusive,
                ..RunStream::default()
            },
        };
        Self {
            seen: Mutex::new(seen),
            recorder,
            stop: session.stop().clone(),
        }
    }

    /// What has been seen up to now.
    pub(in crate::drive) fn history(&self) -> CaseHistory {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = seen.refresh();
        seen.history.clone()
    }

    /// What had been seen at the last look, unless somebody looks now.
    pub(in crate::drive) fn peek<T>(&self, look: impl FnOnce(&CaseHistory) -> T) -> Option<T> {
        let seen = self.seen.try_lock().ok()?;
        Some(look(&seen.history))
    }

    /// Whether a condition holds of what has been seen.
    pub(in crate::drive) fn holds(
        &self,
        condition: impl Fn(&CaseHistory) -> bool,
    ) -> Result<bool, Abort> {
        Ok(condition(&self.refreshed()?.history))
    }

    /// Takes a subscription for the run's own stream.
    pub(in crate::drive) fn follow(&self, stream: SubscriptionId) -> Result<(), Abort> {
        self.refreshed()?.stream.known.insert(stream);
        Ok(())
    }

    /// How the run's own stream has broken, if it has.
    pub(in crate::drive) fn broken_stream(&self) -> Result<Option<StreamEnd>, Abort> {
        Ok(self.refreshed()?.stream.broken.clone())
    }

    /// The sandbox that has this id, or that has a container of this id, and how it was asked for.
    pub(in crate::drive) fn pod_of(
        &self,
        id: &ContainerId,
    ) -> Option<(SandboxId, Arc<SandboxSpec>)> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = seen.refresh();
        let mut subjects = seen.history.subjects().iter();
        let subject = subjects.find(|subject| subject.id == *id)?;
        match &subject.kind {
            SubjectKind::Sandbox(spec) => Some((SandboxId::from(id.as_str()), spec.clone())),
            SubjectKind::Container(spec) => Some((spec.sandbox.clone(), spec.sandbox_spec.clone())),
            SubjectKind::Stray => None,
        }
    }

    /// Waits until a condition of the history holds; returns whether it did in time.
    pub(in crate::drive) async fn wait_by(
        &self,
        deadline: Instant,
        condition: impl Fn(&CaseHistory) -> bool,
    ) -> Result<bool, Abort> {
        let met = tokio::time::timeout_at(deadline, self.wait_until(condition)).await;
        met.map_or(Ok(false), |met| met.map(|()| true))
    }

    /// Waits until a condition of the history holds. The bound is the caller's. Fails if the run's
    /// own stream has broken, for nothing comes after that; or if the run is stopped.
    pub(in crate::drive) async fn wait_until(
        &self,
        condition: impl Fn(&CaseHistory) -> bool,
    ) -> Result<(), Abort> {
        let mut changes = self.recorder.changes();
        loop {
            {
                let seen = self.refreshed()?;
                if condition(&seen.history) {
                    return Ok(());
                }
                if let Some(end) = &seen.stream.broken {
                    return Err(stream_ended(end).into());
                }
            }
            tokio::select! {
                () = changes.next() => {}
                () = self.stop.cancelled() => return Err(Abort::interrupted()),
            }
        }
    }

    /// Waits until a call of the case is no longer under way, or the history has overrun.
    pub(in crate::drive) async fn calls_ended(&self) {
        let mut changes = self.recorder.changes();
        while self.holds(is_calling).unwrap_or(false) {
            changes.next().await;
        }
    }

    fn refreshed(&self) -> Result<MutexGuard<'_, Seen>, Abort> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.refresh()
            .map_err(|fault| Abort::Error(fault.to_string()))?;
        Ok(seen)
    }
}

impl Seen {
    fn refresh(&mut self) -> Result<(), Overrun> {
        if self.overrun {
            return Err(Overrun);
        }
        let news: Result<Vec<Arc<Entry>>, Overrun> = self.reader.drain();
        self.overrun = news.is_err();
        for entry in news? {
            self.stream.push(&entry.body);
            self.history.push(&entry);
        }
        Ok(())
    }
}

impl RunStream {
    fn push(&mut self, body: &Body) {
        match body {
            Body::SubscriptionOpened {
                subscription,
                observer: None,
            } => {
                self.known.insert(*subscription);
                self.broken.take_if(|_| self.alone);
            }
            Body::SubscriptionEnded { subscription, end } => {
                let broke = *end != StreamEnd::Cancelled && self.known.contains(subscription);
                self.broken = self.broken.take().or(broke.then(|| end.clone()));
            }
            _ => {}
        }
    }
}

/// Whether a call of the case is under way.
fn is_calling(history: &CaseHistory) -> bool {
    let mut own = history.calls().filter(|call| !call.is_of_run());
    own.any(|call| call.result().is_none())
}
