//! The report of a run: the verdict of every case and invariant, with its evidence. The oracle and
//! the runner create these; reports print them. Pure data.

mod fact;
mod guarantee;
mod kind;
mod level;
mod measured;
mod mismatch;
mod standing;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::history::{Entry, EventKind, HostInstant, RunInfo, Seq};

pub use fact::{Fact, Facts};
pub use guarantee::Guarantee;
pub use kind::Kind;
pub use level::{Level, Levels, Profile};
pub use measured::{Capabilities, Largest, Latency, Limit, Spread, Times, Worst};
pub use mismatch::Mismatch;
pub use mismatch::Signature;
pub use standing::{Conformance, Keeping, Standing};

/// The verdict of a case.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every expectation held.
    Pass,
    /// The runtime broke a rule.
    Fail,
    /// The runtime broke a rule, and an expectation file lists this failure.
    Known,
    /// An expectation file lists the case as failing, and it passed.
    UnexpectedPass,
    /// The suite could not decide: a call failed, the runtime was lost, the run was interrupted.
    #[default]
    Error,
    /// Not run, for the given reason.
    Skip,
    /// The situation under test did not arise.
    Inconclusive,
}

impl Verdict {
    pub const ALL: [Self; 7] = [
        Self::Pass,
        Self::Fail,
        Self::Known,
        Self::UnexpectedPass,
        Self::Error,
        Self::Skip,
        Self::Inconclusive,
    ];

    /// The word for it in machine-readable reports.
    pub fn key(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Known => "known",
            Self::UnexpectedPass => "unexpected-pass",
            Self::Error => "error",
            Self::Skip => "skip",
            Self::Inconclusive => "inconclusive",
        }
    }

    pub fn has_passed(self) -> bool {
        matches!(self, Self::Pass | Self::UnexpectedPass)
    }

    /// Whether the runtime broke a rule.
    pub fn has_failed(self) -> bool {
        matches!(self, Self::Fail | Self::Known)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Known => "known",
            Self::UnexpectedPass => "unexpected pass",
            Self::Error => "undecided",
            Self::Skip => "skip",
            Self::Inconclusive => "inconclusive",
        })
    }
}

/// A broken rule with its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's id: an invariant such as `INV-02`, or the case's own id.
    pub rule: String,
    pub level: Level,
    pub sentence: String,
    /// The sandbox or container concerned, by its name in the case and its id.
    pub subject: String,
    /// The expected and the actual state.
    pub mismatch: Mismatch,
    /// The entries that prove it, in order.
    pub evidence: Vec<Seq>,
}

impl Violation {
    pub fn expected(&self) -> String {
        self.mismatch.expected()
    }

    pub fn actual(&self) -> String {
        self.mismatch.actual()
    }

    /// The event that has not come, if that is the finding.
    pub fn missing(&self) -> Option<EventKind> {
        match self.mismatch.expected.get("event") {
            Some(Fact::Event(event)) if Kind::MISSING.contains(&self.mismatch.kind) => Some(*event),
            _ => None,
        }
    }
}

/// A finding, and for an invariant the case, both of which an expectation file names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// The finding without the parts that differ from run to run.
    pub signature: Signature,
    /// The id of the case whose history breaks an invariant; `None` for a case itself, and for a
    /// violation after the case was judged.
    pub case: Option<Arc<str>>,
}

/// The beginning of a fault about a leftover on the node.
pub const NOT_REMOVED: &str = "not removed: ";

/// The beginning of the reason why a case was not run, in a run that ended early.
pub const NOT_RUN: &str = "not run: ";

/// The beginning of the fault of a run whose clean-up could not begin.
pub const NOT_CLEANED_UP: &str = "not cleaned up: ";

/// The beginning of the fault of a run whose pods may have been changed by another client: a broken
/// rule in it proves nothing.
pub const DISTURBED: &str = "disturbed: ";

/// The beginning of a leftover that the end of the run removed.
pub const REMOVED: &str = "removed at the end of the run: ";

/// The number of last entries shown for an undecided case.
pub const LAST_SHOWN: usize = 8;

/// The result of one case, or of one invariant.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The catalogue's id, such as `ORD-01` or `INV-02`.
    pub id: Arc<str>,
    /// The name by which it is listed, such as `order::four-events-in-order`.
    pub name: Arc<str>,
    /// The number of the repetition, from 1; `None` unless cases are repeated.
    pub repetition: Option<u32>,
    pub title: Arc<str>,
    /// The effect of a violation; empty for an invariant, whose sources describe it.
    pub why: Arc<str>,
    pub sources: Arc<[String]>,
    /// The ids of the requirements that it checks, such as `R9`.
    pub requirements: Arc<[String]>,
    /// Requirement level (MUST/SHOULD/MAY) per profile.
    pub levels: Levels,
    pub verdict: Verdict,
    /// Whether all findings of a known failure are listed as races, which may not show in another
    /// run.
    pub race: bool,
    /// The reason for a verdict other than pass or fail: of a skip, an error, a known failure.
    pub reason: Option<String>,
    /// The broken rules that make it fail, in order of discovery.
    pub violations: Vec<Violation>,
    /// The findings of all violations, including those that are not shown in full, and their
    /// numbers.
    pub seen: BTreeMap<Seen, usize>,
    /// An explanation of an unexpected failure that is known for the runtime, and how to accept it.
    pub hint: Option<String>,
    /// The names of the pages about the runtime's defects that explain a known failure.
    pub pages: BTreeSet<String>,
    /// Broken rules of a lower level: reported, but no failure.
    pub advice: Vec<Violation>,
    /// The ids of the cases whose histories break an invariant, in order.
    pub broken_in: Vec<Arc<str>>,
    /// The requirement levels of an invariant in those cases: the maximum.
    pub broken_levels: Levels,
    /// The objects that the case itself could not clean up, one sentence each; those that the end
    /// of the run removed begin with [`REMOVED`].
    pub leftovers: Vec<String>,
    /// The slice of the history that contains the evidence, in order.
    pub evidence: Vec<Arc<Entry>>,
    pub began: HostInstant,
    pub duration: Duration,
}

