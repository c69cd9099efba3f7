//! One run of the suite on a model, or through a relay.

use super::{Clean, MatrixOptions, Noticed, told};
use crate::case::{Case, Defect, Need};
use crate::history::ExpectationFile;
use crate::model::{Behaviour, Fault, NamedFault, VARIATIONS, Variation};
use crate::outcome::{Level, Outcome, RunReport, Seen, Verdict, Violation};
use crate::plan::Selection;
use crate::run::{Rehearsal, RunError, Target, Tested, rehearse};
use crate::verdicts::{JudgedRun, Known, RuntimeFacts};

/// What is tried.
pub(super) enum Trial<'a> {
    /// The model in a variation, with a seed.
    Clean(&'static Variation, u64),
    /// The model with a defect, by its hook.
    Defect(&'a Defect, NamedFault),
    /// A runtime behind a relay without a defect, and the failures that are known of it.
    Unharmed(Target, Option<ExpectationFile>),
    /// A runtime behind a relay with a defect.
    Relayed(Target, &'a Defect, NamedFault),
}

/// What it came to.
pub(super) enum Tried {
    Clean(Clean),
    Defect(Noticed),
}

impl Tried {
    /// Whether it came to no verdict.
    pub(super) fn is_at_fault(&self) -> bool {
        match self {
            Self::Clean(clean) => clean.fault,
            Self::Defect(noticed) => noticed.fault.is_some(),
        }
    }
}

impl Trial<'_> {
    pub(super) fn is_on_a_real_runtime(&self) -> bool {
        matches!(self, Self::Unharmed(..) | Self::Relayed(..))
    }

    /// Whether the events of other trials would get in its way.
    pub(super) fn wants_the_runtime_alone(&self) -> bool {
        matches!(self, Self::Relayed(_, _, hook) if matches!(hook.fault, Fault::Stream(_)))
    }

    pub(super) fn run(&self, cases: &[Case], options: &MatrixOptions) -> Tried {
        let model = |change: &dyn Fn(&mut Behaviour), seed| {
            let mut behaviour = Behaviour {
                lateness_percent: options.timeout_scale.percent(),
                ..Behaviour::default()
            };
            change(&mut behaviour);
            Tested::model(behaviour, seed)
        };
        match self {
            Self::Clean((variation, change), seed) => clean(
                (variation, *seed),
                model(change, *seed),
                None,
                cases,
                options,
            ),
            Self::Defect(defect, hook) => {
                let tested = model(&|behaviour| hook.fault.apply(behaviour), 0);
                noticed(defect, tested, cases, options)
            }
            Self::Unharmed(target, known) => {
                let tested = relayed(target, Vec::new());
                let named = ("a relay without a defect", 0);
                clean(named, tested, known.clone(), cases, options)
            }
            Self::Relayed(target, defect, hook) => {
                let tested = relayed(target, vec![*hook]);
                noticed(defect, tested, cases, options)
            }
        }
    }
}

fn relayed(target: &Target, defects: Vec<NamedFault>) -> Tested {
    Tested::Relayed {
        target: target.clone(),
        defects,
    }
}

fn clean(
    (variation, seed): (&'static str, u64),
    tested: Tested,
    known: Option<ExpectationFile>,
    cases: &[Case],
    options: &MatrixOptions,
) -> Tried {
    let listed = known.as_ref().and_then(|file| Known::parse(file).ok());
    let listed = listed.unwrap_or_default();
    let tried = run(tested, Selection::default(), known, cases, options);
    let (alarms, fault) = match tried {
        Ok(report) => {
            let plain = variation == VARIATIONS[0].0;
            let listed = listed.for_a_run(JudgedRun {
                facts: RuntimeFacts::of(&report.info),
                began: report.began,
                partial: true,
            });
            let alarms = alarms(&report, plain, &listed, cases);
            (alarms, !report.faults.is_empty())
        }
        Err(fault) => (vec![told(&fault)], true),
    };
    Tried::Clean(Clean {
        variation,
        seed,
        alarms,
        fault,
    })
}

fn noticed(defect: &Defect, tested: Tested, cases: &[Case], options: &MatrixOptions) -> Tried {
    let all_cases = options.all_cases;
    let mut selection = Selection::default();
    if !all_cases {
        let is_there = |id: &&str| cases.iter().any(|case| case.id == *id);
        let wanted = defect.shown_in().filter(is_there);
        selection.filters = wanted.map(str::to_owned).collect();
    }
    let (failed, fault) = match run(tested, selection, None, cases, options) {
        Ok(report) => (failed(&report), report.faults.first().cloned()),
        Err(fault) => (Vec::new(), Some(told(&fault))),
    };
    let tried = cases.iter().map(|case| case.id.clone());
    let shown = |id: &String| all_cases || defect.shown_in().any(|it| it == id);
    Tried::Defect(Noticed {
        defect: defect.clone(),
        tried: tried.filter(shown).collect(),
        failed,
        fault,
    })
}

fn run(
    tested: Tested,
    selection: Selection,
    known: Option<ExpectationFile>,
    cases: &[Case],
    options: &MatrixOptions,
) -> Result<RunReport, RunError> {
    let selection = Selection {
        exact: true,
        ..selection
    };
    let rehearsal = Rehearsal {
        history: None,
        tested,
        selection,
        known,
        timeout_scale: options.timeout_scale,
        ..Rehearsal::default()
    };
    rehearse(rehearsal, cases.to_vec())
}

fn failed(report: &RunReport) -> Vec<String> {
    let failed = report.outcomes.iter().filter(|outcome| is_broken(outcome));
    failed.map(|outcome| outcome.id.to_string()).collect()
}

/// Whether a claim does not hold: a failure, or advice where nobody must keep it, as an invariant
/// in a case that nobody must keep.
fn is_broken(outcome: &Outcome) -> bool {
    let binds = outcome.levels.highest() == Some(Level::Must) && !outcome.is_invariant();
    outcome.verdict == Verdict::Fail || !binds && !outcome.advice.is_empty()
}

/// What is red where nothing is wrong. A variation may lack what nobody must have, and do otherwise
/// what is only recorded; what only should be, and is listed, is known. Where there are events,
/// what is about having none cannot run.
fn alarms(report: &RunReport, plain: bool, listed: &Known, cases: &[Case]) -> Vec<String> {
    let unfit = cases
        .iter()
        .filter(|case| case.needs.contains(&Need::NoEvents));
    let unfit: Vec<&str> = unfit.map(|case| &*case.id).collect();
    let outcomes = report.outcomes.iter();
    let red = outcomes.filter(|outcome| match outcome.verdict {
        Verdict::Pass | Verdict::Known => {
            let binds = outcome.levels.highest() > Some(Level::May);
            let mut advice = outcome.advice.iter();
            let known = advice.all(|advice| {
                let actual = advice.actual();
                listed.lists(&outcome.id, &Seen { actual, case: None })
            });
            is_broken(outcome) && (plain || binds) && !known
        }
        Verdict::Skip => plain && !unfit.contains(&&*outcome.id),
        _ => true,
    });
    red.map(alarm)
        .chain(report.faults.iter().cloned())
        .collect()
}

fn alarm(outcome: &Outcome) -> String {
    let told = outcome.violations.iter().chain(&outcome.advice);
    let seen = told.map(Violation::actual).next();
    let why = seen.or_else(|| outcome.reason.clone()).unwrap_or_default();
    format!("{} {:?}: {why}", outcome.id, outcome.verdict)
}
