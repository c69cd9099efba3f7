//! States of containers and sandboxes with the events of their changes, and times as a kubelet
//! compares them.
//!
//! Source: kubernetes `pkg/kubelet/pleg/generic.go` (`convertState`, `generateEvents`),
//! `pkg/kubelet/kuberuntime/helpers.go` (`toKubeContainerState`, `sandboxToKubeContainer`).

use std::time::Duration;

use crate::history::{ContainerState, RuntimeNanos, SandboxState};

/// The listed state of a container or a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    Created,
    /// Running; a sandbox that is ready.
    Running,
    /// Exited; a sandbox that is not ready.
    Exited,
    /// Unknown to the runtime, or not defined by the CRI.
    Unknown,
}

impl State {
    /// Every state, in the order of their numbers in the CRI.
    pub const ALL: [Self; 4] = [Self::Created, Self::Running, Self::Exited, Self::Unknown];

    /// The value of the label `container_state`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Running => "running",
            Self::Exited => "exited",
            Self::Unknown => "unknown",
        }
    }

    /// The phase in which the PLEG sees it.
    pub fn phase(self) -> Phase {
        match self {
            Self::Running => Phase::Running,
            Self::Exited => Phase::Exited,
            Self::Created | Self::Unknown => Phase::Unknown,
        }
    }
}

impl From<ContainerState> for State {
    fn from(state: ContainerState) -> Self {
        match state {
            ContainerState::Created => Self::Created,
            ContainerState::Running => Self::Running,
            ContainerState::Exited => Self::Exited,
            ContainerState::Unknown(_) => Self::Unknown,
        }
    }
}

impl From<SandboxState> for State {
    fn from(state: SandboxState) -> Self {
        match state {
            SandboxState::Ready => Self::Running,
            SandboxState::NotReady => Self::Exited,
            SandboxState::Unknown(_) => Self::Unknown,
        }
    }
}

/// A state as the PLEG compares it: created and unknown are the same. `None` is a missing object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    Running,
    Exited,
    /// Created or unknown.
    Unknown,
}

/// The change between two successive phases of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    /// Nothing happened.
    Same,
    /// A change that is computed but never sent (`ContainerChanged`).
    Changed,
    /// It is running.
    Started,
    /// It has exited.
    Died,
    /// It is gone, and its exit was already reported.
    Removed,
    /// It is gone, and its exit was not reported.
    DiedAndRemoved,
}

/// A time as a kubelet compares it: nanoseconds since 1970, or [`Moment::NEVER`].
///
/// Like a kubelet, this type does not distinguish a runtime's timestamps from the local clock. That
/// is why a skewed `created_at` is dangerous, so it must not be prevented here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    /// Go's zero time, which is before every other moment.
    pub const NEVER: Self = Self(i64::MIN);

    pub const fn from_ns(ns: i64) -> Self {
        Self(ns)
    }

    pub const fn ns(self) -> i64 {
        self.0
    }

    /// The duration since `earlier`; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        let ns = i128::from(self.0) - i128::from(earlier.0);
        Duration::from_nanos(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
    }

    pub fn plus(self, duration: Duration) -> Self {
        let ns = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(ns))
    }
}

impl From<RuntimeNanos> for Moment {
    fn from(nanos: RuntimeNanos) -> Self {
        Self(nanos.0)
    }
}

/// The transition for each pair of phases.
pub(super) fn transition(old: Option<Phase>, new: Option<Phase>) -> Transition {
    match (old, new) {
        (old, new) if old == new => Transition::Same,
        (_, Some(Phase::Running)) => Transition::Started,
        (_, Some(Phase::Exited)) => Transition::Died,
        (_, Some(Phase::Unknown)) => Transition::Changed,
        (Some(Phase::Exited), None) => Transition::Removed,
        (_, None) => Transition::DiedAndRemoved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_that_of_the_kubelet() {
        let phases = [
            Some(Phase::Running),
            Some(Phase::Exited),
            Some(Phase::Unknown),
            None,
        ];
        let table: Vec<String> = [
            None,
            Some(Phase::Running),
            Some(Phase::Exited),
            Some(Phase::Unknown),
        ]
        .into_iter()
        .map(|old| format!("{:?}", phases.map(|new| transition(old, new))))
        .collect();
        expect_test::expect![[r"
            [Started, Died, Changed, Same]
            [Same, Died, Changed, DiedAndRemoved]
            [Started, Same, Changed, Removed]
            [Started, Died, Same, DiedAndRemoved]"]]
        .assert_eq(&table.join("\n"));
    }

    #[test]
    fn numbers_that_the_cri_does_not_define_are_unknown() {
        assert_eq!(State::from(ContainerState::Unknown(77)), State::Unknown);
        assert_eq!(State::from(SandboxState::Unknown(-1)), State::Unknown);
    }

    #[test]
    fn differences_saturate() {
        let last = Moment::from_ns(i64::MAX);
        assert_eq!(last.since(Moment::NEVER), Duration::from_nanos(u64::MAX));
        assert_eq!(Moment::NEVER.since(last), Duration::ZERO);
        assert_eq!(last.plus(Duration::MAX), last);
        assert!(Moment::NEVER < Moment::from_ns(0));
    }
}