impl Outcome {
    /// The displayed name: `order::four-events-in-order#2`.
    pub fn label(&self) -> String {
        match self.repetition {
            Some(repetition) => format!("{}#{repetition}", self.name),
            None => self.name.to_string(),
        }
    }

    /// The first part of its name: `order` in `order::four-events-in-order`.
    pub fn area(&self) -> &str {
        area(&self.name)
    }

    /// Caps all levels. Violations below MUST become advice; returns whether there are any.
    pub fn cap(&mut self, level: Level) -> bool {
        for violation in self.violations.iter_mut().chain(&mut self.advice) {
            violation.level = violation.level.min(level);
        }
        if level == Level::Must || self.violations.is_empty() {
            return false;
        }
        self.advice.splice(0..0, self.violations.drain(..));
        if self.verdict == Verdict::Fail {
            self.verdict = Verdict::Pass;
        }
        true
    }

    /// Whether it is an invariant, which judges all of the run, and not a case.
    pub fn is_invariant(&self) -> bool {
        is_invariant(&self.id)
    }
}

/// The first part of a name: `order` in `order::four-events-in-order`.
pub fn area(name: &str) -> &str {
    name.split_once("::").map_or(name, |(area, _)| area)
}

/// Whether this is the id of an invariant, and not of a case.
pub fn is_invariant(id: &str) -> bool {
    id.starts_with("INV-")
}

/// The observations of a watch of foreign pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "an object of a JSON report")]
#[schemars(rename = "Watch")]
pub struct WatchTotals {
    /// The number of times a pod was judged: after each of its changes, once it was idle.
    pub judged: u64,
    /// The containers in these histories.
    pub containers: u64,
    /// Events that arrived.
    pub events: u64,
    /// Relists that succeeded, without those that showed nothing new while no pod changed.
    pub relists: u64,
    /// The number of times that the event stream ended.
    pub outages: u64,
    /// The time without a stream, in seconds.
    #[serde(rename = "without_stream_s", with = "Seconds")]
    #[schemars(with = "f64")]
    pub without_stream: Duration,
    /// The time in which the suite itself was delayed, in seconds.
    #[serde(rename = "held_up_s", with = "Seconds")]
    #[schemars(with = "f64")]
    pub held_up: Duration,
}

/// How a field for a duration is written and read as seconds.
struct Seconds;

impl Seconds {
    fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        time.as_secs_f64().serialize(to)
    }

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(from)?;
        Duration::try_from_secs_f64(seconds).map_err(D::Error::custom)
    }
}

impl WatchTotals {
    /// The reason why nothing was judged, if so.
    pub fn nothing(&self) -> Option<&'static str> {
        match (self.judged, self.containers) {
            (0, _) => Some("no pod has changed"),
            (_, 0) => Some("no container was judged"),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct RunReport {
    pub info: RunInfo,
    pub began: HostInstant,
    pub duration: Duration,
    pub image: String,
    /// One for each case and invariant, in the order of the plan.
    pub outcomes: Vec<Outcome>,
    /// Faults outside the cases, one sentence each: a lost history file, a leftover.
    pub faults: Vec<String>,
    /// Pods on the node that this run did not create, as counted at its start.
    pub foreign_pods: usize,
    /// The profiles for which the runtime was judged.
    pub profiles: Vec<Profile>,
    /// The tier of the run; `None` if all cases were selected.
    pub tier: Option<String>,
    /// Whether cases of the tier were left out.
    pub partial: bool,
    /// The observations of a watch; `None` for a run.
    pub watch: Option<WatchTotals>,
    /// Capabilities of the runtime as observed by the run.
    pub capabilities: Capabilities,
    /// The latencies for each limit, by limit.
    pub latencies: Vec<Worst>,
    /// The largest message of an event; `None` without events, and in older histories.
    pub largest_event: Option<Largest>,
    /// The ids with an expired entry of the expectation file.
    pub expired: Vec<String>,
    /// Remarks on the run that are no violations, one sentence each: an expired entry of an
    /// expectation file.
    pub notes: Vec<String>,
}

impl RunReport {
    pub fn count(&self, verdict: Verdict) -> usize {
        self.outcomes
            .iter()
            .filter(|outcome| outcome.verdict == verdict)
            .count()
    }
}
