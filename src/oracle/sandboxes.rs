//! What events tell of their sandbox.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::invariants::Invariant;
use crate::history::{
    CaseHistory, EventKind, PodUid, Request, SandboxSpec, SandboxState, SandboxStatus, Seq,
    Sighting, Subject, SubjectKind,
};
use crate::outcome::Violation;

fn pod_uid(subject: &Subject) -> Option<&PodUid> {
    match &subject.kind {
        SubjectKind::Sandbox(spec) => Some(&spec.uid),
        SubjectKind::Container(spec) => Some(&spec.sandbox_spec.uid),
        SubjectKind::Stray => None,
    }
}

pub(super) fn sandbox_with_uid(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    rule.on_each_event(history, |subject, sighting| {
        let event = sighting.event();
        let Some(uid) = pod_uid(subject) else {
            // A stray was found by the UID it tells; one without would not be here.
            return None;
        };
        let actual = match (&event.sandbox, event.pod_uid()) {
            (None, _) => format!("no pod_sandbox_status in {}", event.kind),
            (Some(_), None) => format!("no metadata in the pod_sandbox_status of {}", event.kind),
            (Some(_), Some(told)) if told != uid => {
                format!("the UID `{told}` in {}", event.kind)
            }
            (Some(_), Some(_)) => return None,
        };
        Some((format!("pod_sandbox_status with the UID `{uid}`"), actual))
    })
}

/// When a sandbox's state is known.
#[derive(Default)]
struct Life<'a> {
    /// Where the first call began that ends it.
    ending: Option<Seq>,
    stopped: Option<&'a Sighting>,
}

pub(super) fn sandbox_as_asked_for(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let lives = lives(history);
    rule.on_each_event(history, |subject, sighting| {
        let (own, spec) = match &subject.kind {
            SubjectKind::Sandbox(spec) => (subject.id.as_str(), spec),
            SubjectKind::Container(spec) => (spec.sandbox.as_str(), &spec.sandbox_spec),
            SubjectKind::Stray => return None,
        };
        let told = sighting.event().sandbox.as_ref()?;
        let other = other_sandbox(told, own, spec);
        other
            .or_else(|| {
                let wanted = lives.get(own)?.state_in(subject, sighting)?;
                (told.state != wanted).then(|| (wanted.to_string(), told.state.to_string()))
            })
            .map(|(expected, actual)| {
                let kind = sighting.event().kind;
                (format!("the sandbox {expected} in {kind}"), actual)
            })
    })
}

/// In what a status is another sandbox's than that which was run so.
fn other_sandbox(told: &SandboxStatus, own: &str, spec: &SandboxSpec) -> Option<(String, String)> {
    let metadata = told.metadata.as_ref()?;
    if metadata.uid != spec.uid {
        // Told by a rule of its own.
        return None;
    }
    let fields = [
        ("id", own, told.id.as_str()),
        ("name", &spec.name, &metadata.name),
        ("namespace", &spec.namespace, &metadata.namespace),
    ];
    let mut differing = fields.iter().filter(|(_, wanted, told)| wanted != told);
    let text = differing.next();
    let text = text.map(|(field, wanted, told)| (*field, (*wanted).to_owned(), (*told).to_owned()));
    let (field, wanted, told) = text.or_else(|| {
        let (wanted, told) = (spec.attempt, metadata.attempt);
        (wanted != told).then(|| ("attempt", wanted.to_string(), told.to_string()))
    })?;
    Some((
        format!("with the {field} `{wanted}`"),
        format!("the {field} `{told}`"),
    ))
}

fn lives(history: &CaseHistory) -> BTreeMap<&str, Life<'_>> {
    let mut lives = BTreeMap::<&str, Life<'_>>::new();
    for subject in history.subjects() {
        if let SubjectKind::Sandbox(_) = subject.kind {
            let stopped = subject.first(EventKind::Stopped);
            let life = Life {
                ending: None,
                stopped,
            };
            lives.insert(subject.id.as_str(), life);
        }
    }
    for call in history.calls() {
        if let Request::StopSandbox(id) | Request::RemoveSandbox(id) = call.request()
            && let Some(life) = lives.get_mut(id.as_str())
        {
            life.ending.get_or_insert(call.began().seq);
        }
    }
    lives
}

impl Life<'_> {
    /// The state that an event must show; none where the sandbox is being made or stopped. A
    /// snapshot is not older than its event, so that one made after STOPPED knows of it.
    fn state_in(&self, subject: &Subject, sighting: &Sighting) -> Option<SandboxState> {
        let (seq, event) = (sighting.seq(), sighting.event());
        let is_own = matches!(subject.kind, SubjectKind::Sandbox(_));
        let ends = is_own && matches!(event.kind, EventKind::Stopped | EventKind::Deleted);
        let after_stopped = self.stopped.is_some_and(|stopped| {
            stopped.seq() < seq && stopped.event().created_at <= event.created_at
        });
        if ends || after_stopped {
            return Some(SandboxState::NotReady);
        }
        // It may have ended by itself, and be told so later.
        let ended_by_itself = self
            .stopped
            .is_some_and(|stopped| self.ending.is_none_or(|ending| stopped.seq() < ending));
        let is_made = is_own && event.kind == EventKind::Created;
        let in_life = self.ending.is_none_or(|ending| seq < ending);
        (in_life && !is_made && !ended_by_itself).then_some(SandboxState::Ready)
    }
}
