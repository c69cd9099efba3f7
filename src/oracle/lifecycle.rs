//! The order of a container's events and states.

use crate::history::{ContainerState, EventKind};

/// The place of an event in a container's life.
pub(super) fn rank(kind: EventKind) -> Option<u8> {
    match kind {
        EventKind::Created => Some(0),
        EventKind::Started => Some(1),
        EventKind::Stopped => Some(2),
        EventKind::Deleted => Some(3),
        EventKind::Unknown(_) => None,
    }
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
