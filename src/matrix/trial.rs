//! One trial: a run of the suite on a model, or through a relay.

use std::sync::{PoisonError, RwLock};

use super::{CleanResult, DefectResult, MatrixOptions, error_chain};
use crate::case::{Case, Defect, Need};
use crate::drive::DriveOptions;
use crate::model::{Behaviour, Fault, NamedFault, VARIATIONS, Variation};
use crate::outcome::{Level, Outcome, RunReport, Seen, Verdict, Violation, is_invariant};
use crate::plan::Selection;
use crate::run::{Endpoints, ExpectationSource, Rehearsal, RunError, Target, rehearse};
use crate::verdicts::{JudgedRun, Known, RuntimeFacts};

/// The maximum number of attempts until the relevant rules are decided: a delayed case is
/// inconclusive. Trials in parallel can delay each other, so a repeated one is alone.
const ATTEMPTS: usize = 3;

pub(super) enum Trial<'a> {
    /// The model in a variation, with a seed.
    Clean(&'static Variation, u64),
    /// The model with a defect.
    Defect(&'a Defect, NamedFault),
    /// A runtime behind a relay without a defect, and its known failures.
    Unharmed(Endpoints, ExpectationSource),
    /// A runtime behind a relay with a defect.
    Relayed(Endpoints, &'a Defect, NamedFault),
}

pub(super) enum TrialResult {
    Clean(CleanResult),
    Defect(DefectResult),
}

impl TrialResult {
    /// Whether the trial has no verdicts.
    pub(super) fn has_fault(&self) -> bool {
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

    /// Whether events of concurrent trials would disturb it.
    pub(super) fn needs_exclusive_runtime(&self) -> bool {
        matches!(self, Self::Relayed(_, _, hook) if matches!(hook.fault, Fault::Stream(_)))
    }

    /// Runs it beside others, which hold `alone` too, and again without them if it is undecided.
    pub(super) fn run(
        &self,
        cases: &[Case],
        options: &MatrixOptions,
        alone: &RwLock<()>,
    ) -> TrialResult {
        let model = |change: &dyn Fn(&mut Behaviour), seed| {
            let mut behaviour = Behaviour {
                lateness_percent: options.timeout_scale.percent(),
                ..Behaviour::default()
            };
            change(&mut behaviour);
            Target::model(behaviour, seed)
        };
        match self {
            Self::Clean((variation, change), seed) => clean(
                variation,
                *seed,
                &model(change, *seed),
                &ExpectationSource::None,
                cases,
                options,
                alone,
            ),
            Self::Defect(defect, hook) => {
                let target = model(&|behaviour| hook.fault.apply(behaviour), 0);
                noticed(defect, &target, cases, options, alone)
            }
            Self::Unharmed(endpoints, known) => {
                let target = relayed(endpoints, Vec::new());
                let name = "a relay without a defect";
                clean(name, 0, &target, known, cases, options, alone)
            }
            Self::Relayed(endpoints, defect, hook) => {
                let target = relayed(endpoints, vec![*hook]);
                noticed(defect, &target, cases, options, alone)
            }
        }
    }
}

fn relayed(endpoints: &Endpoints, defects: Vec<NamedFault>) -> Target {
    Target::Relayed {
        endpoints: endpoints.clone(),
        defects,
    }
}

fn clean(
    variation: &'static str,
    seed: u64,
    target: &Target,
    known: &ExpectationSource,
    cases: &[Case],
    options: &MatrixOptions,
    alone: &RwLock<()>,
) -> TrialResult {
    let plain = variation == VARIATIONS[0].0;
    let attempt = |undecided: Option<&Result<Alarms, RunError>>| {
        let undecided = undecided.and_then(|tried| tried.as_ref().ok());
        let selection = Selection {
            filters: undecided.map_or_else(Vec::new, Alarms::cases),
            ..Selection::default()
        };
        let report = run(target.clone(), selection, known.clone(), cases, options)?;
        let listed = known.clone().resolve(&report.info)?;
        let listed = listed.and_then(|file| Known::parse(&file).ok());
        let listed = listed.unwrap_or_default().for_a_run(JudgedRun {
            facts: RuntimeFacts::of(&report.info),
            began: report.began,
        });
        Ok(Alarms::from_report(&report, plain, &listed, cases))
    };
    let only_undecided =
        |tried: &Result<Alarms, RunError>| tried.as_ref().is_ok_and(Alarms::are_only_undecided);
    let (alarms, fault) = match until_decided(attempt, only_undecided, alone) {
        Ok(alarms) => (alarms.described(), !alarms.faults.is_empty()),
        Err(fault) => (vec![error_chain(&fault)], true),
    };
    TrialResult::Clean(CleanResult {
        variation,
        seed,
        alarms,
        fault,
    })
}

fn noticed(
    defect: &Defect,
    target: &Target,
    cases: &[Case],
    options: &MatrixOptions,
    alone: &RwLock<()>,
) -> TrialResult {
    let all_cases = options.all_cases;
    let mut selection = Selection::default();
    if !all_cases {
        let is_there = |id: &&str| cases.iter().any(|case| case.id == *id);
        let wanted = defect.shown_in().filter(is_there);
        selection.filters = wanted.map(str::to_owned).collect();
    }
    let shown = |id: &str| all_cases || defect.shown_in().any(|it| it == id);
    let tried: Vec<String> = cases
        .iter()
        .map(|case| case.id.clone())
        .filter(|id| shown(id))
        .collect();
    let attempt = |_: Option<&_>| match run(
        target.clone(),
        selection.clone(),
        ExpectationSource::None,
        cases,
        options,
    ) {
        Ok(report) => (report.outcomes, report.faults.first().cloned()),
        Err(fault) => (Vec::new(), Some(error_chain(&fault))),
    };
    let undecided = |(outcomes, fault): &(Vec<Outcome>, Option<String>)| {
        fault.is_none() && is_undecided(outcomes, defect)
    };
    let (outcomes, fault) = until_decided(attempt, undecided, alone);
    TrialResult::Defect(DefectResult {
        defect: defect.clone(),
        failed: failed(&outcomes),
        missing: missing(&outcomes, &tried, defect),
        fault,
    })
}

/// The result of the first attempt that is decided, or of the last one. Each gets the one before.
fn until_decided<T>(
    attempt: impl Fn(Option<&T>) -> T,
    is_undecided: impl Fn(&T) -> bool,
    alone: &RwLock<()>,
) -> T {
    let beside = alone.read().unwrap_or_else(PoisonError::into_inner);
    let mut result = attempt(None);
    drop(beside);
    for _ in 1..ATTEMPTS {
        if !is_undecided(&result) {
            break;
        }
        let _alone = alone.write().unwrap_or_else(PoisonError::into_inner);
        result = attempt(Some(&result));
    }
    result
}

fn run(
    target: Target,
    selection: Selection,
    known: ExpectationSource,
    cases: &[Case],
    options: &MatrixOptions,
) -> Result<RunReport, RunError> {
    let selection = Selection {
        exact: true,
        ..selection
    };
    let rehearsal = Rehearsal {
        history: None,
        target,
        selection,
        known,
        drive: DriveOptions {
            timeout_scale: options.timeout_scale,
            ..DriveOptions::default()
        },
    };
    rehearse(rehearsal, cases.to_vec())
}

fn failed(outcomes: &[Outcome]) -> Vec<String> {
    let failed = outcomes.iter().filter(|outcome| is_broken(outcome));
    failed.map(|outcome| outcome.id.to_string()).collect()
}

/// Whether a rule that must notice the defect was undecided, such as after a delay of the suite.
fn is_undecided(outcomes: &[Outcome], defect: &Defect) -> bool {
    outcomes.iter().any(|outcome| {
        let must_notice = defect.noticed_by.iter().any(|id| **id == *outcome.id);
        must_notice && outcome.verdict == Verdict::Inconclusive
    })
}

/// The invariants and tried cases that should have failed and did not, with verdict and reason.
fn missing(outcomes: &[Outcome], tried: &[String], defect: &Defect) -> Vec<String> {
    let was_tried = |id: &&String| is_invariant(id) || tried.contains(id);
    let ended = |id: &String| match outcomes.iter().find(|outcome| *outcome.id == **id) {
        Some(outcome) if is_broken(outcome) => None,
        Some(outcome) => Some(described(outcome)),
        None => Some(format!("{id} (no verdict)")),
    };
    let noticed_by = defect.noticed_by.iter();
    noticed_by.filter(was_tried).filter_map(ended).collect()
}

/// Whether a rule is broken: by a failure, or by advice from a SHOULD or MAY rule, including an
/// invariant in the history of a SHOULD or MAY case. Of a MUST case only its own claims count.
fn is_broken(outcome: &Outcome) -> bool {
    let mut advice = outcome.advice.iter();
    outcome.verdict == Verdict::Fail
        || advice.any(|violation| !is_must_case(outcome) || *violation.rule == *outcome.id)
}

fn is_must_case(outcome: &Outcome) -> bool {
    outcome.levels.highest() == Some(Level::Must) && !outcome.is_invariant()
}

/// The false alarms of a run without a defect.
struct Alarms {
    outcomes: Vec<Outcome>,
    faults: Vec<String>,
}

impl Alarms {
    /// The alarms of a run. A variation may skip cases of optional features, and break a MAY or a
    /// SHOULD of a MUST case; a known failure is accepted; cases for runtimes without events cannot
    /// run.
    fn from_report(report: &RunReport, plain: bool, listed: &Known, cases: &[Case]) -> Self {
        let without_events: Vec<&str> = cases
            .iter()
            .filter(|case| case.needs.contains(&Need::NoEvents))
            .map(|case| &*case.id)
            .collect();
        let is_alarm = |outcome: &&Outcome| match outcome.verdict {
            Verdict::Pass | Verdict::Known => {
                let binds = outcome.levels.highest() > Some(Level::May) && !is_must_case(outcome);
                is_broken(outcome) && (plain || binds) && !advice_is_known(outcome, listed)
            }
            Verdict::Skip => plain && !without_events.contains(&&*outcome.id),
            _ => true,
        };
        Self {
            outcomes: report.outcomes.iter().filter(is_alarm).cloned().collect(),
            faults: report.faults.clone(),
        }
    }

    /// Whether there are alarms, and all are undecided cases, such as after a delay of the suite.
    fn are_only_undecided(&self) -> bool {
        let mut verdicts = self.outcomes.iter().map(|outcome| outcome.verdict);
        !self.outcomes.is_empty()
            && self.faults.is_empty()
            && verdicts.all(|verdict| verdict == Verdict::Inconclusive)
    }

    /// The ids of these cases; empty, which selects all, if an invariant is among them.
    fn cases(&self) -> Vec<String> {
        let ids = self.outcomes.iter().map(|outcome| outcome.id.to_string());
        let ids: Vec<String> = ids.collect();
        if ids.iter().any(|id| is_invariant(id)) {
            return Vec::new();
        }
        ids
    }

    fn described(&self) -> Vec<String> {
        let outcomes = self.outcomes.iter().map(described);
        outcomes.chain(self.faults.iter().cloned()).collect()
    }
}

fn advice_is_known(outcome: &Outcome, listed: &Known) -> bool {
    outcome.advice.iter().all(|advice| {
        let signature = advice.mismatch.signature();
        let seen = Seen {
            signature,
            case: None,
        };
        listed.lists(&outcome.id, &seen)
    })
}

fn described(outcome: &Outcome) -> String {
    let violations = outcome.violations.iter().chain(&outcome.advice);
    let seen = violations.map(Violation::actual).next();
    let id = &outcome.id;
    let verdict = match outcome.verdict {
        Verdict::Pass | Verdict::Known if !outcome.advice.is_empty() => {
            "breaks a SHOULD".to_owned()
        }
        verdict => verdict.to_string(),
    };
    match seen.or_else(|| outcome.reason.clone()) {
        Some(why) => format!("{id} ({verdict}: {why})"),
        None => format!("{id} ({verdict})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::{outcome, violation};

    fn defect() -> Defect {
        let ids = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect();
        Defect {
            name: "drop-created".to_owned(),
            description: String::new(),
            similar_to: String::new(),
            requirements: Vec::new(),
            noticed_by: ids(&["ORD-01", "ORD-05", "ORD-06", "INV-01"]),
            also_shown_in: Vec::new(),
        }
    }

    #[test]
    fn what_missed_a_defect_is_shown_with_verdict_and_reason() {
        let undecided = Outcome {
            reason: Some("the runtime was lost".to_owned()),
            ..outcome("ORD-05", "order::five", Verdict::Inconclusive)
        };
        let outcomes = [
            outcome("ORD-01", "order::one", Verdict::Fail),
            undecided,
            outcome("INV-01", "INV-01", Verdict::Pass),
        ];
        let tried = ["ORD-01".to_owned(), "ORD-05".to_owned()];
        assert_eq!(
            missing(&outcomes, &tried, &defect()),
            [
                "ORD-05 (inconclusive: the runtime was lost)",
                "INV-01 (pass)"
            ]
        );
        assert_eq!(
            missing(&outcomes[..2], &tried, &defect())[1],
            "INV-01 (no verdict)"
        );
    }

    #[test]
    fn of_a_must_case_only_its_own_claims_notice_by_advice() {
        let advised = |rule: &str| {
            let advice = Violation {
                rule: rule.to_owned(),
                ..violation("late")
            };
            Outcome {
                advice: vec![advice],
                ..outcome("ORD-01", "order::one", Verdict::Pass)
            }
        };
        assert!(is_broken(&advised("ORD-01")));
        assert!(!is_broken(&advised("INV-26")));
    }

    #[test]
    fn a_defect_is_tried_again_only_if_one_that_must_notice_it_could_not_decide() {
        let inconclusive = |id: &str| [outcome(id, "order::five", Verdict::Inconclusive)];
        assert!(is_undecided(&inconclusive("ORD-05"), &defect()));
        assert!(!is_undecided(&inconclusive("ORD-07"), &defect()));
        let decided = [outcome("ORD-05", "order::five", Verdict::Pass)];
        assert!(!is_undecided(&decided, &defect()));
    }

    #[test]
    fn a_clean_run_is_tried_again_only_if_all_its_alarms_are_cases_that_could_not_decide() {
        let only_undecided = |verdicts: &[Verdict], fault: Option<&str>| {
            let outcome = |&verdict| outcome("FLR-02", "failed_creates::two", verdict);
            Alarms {
                outcomes: verdicts.iter().map(outcome).collect(),
                faults: fault.into_iter().map(str::to_owned).collect(),
            }
            .are_only_undecided()
        };
        assert!(only_undecided(&[Verdict::Inconclusive], None));
        assert!(!only_undecided(&[], None));
        assert!(!only_undecided(
            &[Verdict::Inconclusive, Verdict::Fail],
            None
        ));
        assert!(!only_undecided(
            &[Verdict::Inconclusive],
            Some("the runtime was lost")
        ));
    }

    #[test]
    fn a_trial_is_repeated_until_it_is_decided_and_three_times_at_most() {
        let runs_until_decided = |decided_at: usize| {
            let runs = std::cell::Cell::new(0);
            let alone = RwLock::new(());
            let attempt = |_: Option<&_>| {
                let is_alone = alone.try_read().is_err();
                assert_eq!(is_alone, runs.get() > 0, "a repeated trial is alone");
                runs.set(runs.get() + 1);
                runs.get()
            };
            let decided = until_decided(attempt, |&run| run < decided_at, &alone);
            (decided, runs.get())
        };
        assert_eq!(runs_until_decided(1), (1, 1));
        assert_eq!(runs_until_decided(3), (3, 3));
        assert_eq!(runs_until_decided(9), (3, 3));
    }
}
