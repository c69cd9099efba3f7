//! What one of a case's own subscriptions received.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{
    Body, CaseRun, ContainerId, Entry, EventArrival, EventKind, Observer, StreamEnd, SubscriptionId,
};
use crate::limits::EVENTS_OF_A_KIND;

/// A subscription of a case, with its entries.
#[derive(Clone, Debug)]
pub struct Observed {
    opened: Arc<Entry>,
    entries: Vec<Arc<Entry>>,
    /// How many events of each kind have come of each sandbox and container.
    seen: BTreeMap<(ContainerId, EventKind), usize>,
}

impl Observed {
    pub(super) fn new(opened: Arc<Entry>) -> Self {
        let entries = vec![opened.clone()];
        let seen = BTreeMap::new();
        Self {
            opened,
            entries,
            seen,
        }
    }

    pub(super) fn push(&mut self, entry: &Arc<Entry>) {
        if let Body::Event { event, .. } = &entry.body {
            let key = (event.container.clone(), event.kind);
            let seen = self.seen.entry(key).or_default();
            *seen += 1;
            if *seen > EVENTS_OF_A_KIND {
                return;
            }
        }
        self.entries.push(entry.clone());
    }

    pub(super) fn is_of(&self, case: CaseRun) -> bool {
        self.observer().case == Some(case)
    }

    /// Its number.
    pub fn id(&self) -> SubscriptionId {
        self.parts().0
    }

    /// How it was requested.
    pub fn observer(&self) -> &Observer {
        self.parts().1
    }

    pub fn opened(&self) -> &Entry {
        &self.opened
    }

    /// The entry of the response headers.
    pub fn answered(&self) -> Option<&Entry> {
        self.find(|body| matches!(body, Body::SubscriptionAnswered { .. }))
    }

    /// The entry from which it is live.
    pub fn proven(&self) -> Option<&Entry> {
        self.find(|body| matches!(body, Body::SubscriptionProven { .. }))
    }

    /// The entry and manner of its end; absent while it is open.
    pub fn ended(&self) -> Option<(&Entry, &StreamEnd)> {
        self.entries.iter().find_map(|entry| match &entry.body {
            Body::SubscriptionEnded { end, .. } => Some((&**entry, end)),
            _ => None,
        })
    }

    /// All its entries, in order.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// Its events, of all pods, in order.
    pub fn events(&self) -> impl Iterator<Item = EventArrival> {
        self.entries.iter().filter_map(EventArrival::from_entry)
    }

    fn find(&self, wanted: impl Fn(&Body) -> bool) -> Option<&Entry> {
        let found = self.entries.iter().find(|entry| wanted(&entry.body));
        found.map(AsRef::as_ref)
    }

    fn parts(&self) -> (SubscriptionId, &Observer) {
        match &self.opened.body {
            Body::SubscriptionOpened {
                subscription,
                observer: Some(observer),
            } => (*subscription, observer),
            _ => unreachable!("it is only ever made of an observer's opening"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{CaseHistory, Event, HostInstant, PodUid, RuntimeNanos, Seq};

    /// A stream that repeats each event without end takes no memory without end, and none of its
    /// kinds is lost.
    #[test]
    fn repetitions_of_an_event_are_kept_up_to_a_bound() {
        let event = |subscription, kind| Body::Event {
            subscription,
            event: Event {
                container: ContainerId::from("c"),
                kind,
                created_at: RuntimeNanos(1),
                sandbox: None,
                containers: Vec::new(),
            },
            message: bytes::Bytes::new(),
        };
        let [main, other] = [SubscriptionId(1), SubscriptionId(2)];
        let opened = Body::SubscriptionOpened {
            subscription: other,
            observer: Some(Observer {
                case: Some(CaseRun::default()),
                ..Observer::default()
            }),
        };
        let kinds = [EventKind::Created, EventKind::Stopped];
        let repeated = |of| {
            kinds
                .into_iter()
                .flat_map(move |kind| vec![event(of, kind); 1_000])
        };
        let bodies = std::iter::once(opened)
            .chain(repeated(main))
            .chain(repeated(other));
        let mut history = CaseHistory::of_foreign_pod(PodUid::from("uid"), 100);
        for (seq, body) in (0..).map(Seq).zip(bodies) {
            let at = HostInstant::default();
            history.push(&Arc::new(Entry { seq, at, body }));
        }
        let kept = kinds.len() * EVENTS_OF_A_KIND;
        assert_eq!(history.entries().len(), kept);
        assert_eq!(history.subjects()[0].arrivals.len(), kept);
        assert!(history.subjects()[0].first(EventKind::Stopped).is_some());
        let observed = history.observed().map(|it| it.events().count());
        assert_eq!(observed.sum::<usize>(), kept);
    }
}
