//! A proxy between a client and a real runtime that injects defects.

use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{OnceCell, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;

use super::behaviour::{Answer, Delivery, EventHook, ReplyHook};
use super::defects::{Fault, NamedFault};
use super::event_bus::{HookState, apply_hooks};
use super::live::{ServeError, listen};
use crate::cri::{self, Backend, Client, ConnectError, Endpoint, Intercept, events};
use crate::history::messages::{RequestError, decode_request};
use crate::history::{CallFault, Event, Reply, Request, StatusCode, StreamEnd};
use crate::{host, limits};

/// Forwards calls to a runtime, and its answers and events back, changed by defects.
#[derive(Debug)]
pub struct Relay {
    runtime: Endpoint,
    images: Endpoint,
    deadline: Duration,
    client: OnceCell<Client>,
    events: Vec<EventHook>,
    replies: Vec<ReplyHook>,
    faulty: Option<FaultyCalls>,
}

/// The calls of some methods that are not answered as the runtime does.
#[derive(Debug)]
pub struct FaultyCalls {
    effect: Effect,
    /// Only each N-th call of a method is faulty.
    every: NonZeroU64,
    /// The methods, each with the number of its calls so far.
    calls: Vec<(String, AtomicU64)>,
}

/// The fault of a call.
#[derive(Clone, Copy, Debug)]
pub enum Effect {
    /// The answer of the runtime comes later by this.
    Delay(Duration),
    /// The runtime does not get the call; the answer is this code.
    Fail(StatusCode),
    /// The runtime does not get the call; it is never answered.
    Hang,
}

impl FaultyCalls {
    /// The N-th, 2N-th and further calls of each of these methods, by its name in the CRI.
    pub fn new(methods: &[String], effect: Effect, every: NonZeroU64) -> Self {
        let calls = methods
            .iter()
            .cloned()
            .zip(std::iter::repeat_with(AtomicU64::default));
        Self {
            effect,
            every,
            calls: calls.collect(),
        }
    }

    /// Counts a call; returns its fault, if it has one.
    fn next(&self, method: &str) -> Option<Effect> {
        let (_, calls) = self.calls.iter().find(|(name, _)| name == method)?;
        let number = calls.fetch_add(1, Ordering::Relaxed) + 1;
        number
            .is_multiple_of(self.every.get())
            .then_some(self.effect)
    }
}

impl Relay {
    /// A relay to a runtime and its image service. Only [relayable](Fault::is_relayable) defects
    /// have an effect.
    pub fn new(
        runtime: Endpoint,
        images: Endpoint,
        deadline: Duration,
        defects: &[NamedFault],
    ) -> Self {
        let mut relay = Self {
            runtime,
            images,
            deadline,
            client: OnceCell::new(),
            events: Vec::new(),
            replies: Vec::new(),
            faulty: None,
        };
        for defect in defects {
            match defect.fault {
                Fault::Events(hook) | Fault::Stream(hook) => relay.events.push(hook),
                Fault::Replies(hook) => relay.replies.push(hook),
                Fault::Behaviour(_) => {}
            }
        }
        relay
    }

    /// Serves it at a socket, for any client, until SIGINT or SIGTERM.
    pub fn serve(self, endpoint: &Endpoint, faulty: Option<FaultyCalls>) -> Result<(), ServeError> {
        let name = format!("the relay to {}", self.runtime);
        let relay = Arc::new(Self { faulty, ..self });
        listen(endpoint, &name, async |listener| {
            cri::proxy(relay, listener).await
        })
    }

    async fn client(&self) -> Result<&Client, CallFault> {
        let connect = || Client::connect(&self.runtime, &self.images, self.deadline);
        self.client
            .get_or_try_init(connect)
            .await
            .map_err(|fault| unreachable(&fault))
    }
}

impl Backend for Relay {
    type Events = Pin<Box<dyn Stream<Item = Result<Event, CallFault>> + Send>>;

    async fn call(&self, request: Request) -> Result<Reply, CallFault> {
        let answer = self.client().await?.call(&request).await;
        self.alter(&request, answer).await
    }

    async fn subscribe(&self, deadline: Option<Duration>) -> Result<Self::Events, CallFault> {
        let (to, received) = mpsc::channel(limits::RELAYED_EVENTS);
        let relayed = RelayedStream {
            hooks: self.events.clone(),
            hook_states: vec![HookState::default(); self.events.len()],
            to,
            late: JoinSet::new(),
        };
        // Not awaited: a runtime may answer no sooner than with its first event.
        tokio::spawn(forward(self.runtime.clone(), deadline, relayed));
        Ok(Box::pin(ReceiverStream::new(received)))
    }
}

impl Intercept for Relay {
    fn endpoints(&self) -> [&Endpoint; 2] {
        [&self.runtime, &self.images]
    }

    fn decodes(&self, method: &str) -> bool {
        if method == "GetContainerEvents" {
            return !self.events.is_empty();
        }
        let is_known = || {
            !matches!(
                decode_request(method, &[]),
                Err(RequestError::UnknownMethod)
            )
        };
        !self.replies.is_empty() && is_known()
    }

    async fn admit(&self, method: &str) -> Result<Duration, CallFault> {
        match self.faulty.as_ref().and_then(|faulty| faulty.next(method)) {
            None => Ok(Duration::ZERO),
            Some(Effect::Delay(delay)) => Ok(delay),
            Some(Effect::Fail(code)) => Err(CallFault {
                code,
                message: "a fault of the relay".to_owned(),
                deadline: Duration::ZERO,
            }),
            // Until the caller cancels the call.
            Some(Effect::Hang) => std::future::pending().await,
        }
    }

    async fn alter(
        &self,
        request: &Request,
        result: Result<Reply, CallFault>,
    ) -> Result<Reply, CallFault> {
        let mut answer = Answer {
            after: Some(Duration::ZERO),
            result,
        };
        for hook in &self.replies {
            hook(request, &mut answer);
        }
        match answer.after {
            Some(Duration::ZERO) => {}
            // The delay is the defect itself: nothing else ends this wait.
            Some(after) => tokio::time::sleep_until(Instant::now() + after).await,
            None => std::future::pending().await,
        }
        answer.result
    }
}

/// One event stream and the state of its hooks.
struct RelayedStream {
    hooks: Vec<EventHook>,
    hook_states: Vec<HookState>,
    to: mpsc::Sender<Result<Event, CallFault>>,
    late: JoinSet<()>,
}

/// Forwards the events of a stream until it ends or the client disconnects.
async fn forward(runtime: Endpoint, deadline: Option<Duration>, mut relayed: RelayedStream) {
    let to = relayed.to.clone();
    let forwarded = async {
        let mut stream = events(&runtime, deadline)
            .await
            .map_err(|fault| unreachable(&fault))?;
        while let Some(event) = stream.next().await? {
            let (hooks, states) = (&relayed.hooks, &mut relayed.hook_states);
            let deliveries = apply_hooks(hooks, states, host::now(), event);
            for delivery in deliveries {
                if relayed.deliver(delivery).await? {
                    return Ok(());
                }
            }
        }
        Ok(())
    };
    let ended = tokio::select! {
        ended = forwarded => ended,
        () = to.closed() => return,
    };
    if let Err(fault) = ended {
        // The client may have disconnected meanwhile.
        let _ = to.send(Err(fault)).await;
    }
}

impl RelayedStream {
    /// Delivers an item now or later; returns whether the stream is over. Waits for a slow client,
    /// so that the runtime gets to know it, too.
    async fn deliver(&mut self, delivery: Delivery) -> Result<bool, CallFault> {
        match delivery {
            Delivery::Event(Duration::ZERO, event) => Ok(self.to.send(Ok(*event)).await.is_err()),
            Delivery::Event(after, event) => {
                let to = self.to.clone();
                self.late.spawn(async move {
                    tokio::time::sleep_until(Instant::now() + after).await;
                    // The client may have disconnected meanwhile.
                    let _ = to.send(Ok(*event)).await;
                });
                Ok(false)
            }
            Delivery::End(_, StreamEnd::Failed(fault)) => Err(fault),
            Delivery::End(_, StreamEnd::Closed | StreamEnd::Cancelled) => Ok(true),
        }
    }
}

fn unreachable(fault: &ConnectError) -> CallFault {
    CallFault {
        code: StatusCode::UNAVAILABLE,
        message: fault.to_string(),
        deadline: Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cri::Listener;
    use crate::history::{ContainerId, EventKind, RuntimeNanos, SandboxSpec};
    use crate::host::Reactor;
    use crate::model::{Behaviour, Model, fault_named};

    const FIVE: Duration = Duration::from_secs(5);

    /// Serves a relay to a model in this process; a client of it, and its endpoint.
    async fn relayed(defects: &[&str], faulty: Option<FaultyCalls>) -> (Client, Endpoint) {
        let (real, mut listener) = Listener::in_process("real");
        let model = Arc::new(Model::start(Behaviour::default(), 0));
        tokio::spawn(async move { cri::serve(model, &mut listener).await });
        let defects: Vec<_> = defects
            .iter()
            .filter_map(|name| fault_named(name))
            .collect();
        let relay = Relay::new(real.clone(), real, FIVE, &defects);
        let relay = Arc::new(Relay { faulty, ..relay });
        let (endpoint, mut listener) = Listener::in_process("relay");
        tokio::spawn(async move { cri::proxy(relay, &mut listener).await });
        let client = Client::connect(&endpoint, &endpoint, FIVE).await;
        (client.unwrap(), endpoint)
    }

    fn faulty(method: &str, effect: Effect, every: u64) -> FaultyCalls {
        let every = NonZeroU64::new(every).unwrap();
        FaultyCalls::new(&[method.to_owned()], effect, every)
    }

    /// The code and the duration in seconds of some calls to a relay.
    async fn codes<const N: usize>(client: &Client, calls: [Request; N]) -> [(StatusCode, u64); N] {
        let mut all = [(StatusCode::OK, 0); N];
        for (it, request) in all.iter_mut().zip(&calls) {
            let began = host::now();
            let answer = client.call(request).await;
            let code = answer.map_or_else(|fault| fault.code, |_| StatusCode::OK);
            *it = (code, host::elapsed(began).as_secs());
        }
        all
    }

    #[test]
    fn calls_of_a_method_are_late_fail_or_hang() {
        let list = Request::ListImages;
        let (ok, unavailable) = (StatusCode::OK, StatusCode::UNAVAILABLE);
        let late = StatusCode::DEADLINE_EXCEEDED;
        let three = Duration::from_secs(3);
        for (effect, every, expected) in [
            (Effect::Delay(three), 1, [(ok, 3), (ok, 0), (ok, 3)]),
            (Effect::Delay(three), 2, [(ok, 0), (ok, 0), (ok, 3)]),
            (
                Effect::Fail(unavailable),
                1,
                [(unavailable, 0), (ok, 0), (unavailable, 0)],
            ),
            (
                Effect::Fail(unavailable),
                2,
                [(ok, 0), (ok, 0), (unavailable, 0)],
            ),
            (Effect::Hang, 1, [(late, 5), (ok, 0), (late, 5)]),
            (Effect::Hang, 2, [(ok, 0), (ok, 0), (late, 5)]),
        ] {
            Reactor::simulated().unwrap().runtime().block_on(async {
                let (client, _) = relayed(&[], Some(faulty("ListImages", effect, every))).await;
                let found = codes(&client, [list.clone(), Request::Version, list.clone()]).await;
                assert_eq!(found, expected, "{effect:?} {every}");
            });
        }
    }

    #[test]
    fn defects_change_events_and_answers_of_other_clients() {
        Reactor::simulated().unwrap().runtime().block_on(async {
            let (client, endpoint) =
                relayed(&["no-sandbox", "no-status-of-a-stopped-sandbox"], None).await;
            let mut stream = events(&endpoint, None).await.unwrap();
            let mut next = tokio::spawn(async move { stream.next().await });
            // Until the stream is open.
            let (event, id) = loop {
                let run = Request::RunSandbox(Arc::new(SandboxSpec::default()));
                let Reply::Sandbox(id) = client.call(&run).await.unwrap() else {
                    panic!("a sandbox is run");
                };
                if let Ok(next) = tokio::time::timeout(FIVE, &mut next).await {
                    break (next.unwrap().unwrap().unwrap(), id);
                }
                client.call(&Request::RemoveSandbox(id)).await.unwrap();
            };
            assert_eq!(event.sandbox, None);
            let status = Request::SandboxStatus(id.clone());
            assert!(client.call(&status).await.is_ok());
            client.call(&Request::StopSandbox(id)).await.unwrap();
            assert_eq!(
                client.call(&status).await.unwrap_err().code,
                StatusCode::UNKNOWN
            );
        });
    }

    #[test]
    fn a_slow_client_holds_its_stream_up() {
        Reactor::simulated().unwrap().runtime().block_on(async {
            let (to, mut received) = mpsc::channel(1);
            let mut stream = RelayedStream {
                hooks: Vec::new(),
                hook_states: Vec::new(),
                to,
                late: JoinSet::new(),
            };
            let event = Event {
                container: ContainerId::from("c"),
                kind: EventKind::Stopped,
                created_at: RuntimeNanos(1),
                sandbox: None,
                containers: Vec::new(),
            };
            let event = || Delivery::Event(Duration::ZERO, Box::new(event.clone()));
            assert_eq!(stream.deliver(event()).await, Ok(false));
            let held_up = tokio::time::timeout(FIVE, stream.deliver(event())).await;
            assert!(held_up.is_err());
            assert!(received.recv().await.is_some());
            assert_eq!(stream.deliver(event()).await, Ok(false));
            drop(received);
            assert_eq!(stream.deliver(event()).await, Ok(true));
        });
    }
}
