//! Which side ended a stream: the suite or the runtime.

use std::pin::Pin;

use tokio_stream::Stream;

use super::*;
use crate::cri::listener::Listener;
use crate::cri::server::{Backend, serve};
use crate::history::{Reply, Request, StatusCode};
use crate::host::Reactor;

/// A runtime without events, which ends its streams at once or never.
struct Silent {
    ends: bool,
}

impl Backend for Silent {
    type Events = Pin<Box<dyn Stream<Item = Result<Event, CallFault>> + Send>>;

    async fn call(&self, _: Request) -> Result<Reply, CallFault> {
        Err(CallFault {
            code: StatusCode::UNAVAILABLE,
            message: String::new(),
            deadline: Duration::ZERO,
        })
    }

    async fn subscribe(&self, _: Option<Duration>) -> Result<Self::Events, CallFault> {
        Ok(if self.ends {
            Box::pin(tokio_stream::empty())
        } else {
            Box::pin(tokio_stream::pending())
        })
    }
}

/// The recorded end of a stream, after an action on the answered stream.
fn end_of(runtime: Silent, done: impl Fn(&Subscription)) -> StreamEnd {
    let reactor = Reactor::simulated().unwrap();
    reactor.runtime().block_on(async {
        let (endpoint, mut listener) = Listener::in_process("silent");
        tokio::spawn(async move { serve(Arc::new(runtime), &mut listener).await });
        let recorder = Recorder::new();
        let mut reader = recorder.reader();
        let observer = Observer::default();
        let stream = Subscription::observe(Over::Own(&endpoint), &recorder, observer).await;
        let stream = stream.unwrap();
        loop {
            reader.changed().await;
            for entry in reader.drain().unwrap() {
                match &entry.body {
                    Body::SubscriptionAnswered { .. } => done(&stream),
                    Body::SubscriptionEnded { end, .. } => return end.clone(),
                    _ => {}
                }
            }
        }
    })
}

#[test]
fn a_connection_that_we_cut_was_not_ended_by_the_runtime() {
    let end = end_of(Silent { ends: false }, |stream| stream.abort.cancel());
    assert_eq!(end, StreamEnd::Cancelled);
}

#[test]
fn a_stream_that_is_dropped_while_its_task_finishes_has_one_end() {
    let reactor = Reactor::simulated().unwrap();
    reactor.runtime().block_on(async {
        let (endpoint, _listener) = Listener::in_process("silent");
        let recorder = Recorder::new();
        let mut reader = recorder.reader();
        let (over, observer) = (Over::Own(&endpoint), Observer::default());
        let stream = Subscription::observe(over, &recorder, observer).await;
        let stream = stream.unwrap();
        // The last act of the task.
        stream.end.record(StreamEnd::Closed);
        drop(stream);
        let entries = reader.drain().unwrap();
        let ends = entries.iter().filter_map(|entry| match &entry.body {
            Body::SubscriptionEnded { end, .. } => Some(end.clone()),
            _ => None,
        });
        assert_eq!(ends.collect::<Vec<_>>(), [StreamEnd::Closed]);
    });
}

#[test]
fn a_stream_that_the_runtime_ends_was_not_ended_by_us() {
    let end = end_of(Silent { ends: true }, |_| {});
    assert_eq!(end, StreamEnd::Closed);
}
