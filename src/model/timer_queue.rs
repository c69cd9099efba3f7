//! A queue of timers, ordered by due time, then by insertion.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::history::HostInstant;

/// Items, each with the instant at which it is due.
#[derive(Clone, Debug)]
pub(super) struct TimerQueue<T> {
    /// By the monotonic due times: the wall clock may be stepped meanwhile.
    due: BTreeMap<(u64, u64), (HostInstant, T)>,
    next: u64,
}

impl<T> Default for TimerQueue<T> {
    fn default() -> Self {
        Self {
            due: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<T> TimerQueue<T> {
    pub(super) fn put(&mut self, at: HostInstant, item: T) {
        self.due.insert((at.monotonic_ns, self.next), (at, item));
        self.next += 1;
    }

    /// When the next item is due.
    pub(super) fn next_due(&self) -> Option<HostInstant> {
        self.due.values().next().map(|(at, _)| *at)
    }

    /// Removes and returns the next item if it is due by now.
    pub(super) fn pop(&mut self, now: HostInstant) -> Option<(HostInstant, T)> {
        let first = self.due.first_entry()?;
        let (due, _) = *first.key();
        (due <= now.monotonic_ns).then(|| first.remove())
    }
}

/// The instant that is earlier by this much, on both clocks.
pub(super) fn before(at: HostInstant, by: Duration) -> HostInstant {
    let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
    HostInstant {
        monotonic_ns: at.monotonic_ns.saturating_sub(by),
        realtime_ns: at.realtime_ns.saturating_sub_unsigned(by),
    }
}

/// The instant that is later by this much, on both clocks.
pub(super) fn later(at: HostInstant, by: Duration) -> HostInstant {
    let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
    HostInstant {
        monotonic_ns: at.monotonic_ns.saturating_add(by),
        realtime_ns: at
            .realtime_ns
            .saturating_add(i64::try_from(by).unwrap_or(i64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_items_come_out_in_order_and_not_before_their_time() {
        let start = HostInstant::default();
        let at = |ms| later(start, Duration::from_millis(ms));
        let mut queue = TimerQueue::default();
        for (ms, name) in [(2, "second"), (1, "first"), (2, "third"), (9, "last")] {
            queue.put(at(ms), name);
        }
        assert_eq!(queue.pop(start), None);
        assert_eq!(queue.next_due(), Some(at(1)));
        let due: Vec<_> = std::iter::from_fn(|| queue.pop(at(5))).collect();
        assert_eq!(due, [(at(1), "first"), (at(2), "second"), (at(2), "third")]);
    }
    #[test]
    fn what_is_due_at_once_comes_out_in_order_when_the_wall_clock_has_been_stepped() {
        let ahead = HostInstant {
            monotonic_ns: 1,
            realtime_ns: 10_000_000_000,
        };
        let right = HostInstant {
            realtime_ns: 1,
            ..ahead
        };
        let mut queue = TimerQueue::default();
        queue.put(ahead, "first");
        queue.put(right, "second");
        let due: Vec<_> = std::iter::from_fn(|| queue.pop(right)).collect();
        assert_eq!(due, [(ahead, "first"), (right, "second")]);
    }
}
