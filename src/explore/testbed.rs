//! The testbed of walks: the runtime, its capabilities, which probes measure, its known failures,
//! and trials of the candidates of a finding.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::finding::{Finding, Key, Rate, Threshold, findings};
use super::plan::{Behaviour, Capabilities, Plan};
use super::shrink::Answer;
use super::text::{FOLDER, Header, Walk, walk};
use super::{ExploreError, ExploreOptions};
use crate::case::{Case, Need, load, parse};
use crate::drive::Allowance;
use crate::history::{HostInstant, RunInfo};
use crate::host;
use crate::outcome::{NOT_REMOVED, RunReport, Verdict};
use crate::run::{ExpectationSource, Expectations, Rehearsal, RunError, Target, rehearse};
use crate::verdicts::{JudgedRun, Known, RuntimeFacts};

/// The runtime on which walks are taken, and the facts about it.
pub(super) struct Testbed<'a> {
    pub(super) options: &'a ExploreOptions,
    pub(super) target: &'a Target,
    pub(super) can: Capabilities,
    pub(super) known: Known,
    pub(super) info: RunInfo,
    /// Objects that walks could not remove.
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
    /// Measures the capabilities of the runtime and its node.
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
        let (target, cases) = (testbed.target_of(0), probes(disruption));
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
        testbed.can = capabilities(&report, disruption);
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

    /// The fault that ends the walks: any fault but leftovers on the node, unless these are too
    /// many.
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

    /// Objects that walks could not remove.
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
    let cases = load::embedded()
        .map_err(load::LoadError::from)
        .map_err(RunError::from)?;
    let file = ExpectationSource::open(given, &cases).and_then(|it| it.resolve(&report.info));
    let file = file.map_err(RunError::from)?;
    let Some(file) = file else {
        return Ok(Known::default());
    };
    let known = Known::parse(&file).map_err(|fault| ExploreError::Expectations {
        path: file.path.clone(),
        fault,
    })?;
    Ok(known.for_a_run(JudgedRun {
        facts: RuntimeFacts::of(&report.info),
        began: report.began,
    }))
}

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

/// The behaviours that a case shows, and its steps.
const BEHAVIOURS: [(Behaviour, &str); 2] = [
    (
        Behaviour::CreatesWithoutProgram,
        "steps:\n  - sandbox: {as: p}\n  \
         - create: {as: c, in: p, workload: missing-program, may-be-refused: true}\n",
    ),
    (
        Behaviour::RefusesTwins,
        "steps:\n  - sandbox: {as: p}\n  - create: {as: c, in: p, workload: until-term}\n  \
         - create: {as: d, in: p, workload: until-term, same-as: c, expect: failure}\n",
    ),
];

/// The probes: a case for each need, which a run skips where the need is not met, and one for each
/// behaviour, which passes only where the runtime behaves so; in the order of
/// [`Capabilities::USED`], those that disrupt only where it is allowed, and those of the
/// behaviours.
fn probes(disruption: bool) -> Vec<Case> {
    let needs = Capabilities::USED.into_iter().enumerate();
    let allowed = needs.filter(|(_, need)| disruption || !disrupts(*need));
    let of_needs = allowed.map(|(number, need)| case(number, &steps_of_need(need)));
    let of_behaviours = BEHAVIOURS.into_iter().enumerate();
    let of_behaviours =
        of_behaviours.map(|(nth, (_, steps))| case(number_of_behaviour(nth), steps));
    of_needs.chain(of_behaviours).collect()
}

/// The capabilities that the report on the probes shows.
fn capabilities(report: &RunReport, disruption: bool) -> Capabilities {
    let verdict = |id: &str| {
        let outcome = report.outcomes.iter().find(|outcome| *outcome.id == *id);
        outcome.map(|outcome| outcome.verdict)
    };
    let cases = probes(disruption).into_iter();
    let met = cases.filter(|case| verdict(&case.id).is_some_and(|it| it != Verdict::Skip));
    let behaviours = BEHAVIOURS.into_iter().enumerate();
    let shown = behaviours
        .filter(|(nth, _)| verdict(&id(number_of_behaviour(*nth))) == Some(Verdict::Pass));
    Capabilities {
        met: met.flat_map(|case| case.needs).collect(),
        behaviours: shown.map(|(_, (behaviour, _))| behaviour).collect(),
        disruption,
    }
}

