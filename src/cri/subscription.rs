//! One `GetContainerEvents` stream, from its opening to its end.
//!
//! The call resolves only when the response headers arrive, and runtimes send those with the first
//! event. So a separate task makes the call and records the results, and the stream counts as live
//! only after the arrival of an event that was caused after the subscription was opened.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::Streaming;
use tonic::transport::Channel;

use super::client::{method_path, stream};
use super::connect::{self, AbortToken, channel, connect_abortable};
use super::{Client, ConnectError, Endpoint};
use crate::history::messages::{self, RUNTIME_SERVICE};
use crate::history::{Body, CallFault, Event, Observer, StreamEnd, SubscriptionId};
use crate::host::SubscriberProcess;
use crate::recorder::Recorder;

/// An open stream, cancelled when dropped.
#[derive(Debug)]
pub struct Subscription {
    end: End,
    reading: JoinHandle<()>,
    reads: watch::Sender<bool>,
    abort: AbortToken,
    process: Option<SubscriberProcess>,
}

/// The end of a stream, recorded once: the task that reads it may still be finishing when its
/// subscription is dropped, which else would record a cancellation, too.
#[derive(Clone, Debug)]
struct End {
    subscription: SubscriptionId,
    recorder: Recorder,
    is_recorded: Arc<AtomicBool>,
}

impl End {
    fn record(&self, end: StreamEnd) {
        if !self.is_recorded.swap(true, Ordering::Relaxed) {
            let subscription = self.subscription;
            self.recorder
                .record(Body::SubscriptionEnded { subscription, end });
        }
    }
}

