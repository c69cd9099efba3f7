//! The progress of a run: shows on a terminal the number of finished cases, the running cases and
//! their waits, and the estimated time left.
//!
//! It is drawn below the output, on standard error if that is a terminal.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::time_left::TimeLeft;
use crate::drive::CaseRunner;
use crate::history::HostInstant;
use crate::outcome::Verdict;
use crate::{host, terminal};

/// The interval of drawing.
const TICK: Duration = Duration::from_millis(250);
/// The duration after which a running case is shown with its current wait.
const LONG: Duration = Duration::from_secs(2);
/// The maximum number of displayed cases: more would leave no room for results.
const SHOWN: usize = 8;

#[derive(Debug)]
pub(super) struct Progress {
    state: Mutex<State>,
    shown: bool,
}

#[derive(Debug)]
struct State {
    time_left: TimeLeft,
    running: BTreeMap<usize, Running>,
    done: usize,
    failed: usize,
    undecided: usize,
    began: Option<HostInstant>,
    /// The current activity of the run itself while no case is running.
    doing: Option<String>,
}

#[derive(Debug)]
struct Running {
    id: String,
    began: HostInstant,
    runner: Arc<CaseRunner>,
}

impl Progress {
    /// The progress of a run of as many cases as `time_left` has, displayed if `wanted`.
    pub(super) fn new(time_left: TimeLeft, wanted: bool) -> Self {
        Self {
            state: Mutex::new(State {
                time_left,
                running: BTreeMap::new(),
                done: 0,
                failed: 0,
                undecided: 0,
                began: None,
                doing: None,
            }),
            shown: wanted && terminal::has_status(),
        }
    }

    pub(super) fn begin(&self, place: usize, id: &str, runner: &Arc<CaseRunner>) {
        let running = Running {
            id: id.to_owned(),
            began: host::now(),
            runner: runner.clone(),
        };
        let mut state = self.state();
        state.began.get_or_insert(running.began);
        state.running.insert(place, running);
    }

    pub(super) fn end(&self, place: usize, verdict: Verdict) {
        let mut state = self.state();
        state.running.remove(&place);
        state.time_left.done(place);
        state.done += 1;
        match verdict {
            Verdict::Fail | Verdict::UnexpectedPass => state.failed += 1,
            Verdict::Error => state.undecided += 1,
            Verdict::Pass | Verdict::Known | Verdict::Skip | Verdict::Inconclusive => {}
        }
    }

    pub(super) fn doing(&self, what: &str) {
        self.state().doing = Some(what.to_owned());
    }

    pub(super) fn finish(&self) {
        let mut state = self.state();
        state.running.clear();
        state.doing = None;
        if self.shown {
            terminal::show_status(&[]);
        }
    }

    /// Draws it periodically, until aborted.
    pub(super) async fn draw(self: Arc<Self>) {
        if !self.shown {
            return;
        }
        let mut tick = tokio::time::interval(TICK);
        loop {
            tick.tick().await;
            // The lock is held so that nothing is drawn after the end.
            let state = self.state();
            terminal::show_status(&state.lines());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The number of finished cases, then a line for each running case, the longest first.
    fn lines(&self) -> Vec<String> {
        if self.running.is_empty() {
            return self.doing.clone().into_iter().collect();
        }
        let mut running: Vec<&Running> = self.running.values().collect();
        running.sort_by_key(|running| running.began);
        let more = running.len().saturating_sub(SHOWN);
        let mut lines = vec![self.summary()];
        lines.extend(running.into_iter().take(SHOWN).map(Running::line));
        if more > 0 {
            lines.push(format!("  and {more} more"));
        }
        lines
    }

    fn summary(&self) -> String {
        let mut parts = vec![format!("{}/{} done", self.done, self.time_left.cases())];
        for (count, what) in [(self.failed, "failed"), (self.undecided, "undecided")] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        let running = self.running.iter();
        let running = running.map(|(place, running)| (*place, host::elapsed(running.began)));
        let elapsed = self.began.map(host::elapsed).unwrap_or_default();
        let left = self.time_left.left(running, elapsed);
        parts.extend(left.map(|left| format!("about {} left", rounded(left))));
        parts.join(", ")
    }
}

impl Running {
    fn line(&self) -> String {
        let elapsed = host::elapsed(self.began);
        let waits = (elapsed > LONG)
            .then(|| self.runner.waiting_for())
            .flatten();
        let waits = waits.map(|wanted| format!("  waits for {wanted}"));
        let (id, waits) = (&self.id, waits.unwrap_or_default());
        format!("  {id} {} s{waits}", elapsed.as_secs())
    }
}

/// A time in words: in minutes, rounded up, or if it is short in tens of seconds.
fn rounded(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..=50 => format!("{} s", (seconds / 10 + 1) * 10),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_given_no_more_exactly_than_it_is_known() {
        for (seconds, expected) in [
            (0, "10 s"),
            (9, "10 s"),
            (10, "20 s"),
            (50, "60 s"),
            (51, "1 min"),
            (60, "1 min"),
            (61, "2 min"),
            (7_200, "120 min"),
        ] {
            assert_eq!(rounded(Duration::from_secs(seconds)), expected);
        }
    }
}
