//! Tolerances between the clocks of a runtime and of the suite, and the units of times.

use std::time::Duration;

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
