//! The report of a run: the verdict of every case and invariant, with its evidence. The oracle and
//! the runner make these; reports print them. Pure data.

mod fact;
mod kind;
mod level;
mod measured;
mod mismatch;
mod signature;
mod spread;
mod standing;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::history::{Entry, HostInstant, RunInfo, Seq};

pub use fact::{Fact, Facts};
pub use kind::Kind;
pub use level::{Level, Levels, Profile};
pub use measured::{Capabilities, Largest, Latency, Limit, Times, Worst};
pub use mismatch::Mismatch;
pub use signature::Signature;
pub use spread::Spread;
pub use standing::{Conformance, Standing};

/// The one word on a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every expectation held.
    Pass,
    /// The runtime broke a rule.
    Fail,
    /// The runtime broke a rule, as the expectation file says it does.
    Known,
    /// An expectation file lists the case as failing, and it passed.
    UnexpectedPass,
    /// We could not decide: a call failed, the runtime was lost, the run was interrupted.
    Error,
    /// Not run, for the reason that is given.
    Skip,
    /// The situation that the case is about did not arise.
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

    /// The word for it in reports that machines read.
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
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Known => "known",
            Self::UnexpectedPass => "unexpected pass",
            Self::Error => "error",
            Self::Skip => "skip",
            Self::Inconclusive => "inconclusive",
        })
    }
}

/// A rule was broken: by what, and what proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's id: an invariant such as `INV-02`, or the case's own id.
    pub rule: String,
    pub level: Level,
    /// The claim, as a sentence.
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
}

/// A finding, and for an invariant the case: an expectation file names both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// The finding without what differs from run to run.
    pub signature: Signature,
    /// The id of the case whose history breaks an invariant; absent of a case itself, and of what
    /// broke when its case had been judged.
    pub case: Option<Arc<str>>,
}

/// The beginning of a fault about something of the run that stays on the node.
pub const NOT_REMOVED: &str = "not removed: ";

/// The beginning of the fault of a run that could not begin to remove what it had made.
pub const NOT_CLEANED_UP: &str = "not cleaned up: ";

/// The beginning of the fault of a run whose pods somebody else may have changed: a rule that is
/// broken in it proves nothing.
pub const DISTURBED: &str = "disturbed: ";

/// The beginning of a leftover that the end of the run removed.
pub const REMOVED: &str = "removed at the end of the run: ";

/// How many entries are shown of what an undecided case did last.
pub const LAST_SHOWN: usize = 8;

/// The end of one case, or of one invariant.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The catalogue's id, such as `ORD-01` or `INV-02`.
    pub id: Arc<str>,
    /// The name by which it is listed, such as `order::four-events-in-order`.
    pub name: Arc<str>,
    /// Which repetition of it, from 1; absent unless cases are repeated.
    pub repetition: Option<u32>,
    /// The claim that it checks, as a sentence.
    pub title: Arc<str>,
    /// The harm if the claim does not hold; empty for an invariant, whose sources describe it.
    pub why: Arc<str>,
    pub sources: Arc<[String]>,
    /// The ids of the requirements that it checks, such as `R9`.
    pub requirements: Arc<[String]>,
    /// How binding the claim is, for whom.
    pub levels: Levels,
    pub verdict: Verdict,
    /// Of a known failure: whether all that was found is listed as a race, which may not show in
    /// another run.
    pub race: bool,
    /// Why the verdict is not a plain pass or fail: of a skip, an error, a known failure.
    pub reason: Option<String>,
    /// The broken rules that convict, in order of discovery.
    pub violations: Vec<Violation>,
    /// What all violations have found, also those that are not shown in full, and how often.
    pub seen: BTreeMap<Seen, usize>,
    /// Why it failed and how that is accepted, if it is known of the runtime and was not expected.
    pub hint: Option<String>,
    /// Broken rules of a lower level: worth knowing, no failure.
    pub advice: Vec<Violation>,
    /// Of an invariant: the ids of the cases whose histories break it, in order.
    pub broken_in: Vec<Arc<str>>,
    /// Of an invariant: how binding it is in those cases, by the case that binds most.
    pub broken_levels: Levels,
    /// What the case itself could not clean up, one sentence each; those that the end of the run
    /// could begin with [`REMOVED`].
    pub leftovers: Vec<String>,
    /// The slice of the history that the evidence points into, in order.
    pub evidence: Vec<Arc<Entry>>,
    pub began: HostInstant,
    pub duration: Duration,
}

impl Outcome {
    /// The name by which people and reports know it: `order::four-events-in-order#2`.
    pub fn label(&self) -> String {
        match self.repetition {
            Some(repetition) => format!("{}#{repetition}", self.name),
            None => self.name.to_string(),
        }
    }

    /// What its name begins with: `order` of `order::four-events-in-order`.
    pub fn area(&self) -> &str {
        self.name
            .split_once("::")
            .map_or(&self.name, |(area, _)| area)
    }

    /// Lets nothing be more binding than this. What convicted and can no more becomes advice;
    /// returns whether anything did.
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

/// Whether this is the id of an invariant, and not of a case.
pub fn is_invariant(id: &str) -> bool {
    id.starts_with("INV-")
}

/// What a watch has seen of the pods of others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchTotals {
    /// Times that a pod was judged: after each of its changes, once it was quiet.
    pub judged: u64,
    /// The containers in these histories.
    pub containers: u64,
    /// Events that arrived.
    pub events: u64,
    /// Relists that succeeded.
    pub relists: u64,
    /// How often the stream ended.
    pub outages: u64,
    /// For how long there was none after that.
    pub without_stream: Duration,
    /// For how long the suite itself was held up.
    pub held_up: Duration,
}

impl WatchTotals {
    /// Why nothing was judged, if so.
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
    /// The image that containers ran.
    pub image: String,
    /// One for each case and invariant, in the order of the plan.
    pub outcomes: Vec<Outcome>,
    /// Faults outside the cases, one sentence each: a lost history file, a leftover.
    pub faults: Vec<String>,
    /// Pods on the node that this run did not make, as counted at its start.
    pub foreign_pods: usize,
    /// The profiles for which the runtime was judged.
    pub profiles: Vec<Profile>,
    /// The word for how large the run was to be; absent if all cases were meant.
    pub tier: Option<String>,
    /// Whether cases were left out that belong to it.
    pub partial: bool,
    /// What a watch has seen; absent for a run.
    pub watch: Option<WatchTotals>,
    /// Capabilities of the runtime as observed by the run.
    pub capabilities: Capabilities,
    /// The latencies for each limit, by limits.
    pub latencies: Vec<Worst>,
    /// The largest message of an event; absent where none came, and in older histories.
    pub largest_event: Option<Largest>,
    /// The ids of which an entry of the expectation file has expired.
    pub expired: Vec<String>,
    /// What is to be said of the run and breaks no rule, one sentence each: an entry of the
    /// expectation file that has expired.
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
