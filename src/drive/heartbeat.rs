//! Delays of the suite itself by its host. A late observation of a delayed suite proves nothing
//! about a runtime.

use tokio::time::MissedTickBehavior;
use tokio_util::task::AbortOnDropHandle;

use crate::history::Body;
use crate::recorder::Recorder;
use crate::{host, limits};

/// Records how long the suite was held up, each time that it was, until this is dropped.
#[derive(Debug)]
pub struct Heartbeat {
    _task: AbortOnDropHandle<()>,
}

impl Heartbeat {
    /// Begins to beat, on the runtime of the tasks whose delay it measures.
    pub fn begin(recorder: &Recorder) -> Self {
        let recorder = recorder.clone();
        let task = tokio::spawn(async move {
            let mut beats = tokio::time::interval(limits::HEARTBEAT);
            beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
            beats.tick().await;
            let mut last = host::now();
            loop {
                beats.tick().await;
                let by = host::elapsed(last).saturating_sub(limits::HEARTBEAT);
                if by >= limits::HEARTBEAT_SLACK {
                    recorder.record(Body::HeldUp { by });
                }
                last = host::now();
            }
        });
        Self {
            _task: AbortOnDropHandle::new(task),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::host::Reactor;

    /// Beats for a simulated second, in which something may hold everything up.
    fn held_up(by: Option<Duration>) -> Vec<Body> {
        let reactor = Reactor::simulated().unwrap();
        reactor.runtime().block_on(async {
            let recorder = Recorder::new();
            let mut reader = recorder.reader();
            let _heartbeat = Heartbeat::begin(&recorder);
            for by in [None, by, None] {
                let pause = std::future::pending::<()>();
                let half = Duration::from_millis(333);
                assert!(tokio::time::timeout(half, pause).await.is_err());
                if let Some(by) = by {
                    host::hold_up(by).await;
                }
            }
            let entries = reader.drain().unwrap();
            entries.iter().map(|entry| entry.body.clone()).collect()
        })
    }

    #[test]
    fn a_heart_that_beats_in_time_records_nothing() {
        assert_eq!(held_up(None), []);
        assert_eq!(held_up(Some(Duration::from_millis(49))), []);
    }

    #[test]
    fn a_heart_that_was_held_up_says_for_how_long() {
        let whole = Duration::from_secs(5);
        let found = held_up(Some(whole));
        let [Body::HeldUp { by }] = found[..] else {
            panic!("{found:?}");
        };
        assert!(by <= whole && whole <= by + limits::HEARTBEAT, "{by:?}");
    }
}
