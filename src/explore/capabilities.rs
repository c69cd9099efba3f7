//! What a runtime and its node can do, as far as walks use it.

use std::collections::BTreeSet;

use crate::case::Need;

/// The needs that are met, and what the user allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The needs of cases that are met.
    pub met: BTreeSet<Need>,
    /// Whether the runtime may be restarted, and monitors and sandboxes killed.
    pub disruption: bool,
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

    /// Whether a need is met.
    #[must_use]
    pub fn meets(&self, need: Need) -> bool {
        self.met.contains(&need)
    }
}
