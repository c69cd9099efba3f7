//! A pod whose changes are being recorded.

use std::time::Duration;

use crate::history::{CaseHistory, HostInstant};
use crate::limits;

#[derive(Debug)]
pub(super) struct Followed {
    pub(super) history: CaseHistory,
    pub(super) since: HostInstant,
    pub(super) changed: HostInstant,
    /// The end of a relist that began after the last change.
    pub(super) relisted: Option<HostInstant>,
}

impl Followed {
    pub(super) fn changed(&mut self, at: HostInstant) {
        (self.changed, self.relisted) = (at, None);
    }

    /// Whether the relist after its last change is older than `within`, after which an event is
    /// late, and than the maximum duration of a relist. Delays of the suite itself do not count.
    pub(super) fn is_quiet(&self, within: Duration, now: HostInstant) -> bool {
        let passed = |since| self.history.not_held_up(since, now);
        let is_settled = passed(self.changed) > within + limits::WATCH_SETTLING;
        is_settled && self.relisted.is_some_and(|at| passed(at) > within)
    }
}
