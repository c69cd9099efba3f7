//! What each container status in an event must say.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::invariants::Invariant;
use super::name_of;
use crate::history::{
    CaseHistory, ContainerId, ContainerState, ContainerStatus, EventKind, Reply, Request, Seq,
    Sighting, Subject, SubjectKind,
};
use crate::outcome::Violation;

pub(super) fn no_empty_status(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let mut broken = rule.on_each_event(history, |_, sighting| {
        let event = sighting.event();
        event
            .containers
            .iter()
            .enumerate()
            .find_map(|(place, status)| {
                let lacking = lacking(status)?;
                let expected = "an id, metadata, an image, its reference and created_at in each \
                                status";
                let kind = event.kind;
                let actual = format!("status {place} of {kind} has {lacking}");
                Some((expected.to_owned(), actual))
            })
    });
    broken.extend(changed_image_refs(rule, history));
    broken
}

/// Each container whose statuses do not all have the same `image_ref`.
fn changed_image_refs(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let refs = image_refs(history);
    let changed = |subject: &Subject| {
        let mut refs = refs.get(&subject.id)?.iter();
        let (first, shown) = refs.next()?;
        let (other, seq) = refs.find(|(other, _)| other != first)?;
        let expected = format!("image_ref `{first}`, as was shown first");
        let actual = format!("image_ref `{other}`");
        Some(rule.told(name_of(subject), expected, actual, vec![*shown, *seq]))
    };
    history.subjects().iter().filter_map(changed).collect()
}

/// The `image_ref` of each container in all that shows it: events, where one that is not set is
/// told by itself, and answers.
fn image_refs(history: &CaseHistory) -> BTreeMap<&ContainerId, Vec<(&str, Seq)>> {
    let mut refs = BTreeMap::<_, Vec<_>>::new();
    let sightings = history.subjects().iter().flat_map(|it| &it.sightings);
    for sighting in sightings {
        let statuses = sighting.event().containers.iter();
        for status in statuses.filter(|status| !status.image_ref.is_empty()) {
            let shown = (&*status.image_ref, sighting.seq());
            refs.entry(&status.id).or_default().push(shown);
        }
    }
    for call in history.calls() {
        if let (Some(ended), Some(Ok(Reply::ContainerStatus(report)))) =
            (call.ended(), call.result())
        {
            let shown = (&*report.status.image_ref, ended.seq);
            refs.entry(&report.status.id).or_default().push(shown);
        }
    }
    for shown in refs.values_mut() {
        shown.sort_by_key(|(_, seq)| *seq);
    }
    refs
}

fn lacking(status: &ContainerStatus) -> Option<&'static str> {
    if status.id.as_str().is_empty() {
        Some("no id")
    } else if status.metadata.is_none() {
        Some("no metadata")
    } else if status.image.is_none() {
        Some("no image")
    } else if status.image_ref.is_empty() {
        Some("no image_ref")
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

const HOUR_NS: u64 = 3_600 * 1_000_000_000;

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
pub(super) fn started(history: &CaseHistory) -> BTreeSet<&ContainerId> {
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
    let is_own = |kind| event.kind == kind && status.id == event.container;
    let made = ("the event's created_at", Some(event.created_at.0));
    let created = ("created_at", Some(created));
    let started = ("started_at", (runs || has_exited).then_some(started));
    let finished = ("finished_at", has_exited.then_some(finished));
    let nothing = ("", None);
    // A container can have exited before its STARTED is made. What is not of this hour is no time
    // in nanoseconds, of which another rule tells.
    let of_now = status.started_at.0.abs_diff(event.created_at.0) < HOUR_NS;
    let made_first = if is_own(EventKind::Started) && of_now {
        made
    } else {
        nothing
    };
    let made_last = if is_own(EventKind::Stopped) {
        made
    } else {
        nothing
    };
    let orders = [
        [created, started, finished, made_last],
        [started, made_first, nothing, nothing],
    ];
    orders.iter().find_map(|times| disorder(times))
}

/// The first of these times that is set and later than the next one that is. What is not set is
/// told elsewhere.
fn disorder(times: &[(&str, Option<i64>)]) -> Option<(String, String)> {
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
