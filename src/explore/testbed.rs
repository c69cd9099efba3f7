//! Where walks are taken: the runtime, what it can do, and what is known of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::capabilities::{Behaviour, Capabilities};
use super::finding::{Finding, findings};
use super::options::ExploreOptions;
use super::probe;
use super::result::ExploreError;
use super::text::Walk;
use crate::case::load;
use crate::drive::Allowance;
use crate::files;
use crate::history::{ExpectationFile, RunInfo};
use crate::outcome::{NOT_REMOVED, RunReport, Verdict};
use crate::run::{
    Expectations, LARGEST_EXPECTATIONS, Rehearsal, RunError, Target, rehearse, require_runtime,
};
use crate::verdicts::{JudgedRun, Known, RuntimeFacts, builtin_of};

/// Where walks are taken.
pub(super) struct Testbed<'a> {
    pub(super) options: &'a ExploreOptions,
    pub(super) target: &'a Target,
    pub(super) can: Capabilities,
    pub(super) known: Known,
    pub(super) info: RunInfo,
    /// What walks could not remove.
    left: Mutex<BTreeSet<String>>,
}

/// How much may stay on the node before walks end. The runtime loses track of something where it is
/// killed at the wrong moment, which need not end the others.
const MOST_LEFT: usize = 10;

/// The result of one run of a walk.
pub(super) struct Ran {
    pub(super) findings: Vec<Finding>,
    pub(super) verdict: Option<Verdict>,
    pub(super) requirements: BTreeSet<String>,
    /// Why no further walk can be taken.
    pub(super) fault: Option<String>,
}

impl<'a> Testbed<'a> {
    /// Finds out what can be done there.
    pub(super) fn new(
        options: &'a ExploreOptions,
        target: &'a Target,
    ) -> Result<Self, ExploreError> {
        let allowed = [Allowance::Disruption, Allowance::DisruptionWithForeignPods];
        let is_model = matches!(target, Target::Model { .. });
        let allow = &options.drive.allow;
        let disruption = allow.iter().any(|it| allowed.contains(it));
        let mut testbed = Self {
            options,
            target,
            can: Capabilities::default(),
            known: Known::default(),
            info: RunInfo::default(),
            left: Mutex::default(),
        };
        let (target, cases) = (testbed.target_of(0), probe::cases(disruption));
        let report = rehearse(testbed.rehearsal(target, None), cases)?;
        if let Some(fault) = report.faults.first()
            && !is_model
        {
            return Err(ExploreError::CutShort(fault.clone()));
        }
        if report.capabilities.events == Some(false) {
            let none = "the runtime has no events, or they are switched off";
            return Err(ExploreError::CutShort(none.to_owned()));
        }
        testbed.can = probe::read(&report, disruption);
        testbed.known = known(options.expectations.as_ref(), &report)?;
        if !holds_all_up(&testbed.known) {
            let outlives = Behaviour::OutlivesStalledSubscriber;
            testbed.can.behaviours.insert(outlives);
        }
        testbed.info = report.info;
        Ok(testbed)
    }

    fn rehearsal(&self, target: Target, history: Option<PathBuf>) -> Rehearsal {
        Rehearsal {
            target,
            history,
            drive: self.options.drive.clone(),
            ..Rehearsal::default()
        }
    }

    /// The runtime; a model is made anew for each walk, with its number as the seed.
    fn target_of(&self, number: u64) -> Target {
        match self.target {
            Target::Model {
                behaviour,
                deadline,
                ..
            } => Target::Model {
                behaviour: behaviour.clone(),
                seed: number,
                deadline: *deadline,
            },
            other => other.clone(),
        }
    }

    pub(super) fn is_model(&self) -> bool {
        matches!(self.target, Target::Model { .. })
    }

    pub(super) fn run(
        &self,
        walk: &Walk,
        number: u64,
        history: Option<PathBuf>,
    ) -> Result<Ran, RunError> {
        let rehearsal = self.rehearsal(self.target_of(number), history);
        let report = rehearse(rehearsal, vec![walk.case.clone()])?;
        let case = report
            .outcomes
            .iter()
            .find(|outcome| !outcome.is_invariant());
        let judged = report.outcomes.iter().filter(|outcome| {
            matches!(
                outcome.verdict,
                Verdict::Pass | Verdict::Fail | Verdict::Known
            )
        });
        Ok(Ran {
            findings: findings(&report, &self.known),
            verdict: case.map(|outcome| outcome.verdict),
            requirements: judged
                .filter(|outcome| outcome.is_invariant())
                .flat_map(|outcome| outcome.requirements.iter().cloned())
                .collect(),
            fault: self.fault(&report),
        })
    }

    /// What forbids further walks: anything but what stays on the node, unless that is too much.
    fn fault(&self, report: &RunReport) -> Option<String> {
        let mut faults = report.faults.iter();
        if self.is_model() {
            return None;
        }
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let stays = report
            .faults
            .iter()
            .filter(|it| it.starts_with(NOT_REMOVED));
        left.extend(stays.cloned());
        let other = faults.find(|fault| !fault.starts_with(NOT_REMOVED));
        let latest = report.faults.first().filter(|_| left.len() > MOST_LEFT);
        other.or(latest).cloned()
    }

    /// What walks could not remove.
    pub(super) fn left(&self) -> Vec<String> {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.iter().cloned().collect()
    }
}

/// Whether a subscriber that does not read is known to hold up all else. Each walk that has one
/// would end in a call without an answer, and show nothing new.
fn holds_all_up(known: &Known) -> bool {
    let cases = load::embedded().unwrap_or_default();
    let mut stalling = cases.iter().filter(|case| case.stalls_a_subscriber);
    stalling.any(|case| known.of(&case.id).next().is_some())
}

/// The failures that are known of the runtime.
fn known(given: Option<&Expectations>, report: &RunReport) -> Result<Known, ExploreError> {
    let file = match given {
        None => None,
        Some(Expectations::Builtin) => builtin_of(&report.info.runtime.runtime_name),
        Some(Expectations::File(path)) => Some(ExpectationFile {
            path: path.display().to_string(),
            text: files::read_text(path, LARGEST_EXPECTATIONS).map_err(|fault| {
                ExploreError::Expectations {
                    path: path.display().to_string(),
                    fault: format!("read it: {fault}"),
                }
            })?,
        }),
    };
    let Some(file) = file else {
        return Ok(Known::default());
    };
    let known = Known::parse(&file).map_err(|fault| ExploreError::Expectations {
        path: file.path.clone(),
        fault,
    })?;
    require_runtime(&known, Path::new(&file.path), &report.info).map_err(RunError::from)?;
    Ok(known.for_a_run(JudgedRun {
        facts: RuntimeFacts::of(&report.info),
        began: report.began,
        partial: true,
    }))
}
