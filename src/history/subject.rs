//! A sandbox or container of a case, and its events.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    Body, ContainerId, ContainerSpec, Entry, Event, EventKind, HostInstant, SandboxSpec, Seq,
    SubscriptionId,
};

/// A sandbox or a container of the case.
#[derive(Clone, Debug)]
pub struct Subject {
    /// What it is, and its specification.
    pub kind: SubjectKind,
    pub id: ContainerId,
    /// Its events, in order of arrival.
    pub arrivals: Vec<EventArrival>,
}

/// The kind of a subject, with its specification.
#[derive(Clone, Debug)]
pub enum SubjectKind {
    Sandbox(Arc<SandboxSpec>),
    Container(Arc<ContainerSpec>),
    /// Known by its events alone: no call of the case has returned this id (yet).
    Stray,
}

#[derive(Clone, Debug)]
pub struct EventArrival {
    entry: Arc<Entry>,
}

impl Subject {
    /// Its name in the case; absent for an unknown id.
    pub fn binding(&self) -> Option<&str> {
        match &self.kind {
            SubjectKind::Sandbox(spec) => Some(&spec.binding),
            SubjectKind::Container(spec) => Some(&spec.binding),
            SubjectKind::Stray => None,
        }
    }

    /// Its name in messages: `c`, `c#17` for the 17th of that name, or its id if it has no name.
    pub fn label(&self) -> String {
        match &self.kind {
            SubjectKind::Container(spec) if spec.attempt > 0 => {
                format!("{}#{}", spec.binding, spec.attempt)
            }
            _ => self.binding().unwrap_or(self.id.as_str()).to_owned(),
        }
    }

    pub fn first(&self, kind: EventKind) -> Option<&EventArrival> {
        self.arrivals
            .iter()
            .find(|arrival| arrival.event().kind == kind)
    }
}

impl EventArrival {
    /// The arrival that an entry records; none if it is no event's.
    pub(super) fn from_entry(entry: &Arc<Entry>) -> Option<Self> {
        matches!(entry.body, Body::Event { .. }).then(|| Self {
            entry: entry.clone(),
        })
    }

    pub fn event(&self) -> &Event {
        self.parts().1
    }

    /// The stream on which it arrived.
    pub fn subscription(&self) -> SubscriptionId {
        self.parts().0
    }

    pub fn seq(&self) -> Seq {
        self.entry.seq
    }

    pub fn at(&self) -> HostInstant {
        self.entry.at
    }

    /// The size of its message in bytes; 0 if that is not known.
    pub fn bytes(&self) -> u32 {
        u32::try_from(self.parts().2.len()).unwrap_or(u32::MAX)
    }

    fn parts(&self) -> (SubscriptionId, &Event, &Bytes) {
        match &self.entry.body {
            Body::Event {
                subscription,
                event,
                message,
            } => (*subscription, event, message),
            _ => unreachable!("an arrival is only ever made of an event's entry"),
        }
    }
}
