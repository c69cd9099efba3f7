//! A running machine, with a lock, the host's clock, and a task that fires its timers; and a server
//! for it at a socket, in real time, for any CRI client.

use std::collections::BTreeSet;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_stream::Stream;
use tokio_stream::wrappers::WatchStream;

use super::behaviour::Behaviour;
use super::event_bus::{StreamItem, Subscriber};
use super::machine::{Machine, Ticket};
use crate::cri::{self, Backend, Endpoint, ListenError, Listener, ServerError};
use crate::history::{
    CallFault, ContainerId, Event, ImageListing, Reply, Request, Resource, SandboxId, Signal,
    StreamEnd,
};
use crate::host::{self, Condition, Kernel, Reactor, RuntimeEnd, Simulation};
use crate::{terminal, workload};

/// A running model runtime. Dropping it stops it.
#[derive(Debug)]
pub struct Model {
    shared: Arc<Shared>,
    timers: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    machine: Mutex<Machine>,
    /// Incremented whenever something may have changed.
    changes: watch::Sender<u64>,
}

impl Model {
    /// Starts a model on the current Tokio runtime. It has the suite's image.
    pub fn start(behaviour: Behaviour, seed: u64) -> Self {
        let name = workload::imported_name();
        let image = ImageListing {
            id: workload::Image::build(&std::collections::BTreeMap::new())
                .id()
                .to_owned(),
            tags: vec![name],
        };
        let machine = Machine::new(behaviour, vec![image], seed);
        let shared = Arc::new(Shared {
            machine: Mutex::new(machine),
            changes: watch::Sender::new(0),
        });
        let timers = tokio::spawn(run_timers(shared.clone()));
        Self { shared, timers }
    }

    /// The simulated kernel on which its containers run.
    pub fn kernel(&self) -> Kernel {
        Kernel::Simulated(self.shared.clone())
    }
}

#[cfg(test)]
impl Model {
    /// Stops the daemon; its containers keep running.
    pub fn stop_daemon(&self) {
        self.shared.end_runtime(RuntimeEnd::Stop);
    }

    pub fn start_daemon(&self) {
        self.shared.start_runtime();
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.timers.abort();
    }
}

impl Shared {
    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an operation on the machine, and wakes all tasks that wait for a change.
    fn with<T>(&self, operation: impl FnOnce(&mut Machine) -> T) -> T {
        let mut machine = self.machine();
        let result = operation(&mut machine);
        drop(machine);
        self.changes.send_modify(|changes| *changes += 1);
        result
    }
}

impl Simulation for Shared {
    fn oom_kills(&self) -> u64 {
        self.machine().oom_kills()
    }

    fn kill(&self, id: &str) -> bool {
        let (sandbox, container) = (SandboxId::from(id), ContainerId::from(id));
        self.with(|machine| {
            let now = host::now();
            machine.kill_sandbox(now, &sandbox) || machine.kill_container(now, &container)
        })
    }

    fn signal(&self, container: &str, signal: Signal) -> bool {
        let container = ContainerId::from(container);
        self.with(|machine| machine.signal_container(host::now(), &container, signal))
    }

    fn kill_monitor(&self, container: &str, with_container: bool) -> bool {
        let container = ContainerId::from(container);
        self.with(|machine| machine.kill_monitor(host::now(), &container, with_container))
    }

    fn set(&self, container: &str, condition: Condition, begins: bool) -> bool {
        let container = ContainerId::from(container);
        self.with(|machine| machine.set(host::now(), &container, condition, begins))
    }

    fn end_runtime(&self, how: RuntimeEnd) -> Duration {
        self.with(|machine| machine.end_daemon(host::now(), how))
    }

    fn start_runtime(&self) {
        self.with(|machine| machine.start_daemon(host::now()));
    }

    fn run_outside_cri(&self) {
        self.with(|machine| machine.run_outside_cri(host::now()));
    }

    fn runs(&self, id: &str) -> bool {
        self.machine().runs(&ContainerId::from(id))
    }

    fn held(&self, resource: Resource, ids: &BTreeSet<String>) -> u64 {
        self.machine().held(resource, ids)
    }
}

/// A call in progress; dropping it abandons the call.
struct Waiting<'a> {
    shared: &'a Shared,
    ticket: Ticket,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.shared.machine().forget(self.ticket);
    }
}

impl Backend for Model {
    type Events = Events;

    async fn call(&self, request: Request) -> Result<Reply, CallFault> {
        let mut changes = self.shared.changes.subscribe();
        let ticket = self
            .shared
            .with(|machine| machine.call(host::now(), request));
        let waiting = Waiting {
            shared: &self.shared,
            ticket,
        };
        loop {
            if let Some(result) = waiting.shared.machine().take_answer(ticket) {
                return result;
            }
            // The sender lives as long as `self`.
            let _ = changes.changed().await;
        }
    }

