//! What a runtime and its node can do, as far as walks use it.

use std::collections::BTreeSet;

use crate::case::Need;

/// The needs that are met, how the runtime behaves, and what the user allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The needs of cases that are met.
    pub met: BTreeSet<Need>,
    /// In which ways the runtime behaves that not every runtime does.
    pub behaviours: BTreeSet<Behaviour>,
    /// Whether the runtime may be restarted, and monitors and sandboxes killed.
    pub disruption: bool,
}

/// A way in which a runtime may behave or not. Unless it is known to behave so, a walk does not do
/// what would then end otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behaviour {
    /// A container whose program is missing is created, and fails to start.
    CreatesWithoutProgram,
    /// A second container of the same name and attempt is refused.
    RefusesTwins,
    /// A subscriber that does not read is not known to hold up all else.
    OutlivesStalledSubscriber,
}

impl Behaviour {
    pub const ALL: [Self; 3] = [
        Self::CreatesWithoutProgram,
        Self::RefusesTwins,
        Self::OutlivesStalledSubscriber,
    ];

    /// What walks leave out where the runtime does not behave so.
    pub fn allows(self) -> &'static str {
        match self {
            Self::CreatesWithoutProgram => "missing-program",
            Self::RefusesTwins => "twins",
            Self::OutlivesStalledSubscriber => "stalled-subscriber",
        }
    }
}

impl Capabilities {
    /// The needs that walks can make use of.
    pub const USED: [Need; 17] = [
        Need::MemoryLimit,
        Need::CgroupV2,
        Need::PodCgroup,
        Need::Broadcast,
        Need::HostPid,
        Need::ContainerPid,
        Need::Monitor,
        Need::CorePipe,
        Need::Handlers,
        Need::Network,
        Need::StreamedLists,
        Need::StopSignal,
        Need::FaultyHandler,
        Need::OutsideCri,
        Need::ClockSteps,
        Need::RuntimeKill,
        Need::SmallDisk,
    ];

    /// Whether the runtime behaves so.
    pub fn has(&self, behaviour: Behaviour) -> bool {
        self.behaviours.contains(&behaviour)
    }

    /// Whether these needs are met.
    pub fn meet(&self, needs: &[Need]) -> bool {
        needs.iter().all(|need| self.met.contains(need))
    }
}
