//! The proof that the suite can fail: each defect of the model against the cases that must notice
//! it, and the model without a defect, in all its permitted variations, against all cases.
//!
//! The same goes for a real runtime, seen through a relay that has those defects which concern
//! what passes between it and its client.
//!
//! A defect is *noticed* if every case and invariant that it names has failed, and *precise* if the
//! first failure is one of these: a reader of the report is told what is wrong, and not what
//! follows from it.

mod table;
mod trial;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::Args;

use crate::case::{Case, Defect, Tier};
use crate::history::ExpectationFile;
use crate::limits::TimeoutScale;
use crate::model::{VARIATIONS, fault_named};
use crate::outcome::is_invariant;
use crate::run::{RunError, Target};

pub use table::MatrixError;
use trial::{Trial, Tried};

// Comments of fields are the help of options.
/// What to try, and where to report it.
#[derive(Args, Clone, Debug)]
pub struct MatrixOptions {
    /// The runtime that a relay is put before; none for the model.
    #[arg(skip)]
    pub target: Option<Target>,
    /// The failures that are known of it, for the run without a defect.
    #[arg(skip)]
    pub known: Option<ExpectationFile>,
    /// How many trials run at once.
    #[arg(skip = NonZeroUsize::MIN)]
    pub threads: NonZeroUsize,
    /// Try each defect on all cases, not only on those that it names
    #[arg(long)]
    pub all_cases: bool,
    /// How often to try the model without a defect, in each permitted variation
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2,
        value_parser = clap::value_parser!(u64).range(1..=1_000)
    )]
    pub clean_runs: u64,
    /// Stretch every bound on time by this factor, and all that the model does late
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    pub timeout_scale: TimeoutScale,
    /// Failures that are known of the real runtime: the run without a defect may have them
    #[arg(long, value_name = "FILE")]
    pub expectations: Option<PathBuf>,
    /// Write the table as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the table as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What a trial of one defect came to.
#[derive(Debug)]
pub struct Noticed {
    /// The defect.
    pub defect: Defect,
    /// The cases that were tried.
    pub tried: Vec<String>,
    /// The cases and invariants that failed, in the report's order.
    pub failed: Vec<String>,
    /// Why the trial came to no verdicts, if it did not.
    pub fault: Option<String>,
}

/// What a trial of the model without a defect came to.
#[derive(Debug)]
pub struct Clean {
    /// Which variation.
    pub variation: &'static str,
    /// What looked random in it.
    pub seed: u64,
    /// What did not pass, each with its reason.
    pub alarms: Vec<String>,
    /// Whether the trial came to no verdicts.
    pub fault: bool,
}

/// All of it.
#[derive(Debug, Default)]
pub struct Matrix {
    /// Each defect, in the order of the file.
    pub defects: Vec<Noticed>,
    /// Each run without a defect.
    pub clean: Vec<Clean>,
    /// The ids of all cases that must be able to fail: none for a real runtime, with which only
    /// some of the defects can be tried.
    pub cases: Vec<String>,
}

impl Noticed {
    /// Those that should have failed and did not.
    #[must_use]
    pub fn missing(&self) -> Vec<&str> {
        let was_tried = |id: &String| is_invariant(id) || self.tried.contains(id);
        let missing = |id: &&String| was_tried(id) && !self.failed.contains(id);
        self.defect
            .noticed_by
            .iter()
            .filter(missing)
            .map(String::as_str)
            .collect()
    }

    /// Whether everyone who should notice it did.
    #[must_use]
    pub fn is_noticed(&self) -> bool {
        self.fault.is_none() && self.missing().is_empty()
    }

    /// Whether the first failure explains it.
    #[must_use]
    pub fn is_precise(&self) -> bool {
        let first = self.failed.first();
        first.is_some_and(|first| self.defect.noticed_by.contains(first))
    }
}

impl Matrix {
    /// The cases that no defect turns red.
    #[must_use]
    pub fn never_red(&self) -> Vec<&str> {
        let noticed = self.defects.iter().filter(|noticed| noticed.is_noticed());
        let red: Vec<&String> = noticed
            .flat_map(|noticed| &noticed.defect.noticed_by)
            .collect();
        let never = self.cases.iter().filter(|case| !red.contains(case));
        never.map(String::as_str).collect()
    }

