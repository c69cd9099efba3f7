//! Whether events are about something that there is.

#[cfg(test)]
mod tests;

use super::invariants::Invariant;
use crate::history::{
    CaseHistory, ContainerId, Reply, Request, Seq, Sighting, Subject, SubjectKind,
};
use crate::outcome::Violation;

/// Each id of which an event of the case's pods tells, though no call has returned it and no list
/// has shown it. Events of other pods are nobody's here: who knows when those were there.
pub(super) fn no_unknown_id(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let strays = history.subjects().iter();
    let strays = strays.filter(|subject| matches!(subject.kind, SubjectKind::Stray));
    let unknown = strays.filter_map(|stray| {
        let first = stray.sightings.first()?;
        let known = is_shortened(&stray.id, history)
            || may_be_made(first.seq(), history)
            || is_shown(&stray.id, history);
        (!known).then(|| unknown(rule, stray, first))
    });
    unknown.collect()
}

fn unknown(rule: &Invariant, stray: &Subject, first: &Sighting) -> Violation {
    rule.broken(
        stray,
        "the id of something that a call has made or a list has shown",
        format!("{} of an id that nothing else tells of", first.event().kind),
        [first],
    )
}

/// Of an id that is not whole another rule tells.
fn is_shortened(id: &ContainerId, history: &CaseHistory) -> bool {
    let known = history.subjects().iter();
    let mut known = known.filter(|subject| !matches!(subject.kind, SubjectKind::Stray));
    id.as_str().is_empty() || known.any(|whole| whole.id.as_str().starts_with(id.as_str()))
}

/// Whether a call that has begun before may have made it without having returned its id: one that
/// failed, or has not returned.
fn may_be_made(told: Seq, history: &CaseHistory) -> bool {
    let mut calls = history.calls();
    calls.any(|call| {
        let makes = matches!(
            call.request(),
            Request::RunSandbox(_) | Request::CreateContainer(_)
        );
        makes && call.began().seq < told && !matches!(call.result(), Some(Ok(_)))
    })
}

fn is_shown(id: &ContainerId, history: &CaseHistory) -> bool {
    let mut calls = history.calls();
    calls.any(|call| match call.result() {
        Some(Ok(Reply::Containers(listed))) => listed.iter().any(|one| one.id == *id),
        Some(Ok(Reply::Sandboxes(listed))) => {
            let mut listed = listed.iter();
            listed.any(|one| ContainerId::from(&one.id) == *id)
        }
        _ => false,
    })
}
