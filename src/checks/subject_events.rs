//! The events of one sandbox or container, for the assessment of checks.

use super::word::Finding::{self, Broken, Pending};
use crate::history::{EventArrival, EventKind, Subject};
use crate::oracle::{Index, entries_about};
use crate::outcome::{Fact, Kind, Mismatch};

/// The events of one sandbox or container that arrived before the teardown.
pub(super) struct SubjectEvents<'i, 'a> {
    pub(super) index: &'i Index<'a>,
    pub(super) subject: &'a Subject,
}

impl<'a> SubjectEvents<'_, 'a> {
    pub(super) fn all(&self) -> impl Iterator<Item = &'a EventArrival> {
        let history = self.index.history;
        self.subject
            .arrivals
            .iter()
            .filter(move |seen| history.within_steps(seen.seq()))
    }

    /// The kinds of the events, without those that were replayed to a new subscriber.
    pub(super) fn kinds(&self) -> Vec<EventKind> {
        let all: Vec<_> = self.all().collect();
        let is_replay = |later: &EventArrival, earlier: &&EventArrival| {
            let (again, first) = (later.event(), earlier.event());
            earlier.subscription() != later.subscription()
                && (again.kind, again.created_at) == (first.kind, first.created_at)
        };
        let new = all.iter().enumerate().filter(|(place, later)| {
            !all[..*place]
                .iter()
                .any(|earlier| is_replay(later, earlier))
        });
        new.map(|(_, arrival)| arrival.event().kind).collect()
    }

    pub(super) fn first(&self, kind: EventKind) -> Option<&'a EventArrival> {
        self.all().find(|arrival| arrival.event().kind == kind)
    }

    pub(super) fn awaited(&self, kind: EventKind) -> Finding {
        let evidence = entries_about(self.index.history, self.subject);
        Pending {
            missing: Mismatch::missing(kind, []),
            evidence,
        }
    }

    /// The finding that the events are wrong, with the expected ones.
    pub(super) fn broken(&self, kind: Kind, expected: Fact) -> Finding {
        let actual = [Fact::Events(self.kinds())];
        self.broken_by(Mismatch::new(kind, [expected], actual))
    }

    pub(super) fn broken_by(&self, mismatch: Mismatch) -> Finding {
        let evidence = self.all().map(EventArrival::seq).collect();
        Broken { mismatch, evidence }
    }
}
