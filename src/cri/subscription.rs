//! One `GetContainerEvents` stream, from its opening to its end.
//!
//! The call resolves only when the response's headers come, and runtimes send those with the first
//! event. So it runs in a task of its own that writes all it sees to the recorder, and nothing is
//! taken for granted until an event has arrived that was caused after the opening.

use std::time::Duration;

use k8s_cri::v1::runtime_service_client::RuntimeServiceClient;
use k8s_cri::v1::{ContainerEventResponse, GetEventsRequest};
use tokio::task::JoinHandle;
use tonic::Streaming;
use tonic::transport::Channel;

use super::client::channel;
use super::{ConnectError, Endpoint, convert};
use crate::history::{Body, CallFault, Event, StreamEnd, SubscriptionId};
use crate::limits;
use crate::recorder::Recorder;

/// An open stream. Dropped, it is cancelled.
#[derive(Debug)]
pub struct Subscription {
    id: SubscriptionId,
    recorder: Recorder,
    reading: JoinHandle<()>,
}

impl Subscription {
    /// Asks for the event stream on a connection of its own, and begins to record what comes.
    ///
    /// # Errors
    /// If the runtime cannot be reached. That it refuses the stream shows as the stream's end.
    pub async fn open(endpoint: &Endpoint, recorder: &Recorder) -> Result<Self, ConnectError> {
        let connection = channel(endpoint).await?;
        let id = recorder.next_subscription();
        recorder.record(Body::SubscriptionOpened { subscription: id });
        let reading = tokio::spawn(read(connection, id, recorder.clone()));
        Ok(Self {
            id,
            recorder: recorder.clone(),
            reading,
        })
    }

    /// Its number in the history.
    #[must_use]
    pub fn id(&self) -> SubscriptionId {
        self.id
    }

    /// Whether the stream has not ended, as far as is known.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.reading.is_finished()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if !self.reading.is_finished() {
            self.reading.abort();
            let end = StreamEnd::Cancelled;
            self.recorder.record(Body::SubscriptionEnded {
                subscription: self.id,
                end,
            });
        }
    }
}

async fn read(connection: Channel, subscription: SubscriptionId, recorder: Recorder) {
    let end = match read_events(connection, subscription, &recorder).await {
        Ok(()) => StreamEnd::Closed,
        Err(status) => StreamEnd::Failed(convert::fault(&status, Duration::ZERO)),
    };
    recorder.record(Body::SubscriptionEnded { subscription, end });
}

async fn read_events(
    connection: Channel,
    subscription: SubscriptionId,
    recorder: &Recorder,
) -> Result<(), tonic::Status> {
    let mut stream = ask(connection).await?;
    while let Some(message) = stream.message().await? {
        let event = convert::event(message);
        recorder.record(Body::Event {
            subscription,
            event,
        });
    }
    Ok(())
}

async fn ask(connection: Channel) -> Result<Streaming<ContainerEventResponse>, tonic::Status> {
    let mut runtime =
        RuntimeServiceClient::new(connection).max_decoding_message_size(limits::MESSAGE_BYTES);
    let answer = runtime.get_container_events(GetEventsRequest {}).await?;
    Ok(answer.into_inner())
}

/// The events of a runtime, recorded by nobody.
#[derive(Debug)]
pub struct Events {
    connection: Option<Channel>,
    stream: Option<Streaming<ContainerEventResponse>>,
}

/// Connects to a runtime for its events, on a connection of its own.
///
/// # Errors
/// If it cannot be reached.
pub async fn events(endpoint: &Endpoint) -> Result<Events, ConnectError> {
    let connection = channel(endpoint).await?;
    Ok(Events {
        connection: Some(connection),
        stream: None,
    })
}

impl Events {
    /// The next event; none when the runtime has ended the stream with OK.
    ///
    /// # Errors
    /// If the runtime has ended it otherwise, or refused it.
    pub async fn next(&mut self) -> Result<Option<Event>, CallFault> {
        let fault = |status| convert::fault(&status, Duration::ZERO);
        if let Some(connection) = self.connection.take() {
            self.stream = Some(ask(connection).await.map_err(fault)?);
        }
        let Some(stream) = &mut self.stream else {
            return Ok(None);
        };
        let message = stream.message().await.map_err(fault)?;
        Ok(message.map(convert::event))
    }
}
