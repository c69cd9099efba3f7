//! One `GetContainerEvents` stream, from its opening to its end.
//!
//! The call resolves only when the response's headers come, and runtimes send those with the first
//! event. So it runs in a task of its own that writes all it sees to the recorder, and nothing is
//! taken for granted until an event has arrived that was caused after the opening.

use std::time::Duration;

use k8s_cri::v1::GetEventsRequest;
use k8s_cri::v1::runtime_service_client::RuntimeServiceClient;
use tokio::task::JoinHandle;
use tonic::transport::Channel;

use super::client::channel;
use super::{ConnectError, Endpoint, convert};
use crate::history::{Body, StreamEnd, SubscriptionId};
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
    let mut runtime =
        RuntimeServiceClient::new(connection).max_decoding_message_size(limits::MESSAGE_BYTES);
    let mut stream = runtime
        .get_container_events(GetEventsRequest {})
        .await?
        .into_inner();
    while let Some(message) = stream.message().await? {
        let event = convert::event(message);
        recorder.record(Body::Event {
            subscription,
            event,
        });
    }
    Ok(())
}
