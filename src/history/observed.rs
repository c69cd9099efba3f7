//! What one of a case's own subscriptions received.

use std::sync::Arc;

use super::{Body, CaseRun, Entry, EventArrival, Observer, StreamEnd, SubscriptionId};

/// A subscription of a case, with its entries.
#[derive(Clone, Debug)]
pub struct Observed {
    opened: Arc<Entry>,
    entries: Vec<Arc<Entry>>,
}

impl Observed {
    pub(super) fn new(opened: Arc<Entry>) -> Self {
        let entries = vec![opened.clone()];
        Self { opened, entries }
    }

    pub(super) fn push(&mut self, entry: &Arc<Entry>) {
        self.entries.push(entry.clone());
    }

    pub(super) fn is_of(&self, case: CaseRun) -> bool {
        self.observer().case == Some(case)
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> SubscriptionId {
        self.parts().0
    }

    /// How it was requested.
    #[must_use]
    pub fn observer(&self) -> &Observer {
        self.parts().1
    }

    /// The entry of its opening.
    #[must_use]
    pub fn opened(&self) -> &Entry {
        &self.opened
    }

    /// The entry of the response headers.
    #[must_use]
    pub fn answered(&self) -> Option<&Entry> {
        self.find(|body| matches!(body, Body::SubscriptionAnswered { .. }))
    }

    /// The entry from which it is live.
    #[must_use]
    pub fn proven(&self) -> Option<&Entry> {
        self.find(|body| matches!(body, Body::SubscriptionProven { .. }))
    }

    /// The entry and manner of its end; absent while it is open.
    #[must_use]
    pub fn ended(&self) -> Option<(&Entry, &StreamEnd)> {
        self.entries.iter().find_map(|entry| match &entry.body {
            Body::SubscriptionEnded { end, .. } => Some((&**entry, end)),
            _ => None,
        })
    }

    /// All its entries, in order.
    #[must_use]
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
