//! When the Generic PLEG relists: periodically, and single pods on demand in between.
//!
//! Source: kubernetes `pkg/kubelet/pleg/generic.go` (`workerLoop`, `RequestRelist`); the feature
//! gate is `PLEGOnDemandRelist`, beta and on by default in 1.36.

use std::collections::VecDeque;
use std::time::Duration;

use super::moment::Moment;
use super::shared_id::SharedUid;

/// What is to be done when.
#[derive(Clone, Debug)]
pub struct Schedule {
    period: Duration,
    due: Moment,
    on_demand: bool,
    requests: VecDeque<(SharedUid, Moment)>,
    dropped: u64,
}

/// What is to be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Relist all pods, then say [`Schedule::relisted`].
    Relist,
    /// Relist this pod.
    RelistPod(SharedUid),
    /// Nothing, before this moment or the next request.
    Wait(Moment),
}

impl Schedule {
    /// How many requests can wait.
    pub const QUEUE: usize = 200;

    /// The first relist is due at once. Requests are heard if `on_demand` says so.
    #[must_use]
    pub fn new(period: Duration, on_demand: bool) -> Self {
        Self {
            period,
            due: Moment::NEVER,
            on_demand,
            requests: VecDeque::new(),
            dropped: 0,
        }
    }

    /// Asks that a pod be relisted. Returns whether it was heard; a full queue drops and counts it.
    pub fn request(&mut self, uid: &SharedUid, now: Moment) -> bool {
        if !self.on_demand {
            return false;
        }
        let heard = self.requests.len() < Self::QUEUE;
        if heard {
            self.requests.push_back((uid.clone(), now));
        } else {
            self.dropped += 1;
        }
        heard
    }

    /// What to do at a moment. A relist of all pods goes first; a request that is not younger than
    /// the last of those has been served by it.
    pub fn next(&mut self, now: Moment, relisted_at: Option<Moment>) -> Work {
        if now >= self.due {
            return Work::Relist;
        }
        while let Some((uid, at)) = self.requests.pop_front() {
            if relisted_at.is_none_or(|relisted_at| at > relisted_at) {
                return Work::RelistPod(uid);
            }
        }
        Work::Wait(self.due)
    }

    /// A relist of all pods has ended; the next one is due one period from now.
    pub fn relisted(&mut self, now: Moment) {
        self.due = now.plus(self.period);
    }

    /// Stops, and starts anew with another period, as falling back from events does.
    pub fn restart(&mut self, period: Duration) {
        self.period = period;
        self.due = Moment::NEVER;
    }

    /// How many requests were dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pleg::Generic;

    fn at(seconds: i64) -> Moment {
        Moment::from_ns(seconds * 1_000_000_000)
    }

    fn pod() -> SharedUid {
        SharedUid::from("pod")
    }

    #[test]
    fn the_first_relist_is_due_at_once_and_the_next_a_period_after_its_end() {
        let mut schedule = Schedule::new(Generic::PERIOD, true);
        assert_eq!(schedule.next(at(10), None), Work::Relist);
        schedule.relisted(at(13));
        assert_eq!(schedule.next(at(13), Some(at(10))), Work::Wait(at(14)));
        assert_eq!(schedule.next(at(14), Some(at(10))), Work::Relist);
    }

    #[test]
    fn a_request_is_served_between_relists_unless_one_has_served_it() {
        let mut schedule = Schedule::new(Generic::PERIOD, true);
        schedule.relisted(at(10));
        for moment in [8, 9] {
            assert!(schedule.request(&SharedUid::from("served"), at(moment)));
        }
        assert!(schedule.request(&pod(), at(10)));
        assert_eq!(schedule.next(at(10), Some(at(9))), Work::RelistPod(pod()));
        assert_eq!(schedule.next(at(10), Some(at(9))), Work::Wait(at(11)));
    }

    #[test]
    fn a_due_relist_goes_before_requests() {
        let mut schedule = Schedule::new(Generic::PERIOD, true);
        assert!(schedule.request(&pod(), at(1)));
        assert_eq!(schedule.next(at(1), None), Work::Relist);
    }

    #[test]
    fn falling_back_relists_at_once_and_then_as_often_as_without_events() {
        let mut schedule = Schedule::new(Duration::from_secs(300), true);
        schedule.relisted(at(10));
        schedule.restart(Generic::PERIOD);
        assert_eq!(schedule.next(at(11), Some(at(10))), Work::Relist);
        schedule.relisted(at(11));
        assert_eq!(schedule.next(at(11), Some(at(11))), Work::Wait(at(12)));
    }

    #[test]
    fn a_full_queue_drops_requests_and_a_closed_gate_hears_none() {
        let mut schedule = Schedule::new(Generic::PERIOD, true);
        let heard = (0..=Schedule::QUEUE).filter(|_| schedule.request(&pod(), at(1)));
        assert_eq!(heard.count(), Schedule::QUEUE);
        assert_eq!(schedule.dropped(), 1);
        assert!(!Schedule::new(Generic::PERIOD, false).request(&pod(), at(1)));
    }
}