    /// Whether every defect is noticed precisely, every case can fail, and nothing fails without a
    /// defect.
    #[must_use]
    pub fn holds(&self) -> bool {
        let defects = self
            .defects
            .iter()
            .all(|noticed| noticed.is_noticed() && noticed.is_precise());
        let clean = self.clean.iter().all(|clean| clean.alarms.is_empty());
        defects && clean && self.never_red().is_empty()
    }
}

/// Tries every defect and every variation.
///
/// # Errors
/// If a defect has no hook, or a table cannot be written.
pub fn matrix(
    options: &MatrixOptions,
    cases: &[Case],
    defects: &[Defect],
    out: &mut dyn std::io::Write,
) -> Result<Matrix, MatrixError> {
    table::prepare(options)?;
    let cases = &tried_cases(options, cases)[..];
    let trials = trials(options, cases, defects)?;
    let (alone, beside): (Vec<Trial>, Vec<Trial>) =
        trials.into_iter().partition(Trial::wants_the_runtime_alone);
    let mut done = tried(&beside, options.threads, cases, options);
    if !done.iter().any(Tried::is_at_fault) {
        done.extend(tried(&alone, NonZeroUsize::MIN, cases, options));
    }
    let must_fail = if options.target.is_some() { &[] } else { cases };
    let matrix = table::gathered(done, must_fail, defects);
    table::write(options, &matrix, out)?;
    Ok(matrix)
}

/// Runs trials, so many at once, until all are done or one on a real runtime came to no verdicts:
/// it may be gone, or the user may have stopped us.
fn tried(
    trials: &[Trial<'_>],
    threads: NonZeroUsize,
    cases: &[Case],
    options: &MatrixOptions,
) -> Vec<Tried> {
    let next = AtomicUsize::new(0);
    let interrupted = AtomicBool::new(false);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.get() {
            scope.spawn(|| {
                while let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if interrupted.load(Ordering::Relaxed) {
                        return;
                    }
                    let tried = trial.run(cases, options);
                    if trial.is_on_a_real_runtime() && tried.is_at_fault() {
                        interrupted.store(true, Ordering::Relaxed);
                    }
                    done.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(tried);
                }
            });
        }
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The cases that are tried: on a real runtime, where trials run beside each other, those of the
/// core that want nothing for themselves.
fn tried_cases(options: &MatrixOptions, cases: &[Case]) -> Vec<Case> {
    let shared = |case: &&Case| case.tier == Tier::Core && !case.exclusive;
    let wanted = |case: &&Case| options.target.is_none() || shared(case);
    cases.iter().filter(wanted).cloned().collect()
}

/// All that is tried, the longest first.
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
    let mut trials = Vec::new();
    if let Some(target) = &options.target {
        let known = options.known.clone();
        trials.push(Trial::Unharmed(target.clone(), known));
        let is_there = |id: &str| cases.iter().any(|case| case.id == id);
        let shown = |defect: &Defect| defect.shown_in().next().is_some_and(is_there);
        let relayed = hooked
            .into_iter()
            .filter(|(defect, hook)| hook.fault.is_on_the_way() && shown(defect))
            .map(|(defect, hook)| Trial::Relayed(target.clone(), defect, hook));
        trials.extend(relayed);
        return Ok(trials);
    }
    for seed in 0..options.clean_runs {
        let clean = VARIATIONS
            .iter()
            .map(|variation| Trial::Clean(variation, seed));
        trials.extend(clean);
    }
    let defective = hooked.into_iter();
    trials.extend(defective.map(|(defect, hook)| Trial::Defect(defect, hook)));
    Ok(trials)
}

/// Why a trial has no report, in a sentence.
fn told(fault: &RunError) -> String {
    let mut sentence = fault.to_string();
    let mut source = std::error::Error::source(fault);
    while let Some(cause) = source {
        sentence = format!("{sentence}: {cause}");
        source = cause.source();
    }
    sentence
}
