//! When a kubelet reopens the event stream, and when it gives up.
//!
//! Sources: kubernetes `pkg/kubelet/pleg/evented.go` (`watchEventsChannel`) of 1.36.2 and after
//! pull request 139262; KEP-3386, "Generic PLEG Continuous Validation", for the original plan.

use std::time::Duration;

use super::generic::Generic;
use super::state::Moment;

/// How a kubelet reacts to streams that end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Kubelet 1.26 to 1.36: after this many failures in its lifetime it falls back to relisting.
    /// Between two attempts there is no pause, but a relist of all pods.
    FallBack { failures: u32 },
    /// Kubelet 1.37 and later: after this many ends, with or without an error, it stops listening.
    /// Between two attempts there is neither a pause nor a relist.
    Disable { ends: u32 },
    /// As planned in KEP-3386, but not implemented by any kubelet: at once, then after 1 s, 2 s, 4
    /// s and so on, up to 60 s. Jitter shortens a pause by up to half; after a stream that was open
    /// for 60 s the next attempt is immediate. (The KEP has a step of 64 s before its 60 s.)
    BackOff,
}

impl Policy {
    /// The policy of kubelet 1.26 to 1.36.
    pub const KUBELET_1_26: Self = Self::FallBack { failures: 5 };
    /// The policy of kubelet 1.37 and later.
    pub const KUBELET_1_37: Self = Self::Disable { ends: 5 };
    /// The longest pause of [`Policy::BackOff`].
    pub const LONGEST_PAUSE: Duration = Duration::from_secs(60);
    /// How long a stream has to stay open for [`Policy::BackOff`] to start over.
    pub const HEALTHY_AFTER: Duration = Duration::from_secs(60);
}

/// How an attempt to listen ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFate {
    /// The stream could not be opened.
    Refused,
    /// It failed. For a kubelet's client library, a stream closed by the runtime has failed.
    Failed,
    /// It ended without an error.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Then {
    /// Whether to list all pods first.
    pub relist: bool,
    pub next: Next,
}

/// The next action on the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Open it, after a pause.
    Open(Duration),
    /// Stop listening, and relist as without events from now on.
    FallBack {
        period: Duration,
        threshold: Duration,
    },
    /// Stop listening.
    Disable,
}

#[derive(Clone, Debug)]
pub struct Reconnect {
    policy: Policy,
    counted: u32,
    opened_at: Option<Moment>,
    successes: u64,
    errors: u64,
}

impl Reconnect {
    /// The state before the first attempt.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            counted: 0,
            opened_at: None,
            successes: 0,
            errors: 0,
        }
    }

    pub fn begin(&self) -> Then {
        self.then(false, Duration::ZERO)
    }

    /// Resets the pauses of [`Policy::BackOff`].
    pub fn start_over(&mut self) {
        if self.policy == Policy::BackOff {
            self.counted = 0;
        }
    }

    /// A stream was opened, though the server may not have answered yet.
    pub fn opened(&mut self, now: Moment) {
        self.successes += 1;
        self.opened_at = Some(now);
    }

    /// An attempt has ended. `jitter`, in thousandths, is the part of the maximum shortening to
    /// apply.
    pub fn ended(&mut self, fate: StreamFate, now: Moment, jitter: u16) -> Then {
        let open_for = self.opened_at.take().map(|at| now.since(at));
        // Kubelets up to 1.36 only check for an error, and so do not notice an end without one.
        let noticed = fate != StreamFate::Closed || !matches!(self.policy, Policy::FallBack { .. });
        if !noticed {
            return self.then(false, Duration::ZERO);
        }
        self.errors += 1;
        if self.policy == Policy::BackOff
            && open_for.is_some_and(|open_for| open_for >= Policy::HEALTHY_AFTER)
        {
            self.counted = 0;
        }
        let pause = shortened(pause(self.counted), jitter);
        self.counted = self.counted.saturating_add(1);
        self.then(matches!(self.policy, Policy::FallBack { .. }), pause)
    }

    /// The number of opened streams (`kubelet_evented_pleg_connection_success_count`).
    pub fn successes(&self) -> u64 {
        self.successes
    }

    /// The number of attempts that ended (`kubelet_evented_pleg_connection_error_count`).
    pub fn errors(&self) -> u64 {
        self.errors
    }

    fn then(&self, relist: bool, pause: Duration) -> Then {
        let next = match self.policy {
            Policy::FallBack { failures } if self.counted >= failures => Next::FallBack {
                period: Generic::PERIOD,
                threshold: Generic::THRESHOLD,
            },
            Policy::Disable { ends } if self.counted >= ends => Next::Disable,
            Policy::FallBack { .. } | Policy::Disable { .. } => Next::Open(Duration::ZERO),
            Policy::BackOff => Next::Open(pause),
        };
        Then { relist, next }
    }
}

