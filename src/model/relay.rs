//! A proxy between a client and a real runtime that injects defects.

use std::pin::Pin;
use std::time::Duration;

use tokio::sync::{OnceCell, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_stream::Stream;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::behaviour::{Answer, Delivery, EventHook, ReplyHook};
use super::defects::{Fault, NamedFault};
use super::event_bus::{HookState, apply_hooks};
use crate::cri::{Backend, Client, ConnectError, Endpoint, events};
use crate::history::{CallFault, Event, Reply, Request, StatusCode, StreamEnd};
use crate::host;

/// Forwards calls to a runtime, and its answers and events back, changed by defects.
#[derive(Debug)]
pub struct Relay {
    runtime: Endpoint,
    images: Endpoint,
    deadline: Duration,
    client: OnceCell<Client>,
    events: Vec<EventHook>,
    replies: Vec<ReplyHook>,
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
        let mut answer = Answer {
            after: Some(Duration::ZERO),
            result: self.client().await?.call(&request).await,
        };
        for hook in &self.replies {
            hook(&request, &mut answer);
        }
        match answer.after {
            Some(Duration::ZERO) => {}
            // The delay is the defect itself: nothing else ends this wait.
            Some(after) => tokio::time::sleep_until(Instant::now() + after).await,
            None => std::future::pending().await,
        }
        answer.result
    }

    async fn subscribe(&self, deadline: Option<Duration>) -> Result<Self::Events, CallFault> {
        let (to, received) = mpsc::unbounded_channel();
        let relayed = RelayedStream {
            hooks: self.events.clone(),
            hook_states: vec![HookState::default(); self.events.len()],
            to,
            late: JoinSet::new(),
        };
        // Not awaited: a runtime may answer no sooner than with its first event.
        tokio::spawn(forward(self.runtime.clone(), deadline, relayed));
        Ok(Box::pin(UnboundedReceiverStream::new(received)))
    }
}

/// One event stream and the state of its hooks.
struct RelayedStream {
    hooks: Vec<EventHook>,
    hook_states: Vec<HookState>,
    to: mpsc::UnboundedSender<Result<Event, CallFault>>,
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
                if relayed.deliver(delivery)? {
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
        let _ = to.send(Err(fault));
    }
}

impl RelayedStream {
    /// Delivers an item now or later; returns whether the stream is over.
    fn deliver(&mut self, delivery: Delivery) -> Result<bool, CallFault> {
        match delivery {
            Delivery::Event(Duration::ZERO, event) => Ok(self.to.send(Ok(*event)).is_err()),
            Delivery::Event(after, event) => {
                let to = self.to.clone();
                self.late.spawn(async move {
                    tokio::time::sleep_until(Instant::now() + after).await;
                    // The client may have disconnected meanwhile.
                    let _ = to.send(Ok(*event));
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