/// Whether a need is measured only where disruption is allowed.
pub(super) fn disrupts(need: Need) -> bool {
    matches!(
        need,
        Need::HostPid | Need::Monitor | Need::ClockSteps | Need::RuntimeKill | Need::SmallDisk
    )
}

fn id(number: usize) -> String {
    format!("EXP-{number:02}")
}

fn number_of_behaviour(nth: usize) -> usize {
    Capabilities::USED.len() + nth
}

/// The steps that have this need, and the keys before them.
fn steps_of_need(need: Need) -> String {
    let keys = match need {
        Need::Broadcast => "needs: [broadcast]\n",
        _ => "",
    };
    let pod = match need {
        Need::PodCgroup => ", memory-mib: 64",
        Need::Network => ", own-network: true",
        Need::FaultyHandler => ", faulty: true",
        _ => "",
    };
    let container = match need {
        Need::MemoryLimit => ", memory-mib: 64",
        Need::CgroupV2 => ", memory-mib: 64, oom-group: true",
        Need::StopSignal => ", stop-signal: SIGUSR1",
        _ => "",
    };
    let workload = match need {
        Need::CorePipe => "{dump-core: {signal: 11}}",
        _ => "until-term",
    };
    let step = match need {
        Need::HostPid => "  - kill-sandbox: {sandbox: p}\n",
        Need::ContainerPid => "  - kill: {container: c}\n",
        Need::Monitor => "  - kill-monitor: {container: c}\n",
        Need::Handlers => "  - for-each-handler: {steps: [{sandbox: {as: q}}]}\n",
        Need::StreamedLists => "  - list-with-filters: {sandbox: p, streamed: true}\n",
        Need::OutsideCri => "  - outside-cri: {}\n",
        Need::ClockSteps => "  - step-clock: {back: 10s, steps: [{relist: {sandbox: p}}]}\n",
        Need::RuntimeKill => "  - restart-runtime: {by: kill}\n",
        Need::SmallDisk => "  - fill-disk: {container: c, steps: [{relist: {sandbox: p}}]}\n",
        _ => "",
    };
    format!(
        "{keys}steps:\n  - sandbox: {{as: p{pod}}}\n  \
         - create: {{as: c, in: p, workload: {workload}{container}}}\n  - start: {{container: c}}\n\
         {step}"
    )
}

fn case(number: usize, steps: &str) -> Case {
    let text = format!(
        "id: {}\ntitle: This is possible.\nwhy: Walks make use of it.\nsources: [the CRI]\n\
         levels: {{cache: may}}\nexclusive: true\n{steps}expect:\n  - no-repeats: {{of: c}}\n",
        id(number)
    );
    let path = format!("{FOLDER}/probe-{number}.yaml");
    match parse(Path::new(&path), &text) {
        Ok(case) => case,
        Err(problems) => panic!("a probe is a case: {problems:#?}\n{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{fixture, outcome};

    #[test]
    fn a_need_is_met_unless_it_is_skipped_and_a_behaviour_shown_only_where_its_case_passes() {
        let read_of = |number: usize, verdict: Verdict| {
            let mut report = fixture();
            report.outcomes = vec![outcome(&id(number), "explore::probe", verdict)];
            capabilities(&report, false)
        };
        let met = Some(&Capabilities::USED[0]);
        assert_eq!(read_of(0, Verdict::Inconclusive).met.first(), met);
        assert_eq!(read_of(0, Verdict::Skip).met.first(), None);
        let twins = number_of_behaviour(1);
        assert!(read_of(twins, Verdict::Pass).has(Behaviour::RefusesTwins));
        // A call succeeded that must fail, or the runtime refused what is needed.
        for verdict in [Verdict::Inconclusive, Verdict::Skip] {
            let can = read_of(twins, verdict);
            assert!(!can.has(Behaviour::RefusesTwins), "{verdict}");
        }
    }

    #[test]
    fn each_probe_is_a_case() {
        let needs = Capabilities::USED.len();
        assert_eq!(probes(true).len(), needs + BEHAVIOURS.len());
        assert!(probes(false).len() < probes(true).len());
    }
}
