//! What each container status in an event must say.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use super::invariants::Invariant;
use crate::history::{
    CaseHistory, ContainerId, ContainerState, ContainerStatus, EventKind, Request, Sighting,
    SubjectKind,
};
use crate::outcome::Violation;

pub(super) fn no_empty_status(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    rule.on_each_event(history, |_, sighting| {
        let event = sighting.event();
        event
            .containers
            .iter()
            .enumerate()
            .find_map(|(place, status)| {
                let lacking = lacking(status)?;
                let expected = "an id, metadata, an image and created_at in each status".to_owned();
                Some((
                    expected,
                    format!("status {place} of {} has {lacking}", event.kind),
                ))
            })
    })
}

fn lacking(status: &ContainerStatus) -> Option<&'static str> {
    if status.id.as_str().is_empty() {
        Some("no id")
    } else if status.metadata.is_none() {
        Some("no metadata")
    } else if status.image.is_none() {
        Some("no image")
    } else if status.created_at.0 == 0 {
        Some("no created_at")
    } else {
        None
    }
}

pub(super) fn status_not_older(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    rule.on_each_event(history, |_, sighting| {
        let event = sighting.event();
        let status = event.own_status()?;
        let expected = match (event.kind, status.state) {
            (EventKind::Deleted, _) => "no status of it in DELETED",
            (EventKind::Stopped, ContainerState::Exited)
            | (EventKind::Started, ContainerState::Running | ContainerState::Exited)
            | (
                EventKind::Created,
                ContainerState::Created | ContainerState::Running | ContainerState::Exited,
            )
            | (EventKind::Unknown(_), _) => return None,
            (EventKind::Stopped, _) => "EXITED in STOPPED",
            (EventKind::Started, _) => "RUNNING or EXITED in STARTED",
            (EventKind::Created, _) => "CREATED, RUNNING or EXITED in CREATED",
        };
        Some((
            expected.to_owned(),
            format!("{} in {}", status.state, event.kind),
        ))
    })
}

pub(super) fn own_container_once(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    rule.on_each_event(history, |subject, sighting| {
        let event = sighting.event();
        let deleted = subject.first(EventKind::Deleted);
        // Of its presence in DELETED another rule tells, and of an event after DELETED, too.
        let is_deleted = deleted.is_some_and(|deleted| deleted.seq() <= sighting.seq());
        if is_deleted || !matches!(subject.kind, SubjectKind::Container(_)) {
            return None;
        }
        let statuses = event.containers.iter();
        let times = statuses
            .filter(|status| status.id == event.container)
            .count();
        (times != 1).then(|| {
            let (kind, among) = (event.kind, event.containers.len());
            let expected = format!("one status of it among the {among} in {kind}");
            let actual = match times {
                0 => format!("it is missing from {kind}"),
                _ => format!("there are {times} in {kind}"),
            };
            (expected, actual)
        })
    })
}

/// The times of files count in ticks of the kernel, of which the slowest has 100 in a second; some
/// runtimes take the time of an exit from a file.
pub(super) const TICK_NS: i64 = 10_000_000;

pub(super) fn times_in_order(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let started = started(history);
    rule.on_each_event(history, |_, sighting| {
        let event = sighting.event();
        event.containers.iter().find_map(|status| {
            let started = started.contains(&status.id);
            let (expected, actual) = wrong_times(status, started, sighting)?;
            let of_whom = if status.id == event.container {
                String::new()
            } else {
                format!(", of {}", status.id)
            };
            let kind = event.kind;
            Some((format!("{expected} in {kind}{of_whom}"), actual))
        })
    })
}

/// The containers that a call has started.
fn started(history: &CaseHistory) -> BTreeSet<&ContainerId> {
    let started = history.calls().filter_map(|call| match call.request() {
        Request::StartContainer(id) if matches!(call.result(), Some(Ok(_))) => Some(id),
        _ => None,
    });
    started.collect()
}

fn wrong_times(
    status: &ContainerStatus,
    was_started: bool,
    sighting: &Sighting,
) -> Option<(String, String)> {
    let event = sighting.event();
    let has_exited = status.state == ContainerState::Exited;
    let runs = status.state == ContainerState::Running;
    let (created, started) = (status.created_at.0, status.started_at.0);
    let finished = status.finished_at.0;
    if started == 0 && (runs || has_exited && was_started) {
        let actual = format!("none, of what is {}", status.state);
        return Some(("started_at".to_owned(), actual));
    }
    if finished == 0 && has_exited {
        let actual = format!("none, of what is {}", status.state);
        return Some(("finished_at".to_owned(), actual));
    }
    let is_own_end = event.kind == EventKind::Stopped && status.id == event.container;
    let times = [
        ("created_at", Some(created)),
        ("started_at", (runs || has_exited).then_some(started)),
        ("finished_at", has_exited.then_some(finished)),
        (
            "the event's created_at",
            is_own_end.then_some(event.created_at.0),
        ),
    ];
    // What is not set is told above, or by another rule.
    let set = times
        .iter()
        .filter_map(|(name, time)| Some((name, time.filter(|time| *time != 0)?)));
    let mut pairs = set.clone().zip(set.skip(1));
    pairs.find_map(|((before, earlier), (after, later))| {
        (later.saturating_add(TICK_NS) < earlier).then(|| {
            let early = Duration::from_nanos(earlier.abs_diff(later));
            let expected = format!("{before} not {early:?} after {after}");
            (expected, format!("{before} after {after}"))
        })
    })
}
