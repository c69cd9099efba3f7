//! Whether each of several subscribers gets every event.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Unavailable;
use crate::cri::{Over, Subscription};
use crate::drive::session::Session;
use crate::drive::stream_error::StreamError;
use crate::history::{Body, ContainerId, Entry, EventKind, FanOut, Observer, SubscriptionId};
use crate::host;
use crate::limits;
use crate::recorder::Reader;

pub(super) async fn broadcast(session: &Session) -> Result<(), Unavailable> {
    match find_fan_out(session).await? {
        FanOut::Broadcast => Ok(()),
        FanOut::SingleConsumer => Err(Unavailable::Lack(
            "the runtime gives each event to one subscriber alone, as was measured when the run \
             began: a second one would take events from the first"
                .to_owned(),
        )),
    }
}

/// Finds out whether each of several subscribers gets every event.
async fn find_fan_out(session: &Session) -> Result<FanOut, StreamError> {
    let own = session.stream().await?;
    let mut reader = session.recorder().reader();
    let observer = Observer {
        binding: "a second subscriber".to_owned(),
        ..Observer::default()
    };
    let over = Over::Own(&session.options().endpoint);
    let second = Subscription::observe(over, session.recorder(), observer).await?;
    let mut received = Received::new([own, second.id()]);
    let began = host::now();
    let mut found = None;
    for _ in 0..limits::AUDIENCE_MARKERS {
        received.markers.push(session.send_marker().await?);
        let wait = session.scaled(limits::MARKER_WAIT);
        found = who_receives(session, &mut reader, &mut received, wait).await?;
        if found.is_some() {
            break;
        }
    }
    if found.is_none() {
        // As long as a case waits for an event that is late.
        let wait = session.scaled(limits::EVENT_WAIT);
        let left = wait.saturating_sub(host::elapsed(began));
        found = who_receives(session, &mut reader, &mut received, left).await?;
    }
    let fan_out = found.unwrap_or(FanOut::SingleConsumer);
    second.cancel().await;
    // Whatever the second one has taken with it, the run's own stream is live again.
    session.barrier().await?;
    Ok(fan_out)
}

/// Who gets the events of markers, as soon as they show it.
async fn who_receives(
    session: &Session,
    reader: &mut Reader,
    received: &mut Received,
    wait: Duration,
) -> Result<Option<FanOut>, StreamError> {
    let deadline = tokio::time::Instant::now() + wait;
    loop {
        for entry in reader.drain()? {
            received.take(&entry);
        }
        if let Some(fan_out) = received.fan_out() {
            return Ok(Some(fan_out));
        }
        tokio::select! {
            () = reader.changed() => {}
            () = tokio::time::sleep_until(deadline) => return Ok(None),
            () = session.stop().cancelled() => return Err(StreamError::Interrupted),
        }
    }
}

/// Which of two streams have brought what of markers.
#[derive(Debug)]
struct Received {
    both: [SubscriptionId; 2],
    /// In the order in which they were sent.
    markers: Vec<ContainerId>,
    events: Vec<(SubscriptionId, ContainerId, EventKind)>,
}

impl Received {
    fn new(both: [SubscriptionId; 2]) -> Self {
        Self {
            both,
            markers: Vec::new(),
            events: Vec::new(),
        }
    }

    fn take(&mut self, entry: &Entry) {
        if let Body::Event {
            subscription,
            event,
            ..
        } = &entry.body
        {
            let event = (*subscription, event.container.clone(), event.kind);
            self.events.push(event);
        }
    }

    /// Everyone, if an event came on both streams. One, if a stream brought events of a marker
    /// before and of one after an event that came on the other alone: it was live all the time.
    fn fan_out(&self) -> Option<FanOut> {
        let [one, other] = self.both.map(|stream| self.brought_by(stream));
        if one.iter().any(|event| other.contains(event)) {
            return Some(FanOut::Broadcast);
        }
        let passed_over = |live: &BTreeSet<Brought>, others: &BTreeSet<Brought>| {
            let markers = || live.iter().map(|(marker, _)| *marker);
            let (Some(first), Some(last)) = (markers().min(), markers().max()) else {
                return false;
            };
            others
                .iter()
                .any(|(marker, _)| first < *marker && *marker < last)
        };
        let split = passed_over(&one, &other) || passed_over(&other, &one);
        split.then_some(FanOut::SingleConsumer)
    }

    fn brought_by(&self, stream: SubscriptionId) -> BTreeSet<Brought> {
        let events = self.events.iter().filter(|(on, ..)| *on == stream);
        let of_marker = events.filter_map(|(_, of, kind)| {
            let marker = self.markers.iter().position(|marker| marker == of)?;
            Some((marker, *kind))
        });
        of_marker.collect()
    }
}

/// An event of a marker, by its number.
type Brought = (usize, EventKind);

#[cfg(test)]
mod tests {
    use super::*;

    /// What the first stream brought, and the second: events of markers, `c0` for CREATED of the
    /// first marker, `d0` for its DELETED.
    #[track_caller]
    fn check(brought: [&str; 2], expected: Option<FanOut>) {
        let both = [SubscriptionId(1), SubscriptionId(2)];
        let mut received = Received::new(both);
        received.markers = ["0", "1", "2"].map(ContainerId::from).into();
        for (stream, brought) in both.into_iter().zip(brought) {
            for event in brought.split_whitespace() {
                let (kind, marker) = event.split_at(1);
                let kind = if kind == "c" {
                    EventKind::Created
                } else {
                    EventKind::Deleted
                };
                received.events.push((stream, marker.into(), kind));
            }
        }
        assert_eq!(received.fan_out(), expected);
    }

    #[test]
    fn one_event_on_both_streams_is_enough() {
        check(["c0 d0 c1", "c1"], Some(FanOut::Broadcast));
        check(["c0", "c0"], Some(FanOut::Broadcast));
    }

    #[test]
    fn what_is_late_proves_nothing() {
        check(["", ""], None);
        check(["c0 d0 c1 d1 c2 d2", ""], None);
        check(["c0 d0 c1 d1", "c2"], None);
    }

    #[test]
    fn an_event_that_is_passed_over_is_the_others() {
        check(["c0 c1 c2", "d0 d1 d2"], Some(FanOut::SingleConsumer));
        check(["c0 d0 d2", "c1"], Some(FanOut::SingleConsumer));
        check(["c1", "c0 d2"], Some(FanOut::SingleConsumer));
        check(["c0 c1", "d0 d1"], None);
    }
}
