//! What happens again and again is counted, and said at most once a second.

use std::time::Duration;

use crate::history::HostInstant;

/// How often it is said.
const PERIOD: Duration = Duration::from_secs(1);

/// One thing that may happen again and again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repeated {
    unsaid: u64,
    said: Option<HostInstant>,
}

impl Repeated {
    /// It has happened. Returns how often it has since it was said last, if it is to be said now.
    pub(super) fn happened(&mut self, now: HostInstant) -> Option<u64> {
        self.unsaid += 1;
        self.due(now)
    }

    /// How often it has happened since it was said last, if it has and is to be said now.
    pub(super) fn due(&mut self, now: HostInstant) -> Option<u64> {
        let is_due = self.said.is_none_or(|said| now.since(said) >= PERIOD);
        if self.unsaid == 0 || !is_due {
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.unsaid))
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
        let mut repeated = Repeated::default();
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
