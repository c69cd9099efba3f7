//! The defect matrix: runs each defect of the model against the cases that must notice it, and the
//! model without a defect, in all permitted variations, against all cases.
//!
//! On a real runtime, a relay injects those defects that only change events and answers.
//!
//! A defect is *noticed* if every case and invariant that it lists fails, and *precise* if the
//! first failure is one of these: the report then shows the cause, not a consequence.

mod table;
mod trial;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::case::{Case, Defect, Tier, did_you_mean};
use crate::limits::TimeoutScale;
use crate::model::{VARIATIONS, fault_named};
use crate::run::{Endpoints, ExpectationSource, Expectations, RunError};

pub use table::MatrixError;
use trial::{Trial, TrialResult};

// Doc comments of fields are the help of options.
/// The options of the matrix.
#[derive(Args, Clone, Debug)]
pub struct MatrixOptions {
    /// The runtime behind the relay; `None` for the model.
    #[arg(skip)]
    pub endpoints: Option<Endpoints>,
    /// The known failures of that runtime, accepted in the run without a defect.
    #[arg(skip)]
    pub known: ExpectationSource,
    /// The number of parallel trials.
    #[arg(skip = NonZeroUsize::MIN)]
    pub threads: NonZeroUsize,
    /// Only defects and permitted variations of the model with these names, or whose names contain
    /// one of these; then cases that never fail are accepted
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Cases of a file or directory instead of the built-in ones; a defect that lists none of them
    /// is tried on all, and each must fail of some defect
    #[arg(long, value_name = "PATH")]
    pub cases: Option<PathBuf>,
    /// Try each defect on all cases, not only on those that it lists
    #[arg(long)]
    pub all_cases: bool,
    /// How often to run the model without a defect, in each permitted variation
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub clean_runs: u64,
    /// Multiply all timeouts, and the delays of the model, by this factor
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    pub timeout_scale: TimeoutScale,
    /// Known failures of the real runtime, accepted in the run without a defect: those of a YAML
    /// file or, with `builtin`, those known to this suite
    #[arg(long, value_name = "FILE")]
    #[arg(value_parser = OsStringValueParser::new().map(Expectations::named))]
    pub expectations: Option<Expectations>,
    /// Write the table as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the table as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The result of the trial of a defect.
#[derive(Debug)]
pub struct DefectResult {
    pub defect: Defect,
    /// The cases and invariants that failed, in the report's order.
    pub failed: Vec<String>,
    /// The cases and invariants that passed although they should have failed: id, verdict and
    /// reason.
    pub missing: Vec<String>,
    /// The reason for missing verdicts, if any.
    pub fault: Option<String>,
}

/// The result of a trial without a defect.
#[derive(Debug)]
pub struct CleanResult {
    pub variation: &'static str,
    pub seed: u64,
    /// The failures, each with its reason.
    pub alarms: Vec<String>,
    /// Whether the trial has no verdicts.
    pub fault: bool,
}

/// The results of all trials.
#[derive(Debug, Default)]
pub struct Matrix {
    /// In the order of the file.
    pub defects: Vec<DefectResult>,
    pub clean: Vec<CleanResult>,
    /// The ids of all cases that must be able to fail; empty if only some of the defects are tried,
    /// as on a real runtime.
    pub cases: Vec<String>,
    /// Whether the defects are named, so that each is shown, and must be noticed.
    pub are_named: bool,
}

impl DefectResult {
    /// Whether any rule must notice it.
    fn is_listed(&self) -> bool {
        !self.defect.noticed_by.is_empty()
    }

    /// Whether all cases and invariants that must notice it have failed, and any at all.
    pub fn is_noticed(&self) -> bool {
        self.fault.is_none() && self.missing.is_empty() && !self.failed.is_empty()
    }

    /// Whether the first failure is one that must notice it.
    pub fn is_precise(&self) -> bool {
        let first = self.failed.first();
        !self.is_listed() || first.is_some_and(|first| self.defect.noticed_by.contains(first))
    }
}

impl Matrix {
    /// The cases that no defect makes fail.
    pub fn never_red(&self) -> Vec<&str> {
        let noticed = self.defects.iter().filter(|noticed| noticed.is_noticed());
        let red = noticed.flat_map(|noticed| {
            if noticed.is_listed() {
                &noticed.defect.noticed_by
            } else {
                &noticed.failed
            }
        });
        let red: Vec<&String> = red.collect();
        let never = self.cases.iter().filter(|case| !red.contains(case));
        never.map(String::as_str).collect()
    }

