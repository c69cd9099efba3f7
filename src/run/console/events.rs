//! Outcomes as libtest's JSON events, one per line. An outcome other than pass and fail is
//! `ignored`, with a `message`; `verdict` is the verdict as in the suite's reports.

use serde::Serialize;

use crate::escape::printable_json;
use crate::history::HostInstant;
use crate::host;
use crate::outcome::{Outcome, Verdict};
use crate::report::{cut, failure};

/// The maximum length of a reason, in characters.
const REASON: usize = 500;

/// Renders outcomes as JSON events, and counts them.
pub(super) struct Events {
    began: HostInstant,
    passed: usize,
    failed: usize,
    ignored: usize,
    undecided: usize,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Suite(Suite),
    Test(Test<'a>),
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Suite {
    Started { test_count: usize },
    Ok(Counts),
    Failed(Counts),
}

#[derive(Serialize)]
struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
    /// The number of ignored cases that could not be decided.
    undecided: usize,
    measured: usize,
    filtered_out: usize,
    exec_time: f64,
}

#[derive(Serialize)]
struct Test<'a> {
    name: &'a str,
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exec_time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Events {
    pub(super) fn new() -> Self {
        Self {
            began: host::now(),
            passed: 0,
            failed: 0,
            ignored: 0,
            undecided: 0,
        }
    }
}

impl super::Renderer for Events {
    fn begin(&mut self, cases: usize, invariants: usize) -> String {
        let test_count = cases + invariants;
        line(&Line::Suite(Suite::Started { test_count }))
    }

    fn outcome(&mut self, name: &str, outcome: &Outcome) -> String {
        let started = line(&Line::Test(Test {
            name,
            event: "started",
            verdict: None,
            exec_time: None,
            stdout: None,
            message: None,
        }));
        let (event, count) = match outcome.verdict {
            Verdict::Pass => ("ok", &mut self.passed),
            Verdict::Fail | Verdict::UnexpectedPass => ("failed", &mut self.failed),
            Verdict::Known | Verdict::Error | Verdict::Skip | Verdict::Inconclusive => {
                ("ignored", &mut self.ignored)
            }
        };
        *count += 1;
        if outcome.verdict == Verdict::Error {
            self.undecided += 1;
        }
        let reason = outcome.reason.as_deref().unwrap_or_default();
        let ended = line(&Line::Test(Test {
            name,
            event,
            verdict: Some(outcome.verdict),
            exec_time: Some(outcome.duration.as_secs_f64()),
            stdout: (event == "failed").then(|| failure(outcome)),
            message: (event == "ignored").then(|| cut(reason, REASON)),
        }));
        started + &ended
    }

    fn end(&mut self) -> String {
        let counts = Counts {
            passed: self.passed,
            failed: self.failed,
            ignored: self.ignored,
            undecided: self.undecided,
            measured: 0,
            filtered_out: 0,
            exec_time: host::elapsed(self.began).as_secs_f64(),
        };
        let all_decided = self.failed + self.undecided == 0;
        line(&Line::Suite(if all_decided {
            Suite::Ok(counts)
        } else {
            Suite::Failed(counts)
        }))
    }
}

fn line(line: &Line<'_>) -> String {
    let text = serde_json::to_string(line).expect("it has no keys but texts");
    format!("{}\n", printable_json(&text))
}

#[cfg(test)]
mod tests {
    use super::super::Renderer;
    use super::*;
    use crate::report::fixture::fixture;

    #[test]
    fn what_is_undecided_is_not_failed_and_not_ok() {
        let mut events = Events::new();
        let mut outcomes = fixture().outcomes;
        outcomes.retain(|outcome| outcome.verdict == Verdict::Error);
        let begun = events.begin(1, 0);
        let lines = begun + &events.outcome("a", &outcomes[0]) + &events.end();
        let lines = lines.lines().map(serde_json::from_str::<serde_json::Value>);
        let lines: Vec<_> = lines.map(Result::unwrap).collect();
        let [started, _, ended, suite] = &lines[..] else {
            panic!("{lines:#?}");
        };
        assert_eq!(
            (&started["event"], &started["test_count"]),
            (&"started".into(), &1.into())
        );
        assert_eq!(
            (&ended["event"], &ended["verdict"]),
            (&"ignored".into(), &"error".into())
        );
        assert_eq!(
            (&suite["event"], &suite["undecided"]),
            (&"failed".into(), &1.into())
        );
        assert_eq!(suite["failed"], 0);
    }
}
