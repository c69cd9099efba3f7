//! What the snapshots of a pod's events show, one after the other.

use std::collections::{BTreeMap, BTreeSet};

use super::invariants::Invariant;
use super::name_of;
use crate::history::{
    CaseHistory, ContainerId, ContainerState, EventKind, PodUid, Sighting, SubscriptionId,
};
use crate::outcome::Violation;

/// How far a container has come, as an event shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    Created,
    Running,
    Exited,
    Deleted,
}

/// A container that went back: what was shown of it, and what an event showed later.
type StepBack<'a> = [(Progress, &'a Sighting); 2];

/// Each container that a later event shows in an earlier state.
pub(super) fn snapshots_never_go_back(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let steps = steps_back(history);
    let mut told = BTreeSet::new();
    let steps = steps.filter(|(_, container, _)| told.insert(*container));
    steps
        .map(|(_, container, step)| broken(rule, history, container, step))
        .collect()
}

/// The pods of which an event has shown an earlier state than one before it.
pub(super) fn pods_that_went_back(history: &CaseHistory) -> BTreeSet<&PodUid> {
    steps_back(history).map(|(pod, ..)| pod).collect()
}

fn steps_back(
    history: &CaseHistory,
) -> impl Iterator<Item = (&PodUid, &ContainerId, StepBack<'_>)> {
    let pods = by_pod(history).into_iter();
    pods.flat_map(|((pod, _), events)| {
        let steps = steps_back_of(&events).into_iter();
        steps.map(move |(container, step)| (pod, container, step))
    })
}

/// As in a kubelet up to 1.36, an event does not count whose `created_at` is older than what was
/// told of the pod before.
fn steps_back_of<'a>(events: &[&'a Sighting]) -> Vec<(&'a ContainerId, StepBack<'a>)> {
    let mut told_ns = i64::MIN;
    let mut told: BTreeMap<&ContainerId, Progress> = BTreeMap::new();
    let mut shown: BTreeMap<&ContainerId, (Progress, &Sighting)> = BTreeMap::new();
    let mut steps = Vec::new();
    for &sighting in events {
        let event = sighting.event();
        let says = said(event.kind);
        let before = told.get(&event.container).copied().unwrap_or(says);
        told.insert(&event.container, before.max(says));
        // Other rules tell of an event out of order, and of one that shows less than it says.
        let explained = |progress: Progress| says < before || progress < says;
        if event.created_at.0 < told_ns {
            continue;
        }
        told_ns = event.created_at.0;
        for (container, progress) in shows(sighting) {
            let earlier = shown.get(container).copied();
            match earlier.filter(|(before, _)| *before > progress) {
                None => {
                    shown.insert(container, (progress, sighting));
                }
                Some(_) if *container == event.container && explained(progress) => {}
                Some(earlier) => steps.push((container, [earlier, (progress, sighting)])),
            }
        }
    }
    steps
}

/// The events of each pod on each stream, in order of arrival.
fn by_pod(history: &CaseHistory) -> BTreeMap<(&PodUid, SubscriptionId), Vec<&Sighting>> {
    let sightings = history
        .subjects()
        .iter()
        .flat_map(|subject| &subject.sightings);
    let mut pods = BTreeMap::<_, Vec<_>>::new();
    for sighting in sightings {
        if let Some(uid) = sighting.event().pod_uid() {
            let of_pod = pods.entry((uid, sighting.subscription())).or_default();
            of_pod.push(sighting);
        }
    }
    for events in pods.values_mut() {
        events.sort_by_key(|sighting| sighting.seq());
    }
    pods
}

/// What an event tells of each container of its pod. Its own one's end is told by its type.
fn shows(sighting: &Sighting) -> impl Iterator<Item = (&ContainerId, Progress)> {
    let event = sighting.event();
    let deleted =
        (event.kind == EventKind::Deleted).then_some((&event.container, Progress::Deleted));
    let others = event.containers.iter().filter_map(move |status| {
        if event.kind == EventKind::Deleted && status.id == event.container {
            return None;
        }
        let progress = match status.state {
            ContainerState::Created => Progress::Created,
            ContainerState::Running => Progress::Running,
            ContainerState::Exited => Progress::Exited,
            ContainerState::Unknown(_) => return None,
        };
        Some((&status.id, progress))
    });
    deleted.into_iter().chain(others)
}

/// How far a container has come at least of which there is such an event.
fn said(event: EventKind) -> Progress {
    match event {
        EventKind::Created | EventKind::Unknown(_) => Progress::Created,
        EventKind::Started => Progress::Running,
        EventKind::Stopped => Progress::Exited,
        EventKind::Deleted => Progress::Deleted,
    }
}

fn broken(
    rule: &Invariant,
    history: &CaseHistory,
    container: &ContainerId,
    [(before, earlier), (after, later)]: StepBack<'_>,
) -> Violation {
    let mut subjects = history.subjects().iter();
    let subject = subjects.find(|subject| subject.id == *container);
    let mut evidence = vec![earlier.seq(), later.seq()];
    evidence.sort_unstable();
    rule.told(
        subject.map_or_else(|| container.to_string(), name_of),
        format!("{} or later in the snapshots that follow", word(before)),
        format!("{} after {}", word(after), word(before)),
        evidence,
    )
}

fn word(progress: Progress) -> &'static str {
    match progress {
        Progress::Created => "CREATED",
        Progress::Running => "RUNNING",
        Progress::Exited => "EXITED",
        Progress::Deleted => "deleted",
    }
}
