//! Random walks: finds failures that no case covers, and shrinks them.
//!
//! A walk is a case like any other: a plan of legal operations by several clients, made from a seed
//! and put into the words of cases, executed by `run` and judged by all invariants and by checks
//! that follow from the certain effects of the plan. A failing plan is shrunk to a small case.
//!
//! A plan is a list of a case's own steps. `world` decides which are legal at their places and how
//! they must end, `checks` derives the expectations, `text` makes the case; `generate` makes plans
//! and `shrink` smaller ones. All of these are pure. Only [`explore`] runs them.

mod checks;
mod coverage;
mod explorer;
mod finding;
mod generate;
mod plan;
mod shrink;
mod testbed;
mod text;
mod world;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::drive::DriveOptions;
use crate::files::OutputError;
use crate::limits::{duration, long_duration};
use crate::outcome::Level;
use crate::run::{Exit, Expectations, RunError};

pub use explorer::explore;
use finding::{Finding, Key, Rate};

/// Enough for two pods that several clients act on, and few enough to be shrunk soon.
const STEPS: u16 = 25;
/// One pod, and another one that is not to be disturbed by it.
const PODS: u8 = 2;
/// Enough for a race that is lost every second time.
const SHRINK_FOR: Duration = Duration::from_secs(600);

// Doc comments of fields are the help of options.
/// The options of `explore`.
#[derive(Args, Clone, Debug)]
pub struct ExploreOptions {
    /// The seed, from which all walks follow [default: a new one, which is printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// About how many steps each walk has
    #[arg(long, value_name = "M", default_value_t = STEPS)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=200))]
    pub steps: u16,
    /// How many pods a walk has at once at most
    #[arg(long, value_name = "K", default_value_t = PODS)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=8))]
    pub pods: u8,
    /// How many walks [default: 100 if no --duration is given]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub walks: Option<u64>,
    /// Begin no further walk after this time, such as 30m or 1h, and shrink no longer
    #[arg(long, value_name = "TIME", value_parser = long_duration)]
    pub duration: Option<Duration>,
    /// Take only the walk of this number, as an earlier run with the same options has printed it
    #[arg(long, value_name = "N", requires = "seed", conflicts_with_all = ["walks", "duration"])]
    pub walk: Option<u64>,
    /// How long to shrink each new finding at most
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    pub shrink_for: Duration,
    /// Leave each finding as large as its walk
    #[arg(long, conflicts_with = "shrink_for")]
    pub no_shrink: bool,
    /// End with the first new finding
    #[arg(long)]
    pub fail_fast: bool,
    /// Write the case of each finding, and the history of the walk that found it, to a directory
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Failures that are known of the runtime, which are counted and not shrunk: those of a YAML
    /// file or, with `builtin`, those known to this suite
    #[arg(long, value_name = "FILE")]
    #[arg(value_parser = OsStringValueParser::new().map(Expectations::named))]
    pub expectations: Option<Expectations>,
    /// How it treats the runtime and its node.
    #[command(flatten)]
    pub drive: DriveOptions,
}

impl ExploreOptions {
    /// How long a finding may be shrunk after this time of a run: no longer than walks are taken.
    fn shrink_for_after(&self, elapsed: Duration) -> Duration {
        let left = self.duration.map(|all| all.saturating_sub(elapsed));
        left.map_or(self.shrink_for, |left| left.min(self.shrink_for))
    }
}

impl Default for ExploreOptions {
    fn default() -> Self {
        Self {
            seed: None,
            steps: STEPS,
            pods: PODS,
            walks: None,
            duration: None,
            walk: None,
            shrink_for: SHRINK_FOR,
            no_shrink: false,
            fail_fast: false,
            output_dir: None,
            expectations: None,
            drive: DriveOptions::default(),
        }
    }
}

/// Why walks cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum ExploreError {
    /// No walk can run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A case cannot be written.
    #[error(transparent)]
    File(#[from] OutputError),
    #[error("print what the walks have found: {0}")]
    Output(#[from] io::Error),
    /// The run was interrupted, or the runtime lost.
    #[error("the walks ended early: {0}")]
    CutShort(String),
    #[error("the expectation file {path}: {fault}")]
    Expectations { path: String, fault: String },
}

/// A finding, when it is found for the first time.
#[derive(Clone, Debug)]
pub struct NewFinding {
    pub finding: Finding,
    /// The number of the walk that found it.
    pub walk: u64,
    /// How many steps the case has that shows it.
    pub steps: usize,
    /// How often that case shows it.
    pub rate: Rate,
    pub case: String,
}

/// The result of the walks.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    pub walks: u64,
    /// How many of them were skipped or inconclusive.
    pub open: u64,
    /// The new findings, each once.
    pub found: Vec<NewFinding>,
    /// The known failures of the runtime, and in how many walks each was found.
    pub known: BTreeMap<String, u64>,
    /// Objects that could not be removed from the node.
    pub left: Vec<String>,
}

impl Explored {
    /// Why the exit code is 3; none where it is another.
    pub fn undecided(&self) -> Option<&'static str> {
        (self.exit() == Exit::Undecided).then_some(if self.left.is_empty() {
            "a walk could not be decided"
        } else {
            "something could not be removed, see above"
        })
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        let is_must = |found: &NewFinding| found.finding.level == Level::Must;
        let is_broken = |found: &NewFinding| matches!(found.finding.key, Key::Broken { .. });
        let must: Vec<_> = self.found.iter().filter(|found| is_must(found)).collect();
        if must.iter().any(|found| is_broken(found)) {
            Exit::NonConformant
        } else if !must.is_empty() || !self.left.is_empty() {
            Exit::Undecided
        } else if self.walks == 0 {
            Exit::NothingRan
        } else {
            Exit::Conformant
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_the_reason_of_exit_code_3() {
        let mut explored = Explored {
            walks: 1,
            ..Explored::default()
        };
        assert_eq!(explored.undecided(), None);
        explored.left = vec!["not removed: container 6f1c".to_owned()];
        assert_eq!(explored.exit(), Exit::Undecided);
        let reason = Some("something could not be removed, see above");
        assert_eq!(explored.undecided(), reason);
    }

    #[test]
    fn nothing_is_shrunk_for_longer_than_walks_are_taken() {
        let minutes = |count: u64| Duration::from_secs(count * 60);
        let check = |duration: Option<u64>, elapsed, expected| {
            let options = ExploreOptions {
                duration: duration.map(minutes),
                shrink_for: minutes(10),
                ..ExploreOptions::default()
            };
            assert_eq!(
                options.shrink_for_after(minutes(elapsed)),
                minutes(expected)
            );
        };
        check(Some(5), 4, 1);
        check(Some(5), 6, 0);
        check(Some(60), 4, 10);
        check(None, 60, 10);
    }
}