/// The pause after consecutive failures: none, 1 s, 2 s, 4 s and so on, up to the longest.
fn pause(failures: u32) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else {
        return Duration::ZERO;
    };
    let seconds = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    Duration::from_secs(seconds).min(Policy::LONGEST_PAUSE)
}

fn shortened(pause: Duration, jitter: u16) -> Duration {
    pause / 2000 * u32::from(2000 - jitter.min(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment::from_ns(0);

    fn pauses(reconnect: &mut Reconnect, count: usize, jitter: u16) -> Vec<u128> {
        let pause = |_| match reconnect.ended(StreamFate::Refused, START, jitter).next {
            Next::Open(pause) => pause.as_millis(),
            next => panic!("does not give up: {next:?}"),
        };
        (0..count).map(pause).collect()
    }

    #[test]
    fn pauses_double_up_to_a_minute() {
        let mut reconnect = Reconnect::new(Policy::BackOff);
        assert_eq!(
            pauses(&mut reconnect, 10, 0),
            [0, 1, 2, 4, 8, 16, 32, 60, 60, 60].map(|seconds| seconds * 1000)
        );
        reconnect.counted = u32::MAX;
        assert_eq!(pauses(&mut reconnect, 2, 0), [60_000, 60_000]);
    }

    #[test]
    fn start_over_resets_the_pauses() {
        let mut reconnect = Reconnect::new(Policy::BackOff);
        assert_eq!(pauses(&mut reconnect, 4, 0), [0, 1000, 2000, 4000]);
        reconnect.start_over();
        assert_eq!(pauses(&mut reconnect, 3, 0), [0, 1000, 2000]);
    }

    #[test]
    fn jitter_takes_off_up_to_half() {
        assert_eq!(
            pauses(&mut Reconnect::new(Policy::BackOff), 4, 1000),
            [0, 500, 1000, 2000]
        );
        assert_eq!(
            pauses(&mut Reconnect::new(Policy::BackOff), 4, 500),
            [0, 750, 1500, 3000]
        );
        assert_eq!(
            pauses(&mut Reconnect::new(Policy::BackOff), 3, u16::MAX),
            [0, 500, 1000]
        );
    }

    #[test]
    fn a_minute_of_health_starts_over_and_less_does_not() {
        for (open_for, expected) in [(60, 0), (59, 8)] {
            let mut reconnect = Reconnect::new(Policy::BackOff);
            pauses(&mut reconnect, 4, 0);
            reconnect.opened(START);
            let end = START.plus(Duration::from_secs(open_for));
            let then = reconnect.ended(StreamFate::Failed, end, 0);
            assert_eq!(then.next, Next::Open(Duration::from_secs(expected)));
        }
    }

    #[test]
    fn an_outage_of_a_second_disables_either_kubelet_but_not_the_plan() {
        for policy in [Policy::KUBELET_1_26, Policy::KUBELET_1_37] {
            let mut reconnect = Reconnect::new(policy);
            let last = (0..5)
                .map(|_| reconnect.ended(StreamFate::Refused, START, 0))
                .last();
            assert!(!matches!(
                last.expect("there were five").next,
                Next::Open(_)
            ));
        }
    }

    #[test]
    fn an_end_without_an_error_is_not_noticed_before_1_37() {
        let mut reconnect = Reconnect::new(Policy::KUBELET_1_26);
        for _ in 0..100 {
            reconnect.opened(START);
            let then = reconnect.ended(StreamFate::Closed, START, 0);
            assert_eq!(
                then,
                Then {
                    relist: false,
                    next: Next::Open(Duration::ZERO)
                }
            );
        }
        assert_eq!(reconnect.errors(), 0);
    }
}
