//! The progress line: shows on a terminal which cases are running, and what they wait for.
//!
//! It is drawn on standard error if that is a terminal, and cleared before a case's result is
//! printed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::drive::CaseRunner;
use crate::history::HostInstant;
use crate::{host, terminal};

/// The interval at which the line is drawn.
const TICK: Duration = Duration::from_millis(250);
/// A case that runs longer than this is shown with what it waits for.
const LONG: Duration = Duration::from_secs(2);

/// The progress of a run.
#[derive(Debug)]
pub(super) struct Progress {
    state: Mutex<State>,
    shown: bool,
}

#[derive(Debug, Default)]
struct State {
    running: BTreeMap<usize, Running>,
    done: usize,
    all: usize,
    /// When the first case began.
    began: Option<HostInstant>,
    drawn: bool,
    /// What the run itself is doing while no case is running.
    doing: Option<String>,
    /// When the last case ended: its result is being printed.
    ended: HostInstant,
}

#[derive(Debug)]
struct Running {
    id: String,
    began: HostInstant,
    runner: Arc<CaseRunner>,
}

impl Progress {
    pub(super) fn new(all: usize, wanted: bool) -> Self {
        let shown = wanted && terminal::errors_are_a_terminal();
        Self {
            state: Mutex::new(State {
                all,
                ..State::default()
            }),
            shown,
        }
    }

    pub(super) fn begin(&self, index: usize, id: &str, runner: &Arc<CaseRunner>) {
        let running = Running {
            id: id.to_owned(),
            began: host::now(),
            runner: runner.clone(),
        };
        let mut state = self.state();
        state.began.get_or_insert(running.began);
        state.running.insert(index, running);
    }

    pub(super) fn end(&self, index: usize) {
        let mut state = self.state();
        state.running.remove(&index);
        state.done += 1;
        state.ended = host::now();
        state.clear();
    }

    pub(super) fn doing(&self, what: &str) {
        self.state().doing = Some(what.to_owned());
    }

    /// Clears the line for good.
    pub(super) fn finish(&self) {
        let mut state = self.state();
        state.running.clear();
        state.doing = None;
        state.clear();
    }

    /// Draws the line periodically, until aborted.
    pub(super) async fn draw(self: Arc<Self>) {
        if !self.shown {
            return;
        }
        let mut tick = tokio::time::interval(TICK);
        loop {
            tick.tick().await;
            let mut state = self.state();
            if host::elapsed(state.ended) > TICK {
                state.draw();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn draw(&mut self) {
        let line = self.line();
        if line.is_empty() {
            return;
        }
        terminal::draw(&line);
        self.drawn = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            terminal::clear();
        }
    }

    fn line(&self) -> String {
        let Some(longest) = self.running.values().min_by_key(|running| running.began) else {
            return self.doing.clone().unwrap_or_default();
        };
        let names: Vec<String> = self
            .running
            .values()
            .map(|running| format!("{} {}s", running.id, host::elapsed(running.began).as_secs()))
            .collect();
        let waits = (host::elapsed(longest.began) > LONG)
            .then(|| longest.runner.waiting_for())
            .flatten()
            .map(|wanted| format!("; {} waits for {wanted}", longest.id))
            .unwrap_or_default();
        let rest = self.began.and_then(|began| {
            let minutes = minutes_left(self.done, self.all, host::elapsed(began))?;
            Some(format!(", about {minutes} min left"))
        });
        format!(
            "{}/{} done{}, running: {}{waits}",
            self.done,
            self.all,
            rest.unwrap_or_default(),
            names.join(", ")
        )
    }
}

/// The estimated remaining time in minutes, rounded up, if the remaining cases take as long as
/// those that are done. None before a tenth is done.
fn minutes_left(done: usize, all: usize, elapsed: Duration) -> Option<u64> {
    let left = u64::try_from(all.checked_sub(done)?).ok()?;
    let done = u64::try_from(done).ok().filter(|done| *done > 0)?;
    let seconds = elapsed.as_secs().saturating_mul(left) / done;
    (left > 0 && done * 9 >= left).then(|| seconds.div_ceil(60).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_estimated_once_a_tenth_is_done() {
        for (done, all, elapsed, expect) in [
            (0, 100, 60, None),
            (9, 100, 60, None),
            (10, 100, 20, Some(3)),
            (50, 100, 119, Some(2)),
            (50, 100, 120, Some(2)),
            (50, 100, 121, Some(3)),
            (50, 100, 0, Some(1)),
            (99, 100, 600, Some(1)),
            (100, 100, 600, None),
            (101, 100, 600, None),
            (1, 2, u64::MAX, Some(u64::MAX.div_ceil(60))),
        ] {
            let left = minutes_left(done, all, Duration::from_secs(elapsed));
            assert_eq!(left, expect, "{done} of {all} in {elapsed} s");
        }
    }
}