    async fn subscribe(&self, deadline: Option<Duration>) -> Result<Events, CallFault> {
        let mut changes = self.shared.changes.subscribe();
        let take = |machine: &mut Machine| machine.subscribe(host::now(), deadline);
        let subscriber = self.shared.with(take)?;
        let events = Events {
            changes: WatchStream::new(self.shared.changes.subscribe()),
            shared: self.shared.clone(),
            subscriber,
            ended: false,
        };
        while !self.shared.machine().has_sent_headers(subscriber) {
            // The sender lives as long as `self`.
            let _ = changes.changed().await;
        }
        Ok(events)
    }
}

/// The event stream of one subscriber; dropping it ends the subscription.
#[derive(Debug)]
pub struct Events {
    shared: Arc<Shared>,
    changes: WatchStream<u64>,
    subscriber: Subscriber,
    ended: bool,
}

impl Stream for Events {
    type Item = Result<Event, CallFault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            let taken = self.shared.machine().take(self.subscriber);
            match taken {
                StreamItem::Event(event) => return Poll::Ready(Some(Ok(*event))),
                StreamItem::End(end) => {
                    self.ended = true;
                    return Poll::Ready(match end {
                        StreamEnd::Failed(fault) => Some(Err(fault)),
                        StreamEnd::Closed | StreamEnd::Cancelled => None,
                    });
                }
                StreamItem::Pending => {}
            }
            if Pin::new(&mut self.changes).poll_next(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let subscriber = self.subscriber;
        self.shared.with(|machine| machine.unsubscribe(subscriber));
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error("start: {0}")]
    System(#[from] io::Error),
}

/// Fires the timers when they are due; never returns.
async fn run_timers(shared: Arc<Shared>) {
    let mut changes = shared.changes.subscribe();
    loop {
        changes.mark_unchanged();
        let due = shared.machine().next_due();
        let wait = async {
            match due {
                Some(due) => {
                    let wait = due.since(host::now());
                    tokio::time::sleep_until(tokio::time::Instant::now() + wait).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = wait => shared.with(|machine| machine.advance(host::now())),
            // The sender lives as long as `shared`.
            _ = changes.changed() => {}
        }
    }
}

/// Serves a model until SIGINT or SIGTERM.
pub fn serve(endpoint: &Endpoint, behaviour: Behaviour) -> Result<(), ServeError> {
    listen(endpoint, "the model runtime", async |listener| {
        let seed = host::now().realtime_ns.unsigned_abs();
        cri::serve(Arc::new(Model::start(behaviour, seed)), listener).await
    })
}

/// Serves at a socket until SIGINT or SIGTERM.
pub(super) fn listen(
    endpoint: &Endpoint,
    name: &str,
    serve: impl AsyncFnOnce(&mut Listener) -> Result<(), ServerError>,
) -> Result<(), ServeError> {
    let reactor = Reactor::real()?;
    let served = reactor.runtime().block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut listener = Listener::bind(endpoint).await?;
        terminal::say(&format!(
            "{name} listens on {endpoint}; press Ctrl-C to stop it"
        ));
        tokio::select! {
            served = serve(&mut listener) => Ok(served?),
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
        }
    });
    drop(reactor);
    served
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt;

    use super::*;
    use crate::history::StatusCode;
    use crate::host::Reactor;

    #[test]
    fn a_stream_ends_with_the_daemon_and_another_can_be_opened_when_it_is_back() {
        let reactor = Reactor::simulated().unwrap();
        reactor.runtime().block_on(async {
            let model = Model::start(Behaviour::default(), 0);
            let mut events = model.subscribe(None).await.unwrap();
            model.stop_daemon();
            let end = events.next().await.unwrap().unwrap_err();
            assert_eq!(end.code, StatusCode::UNAVAILABLE);
            assert!(events.next().await.is_none());
            assert!(model.call(Request::Version).await.is_err());
            model.start_daemon();
            assert!(model.call(Request::Version).await.is_ok());
            assert!(model.subscribe(None).await.is_ok());
        });
    }

    #[test]
    fn a_delayed_answer_is_waited_for() {
        const HOUR: Duration = Duration::from_secs(3600);
        let slow = Behaviour {
            replies: vec![|_, answer| answer.after = Some(HOUR)],
            ..Behaviour::default()
        };
        let reactor = Reactor::simulated().unwrap();
        reactor.runtime().block_on(async {
            let model = Model::start(slow, 0);
            let began = host::now();
            assert!(model.call(Request::Version).await.is_ok());
            assert!(host::elapsed(began) >= HOUR);
        });
    }
}
