//! What calls showed of a sandbox or container, and what that says of its events.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::calls::is_about;
use super::{Broken, Events, Finding, Holds, Pending};
use crate::case::ShownCheck;
use crate::history::{
    Call, CallFault, CaseHistory, ContainerId, ContainerState, Entry, EventKind, Labels, Reply,
    Request, SandboxId, SandboxState, Seq, StatusCode, SubjectKind,
};
use crate::oracle::rules::exit_status_never_changes::{ends_told, what_stopped_told_changed};

/// What a call showed of a subject.
struct Reading<'a> {
    began: &'a Entry,
    ended: &'a Entry,
    by: &'static str,
    shown: Shown,
}

/// How far a subject has come, as a call shows it.
#[derive(Clone, Copy)]
enum Shown {
    Container(ContainerState),
    Sandbox(SandboxState),
    Absent,
}

impl Shown {
    /// The latest event that tells no more than this; none for a state that the CRI does not know.
    fn reached(self) -> Option<EventKind> {
        match self {
            Self::Container(ContainerState::Created) => Some(EventKind::Created),
            Self::Container(ContainerState::Running) | Self::Sandbox(SandboxState::Ready) => {
                Some(EventKind::Started)
            }
            Self::Container(ContainerState::Exited) | Self::Sandbox(SandboxState::NotReady) => {
                Some(EventKind::Stopped)
            }
            Self::Absent => Some(EventKind::Deleted),
            Self::Container(ContainerState::Unknown(_))
            | Self::Sandbox(SandboxState::Unknown(_)) => None,
        }
    }

    fn words(self) -> String {
        match self {
            Self::Container(state) => format!("shows it {state}"),
            Self::Sandbox(state) => format!("shows it {state}"),
            Self::Absent => "does not show it".to_owned(),
        }
    }
}

