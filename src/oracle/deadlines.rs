//! The deadline of a missing event, and whether the suite would have read it by then.

use std::time::Duration;

use crate::history::{CaseHistory, HostInstant, StepsEnd};
use crate::limits;

/// Whether an event that was due after an instant has had its time: the driver has waited for it,
/// or the history has an entry after its deadline.
pub(super) fn had_its_time(history: &CaseHistory, after: HostInstant) -> bool {
    let bound = history.stretched(limits::EVENT_WAIT);
    let last = history.entries().last();
    history.steps_end() == Some(&StepsEnd::Complete)
        || last.is_some_and(|last| last.at.since(after) > bound)
}

/// The time for which the suite was held up before the end of the steps, if so long that a missing
/// event may have come and not been read.
pub(crate) fn held_up_at_the_end(history: &CaseHistory) -> Option<Duration> {
    let bound = history.stretched(limits::EVENT_WAIT);
    history.held_up_before(history.steps_ended_at()?, bound)
}
