//! Runs the candidates of one finding.

use std::time::Duration;

use super::finding::Key;
use super::plan::Plan;
use super::rate::{Rate, Threshold};
use super::result::ExploreError;
use super::shrink::Answer;
use super::testbed::Testbed;
use super::text::{Header, walk};
use crate::history::HostInstant;
use crate::host;

/// The candidates of one finding, and the time that is left for them.
pub(super) struct Trials<'a> {
    pub(super) testbed: &'a Testbed<'a>,
    pub(super) number: u64,
    pub(super) key: Key,
    pub(super) header: Header,
    pub(super) began: HostInstant,
    pub(super) bound: Duration,
}

/// Runs by which it is known how often a walk fails.
const RATE_RUNS: u32 = 5;

impl Trials<'_> {
    /// Whether a run of this plan has the finding.
    fn finds(&self, plan: &Plan) -> Result<bool, ExploreError> {
        let walk = walk(plan.clone(), &self.testbed.can, &self.header);
        let ran = self.testbed.run(&walk, self.number, None)?;
        let found = ran.findings.iter().any(|finding| finding.key == self.key);
        match ran.fault {
            Some(fault) => Err(ExploreError::CutShort(fault)),
            None => Ok(found),
        }
    }

    /// How often a plan has it, in some runs; in one if there is no time left.
    pub(super) fn rate(&self, plan: &Plan) -> Result<Rate, ExploreError> {
        let mut rate = Rate::default();
        while rate.runs == 0 || rate.runs < RATE_RUNS && !self.is_out_of_time() {
            rate.runs += 1;
            rate.found += u32::from(self.finds(plan)?);
        }
        Ok(rate)
    }

    /// Whether a candidate passes the threshold.
    pub(super) fn fails(&self, plan: &Plan, threshold: Threshold) -> Result<Answer, ExploreError> {
        let mut found = 0;
        for run in 0..threshold.runs {
            if self.is_out_of_time() {
                return Ok(Answer::OutOfTime);
            }
            found += u32::from(self.finds(plan)?);
            if found == threshold.found {
                return Ok(Answer::Fails);
            }
            if found + (threshold.runs - run - 1) < threshold.found {
                break;
            }
        }
        Ok(Answer::Passes)
    }

    fn is_out_of_time(&self) -> bool {
        host::elapsed(self.began) >= self.bound
    }
}
