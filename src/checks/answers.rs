//! The lists and statuses that show the state of a sandbox or container.

use super::labels::carries;
use super::subject_events::SubjectEvents;
use crate::history::{
    CallFault, ContainerId, ContainerState, Entry, EventKind, Reply, Request, SandboxState,
    StatusCode, SubjectKind,
};

impl SubjectEvents<'_, '_> {
    /// The lists and statuses of the subject before the teardown, in order.
    pub(super) fn answers(&self) -> impl Iterator<Item = Answer<'_>> {
        self.index.history.calls().filter_map(|call| {
            let ended = call.ended()?;
            let shown = self.shown_by(call.request(), call.result()?)?;
            self.index.history.within_steps(ended.seq).then(|| Answer {
                began: call.began(),
                ended,
                by: call.request().method(),
                shown,
            })
        })
    }

    fn shown_by(&self, request: &Request, result: &Result<Reply, CallFault>) -> Option<ShownState> {
        let id = &self.subject.id;
        let is_of_subject = match request {
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
        if !is_of_subject {
            return None;
        }
        Some(match result {
            Ok(Reply::ContainerStatus(report)) => ShownState::Container(report.status.state),
            Ok(Reply::SandboxStatus(status)) => ShownState::Sandbox(status.status.state),
            Ok(Reply::Containers(listed)) => {
                let own = listed.iter().find(|listing| listing.id == *id);
                own.map_or(ShownState::Absent, |own| ShownState::Container(own.state))
            }
            Ok(Reply::Sandboxes(listed)) => {
                let own = listed.iter().find(|one| ContainerId::from(&one.id) == *id);
                own.map_or(ShownState::Absent, |own| ShownState::Sandbox(own.state))
            }
            Err(fault) if fault.code == StatusCode::NOT_FOUND => ShownState::Absent,
            // A runtime that cannot be reached, or that is slow, has answered nothing.
            Err(fault) if UNANSWERED.contains(&fault.code) => return None,
            Err(fault) => ShownState::Failed(fault.code),
            Ok(_) => return None,
        })
    }
}

/// The state of a subject in the reply of a call.
pub(super) struct Answer<'a> {
    pub(super) began: &'a Entry,
    pub(super) ended: &'a Entry,
    pub(super) by: &'static str,
    pub(super) shown: ShownState,
}

/// The codes of calls that the runtime did not answer.
const UNANSWERED: [StatusCode; 3] = [
    StatusCode::UNAVAILABLE,
    StatusCode::DEADLINE_EXCEEDED,
    StatusCode::CANCELLED,
];

/// The state of a subject; absent if a list lacks it or a status is `NOT_FOUND`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownState {
    Container(ContainerState),
    Sandbox(SandboxState),
    Absent,
    /// The call failed with another code.
    Failed(StatusCode),
}

impl ShownState {
    /// The event that reports this state; `None` for UNKNOWN and for a failed call.
    pub(super) fn reached(self) -> Option<EventKind> {
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
            | Self::Sandbox(SandboxState::Unknown(_))
            | Self::Failed(_) => None,
        }
    }

    pub(super) fn words(self) -> String {
        match self {
            Self::Container(state) => format!("shows it {state}"),
            Self::Sandbox(state) => format!("shows it {state}"),
            Self::Absent => "does not show it".to_owned(),
            Self::Failed(code) => format!("fails with {code}"),
        }
    }
}
