//! A client's received messages, served to another client: it must receive the same.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cri_event_conformance::testing::cri::{Backend, Client, Endpoint, Listener, events, serve};
use cri_event_conformance::testing::history::{
    Body, CallFault, CallId, Entry, Event, HostInstant, Reply, Request, RunInfo, RuntimeVersion,
    Seq,
};
use cri_event_conformance::testing::host::Reactor;

use crate::conversation::Conversation;
use crate::judging::assert_survives_encoding;
use crate::wire;

/// The timeout in simulated time, reached only if the program hangs.
const FOREVER: Duration = Duration::from_secs(3_600);
/// gRPC sends an error message in a header, and a client accepts no long ones.
const LONGEST_WORDS: usize = 2_000;

type Answer = Result<Reply, CallFault>;

/// Repeats a history's answers and events, and records the requests.
#[derive(Default)]
struct Heard {
    answers: Mutex<VecDeque<Answer>>,
    events: Vec<Event>,
    asked: Mutex<Vec<Request>>,
}

impl Backend for Heard {
    type Events = tokio_stream::Iter<std::vec::IntoIter<Result<Event, CallFault>>>;

    async fn call(&self, request: Request) -> Answer {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.push(request);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.pop_front().unwrap_or(Ok(Reply::Done))
    }

    async fn subscribe(&self, _: Option<Duration>) -> Result<Self::Events, CallFault> {
        let events: Vec<_> = self.events.iter().cloned().map(Ok).collect();
        Ok(tokio_stream::iter(events))
    }
}

/// Every answer and every event arrives unchanged, and no request breaks the server.
pub fn assert_survives_serving(conversation: &Conversation, entries: &[Entry]) {
    let reactor = Reactor::simulated().expect("the system has resources left");
    let asked = reactor.runtime().block_on(async {
        let heard = Arc::new(heard(entries));
        let (endpoint, mut listener) = Listener::in_process("served again");
        let backend = heard.clone();
        let server = tokio::spawn(async move { serve(backend, &mut listener).await });
        hear_again(&endpoint, &heard, entries).await;
        if let Endpoint::InProcess(server) = endpoint {
            for (method, message) in conversation.asks() {
                wire::ask(server.clone(), method, message.to_vec()).await;
            }
        }
        server.abort();
        std::mem::take(&mut *heard.asked.lock().unwrap_or_else(PoisonError::into_inner))
    });
    let asked = asked.into_iter().map(|request| Body::CallBegan {
        call: CallId(0),
        case: None,
        request,
        message: Bytes::new(),
    });
    let bodies = std::iter::once(Body::RunBegan(RunInfo::default().into())).chain(asked);
    let history: Vec<Entry> = bodies.map(at_no_time).collect();
    assert_survives_encoding(&history);
}

async fn hear_again(endpoint: &Endpoint, heard: &Heard, entries: &[Entry]) {
    let client = Client::connect(endpoint, endpoint, FOREVER).await;
    let client = client.expect("the server answers the first call");
    let requests = entries.iter().filter_map(|entry| match &entry.body {
        Body::CallBegan { request, .. } => Some(request),
        _ => None,
    });
    for (request, answer) in requests.zip(answers(entries)) {
        let again = client.call(request).await;
        match (again, answer) {
            (Err(again), Err(fault)) if fault.message.len() > LONGEST_WORDS => {
                assert!(!again.message.is_empty());
            }
            (again, answer) => assert_eq!(again, *answer),
        }
    }
    let mut stream = events(endpoint, None)
        .await
        .expect("the server is still there");
    for event in &heard.events {
        assert_eq!(stream.next().await.as_ref(), Ok(&Some(event.clone())));
    }
    assert_eq!(stream.next().await, Ok(None));
}

fn heard(entries: &[Entry]) -> Heard {
    let first = Ok(Reply::Version(RuntimeVersion::default()));
    let events = entries.iter().filter_map(|entry| match &entry.body {
        Body::Event { event, .. } => Some(event.clone()),
        _ => None,
    });
    Heard {
        answers: Mutex::new(
            std::iter::once(first)
                .chain(answers(entries).cloned())
                .collect(),
        ),
        events: events.collect(),
        asked: Mutex::default(),
    }
}

fn answers(entries: &[Entry]) -> impl Iterator<Item = &Answer> {
    entries.iter().filter_map(|entry| match &entry.body {
        Body::CallEnded { result, .. } => Some(result),
        _ => None,
    })
}

fn at_no_time(body: Body) -> Entry {
    Entry {
        seq: Seq(0),
        at: HostInstant::default(),
        body,
    }
}
