//! The order of a container's events and states.

use crate::history::{ContainerState, EventKind};

/// The position of an event in the order of a container's events.
pub(super) fn rank(kind: EventKind) -> Option<u8> {
    match kind {
        EventKind::Created => Some(0),
        EventKind::Started => Some(1),
        EventKind::Stopped => Some(2),
        EventKind::Deleted => Some(3),
        EventKind::Unknown(_) => None,
    }
}

/// The position of a state in the order of a container's states; `None` if the CRI does not define
/// it.
pub(super) fn progress(state: ContainerState) -> Option<u8> {
    match state {
        ContainerState::Created => Some(0),
        ContainerState::Running => Some(1),
        ContainerState::Exited => Some(2),
        ContainerState::Unknown(_) => None,
    }
}
