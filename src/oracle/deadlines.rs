//! Whether an event that has not come has had its time, and whether the suite would have read it.

use std::time::Duration;

use crate::history::{CaseHistory, HostInstant, StepsEnd};
use crate::limits;

/// Whether whatever was to come soon after an instant has had its time: the driver has waited for
/// it, or something happened later than that.
pub(super) fn had_its_time(history: &CaseHistory, after: HostInstant) -> bool {
    let bound = history.stretched(limits::EVENT_WAIT);
    let last = history.entries().last();
    history.steps_end() == Some(&StepsEnd::Complete)
        || last.is_some_and(|last| last.at.since(after) > bound)
}

/// For how long the suite was held up before the steps were over, if that was so long that what has
/// not come by then may have come and not been read.
pub(crate) fn held_up_at_the_end(history: &CaseHistory) -> Option<Duration> {
    let bound = history.stretched(limits::EVENT_WAIT);
    history.held_up_before(history.steps_ended_at()?, bound)
}
