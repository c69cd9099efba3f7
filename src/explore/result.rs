//! What walks have found, or why none were taken.

use std::collections::BTreeMap;
use std::io;

use super::finding::{Finding, Key};
use super::rate::Rate;
use crate::files::OutputError;
use crate::outcome::Level;
use crate::run::{Exit, RunError};

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

/// Something that was found for the first time.
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

/// What walks have found.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    pub walks: u64,
    /// How many of them were skipped or inconclusive.
    pub open: u64,
    /// What was found, each once.
    pub found: Vec<NewFinding>,
    /// What is known of the runtime, and in how many walks it was found.
    pub known: BTreeMap<String, u64>,
    /// What could not be removed from the node.
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
    fn what_stays_on_the_node_is_the_reason_of_exit_code_3() {
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
}