impl Events<'_> {
    /// Whether all that was asked after an event shows as much as it told.
    pub(super) fn are_shown(&self, check: &ShownCheck) -> Finding {
        let Some(sighting) = self.first(check.event) else {
            return self.awaited(check.event);
        };
        let within = check.within.unwrap_or_default();
        let within = self.history.stretched(within);
        let removal = self.removal();
        let mut asked = 0;
        for reading in self.readings() {
            let after = reading.began.at.since(sighting.at());
            if reading.began.seq < sighting.seq() || after < within {
                continue;
            }
            let Some(reached) = reading.shown.reached() else {
                continue;
            };
            asked += 1;
            let too_little = reached < check.event;
            let vanished = reached == EventKind::Deleted
                && check.event != EventKind::Deleted
                && removal.is_none_or(|began| reading.ended.seq < began);
            if too_little || vanished {
                let (event, by) = (check.event, reading.by);
                let actual = format!("{by} {}, {after:?} after it", reading.shown.words());
                return Broken {
                    expected: format!("what was asked after {event} to show as much"),
                    actual,
                    evidence: vec![sighting.seq(), reading.began.seq, reading.ended.seq],
                };
            }
        }
        if asked > 0 {
            return Holds;
        }
        Pending {
            awaited: format!("a list or status that was asked for after {}", check.event),
            evidence: vec![sighting.seq()],
        }
    }

    /// Whether each call that asked about it was answered, or said that there is no such thing.
    pub(super) fn are_answered(&self) -> Finding {
        let mut answered = 0;
        for call in self.history.calls() {
            let asks = matches!(
                call.request(),
                Request::ContainerStatus(_) | Request::SandboxStatus(_)
            );
            let Some(ended) = call
                .ended()
                .filter(|_| asks && is_about(call, self.subject))
            else {
                continue;
            };
            answered += 1;
            if let Some(Err(fault)) = call.result()
                && fault.code != StatusCode::NOT_FOUND
                && self.history.within_steps(ended.seq)
            {
                let method = call.request().method();
                return Broken {
                    expected: format!("a status of {method}, or NOT_FOUND"),
                    actual: fault.code.to_string(),
                    evidence: vec![call.began().seq, ended.seq],
                };
            }
        }
        if answered > 0 {
            return Holds;
        }
        let awaited = "the answer to a call that asks for its status".to_owned();
        let evidence = Vec::new();
        Pending { awaited, evidence }
    }

    /// Whether what STOPPED told of the end stays.
    pub(super) fn are_final(&self) -> Finding {
        if self.first(EventKind::Stopped).is_none() {
            return self.awaited(EventKind::Stopped);
        }
        if let Some((mismatch, evidence)) = what_stopped_told_changed(self.history, self.subject) {
            return Broken {
                expected: mismatch.expected(),
                actual: mismatch.actual(),
                evidence,
            };
        }
        if ends_told(self.history, self.subject) > 0 {
            return Holds;
        }
        let awaited = "a status that was asked for after STOPPED".to_owned();
        let evidence = Vec::new();
        Pending { awaited, evidence }
    }

    /// Whether each event shows the containers that were listed before what caused it, and are
    /// still listed after it has come; and none that neither list shows.
    pub(super) fn show_all_containers(&self) -> Finding {
        let SubjectKind::Container(spec) = &self.subject.kind else {
            return Holds;
        };
        let lists: Vec<_> = self.lists(&spec.sandbox).collect();
        let mut compared = 0;
        for sighting in self.all() {
            let event = sighting.event();
            let Some(cause) = self.cause(event.kind) else {
                continue;
            };
            let before = lists.iter().rfind(|list| list.ended < cause.began().seq);
            let after = lists.iter().find(|list| list.began > sighting.seq());
            let (Some(before), Some(after)) = (before, after) else {
                continue;
            };
            compared += 1;
            let shown: BTreeSet<_> = event.containers.iter().map(|status| &status.id).collect();
            let mut stay = before.ids.intersection(&after.ids);
            let known: BTreeSet<_> = before.ids.union(&after.ids).copied().collect();
            let missing = stay.find(|id| !shown.contains(*id));
            let strange = shown.iter().find(|id| !known.contains(*id));
            let kind = event.kind;
            let actual = match (missing, strange) {
                (Some(id), _) => format!("{kind} lacks {id}, which both show"),
                (None, Some(id)) => format!("{kind} has {id}, which neither shows"),
                (None, None) => continue,
            };
            return Broken {
                expected: "the containers that the lists before and after show".to_owned(),
                actual,
                evidence: vec![before.ended, sighting.seq(), after.began],
            };
        }
        if compared > 0 {
            return Holds;
        }
        let awaited = "an event between two lists of its sandbox's containers".to_owned();
        let evidence = Vec::new();
        Pending { awaited, evidence }
    }

    /// The call that an event's transition cannot have come before: for the end of a process, its
    /// start.
    pub(super) fn cause(&self, event: EventKind) -> Option<&Call> {
        let subject = self.subject;
        self.history.calls().find(|call| match call.request() {
            Request::RunSandbox(_) => {
                let early = matches!(event, EventKind::Created | EventKind::Started);
                early && is_about(call, subject)
            }
            Request::CreateContainer(_) => event == EventKind::Created && is_about(call, subject),
            Request::StartContainer(_) => {
                let runs = matches!(event, EventKind::Started | EventKind::Stopped);
                runs && is_about(call, subject)
            }
            Request::StopSandbox(_) => event == EventKind::Stopped && is_about(call, subject),
            Request::RemoveContainer(_) => event == EventKind::Deleted && is_about(call, subject),
            Request::RemoveSandbox(id) => {
                let ends = matches!(event, EventKind::Stopped | EventKind::Deleted);
                let inside = match &subject.kind {
                    SubjectKind::Container(spec) => {
                        event == EventKind::Deleted && spec.sandbox == *id
                    }
                    SubjectKind::Sandbox(_) | SubjectKind::Stray => false,
                };
                inside || ends && is_about(call, subject)
            }
            _ => false,
        })
    }

    /// Where the removal of the subject began.
    fn removal(&self) -> Option<Seq> {
        let removal = self.cause(EventKind::Deleted)?;
        Some(removal.began().seq)
    }

    /// All that was answered before the teardown of where the subject is, in order.
    fn readings(&self) -> impl Iterator<Item = Reading<'_>> {
        self.history.calls().filter_map(|call| {
            let ended = call.ended()?;
            let shown = self.shown_by(call.request(), call.result()?)?;
            self.history.within_steps(ended.seq).then(|| Reading {
                began: call.began(),
                ended,
                by: call.request().method(),
                shown,
            })
        })
    }

    fn shown_by(&self, request: &Request, result: &Result<Reply, CallFault>) -> Option<Shown> {
        let id = &self.subject.id;
        let asked = match request {
            Request::ContainerStatus(of) => of == id,
            Request::SandboxStatus(of) => ContainerId::from(of) == *id,
            Request::ListContainers { sandbox, labels } => match &self.subject.kind {
                SubjectKind::Container(spec) => {
                    let inside = sandbox.as_ref().is_none_or(|of| *of == spec.sandbox);
                    inside && carries(&spec.labels, labels)
                }
                SubjectKind::Sandbox(_) | SubjectKind::Stray => false,
            },
            Request::ListSandboxes(labels) => match &self.subject.kind {
                SubjectKind::Sandbox(spec) => carries(&spec.labels, labels),
                SubjectKind::Container(_) | SubjectKind::Stray => false,
            },
            _ => false,
        };
        if !asked {
            return None;
        }
        Some(match result {
            Ok(Reply::ContainerStatus(report)) => Shown::Container(report.status.state),
            Ok(Reply::SandboxStatus(status)) => Shown::Sandbox(status.status.state),
            Ok(Reply::Containers(listed)) => {
                let own = listed.iter().find(|listing| listing.id == *id);
                own.map_or(Shown::Absent, |own| Shown::Container(own.state))
            }
            Ok(Reply::Sandboxes(listed)) => {
                let own = listed.iter().find(|one| ContainerId::from(&one.id) == *id);
                own.map_or(Shown::Absent, |own| Shown::Sandbox(own.state))
            }
            Err(fault) if fault.code == StatusCode::NOT_FOUND => Shown::Absent,
            Ok(_) | Err(_) => return None,
        })
    }

    fn lists(&self, of: &SandboxId) -> impl Iterator<Item = List<'_>> {
        lists(self.history, of.clone())
    }
}

/// One list of all containers of a sandbox.
struct List<'a> {
    began: Seq,
    ended: Seq,
    ids: BTreeSet<&'a ContainerId>,
}

fn lists(history: &CaseHistory, of: SandboxId) -> impl Iterator<Item = List<'_>> {
    history.calls().filter_map(move |call| {
        let Request::ListContainers { sandbox, .. } = call.request() else {
            return None;
        };
        let Some(Ok(Reply::Containers(listed))) = call.result() else {
            return None;
        };
        (*sandbox == Some(of.clone())).then_some(List {
            began: call.began().seq,
            ended: call.ended()?.seq,
            ids: listed.iter().map(|listing| &listing.id).collect(),
        })
    })
}

/// Whether these labels are among those of an object.
pub(super) fn carries(own: &Labels, wanted: &Labels) -> bool {
    let mut wanted = wanted.iter();
    wanted.all(|(key, value)| own.get(key) == Some(value))
}
