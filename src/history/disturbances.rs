//! Disturbances of measured times: the suite was not scheduled, so that events were read later than
//! they arrived, or the wall clock was set. And times at which the runtime was unavailable.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Body, CaseHistory, Entry, HostInstant, Seq, StatusCode};

/// The ends of calls that failed because the runtime was unavailable: since each begin and end of a
/// stream, the first and the last one.
#[derive(Clone, Debug, Default)]
pub struct Unavailable {
    ends: VecDeque<(Seq, HostInstant)>,
    since_stream: usize,
}

impl Unavailable {
    /// The maximum number of these ends: a runtime may end one stream after the other.
    const KEPT: usize = 1_000;

    /// Processes the next entry of a history.
    pub fn push(&mut self, entry: &Entry) {
        match &entry.body {
            Body::SubscriptionOpened { .. } | Body::SubscriptionEnded { .. } => {
                self.since_stream = 0;
            }
            Body::CallEnded {
                result: Err(fault), ..
            } if fault.code == StatusCode::UNAVAILABLE => {
                if self.since_stream > 1 {
                    self.ends.pop_back();
                } else if self.ends.len() == Self::KEPT {
                    self.ends.pop_front();
                }
                self.since_stream += 1;
                self.ends.push_back((entry.seq, entry.at));
            }
            _ => {}
        }
    }

    /// The last one before an entry.
    pub fn before(&self, seq: Seq) -> Option<Seq> {
        let mut ends = self.ends.iter().rev();
        ends.find(|(end, _)| *end < seq).map(|(end, _)| *end)
    }

    /// The first one after an entry, and its time.
    pub fn after(&self, seq: Seq) -> Option<(Seq, HostInstant)> {
        self.ends.iter().find(|(end, _)| *end > seq).copied()
    }
}

impl CaseHistory {
    /// Adds what calls about other pods show of the runtime.
    pub fn set_unavailable(&mut self, unavailable: &Unavailable) {
        self.unavailable.clone_from(unavailable);
    }

    /// What calls about other pods show of the runtime; empty for a case.
    pub fn unavailable(&self) -> &Unavailable {
        &self.unavailable
    }

    /// How long the suite was held up between two moments.
    pub fn held_up(&self, from: HostInstant, until: HostInstant) -> Duration {
        self.held_up_within(from.monotonic_ns, until.monotonic_ns)
    }

    /// How long the suite was not held up between two moments.
    pub fn not_held_up(&self, from: HostInstant, until: HostInstant) -> Duration {
        let held_up = self.held_up(from, until);
        until.since(from).saturating_sub(held_up)
    }

    /// How long the suite was held up in the time before a moment, if that was a tenth of this time
    /// or more: then something may have arrived without being read.
    pub fn held_up_before(&self, until: HostInstant, time: Duration) -> Option<Duration> {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let from_ns = until.monotonic_ns.saturating_sub(time_ns);
        let held_up = self.held_up_within(from_ns, until.monotonic_ns);
        (!held_up.is_zero() && held_up * 10 >= time).then_some(held_up)
    }

    /// How long the suite was held up between two readings of the monotonic clock.
    pub fn held_up_within(&self, from_ns: u64, until_ns: u64) -> Duration {
        let spans = self.held_up.iter().map(|(end, by)| {
            let by_ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
            let began_ns = end.monotonic_ns.saturating_sub(by_ns);
            let until_ns = until_ns.min(end.monotonic_ns);
            until_ns.saturating_sub(from_ns.max(began_ns))
        });
        Duration::from_nanos(spans.sum())
    }
}

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
