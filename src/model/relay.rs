//! A runtime seen through defects: a relay between a client and a real endpoint.

use std::pin::Pin;
use std::time::Duration;

use tokio::sync::{OnceCell, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_stream::Stream;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::behaviour::{Answer, Delivery, EventHook, ReplyHook};
use super::defects::{Fault, NamedFault};
use super::random::Random;
use super::stage::{Memory, passed};
use crate::cri::{Backend, Client, ConnectError, Endpoint, events};
use crate::history::{CallFault, Event, Reply, Request, StatusCode, StreamEnd};
use crate::host;

/// Passes calls on to a runtime, and its answers and events back, with what defects make of them.
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
    /// A relay to a runtime and its image service. Of the defects, only those count that are
    /// [on the way](Fault::is_on_the_way).
    #[must_use]
    pub fn new(
        (runtime, images): (Endpoint, Endpoint),
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
            answer = hook(&request, answer);
        }
        match answer.after {
            Some(Duration::ZERO) => {}
            // What the defect is: nothing else ends this wait.
            Some(after) => tokio::time::sleep_until(Instant::now() + after).await,
            None => std::future::pending().await,
        }
        answer.result
    }

    async fn subscribe(&self, deadline: Option<Duration>) -> Result<Self::Events, CallFault> {
        let (to, received) = mpsc::unbounded_channel();
        let passing = Passing {
            hooks: self.events.clone(),
            memories: vec![Memory::default(); self.events.len()],
            random: Random::new(0),
            to,
            late: JoinSet::new(),
        };
        // Not awaited: a runtime may answer no sooner than with its first event.
        tokio::spawn(pass_on(self.runtime.clone(), deadline, passing));
        Ok(Box::pin(UnboundedReceiverStream::new(received)))
    }
}

/// One stream's way through the defects.
struct Passing {
    hooks: Vec<EventHook>,
    memories: Vec<Memory>,
    random: Random,
    to: mpsc::UnboundedSender<Result<Event, CallFault>>,
    late: JoinSet<()>,
}

/// Passes a stream's events on until it ends, or nobody reads any more.
async fn pass_on(runtime: Endpoint, deadline: Option<Duration>, mut passing: Passing) {
    let to = passing.to.clone();
    let passed = async {
        let mut stream = events(&runtime, deadline)
            .await
            .map_err(|fault| unreachable(&fault))?;
        while let Some(event) = stream.next().await? {
            let deliveries = passed(
                &passing.hooks,
                &mut passing.memories,
                &mut passing.random,
                host::now(),
                event,
            );
            for delivery in deliveries {
                if passing.deliver(delivery)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    };
    let ended = tokio::select! {
        ended = passed => ended,
        () = to.closed() => return,
    };
    if let Err(fault) = ended {
        // The reader may have gone meanwhile.
        let _ = to.send(Err(fault));
    }
}

impl Passing {
    /// Delivers something now or later; says whether the stream is over.
    fn deliver(&mut self, delivery: Delivery) -> Result<bool, CallFault> {
        match delivery {
            Delivery::Event(Duration::ZERO, event) => Ok(self.to.send(Ok(*event)).is_err()),
            Delivery::Event(after, event) => {
                let to = self.to.clone();
                self.late.spawn(async move {
                    tokio::time::sleep_until(Instant::now() + after).await;
                    // The reader may have gone meanwhile.
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
