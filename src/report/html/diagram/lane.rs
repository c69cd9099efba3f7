//! The lanes of a diagram, from left to right.

use std::collections::BTreeSet;

use crate::history::SubscriptionId;

/// The column of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// Calls that change state.
    Calls,
    /// Events of a subscription.
    Events(SubscriptionId),
    /// Read-only calls.
    Lists,
    /// Facts read from the kernel.
    Kernel,
    /// Waits, and errors of the suite.
    Faults,
}

impl Lane {
    /// These lanes and the mandatory ones.
    pub(super) fn shown(used: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut lanes: BTreeSet<Self> = used.collect();
        lanes.extend([Self::Calls, Self::Lists]);
        if !lanes.iter().any(|lane| matches!(lane, Self::Events(_))) {
            lanes.insert(Self::Events(SubscriptionId(0)));
        }
        lanes.into_iter().collect()
    }

    /// Its heading; `several` if there are several subscriptions.
    pub(super) fn heading(self, several: bool) -> String {
        match self {
            Self::Calls => "Calls".to_owned(),
            Self::Events(stream) if several => format!("Events of stream {stream}"),
            Self::Events(_) => "Events".to_owned(),
            Self::Lists => "Lists".to_owned(),
            Self::Kernel => "Kernel".to_owned(),
            Self::Faults => "Waits and faults".to_owned(),
        }
    }

    /// In pixels.
    pub(super) fn width(self) -> usize {
        match self {
            Self::Calls => 250,
            Self::Events(_) => 280,
            Self::Lists => 270,
            Self::Kernel => 190,
            Self::Faults => 300,
        }
    }
}
