//! The deadline of a missing event, and whether the suite would have read it by then.

use std::time::Duration;

use crate::history::{CaseHistory, HostInstant, StepsEnd};
use crate::limits;

/// Whether the deadline of an event that was due after an instant has passed: the driver has waited
/// for it, or the history has an entry after its deadline. It has not passed if the suite was held
/// up for so long that the event may be unread. In the history of a foreign pod, the time in which
/// the suite was held up does not count.
pub(super) fn deadline_passed(history: &CaseHistory, after: HostInstant) -> bool {
    let bound = history.scaled(limits::EVENT_WAIT);
    let Some(last) = history.entries().last() else {
        return false;
    };
    if history.is_of_foreign_pod() {
        return history.not_held_up(after, last.at) > bound;
    }
    let waited = history.steps_end() == Some(&StepsEnd::Complete) || last.at.since(after) > bound;
    waited && history.held_up_before(last.at, bound).is_none()
}

/// The time for which the suite was held up before the end of the steps, if so long that a missing
/// event may be unread.
pub(crate) fn held_up_at_the_end(history: &CaseHistory) -> Option<Duration> {
    let bound = history.scaled(limits::EVENT_WAIT);
    history.held_up_before(history.steps_ended_at()?, bound)
}
