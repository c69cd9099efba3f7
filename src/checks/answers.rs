//! The lists and statuses that show the state of a sandbox or container.

use super::subject_events::SubjectEvents;
use crate::history::{ContainerState, Entry, EventKind, SandboxState, StatusCode};
use crate::oracle::{Message, Object};

impl SubjectEvents<'_, '_> {
    /// The lists and statuses of the subject before the teardown, in order.
    pub(super) fn answers(&self) -> impl Iterator<Item = Answer<'_>> {
        let object = self.index.object(&self.subject.id);
        let answers = object.map(Object::answers).unwrap_or_default().into_iter();
        let answers = answers.filter(|(_, ended, _)| self.index.history.within_steps(ended.seq));
        answers.map(|(call, ended, said)| Answer {
            began: call.began(),
            ended,
            by: call.request().method(),
            shown: match said {
                Ok(Some(Message::Status(status))) => ShownState::Container(status.state),
                Ok(Some(Message::Item(item))) => ShownState::Container(item.state),
                Ok(Some(Message::Sandbox(status))) => ShownState::Sandbox(status.state),
                Ok(Some(Message::SandboxItem(item))) => ShownState::Sandbox(item.state),
                Ok(None) => ShownState::Absent,
                Err(code) => ShownState::Failed(code),
            },
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
