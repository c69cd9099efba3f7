//! Limits the reports of repeated occurrences to one per second.

use std::time::Duration;

use crate::history::HostInstant;

/// The minimum interval between two reports.
const PERIOD: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Throttle {
    unreported: u64,
    reported: Option<HostInstant>,
}

impl Throttle {
    /// Counts an occurrence. Returns the number since the last report, if one is due.
    pub(super) fn happened(&mut self, now: HostInstant) -> Option<u64> {
        self.unreported += 1;
        self.due(now)
    }

    /// The number of occurrences since the last report, if there are any and a report is due.
    pub(super) fn due(&mut self, now: HostInstant) -> Option<u64> {
        let is_due = self
            .reported
            .is_none_or(|reported| now.since(reported) >= PERIOD);
        if self.unreported == 0 || !is_due {
            return None;
        }
        self.reported = Some(now);
        Some(std::mem::take(&mut self.unreported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> HostInstant {
        HostInstant {
            monotonic_ns: ms * 1_000_000,
            ..HostInstant::default()
        }
    }

    #[test]
    fn it_is_said_at_once_and_then_once_a_second() {
        let mut repeated = Throttle::default();
        assert_eq!(repeated.due(at(0)), None);
        assert_eq!(repeated.happened(at(1)), Some(1));
        for ms in 2..1000 {
            assert_eq!(repeated.happened(at(ms)), None);
        }
        assert_eq!(repeated.happened(at(1001)), Some(999));
        assert_eq!(repeated.due(at(5000)), None);
        assert_eq!(repeated.happened(at(5001)), Some(1));
    }
}
