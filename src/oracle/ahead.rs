//! States that were shown before they were reached, by what calls prove afterwards.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::invariants::Invariant;
use super::name_of;
use crate::history::{
    CaseHistory, ContainerId, ContainerState, Entry, Reply, Request, Sighting, Subject,
};
use crate::outcome::Violation;

/// A call that found a container no further than in this state; it may have got on meanwhile.
struct Found<'a> {
    state: ContainerState,
    by: &'static str,
    began: &'a Entry,
    ended: &'a Entry,
}

/// Each container that an event showed further than a call found it that began after the event had
/// come.
pub(super) fn no_state_ahead(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let (found, shown) = (found(history), shown(history));
    let ahead = |subject: &Subject| {
        let found = found.get(&subject.id)?;
        let mut shown = shown.get(&subject.id)?.iter();
        shown.find_map(|(sighting, state)| {
            let is_later = |found: &&Found| found.began.seq > sighting.seq();
            let is_less = |found: &&Found| progress(found.state) < progress(*state);
            let found = found.iter().filter(is_later).find(is_less)?;
            let event = sighting.event();
            let expected = format!(
                "{} in {}, as {} found it later",
                found.state, event.kind, found.by
            );
            let evidence = vec![sighting.seq(), found.began.seq, found.ended.seq];
            Some(rule.told(name_of(subject), expected, state.to_string(), evidence))
        })
    };
    history.subjects().iter().filter_map(ahead).collect()
}

/// How far a container is in a state; none in one that the CRI does not define.
pub(super) fn progress(state: ContainerState) -> Option<u8> {
    match state {
        ContainerState::Created => Some(0),
        ContainerState::Running => Some(1),
        ContainerState::Exited => Some(2),
        ContainerState::Unknown(_) => None,
    }
}

/// What calls found of each container, where it had not come to its end. Only what was created and
/// no more can be started.
fn found(history: &CaseHistory) -> BTreeMap<&ContainerId, Vec<Found<'_>>> {
    let mut all = BTreeMap::<&ContainerId, Vec<Found<'_>>>::new();
    for call in history.calls() {
        let (Some(ended), Some(Ok(reply))) = (call.ended(), call.result()) else {
            continue;
        };
        let mut find = |id, state, by| {
            if state == ContainerState::Created || state == ContainerState::Running {
                let began = call.began();
                let found = Found {
                    state,
                    by,
                    began,
                    ended,
                };
                all.entry(id).or_default().push(found);
            }
        };
        match (call.request(), reply) {
            (Request::StartContainer(id), _) => find(id, ContainerState::Created, "StartContainer"),
            (_, Reply::ContainerStatus(report)) => {
                let status = &report.status;
                find(&status.id, status.state, "ContainerStatus");
            }
            (_, Reply::Containers(listed)) => {
                for listing in listed {
                    find(&listing.id, listing.state, "ListContainers");
                }
            }
            _ => {}
        }
    }
    all
}

/// What events have shown of each container, unless it was only created.
fn shown(history: &CaseHistory) -> BTreeMap<&ContainerId, Vec<(&Sighting, ContainerState)>> {
    let mut shown = BTreeMap::<_, Vec<_>>::new();
    let subjects = history.subjects().iter();
    for sighting in subjects.flat_map(|subject| &subject.sightings) {
        for status in &sighting.event().containers {
            if progress(status.state) > Some(0) {
                let states = shown.entry(&status.id).or_default();
                states.push((sighting, status.state));
            }
        }
    }
    shown
}