/// The connection that a stream uses.
#[derive(Clone, Copy, Debug)]
pub enum Over<'a> {
    Own(&'a Endpoint),
    Calls(&'a Client),
}

impl Subscription {
    /// Requests the event stream on a separate connection, and starts recording its events. Fails
    /// if the runtime cannot be reached. If the runtime refuses the stream, the stream ends.
    pub async fn open(endpoint: &Endpoint, recorder: &Recorder) -> Result<Self, ConnectError> {
        let connection = Connection {
            channel: channel(endpoint).await?,
            abort: AbortToken::new(),
            process: None,
        };
        Ok(Self::begin(connection, recorder, None))
    }

    /// Requests the event stream as an additional subscriber.
    pub async fn observe(
        over: Over<'_>,
        recorder: &Recorder,
        observer: Observer,
    ) -> Result<Self, ConnectError> {
        let abort = AbortToken::new();
        let (channel, process) = match over {
            Over::Own(endpoint) => connect_abortable(endpoint, &observer, &abort).await?,
            Over::Calls(client) => (client.connection(), None),
        };
        let connection = Connection {
            channel,
            abort,
            process,
        };
        Ok(Self::begin(connection, recorder, Some(observer)))
    }

    fn begin(connection: Connection, recorder: &Recorder, observer: Option<Observer>) -> Self {
        let Connection {
            channel,
            abort,
            process,
        } = connection;
        let id = recorder.next_subscription();
        let end = End {
            subscription: id,
            recorder: recorder.clone(),
            is_recorded: Arc::default(),
        };
        let reads = watch::Sender::new(true);
        let reader = Reader {
            end: end.clone(),
            records_answer: observer.is_some(),
            ask: observer.as_ref().map(Ask::of).unwrap_or_default(),
            reads: reads.subscribe(),
            abort: abort.clone(),
        };
        recorder.record(Body::SubscriptionOpened {
            subscription: id,
            observer,
        });
        Self {
            end,
            reading: tokio::spawn(reader.read(channel)),
            reads,
            abort,
            process,
        }
    }

    pub fn id(&self) -> SubscriptionId {
        self.end.subscription
    }

    /// Whether the stream is open, as far as the client knows.
    pub fn is_open(&self) -> bool {
        !self.reading.is_finished()
    }

    /// Stops or resumes reading: by stopping its process, if it has its own. At most one more event
    /// is read before the pause.
    pub fn set_reading(&self, reads: bool) {
        if let Some(process) = &self.process {
            process.set_running(reads);
        }
        self.reads.send_replace(reads);
    }

    pub fn is_reading(&self) -> bool {
        *self.reads.borrow()
    }

    /// Cancels the stream; no entries are recorded for it after this returns.
    pub async fn cancel(mut self) {
        self.reading.abort();
        // That it was cancelled is no news.
        let _ = (&mut self.reading).await;
        self.end.record(StreamEnd::Cancelled);
    }

    /// Disconnects as a killed process does, and kills its own process if it has one: the
    /// connection is closed without cancelling the stream first.
    pub async fn hang_up(self) {
        self.abort.cancel();
        if let Some(process) = &self.process {
            process.kill();
        }
        self.cancel().await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.reading.abort();
        self.end.record(StreamEnd::Cancelled);
    }
}

struct Connection {
    channel: Channel,
    abort: AbortToken,
    /// The process that holds it, if not this one.
    process: Option<SubscriberProcess>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ask {
    deadline: Option<Duration>,
    unknown_fields: bool,
}

impl Ask {
    fn of(observer: &Observer) -> Self {
        Self {
            deadline: observer.deadline,
            unknown_fields: observer.unknown_fields,
        }
    }
}

/// `GetEventsRequest` as a later version of the CRI might have it: with fields.
#[derive(Clone, PartialEq, prost::Message)]
struct LaterRequest {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(uint64, repeated, tag = "1000")]
    numbers: Vec<u64>,
}

/// Records the events of a stream.
struct Reader {
    end: End,
    records_answer: bool,
    ask: Ask,
    reads: watch::Receiver<bool>,
    abort: AbortToken,
}

impl Reader {
    async fn read(mut self, connection: Channel) {
        let end = match self.read_events(connection).await {
            // Any error on a connection that we aborted is our own doing.
            _ if self.abort.is_cancelled() => StreamEnd::Cancelled,
            Ok(()) => StreamEnd::Closed,
            Err(status) => {
                let deadline = self.ask.deadline.unwrap_or_default();
                StreamEnd::Failed(connect::fault(&status, deadline))
            }
        };
        self.end.record(end);
    }

    async fn read_events(&mut self, connection: Channel) -> Result<(), tonic::Status> {
        let subscription = self.end.subscription;
        let mut stream = ask(connection, self.ask).await?;
        if self.records_answer {
            let answered = Body::SubscriptionAnswered { subscription };
            self.end.recorder.record(answered);
        }
        while let Some(message) = stream.message().await? {
            let event = event(&message)?;
            self.end.recorder.record(Body::Event {
                subscription,
                event,
                message,
            });
            // The sender lives as long as the subscription, and that as long as this task.
            let _ = self.reads.wait_for(|reads| *reads).await;
        }
        Ok(())
    }
}

async fn ask(connection: Channel, ask: Ask) -> Result<Streaming<Bytes>, tonic::Status> {
    let later = ask.unknown_fields.then(|| LaterRequest {
        text: "not of this version".to_owned(),
        numbers: vec![1, u64::MAX],
    });
    let message = later.map(|later| later.encode_to_vec()).unwrap_or_default();
    let path = method_path(RUNTIME_SERVICE, "GetContainerEvents");
    let request = ask.request(message.into());
    let answer = stream(&connection, path, request).await?;
    Ok(answer.into_inner())
}

fn event(message: &[u8]) -> Result<Event, tonic::Status> {
    messages::decode_event(message).map_err(|fault| tonic::Status::internal(fault.to_string()))
}

impl Ask {
    fn request(self, message: Bytes) -> tonic::Request<Bytes> {
        let mut request = tonic::Request::new(message);
        if let Some(deadline) = self.deadline {
            request.set_timeout(deadline);
        }
        request
    }
}

/// The events of a runtime, which are not recorded.
#[derive(Debug)]
pub struct Events {
    connection: Option<Channel>,
    ask: Ask,
    stream: Option<Streaming<Bytes>>,
}

/// Connects to a runtime for its events, on a separate connection, with an optional deadline.
pub async fn events(
    endpoint: &Endpoint,
    deadline: Option<Duration>,
) -> Result<Events, ConnectError> {
    let connection = channel(endpoint).await?;
    Ok(Events {
        connection: Some(connection),
        ask: Ask {
            deadline,
            ..Ask::default()
        },
        stream: None,
    })
}

impl Events {
    /// The next event; `None` when the runtime has ended the stream with OK.
    pub async fn next(&mut self) -> Result<Option<Event>, CallFault> {
        let fault = |status| connect::fault(&status, Duration::ZERO);
        if let Some(connection) = self.connection.take() {
            self.stream = Some(ask(connection, self.ask).await.map_err(fault)?);
        }
        let Some(stream) = &mut self.stream else {
            return Ok(None);
        };
        let message = stream.message().await.map_err(fault)?;
        message
            .map(|message| event(&message).map_err(fault))
            .transpose()
    }
}
