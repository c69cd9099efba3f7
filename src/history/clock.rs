//! Whether the wall clock could be trusted while a case went on.

use super::CaseHistory;

impl CaseHistory {
    /// By how many nanoseconds the host's wall clock was set meanwhile, if it was: so far do both
    /// clocks differ in how much time has passed. Less than a second may be the reading of them.
    pub fn clock_set_by(&self) -> Option<i64> {
        const READING_NS: i64 = 1_000_000_000;
        let apart = self.entries().iter().map(|entry| {
            let monotonic = i64::try_from(entry.at.monotonic_ns).unwrap_or(i64::MAX);
            entry.at.realtime_ns.saturating_sub(monotonic)
        });
        let (least, most) = apart.fold((i64::MAX, i64::MIN), |(least, most), apart| {
            (least.min(apart), most.max(apart))
        });
        let set_by = most.saturating_sub(least);
        (!self.entries().is_empty() && set_by > READING_NS).then_some(set_by)
    }
}
