//! Tolerances between the clocks of a runtime and of the suite, the units of times, and the
//! deadline of a missing event.

use std::time::Duration;

use crate::history::{CaseHistory, HostInstant, StepsEnd};
use crate::limits;

/// The runtime and the suite use the clock of the same host; this allows for its adjustments.
pub(super) const SLACK_NS: i64 = 1_000_000_000;

/// File times count in ticks of the kernel, the slowest of which has 100 in a second; some runtimes
/// take the time of an exit from a file.
pub(crate) const TICK_NS: i64 = 10_000_000;

/// The unit that a time seems to have, if not nanoseconds.
pub(super) fn unit_hint(at: i64, now_ns: i64) -> Option<String> {
    const UNITS: [(i64, &str); 3] = [
        (1_000_000_000, "looks like seconds"),
        (1_000_000, "looks like milliseconds"),
        (1_000, "looks like microseconds"),
    ];
    if at == 0 {
        return Some("means not set".to_owned());
    }
    let close = |factor: i64| {
        at.checked_mul(factor)
            .is_some_and(|ns| ns.abs_diff(now_ns) < DAY_NS)
    };
    UNITS
        .iter()
        .find(|(factor, _)| close(*factor))
        .map(|(_, hint)| (*hint).to_owned())
}

const DAY_NS: u64 = 86_400_000_000_000;

/// The maximum difference between two readings of one clock, by the runtime and by the suite.
pub(crate) const CLOCKS_APART_NS: i64 = 1_000_000;

/// The duration from one time to another; zero if it would be negative.
pub(crate) fn span(from_ns: i64, to_ns: i64) -> Duration {
    Duration::from_nanos(u64::try_from(to_ns.saturating_sub(from_ns)).unwrap_or_default())
}

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
