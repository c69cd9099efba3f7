//! The progress of a run: shows on a terminal the number of finished cases, the running cases and
//! their waits, and the estimated time left.
//!
//! It is drawn below the output, on standard error if that is a terminal. The time left is
//! estimated by the duration of each case in an earlier run, or else as if all cases took equally
//! long.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::select::read_report;
use crate::drive::CaseRunner;
use crate::history::HostInstant;
use crate::outcome::Verdict;
use crate::plan::Planned;
use crate::report::json;
use crate::{files, host, terminal};

/// The interval of drawing.
const TICK: Duration = Duration::from_millis(250);
/// The duration after which a running case is shown with its current wait.
const LONG: Duration = Duration::from_secs(2);
/// The maximum number of displayed cases: more would leave no room for results.
const SHOWN: usize = 8;
/// The fraction of a run after which its own pace outweighs that of an earlier run.
const SAYS_ENOUGH: f64 = 0.1;

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

/// The durations of the cases of an earlier run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct EarlierRun {
    /// In seconds, by the ids of the cases.
    cases: BTreeMap<String, f64>,
    /// The duration of the whole run, whose cases may run in parallel.
    whole_s: f64,
}

#[derive(Clone, Debug)]
pub(super) struct TimeLeft {
    /// The share of each case, by its index in the plan.
    weights: Vec<f64>,
    done: BTreeSet<usize>,
    /// The duration of the whole run, estimated from an earlier run.
    expected_s: Option<f64>,
}

impl EarlierRun {
    /// Reads the JSON report of an earlier run; `None` if it is missing or invalid.
    pub(super) fn read(report: &Path) -> Option<Self> {
        // Anything else, such as /dev/stdout, may never end.
        if !files::kind(&files::stat(report).ok()?).is_file() {
            return None;
        }
        let text = read_report(report).ok()?;
        let report = json::read(&text).ok()?;
        let took = |seconds: f64| seconds.max(0.0);
        let cases = report.outcomes.into_iter();
        let cases = cases.map(|outcome| (outcome.id, took(outcome.duration_s)));
        Some(Self {
            cases: cases.collect(),
            whole_s: took(report.duration_s),
        })
    }
}

impl TimeLeft {
    /// The estimate for a plan. Cases that are missing in the earlier run count as its mean.
    pub(super) fn new(planned: &[Planned], earlier: Option<&EarlierRun>) -> Self {
        let ids: Vec<&str> = planned.iter().map(|planned| &*planned.case.id).collect();
        Self::of(&ids, earlier)
    }

    fn of(ids: &[&str], earlier: Option<&EarlierRun>) -> Self {
        let known = earlier.map(|earlier| {
            let known = ids.iter().map(|id| earlier.cases.get(*id).copied());
            (earlier, known.collect::<Vec<_>>())
        });
        let by_earlier = known.and_then(|(earlier, known)| {
            let all: f64 = earlier.cases.values().sum();
            let (sum, count) = known
                .iter()
                .flatten()
                .fold((0.0, 0.0), |(sum, count), took| (sum + took, count + 1.0));
            (sum > 0.0).then(|| {
                let mean = sum / count;
                let weights = known.into_iter().map(|took| took.unwrap_or(mean));
                (weights.collect::<Vec<f64>>(), earlier.whole_s / all)
            })
        });
        match by_earlier {
            Some((weights, share)) => Self {
                expected_s: Some(weights.iter().sum::<f64>() * share),
                weights,
                done: BTreeSet::new(),
            },
            None => Self {
                weights: vec![1.0; ids.len()],
                done: BTreeSet::new(),
                expected_s: None,
            },
        }
    }

    pub(super) fn cases(&self) -> usize {
        self.weights.len()
    }

    /// Marks a case as finished.
    pub(super) fn done(&mut self, place: usize) {
        self.done.insert(place);
    }

    /// The time left after `elapsed`, given the durations of running cases; `None` if unknown, or
    /// when all is done.
    pub(super) fn left(
        &self,
        running: impl Iterator<Item = (usize, Duration)>,
        elapsed: Duration,
    ) -> Option<Duration> {
        let weight = |place: usize| self.weights.get(place).copied().unwrap_or_default();
        let all: f64 = self.weights.iter().sum();
        let over: f64 = self.done.iter().copied().map(weight).sum();
        let begun: f64 = match self.expected_s {
            Some(_) => running
                .map(|(place, ran)| ran.as_secs_f64().min(weight(place)))
                .sum(),
            None => 0.0,
        };
        let part = (over + begun) / all;
        let rest = 1.0 - part;
        let left = match self.expected_s {
            _ if part >= SAYS_ENOUGH => elapsed.as_secs_f64() * rest / part,
            Some(expected) => expected * rest,
            None => return None,
        };
        (self.done.len() < self.weights.len())
            .then(|| Duration::try_from_secs_f64(left.max(0.0)).ok())
            .flatten()
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

    fn earlier(cases: &[(&str, f64)], whole_s: f64) -> EarlierRun {
        let cases = cases.iter().map(|(id, took)| ((*id).to_owned(), *took));
        let cases = cases.collect();
        EarlierRun { cases, whole_s }
    }

    #[track_caller]
    fn check(estimate: &TimeLeft, elapsed: u64, expected: Option<u64>) {
        let left = estimate.left(std::iter::empty(), Duration::from_secs(elapsed));
        assert_eq!(left.map(|left| left.as_secs()), expected);
    }

    #[test]
    fn without_an_earlier_run_a_tenth_must_be_done_first() {
        let ids: Vec<&str> = vec!["ORD-01"; 20];
        let mut estimate = TimeLeft::of(&ids, None);
        check(&estimate, 30, None);
        estimate.done(0);
        check(&estimate, 30, None);
        estimate.done(1);
        check(&estimate, 30, Some(270));
        (2..19).for_each(|place| estimate.done(place));
        check(&estimate, 190, Some(10));
        estimate.done(19);
        check(&estimate, 200, None);
    }

    #[test]
    fn an_earlier_run_tells_how_long_each_case_takes() {
        // Two at once.
        let before = earlier(&[("slow", 90.0), ("quick", 10.0), ("other", 20.0)], 60.0);
        let mut estimate = TimeLeft::of(&["quick", "slow"], Some(&before));
        check(&estimate, 0, Some(50));
        estimate.done(0);
        // A tenth of the work took 6 s and not 5.
        check(&estimate, 6, Some(54));
        let half = [(1, Duration::from_secs(40))].into_iter();
        let left = estimate.left(half, Duration::from_secs(30));
        assert_eq!(left, Some(Duration::from_secs(30)));
        // A case that takes longer than before has not much left, as far as is known.
        let long = [(1, Duration::from_secs(500))].into_iter();
        let left = estimate.left(long, Duration::from_secs(500));
        assert_eq!(left, Some(Duration::ZERO));
    }

    #[test]
    fn cases_missing_in_the_earlier_run_count_as_its_mean() {
        let before = earlier(&[("a", 10.0), ("b", 20.0)], 30.0);
        check(
            &TimeLeft::of(&["a", "b", "new"], Some(&before)),
            0,
            Some(45),
        );
        check(&TimeLeft::of(&["new"], Some(&before)), 0, None);
        check(&TimeLeft::of(&["a"], Some(&earlier(&[], 0.0))), 0, None);
        check(&TimeLeft::of(&[], Some(&before)), 0, None);
    }
}
