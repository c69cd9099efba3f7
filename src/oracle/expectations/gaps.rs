//! What a case expects after a time in which nobody listened, and of those who only look on.

#[cfg(test)]
mod tests;

use super::Finding::{self, Broken, Holds, Pending};
use super::{Events, listed};
use crate::history::{
    Body, Call, CaseHistory, ContainerId, Entry, EventKind, Reply, Request, SandboxId, Sighting,
    Subject, SubjectKind,
};
use crate::oracle::entries_about;
use crate::oracle::relist::relists_of;

/// The runtime and the suite read their clocks a moment apart.
pub(super) const APART_NS: i64 = 1_000_000;

impl Events<'_> {
    /// Whether an event or a relist of the case shows it. A run's own relists come too late.
    pub(super) fn are_learnt(&self, kind: EventKind) -> Finding {
        let of_case = |entry: &Entry| matches!(entry.body, Body::CallBegan { case: Some(_), .. });
        let mut relists = relists_of(self.history, self.subject);
        let shown = relists.any(|relist| {
            let shows = relist
                .announcement()
                .is_some_and(|(_, shown)| shown == kind);
            shows && of_case(relist.began)
        });
        if shown || self.first(kind).is_some() {
            return Holds;
        }
        Pending {
            awaited: format!("{kind}, by an event or a relist"),
            evidence: entries_about(self.history, self.subject),
        }
    }

    /// Whether what came afterwards is all or nothing, of every container of the name.
    pub(super) fn are_replayed(&self, all: &[EventKind]) -> Finding {
        let replayed: Vec<&Sighting> = self.all().collect();
        let new = replayed.iter().find(|seen| {
            let opened = opened_before(self.history, seen);
            opened
                .is_some_and(|opened| seen.event().created_at.0 > opened.at.realtime_ns + APART_NS)
        });
        if let Some(new) = new {
            return Broken {
                expected: "the time at which it happened".to_owned(),
                actual: format!("a new created_at in {}", new.event().kind),
                evidence: vec![new.seq()],
            };
        }
        let kinds: Vec<EventKind> = replayed.iter().map(|seen| seen.event().kind).collect();
        let others = self
            .history
            .named(self.subject.binding().unwrap_or_default());
        let mut others = others.flat_map(|subject| &subject.sightings);
        let any = others.any(|seen| self.history.within_steps(seen.seq()));
        if kinds == all || !any {
            return Holds;
        }
        self.broken(
            format!("{}, or nothing at all", listed(all)),
            listed(&kinds),
        )
    }
}

/// Where the stream was asked for on which an event came.
fn opened_before<'a>(history: &'a CaseHistory, seen: &Sighting) -> Option<&'a Entry> {
    let entries = history.entries().iter();
    let mut opened = entries.filter(|entry| {
        matches!(&entry.body, Body::SubscriptionOpened { subscription, .. }
            if *subscription == seen.subscription())
    });
    opened.next().map(AsRef::as_ref)
}

/// Whether all that the case's relists of a sandbox show is the same.
pub(super) fn unchanged(history: &CaseHistory, subject: &Subject) -> Finding {
    let calls = history.calls().filter(|call| {
        let asked = call.began().seq;
        !call.is_of_run() && history.within_steps(asked) && is_relist_of(history, subject, call)
    });
    let calls: Vec<&Call> = calls.collect();
    let differs = calls.iter().find_map(|call| {
        let mut earlier = calls
            .iter()
            .take_while(|other| other.began().seq < call.began().seq);
        let other = earlier
            .find(|other| other.request() == call.request() && shown(other) != shown(call))?;
        Some((*other, *call))
    });
    let Some((earlier, later)) = differs else {
        return Holds;
    };
    Broken {
        expected: "the same as before".to_owned(),
        actual: format!("{} shows something else", later.request().method()),
        evidence: [earlier, later].map(|call| call.began().seq).to_vec(),
    }
}

fn is_relist_of(history: &CaseHistory, subject: &Subject, call: &Call) -> bool {
    let own = |sandbox: &SandboxId| ContainerId::from(sandbox) == subject.id;
    match call.request() {
        Request::ListContainers { sandbox, .. } => sandbox.as_ref().is_some_and(own),
        Request::ContainerStatus(id) => {
            let mut subjects = history.subjects().iter();
            subjects.any(|subject| match &subject.kind {
                SubjectKind::Container(spec) => subject.id == *id && own(&spec.sandbox),
                SubjectKind::Sandbox(_) | SubjectKind::Stray => false,
            })
        }
        _ => false,
    }
}

/// What a call showed, whatever the order.
fn shown(call: &Call) -> Option<Reply> {
    let mut reply = call.result()?.as_ref().ok()?.clone();
    if let Reply::Containers(listed) = &mut reply {
        listed.sort_by(|one, other| one.id.cmp(&other.id));
    }
    Some(reply)
}
