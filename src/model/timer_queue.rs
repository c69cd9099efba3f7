//! The deterministic parts of the machine: timers, ordered by due time, then by insertion, and
//! pseudo-random choices.

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

/// The splitmix64 generator.
#[derive(Clone, Debug, Default)]
pub struct Random(u64);

impl Random {
    /// A generator whose choices derive from the seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// An identifier like those of real runtimes: 64 hexadecimal digits.
    pub(super) fn id(&mut self) -> String {
        let parts = [(); 4].map(|()| format!("{:016x}", self.next()));
        parts.concat()
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for left in (1..items.len()).rev() {
            let other = self.next() % (left as u64 + 1);
            items.swap(left, usize::try_from(other).unwrap_or(left));
        }
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
    fn simultaneous_timers_keep_their_order_after_a_step_of_the_wall_clock() {
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
