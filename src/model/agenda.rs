//! What is to happen at its time: a queue ordered by moments, then by when it was put there.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::history::HostInstant;

/// Things, each with the moment at which it is due.
#[derive(Clone, Debug)]
pub(super) struct Agenda<T> {
    due: BTreeMap<(HostInstant, u64), T>,
    next: u64,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self {
            due: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<T> Agenda<T> {
    pub(super) fn put(&mut self, at: HostInstant, thing: T) {
        self.due.insert((at, self.next), thing);
        self.next += 1;
    }

    /// When the first thing is due.
    pub(super) fn next_due(&self) -> Option<HostInstant> {
        self.due.keys().next().map(|(at, _)| *at)
    }

    /// Takes out the first thing that is due by now.
    pub(super) fn pop(&mut self, now: HostInstant) -> Option<(HostInstant, T)> {
        let first = self.due.first_entry()?;
        let (at, _) = *first.key();
        (at.monotonic_ns <= now.monotonic_ns).then(|| (at, first.remove()))
    }
}

/// A moment so much earlier, by both clocks.
pub(super) fn before(at: HostInstant, by: Duration) -> HostInstant {
    let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
    HostInstant {
        monotonic_ns: at.monotonic_ns.saturating_sub(by),
        realtime_ns: at.realtime_ns.saturating_sub_unsigned(by),
    }
}

/// A moment so much later, by both clocks.
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
    fn what_is_due_comes_out_in_order_and_not_before_its_time() {
        let start = HostInstant::default();
        let at = |ms| later(start, Duration::from_millis(ms));
        let mut agenda = Agenda::default();
        for (ms, name) in [(2, "second"), (1, "first"), (2, "third"), (9, "last")] {
            agenda.put(at(ms), name);
        }
        assert_eq!(agenda.pop(start), None);
        assert_eq!(agenda.next_due(), Some(at(1)));
        let due: Vec<_> = std::iter::from_fn(|| agenda.pop(at(5))).collect();
        assert_eq!(due, [(at(1), "first"), (at(2), "second"), (at(2), "third")]);
    }
}
