//! Time as a number that the caller passes in.

use std::time::Duration;

use crate::history::RuntimeNanos;

/// A time as a kubelet compares it: nanoseconds since 1970, or [`Moment::NEVER`].
///
/// Like a kubelet, this type does not distinguish a runtime's timestamps from the local clock. That
/// is why a skewed `created_at` is dangerous, so it must not be prevented here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    /// Go's zero time, which is before every other moment.
    pub const NEVER: Self = Self(i64::MIN);

    pub const fn from_ns(ns: i64) -> Self {
        Self(ns)
    }

    pub const fn ns(self) -> i64 {
        self.0
    }

    /// The duration since `earlier`; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        let ns = i128::from(self.0) - i128::from(earlier.0);
        Duration::from_nanos(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
    }

    pub fn plus(self, duration: Duration) -> Self {
        let ns = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(ns))
    }
}

impl From<RuntimeNanos> for Moment {
    fn from(nanos: RuntimeNanos) -> Self {
        Self(nanos.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_saturate() {
        let last = Moment::from_ns(i64::MAX);
        assert_eq!(last.since(Moment::NEVER), Duration::from_nanos(u64::MAX));
        assert_eq!(Moment::NEVER.since(last), Duration::ZERO);
        assert_eq!(last.plus(Duration::MAX), last);
        assert!(Moment::NEVER < Moment::from_ns(0));
    }
}
