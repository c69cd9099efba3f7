//! What one of a case's own subscriptions saw, beside the stream that all cases read.

use std::sync::Arc;

use super::{Body, CaseRun, Entry, Observer, Sighting, StreamEnd, SubscriptionId};

/// A subscription beside the run's own, and all that became of it.
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

    /// Who listens, and how.
    #[must_use]
    pub fn observer(&self) -> &Observer {
        self.parts().1
    }

    /// Where it was asked for.
    #[must_use]
    pub fn opened(&self) -> &Entry {
        &self.opened
    }

    /// Where the headers of the response came.
    #[must_use]
    pub fn answered(&self) -> Option<&Entry> {
        self.find(|body| matches!(body, Body::SubscriptionAnswered { .. }))
    }

    /// From where on it is live.
    #[must_use]
    pub fn proven(&self) -> Option<&Entry> {
        self.find(|body| matches!(body, Body::SubscriptionProven { .. }))
    }

    /// Where and how it ended; absent as long as it is open.
    #[must_use]
    pub fn ended(&self) -> Option<(&Entry, &StreamEnd)> {
        self.entries.iter().find_map(|entry| match &entry.body {
            Body::SubscriptionEnded { end, .. } => Some((&**entry, end)),
            _ => None,
        })
    }

    /// All of it, in order.
    #[must_use]
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The events that came, whoever caused them, in order.
    pub fn events(&self) -> impl Iterator<Item = Sighting> {
        self.entries.iter().filter_map(Sighting::of)
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