    /// Whether every defect is noticed precisely, every case can fail, and nothing fails without a
    /// defect.
    pub fn holds(&self) -> bool {
        let must_notice = |noticed: &&DefectResult| noticed.is_listed() || self.are_named;
        let mut listed = self.defects.iter().filter(must_notice);
        let defects = listed.all(|noticed| noticed.is_noticed() && noticed.is_precise());
        let clean = self.clean.iter().all(|clean| clean.alarms.is_empty());
        defects && clean && self.never_red().is_empty()
    }
}

/// Tries the defects, and writes the tables. `show` gets the number of trials that have ended, and
/// of all, whenever one ends.
pub fn matrix(
    options: &MatrixOptions,
    cases: &[Case],
    defects: &[Defect],
    out: &mut dyn std::io::Write,
    show: impl Fn(usize, usize) + Sync,
) -> Result<Matrix, MatrixError> {
    table::prepare(options)?;
    let cases = &tried_cases(options, cases)[..];
    let defects = &tried_defects(options, cases, defects)[..];
    let trials = trials(options, cases, defects)?;
    let (exclusive, shared): (Vec<Trial>, Vec<Trial>) =
        trials.into_iter().partition(Trial::needs_exclusive_runtime);
    let all = shared.len() + exclusive.len();
    let ended = |ended| show(ended, all);
    let mut done = run_trials(&shared, options.threads, cases, options, ended);
    if !done.iter().any(TrialResult::has_fault) {
        let before = done.len();
        let ended = |ended| show(before + ended, all);
        let alone = NonZeroUsize::MIN;
        done.extend(run_trials(&exclusive, alone, cases, options, ended));
    }
    let is_partial = options.endpoints.is_some() || !options.names.is_empty();
    let must_fail = if is_partial { &[] } else { cases };
    let are_named = !options.names.is_empty();
    let matrix = Matrix {
        are_named,
        ..Matrix::from_trials(done, must_fail, defects)
    };
    table::write(options, &matrix, out)?;
    Ok(matrix)
}

/// Runs trials in parallel until all are done, or until one on a real runtime has no verdicts: the
/// runtime may be lost, or the run interrupted.
fn run_trials(
    trials: &[Trial<'_>],
    threads: NonZeroUsize,
    cases: &[Case],
    options: &MatrixOptions,
    ended: impl Fn(usize) + Sync,
) -> Vec<TrialResult> {
    let next = AtomicUsize::new(0);
    let interrupted = AtomicBool::new(false);
    let alone = RwLock::new(());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            scope.spawn(|| {
                while let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if interrupted.load(Ordering::Relaxed) {
                        return;
                    }
                    let result = trial.run(cases, options, &alone);
                    if trial.is_on_a_real_runtime() && result.has_fault() {
                        interrupted.store(true, Ordering::Relaxed);
                    }
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.push(result);
                    ended(done.len());
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The tried cases: on a real runtime, where trials run in parallel, those of the core tier that
/// are not exclusive.
fn tried_cases(options: &MatrixOptions, cases: &[Case]) -> Vec<Case> {
    let is_shared = |case: &&Case| case.tier <= Tier::Core && !case.exclusive;
    let wanted = |case: &&Case| options.endpoints.is_none() || is_shared(case);
    cases.iter().filter(wanted).cloned().collect()
}

/// The tried defects: no rule is listed for those that list none of a user's cases.
fn tried_defects(options: &MatrixOptions, cases: &[Case], defects: &[Defect]) -> Vec<Defect> {
    let mut tried = defects.to_vec();
    if options.cases.is_some() {
        let is_there = |id: &str| cases.iter().any(|case| case.id == id);
        let foreign = |defect: &&mut Defect| !defect.shown_in().any(is_there);
        for defect in tried.iter_mut().filter(foreign) {
            defect.noticed_by.clear();
            defect.also_shown_in.clear();
        }
    }
    tried
}

/// All trials, the longest first.
fn trials<'a>(
    options: &MatrixOptions,
    cases: &[Case],
    defects: &'a [Defect],
) -> Result<Vec<Trial<'a>>, MatrixError> {
    let hooked = |defect: &'a Defect| match fault_named(&defect.name) {
        Some(hook) => Ok((defect, hook)),
        None => Err(MatrixError::NoHook(defect.name.clone())),
    };
    let hooked = defects.iter().map(hooked).collect::<Result<Vec<_>, _>>()?;
    let variations = || VARIATIONS.iter().map(|(name, _)| *name);
    let all_names = || {
        defects
            .iter()
            .map(|defect| &*defect.name)
            .chain(variations())
    };
    let unknown = |wanted: &&String| !all_names().any(|name| name.contains(wanted.as_str()));
    if let Some(name) = options.names.iter().find(unknown) {
        let hint = did_you_mean(name, all_names()).map(|hint| format!("; {hint}"));
        return Err(MatrixError::NoSuchName(
            name.clone(),
            hint.unwrap_or_default(),
        ));
    }
    // A whole name is no part of others.
    let is_whole = |wanted: &String| all_names().any(|name| name == wanted);
    let is_named = |name: &str| {
        let mut wanted = options.names.iter();
        let is_meant =
            |wanted: &String| name == wanted || name.contains(wanted.as_str()) && !is_whole(wanted);
        options.names.is_empty() || wanted.any(is_meant)
    };
    let hooked = hooked
        .into_iter()
        .filter(|(defect, _)| is_named(&defect.name));
    let mut trials = Vec::new();
    if let Some(endpoints) = &options.endpoints {
        let known = options.known.clone();
        trials.push(Trial::Unharmed(endpoints.clone(), known));
        let is_there = |id: &str| cases.iter().any(|case| case.id == id);
        let shown = |defect: &Defect| defect.shown_in().next().is_some_and(is_there);
        let relayed = hooked
            .filter(|(defect, hook)| hook.fault.is_relayable() && shown(defect))
            .map(|(defect, hook)| Trial::Relayed(endpoints.clone(), defect, hook));
        trials.extend(relayed);
        return Ok(trials);
    }
    for seed in 0..options.clean_runs {
        let named = VARIATIONS.iter().filter(|(name, _)| is_named(name));
        trials.extend(named.map(|variation| Trial::Clean(variation, seed)));
    }
    trials.extend(hooked.map(|(defect, hook)| Trial::Defect(defect, hook)));
    Ok(trials)
}

/// The messages of an error and of its causes.
fn error_chain(fault: &RunError) -> String {
    let mut sentence = fault.to_string();
    let mut source = std::error::Error::source(fault);
    while let Some(cause) = source {
        sentence = format!("{sentence}: {cause}");
        source = cause.source();
    }
    sentence
}
