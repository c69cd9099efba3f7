//! How containers ended, as their STOPPED told it, and as everything else does.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::invariants::Invariant;
use super::name_of;
use super::statuses::started;
use crate::history::{
    CaseHistory, ContainerId, ContainerState, ContainerStatus, EventKind, Reply, Request,
    RuntimeNanos, SandboxId, Seq, Sighting, Subject, SubjectKind,
};
use crate::outcome::Violation;

/// The exit code of a process that SIGKILL ended.
const KILLED: i32 = 137;

/// What is told of a container after its STOPPED.
struct Told<'a> {
    status: &'a ContainerStatus,
    /// When the event was made that shows it.
    made: Option<RuntimeNanos>,
    /// Where that was asked for, and where it came. An event is both.
    evidence: [Seq; 2],
}

impl Told<'_> {
    fn is_after(&self, stopped: &Sighting) -> bool {
        let made = self.made;
        let made_after = made.is_none_or(|made| made >= stopped.event().created_at);
        made_after && self.evidence[0] > stopped.seq()
    }
}

pub(super) fn what_stopped_tells_stays(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let later = told_of_each(history);
    let changed = |subject: &Subject| {
        let (expected, actual, evidence) = changed(subject, later.get(&subject.id)?)?;
        Some(rule.told(name_of(subject), expected, actual, evidence))
    };
    history.subjects().iter().filter_map(changed).collect()
}

/// What was told of a container's end that STOPPED told otherwise: expected, actual, and the proof.
pub(super) fn what_stopped_told_changed(
    history: &CaseHistory,
    subject: &Subject,
) -> Option<(String, String, Vec<Seq>)> {
    changed(subject, told_of_each(history).get(&subject.id)?)
}

/// How many calls have told of a container's end after its STOPPED.
pub(super) fn ends_told(history: &CaseHistory, subject: &Subject) -> usize {
    let all = told_of_each(history);
    let told = all.get(&subject.id).map_or(&[][..], Vec::as_slice);
    let stopped = subject.first(EventKind::Stopped);
    let told = told.iter().filter(|told| told.made.is_none());
    stopped.map_or(0, |stopped| {
        told.filter(|told| told.is_after(stopped)).count()
    })
}

fn changed(subject: &Subject, later: &[Told<'_>]) -> Option<(String, String, Vec<Seq>)> {
    let stopped = subject.first(EventKind::Stopped)?;
    let end = stopped.event().own_status()?;
    if end.state != ContainerState::Exited {
        return None;
    }
    let mut later = later.iter().filter(|told| told.is_after(stopped));
    later.find_map(|told| {
        let (expected, actual) = difference(end, told.status)?;
        let mut evidence = vec![stopped.seq()];
        evidence.extend(told.evidence);
        evidence.dedup();
        Some((expected, actual, evidence))
    })
}

/// All that statuses and siblings' events tell of each container.
fn told_of_each(history: &CaseHistory) -> BTreeMap<&ContainerId, Vec<Told<'_>>> {
    let mut told = BTreeMap::<_, Vec<_>>::new();
    for call in history.calls() {
        if let (Some(ended), Some(Ok(Reply::ContainerStatus(report)))) =
            (call.ended(), call.result())
        {
            let evidence = [call.began().seq, ended.seq];
            let status: &ContainerStatus = &report.status;
            told.entry(&status.id).or_default().push(Told {
                status,
                made: None,
                evidence,
            });
        }
    }
    let subjects = history.subjects().iter();
    for sighting in subjects.flat_map(|subject| &subject.sightings) {
        let event = sighting.event();
        let others = event.containers.iter();
        // That a snapshot goes back to an earlier state is told by another rule.
        let others = others.filter(|status| {
            status.id != event.container && status.state == ContainerState::Exited
        });
        for status in others {
            told.entry(&status.id).or_default().push(Told {
                status,
                made: Some(event.created_at),
                evidence: [sighting.seq(); 2],
            });
        }
    }
    told
}

/// What is told otherwise of an end.
fn difference(end: &ContainerStatus, later: &ContainerStatus) -> Option<(String, String)> {
    let told = |status: &ContainerStatus| {
        let (started, finished) = (status.started_at, status.finished_at);
        (status.state, status.exit_code, started, finished)
    };
    if told(end) == told(later) && end.reason == later.reason {
        return None;
    }
    let fields = |status: &ContainerStatus| {
        [
            ("state", status.state.to_string()),
            ("exit code", status.exit_code.to_string()),
            ("reason", format!("`{}`", status.reason)),
            ("message", format!("`{}`", status.message)),
            ("started_at", status.started_at.0.to_string()),
            ("finished_at", status.finished_at.0.to_string()),
        ]
    };
    let pairs = fields(end).into_iter().zip(fields(later));
    let mut differing = pairs.filter(|(told, later)| told != later);
    let ((field, told), (_, later)) = differing.next()?;
    Some((
        format!("{field} {told}, as STOPPED told"),
        format!("{field} {later}"),
    ))
}

/// Of a container that nobody stopped and that has no limit, its command promises the code. One
/// that nothing but a kill can end has the code of a kill, whoever ended it.
pub(super) fn exit_code_of_the_process(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let disturbed = Disturbed::of(history);
    let started = started(history);
    let wrong = |subject: &Subject| {
        let SubjectKind::Container(spec) = &subject.kind else {
            return None;
        };
        let stopped = subject.first(EventKind::Stopped)?;
        let end = stopped.event().own_status()?;
        let exited = end.state == ContainerState::Exited;
        let code = if disturbed.before(stopped, &subject.id, &spec.sandbox) {
            let ran = started.contains(&subject.id) && spec.ends_by_kill_alone();
            ran.then_some(KILLED)?
        } else {
            spec.declared_exit.filter(|_| spec.memory_bytes.is_none())?
        };
        (exited && end.exit_code != code).then(|| {
            let expected = format!("exit code {code} in STOPPED");
            let actual = format!("exit code {}, reason `{}`", end.exit_code, end.reason);
            rule.told(name_of(subject), expected, actual, vec![stopped.seq()])
        })
    };
    history.subjects().iter().filter_map(wrong).collect()
}

/// Where calls began that end a process, or that may have failed to start it.
struct Disturbed<'a> {
    containers: BTreeSet<(&'a ContainerId, Seq)>,
    sandboxes: BTreeSet<(&'a SandboxId, Seq)>,
}

impl<'a> Disturbed<'a> {
    fn of(history: &'a CaseHistory) -> Self {
        let mut disturbed = Self {
            containers: BTreeSet::new(),
            sandboxes: BTreeSet::new(),
        };
        for call in history.calls() {
            let began = call.began().seq;
            match call.request() {
                Request::StopContainer { container: id, .. } | Request::RemoveContainer(id) => {
                    disturbed.containers.insert((id, began));
                }
                Request::StartContainer(id) if !matches!(call.result(), Some(Ok(_))) => {
                    disturbed.containers.insert((id, began));
                }
                Request::StopSandbox(id) | Request::RemoveSandbox(id) => {
                    disturbed.sandboxes.insert((id, began));
                }
                _ => {}
            }
        }
        disturbed
    }

    fn before(&self, stopped: &Sighting, id: &ContainerId, sandbox: &SandboxId) -> bool {
        let until = stopped.seq();
        let container = self.containers.range((id, Seq(0))..(id, until));
        let sandbox = self.sandboxes.range((sandbox, Seq(0))..(sandbox, until));
        container.count() + sandbox.count() > 0
    }
}
