//! A run from its options to its exit code: select, prepare, execute, clean up, report.
//!
//! Nothing is printed but through `console` and the closing summary, and nothing is left at the
//! runtime, however the run ends.

mod bench;
mod clean_up;
mod console;
mod execution;
mod exit;
mod findings;
mod interrupt;
mod known;
mod listing;
mod outputs;
mod prepare;
mod rehearsal;
mod status;
mod tested;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::case::{Case, load};
use crate::drive::{Sabotage, Session, TeardownPolicy};
use crate::history::{RunId, RunInfo, SandboxId};
use crate::host::Reactor;
use crate::oracle::INVARIANTS;
use crate::outcome::{Outcome, RunReport};
use crate::plan::{Planned, Selection};
use crate::recorder::HistoryFile;
use crate::{host, report};

pub use bench::bench_overhead;
use clean_up::CleanUp;
use console::Presentation;
use execution::{Execution, ExecutionOptions};
pub use exit::{EXIT_CODES, Exit};
use interrupt::Interrupts;
pub use known::{Known, KnownError, KnownFailure};
pub use outputs::OutputError;
use outputs::Outputs;
pub use prepare::PrepareError;
pub use rehearsal::{Rehearsal, rehearse};
use status::Status;
use tested::Stand;
pub use tested::{Target, Tested};

/// How the console shows a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A line for each case.
    #[default]
    Pretty,
    /// A character for each case.
    Terse,
    /// libtest's JSON events.
    Json,
}

/// Whether the console is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to run and how.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The runtime.
    pub tested: Tested,
    /// The cases that are wanted.
    pub selection: Selection,
    /// How many cases may run at once.
    pub threads: usize,
    /// How the console shows the run.
    pub format: Format,
    /// Whether it is coloured.
    pub color: Color,
    /// Where to write a JUnit report.
    pub junit: Option<PathBuf>,
    /// Where to write a JSON report.
    pub json: Option<PathBuf>,
    /// Where to write the history.
    pub history: Option<PathBuf>,
    /// The failures that are known of this runtime.
    pub expectations: Option<PathBuf>,
    /// The image to run instead of the suite's own.
    pub image: Option<String>,
    /// The runtime handler; empty for the default one.
    pub runtime_handler: String,
    /// By how many percent bounds on time are stretched: 100 for not at all.
    pub timeout_percent: u32,
    /// Start no further case once one has failed.
    pub fail_fast: bool,
    /// What to do with the pods of a failed case.
    pub teardown: TeardownPolicy,
    /// Where this suite shall fail, for its own tests.
    pub sabotage: Sabotage,
}

/// Why a run came to no report.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The cases cannot be read.
    #[error(transparent)]
    Cases(#[from] load::LoadError),
    /// Nothing is selected.
    #[error("no case matches {0}; `--list` shows all there are")]
    NothingSelected(String),
    /// The expectation file cannot be used.
    #[error(transparent)]
    Known(#[from] KnownError),
    /// A report could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// No case can run.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The model is meant, and there is none to talk to.
    #[error(
        "the model runtime lives within a run alone; serve one with `cri-event-conformance model \
         --listen unix:///PATH`, and name that endpoint"
    )]
    Unserved,
    /// The system refused what any program needs.
    #[error("start: {0}")]
    System(#[from] io::Error),
}

impl RunError {
    /// The exit code that tells it.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Cases(_) | Self::Known(_) | Self::Output(_) | Self::Unserved => Exit::Usage,
            Self::NothingSelected(_) => Exit::NothingRan,
            Self::Prepare(_) | Self::System(_) => Exit::Undecided,
        }
    }
}

/// The cases from a file or folder, or those that are built in.
///
/// # Errors
/// If they cannot be read, or one of them is invalid.
pub fn read_cases(path: Option<&std::path::Path>) -> Result<Vec<Case>, load::LoadError> {
    match path {
        Some(path) => load::from_path(path),
        None => Ok(load::embedded()?),
    }
}

/// Prints the selected cases, without touching a runtime.
///
/// # Errors
/// If none is selected, or the output is closed.
pub fn list(
    cases: Vec<Case>,
    selection: &Selection,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), RunError> {
    let planned = plan(cases, selection)?;
    Ok(listing::write(&planned, format, out)?)
}

fn plan(cases: Vec<Case>, selection: &Selection) -> Result<Vec<Planned>, RunError> {
    let planned = selection.plan(cases);
    if planned.is_empty() {
        let quoted = |filters: &[String]| {
            filters
                .iter()
                .map(|filter| format!("`{filter}`"))
                .collect::<Vec<_>>()
                .join(" or ")
        };
        let mut wanted = match &selection.filters[..] {
            [] => "the selection".to_owned(),
            filters => quoted(filters),
        };
        if !selection.skip.is_empty() {
            wanted = format!("{wanted} without {}", quoted(&selection.skip));
        }
        return Err(RunError::NothingSelected(wanted));
    }
    Ok(planned)
}

/// Runs the selected cases and returns how it went.
///
/// # Errors
/// If it came to no report.
pub fn run(options: &RunOptions, cases: Vec<Case>) -> Result<Exit, RunError> {
    let known = match &options.expectations {
        Some(path) => {
            let invariants = INVARIANTS.iter().map(|invariant| invariant.id);
            let ids = cases.iter().map(|case| case.id.as_str()).chain(invariants);
            Known::read(path, &ids.collect())?.for_a_part(options.selection.is_partial())
        }
        None => Known::default(),
    };
    let planned = plan(cases, &options.selection)?;
    let mut outputs = Outputs::open(
        options.junit.as_deref(),
        options.json.as_deref(),
        options.history.as_deref(),
    )?;
    match run_plan(options, known, planned, &mut outputs, Shown::OnConsole) {
        Ok(report) => conclude(options, outputs, &report),
        Err(fault) => {
            outputs.discard();
            Err(fault)
        }
    }
}

/// Whether anybody looks on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    OnConsole,
    Nowhere,
}

fn run_plan(
    options: &RunOptions,
    known: Known,
    planned: Vec<Planned>,
    outputs: &mut Outputs,
    shown: Shown,
) -> Result<RunReport, RunError> {
    let on_console = shown == Shown::OnConsole;
    let reactor = options.tested.reactor()?;
    let runtime = reactor.runtime();
    // Whatever is done here is done at the reactor's time.
    let _within = runtime.enter();
    let began = host::now();
    let stop = CancellationToken::new();
    let run = RunId(uuid::Uuid::new_v4().to_string());
    let interrupts = if on_console {
        interrupt::watch(&stop, &run, outputs.unfinished())?
    } else {
        Interrupts::default()
    };
    let stand = Stand::of(&options.tested);
    let connecting = prepare::connect(&stand.target, run, outputs, &stop);
    let (caller, info, history) = runtime.block_on(connecting)?;
    let mut clean_up = CleanUp::after(&info.run, &caller, options.timeout_percent);
    let place = (&stand.target, &stand.kernel);
    let preparing = prepare::prepare(options, place, &caller, &info, stop.clone(), &mut clean_up);
    let (session, foreign_pods) = match runtime.block_on(preparing) {
        Ok(prepared) => prepared,
        Err(fault) => {
            runtime.block_on(give_up(&clean_up, history));
            return Err(fault.into());
        }
    };
    let image = session.options().image.clone();
    if on_console {
        announce(&info, &image, foreign_pods, reactor.is_simulated());
    }
    let execution = prepared_execution(options, known, session, planned.len(), &reactor, shown);
    let drawing = runtime.spawn(execution.status().draw());
    let lost = match shown {
        Shown::OnConsole => present(options, planned, &execution, &reactor, &stop),
        Shown::Nowhere => runtime.block_on(rehearsal::execute(planned, &execution)),
    };
    let (mut outcomes, kept) = execution.finish();
    let status = execution.status();
    status.doing("removing what the run made");
    drop(execution);
    let mut faults = runtime.block_on(clean_up.all_but(&kept));
    if faults.is_empty() {
        tell_removed(&mut outcomes);
    }
    drawing.abort();
    status.finish();
    faults.extend(cut_short(lost, &interrupts));
    faults.extend(runtime.block_on(finish_history(history)));
    if !reactor.is_simulated() {
        tell_kept(&info, &kept);
    }
    Ok(RunReport {
        info,
        began,
        duration: host::elapsed(began),
        image,
        outcomes,
        faults,
        foreign_pods,
    })
}

fn prepared_execution(
    options: &RunOptions,
    known: Known,
    session: Session,
    cases: usize,
    reactor: &Reactor,
    shown: Shown,
) -> Arc<Execution> {
    let pretty = options.format == Format::Pretty && shown == Shown::OnConsole;
    // What passes in no time is nothing to look at, and drawing it would take part in that time.
    let status = Arc::new(Status::new(cases, pretty && !reactor.is_simulated()));
    let execution_options = ExecutionOptions {
        known,
        fail_fast: options.fail_fast,
        teardown: options.teardown,
        threads: options.threads,
        cases,
    };
    Execution::new(Arc::new(session), execution_options, status)
}

/// Why the run did not come to its end, if it did not.
fn cut_short(lost: bool, interrupts: &Interrupts) -> Option<String> {
    if lost {
        let fault = "the output was closed before the run's end";
        // The summary goes where nobody reads.
        eprintln_quietly(&format!("{fault}: stopped"));
        return Some(fault.to_owned());
    }
    let signal = interrupts.signal()?;
    Some(format!("interrupted by {signal}"))
}

/// Says of what a case could not remove that the run could.
fn tell_removed(outcomes: &mut [Outcome]) {
    let leftovers = outcomes
        .iter_mut()
        .flat_map(|outcome| &mut outcome.leftovers);
    leftovers.for_each(|left| left.push_str("; removed at the end of the run"));
}

/// Cleans up after a run that could not begin.
async fn give_up(clean_up: &CleanUp, history: Option<HistoryFile>) {
    let mut faults = clean_up.all_but(&[]).await;
    faults.extend(finish_history(history).await);
    for fault in faults {
        eprintln_quietly(&fault);
    }
}

/// Says what was left for a look, and how it goes away.
fn tell_kept(info: &RunInfo, kept: &[SandboxId]) {
    if kept.is_empty() {
        return;
    }
    let ids: Vec<&str> = kept.iter().map(SandboxId::as_str).collect();
    let run = &info.run;
    eprintln_quietly(&format!(
        "kept for a look: sandbox {}\nremove with: cri-event-conformance cleanup --run-id {run}",
        ids.join(", ")
    ));
}

/// Executes the plan; returns whether the output was closed meanwhile.
fn present(
    options: &RunOptions,
    planned: Vec<Planned>,
    execution: &Arc<Execution>,
    reactor: &Reactor,
    stop: &CancellationToken,
) -> bool {
    let selection = &options.selection;
    let invariants = INVARIANTS.iter();
    let invariants = invariants.filter(|invariant| !selection.skips(invariant.id, invariant.name));
    let presentation = Presentation {
        format: options.format,
        color: options.color,
        threads: options.threads,
        planned,
        invariants: invariants.collect(),
    };
    let _hook = interrupt::stop_on_lost_output(stop);
    reactor.drive_during(|handle| console::present(presentation, execution, handle).is_err())
}

/// Says what is about to be tested.
fn announce(info: &RunInfo, image: &str, foreign_pods: usize, simulated: bool) {
    let runtime = &info.runtime;
    let how = if simulated {
        ", in this process, in simulated time".to_owned()
    } else {
        format!(" at {}", info.endpoint)
    };
    eprintln_quietly(&format!(
        "testing {} {}{how}\nimage {image}\nrun {}",
        report::printable(&runtime.runtime_name),
        report::printable(&runtime.runtime_version),
        info.run
    ));
    if foreign_pods > 0 {
        eprintln_quietly(&format!(
            "{foreign_pods} pods of others are on this node; they are left alone. If they are a \
             kubelet's, stop it first: it removes pods that it does not know, as the suite's are"
        ));
    }
}

/// Writes the rest of the history; returns what is wrong with it.
async fn finish_history(history: Option<HistoryFile>) -> Option<String> {
    let fault = history?.finish().await.err()?;
    Some(format!("the history could not be written whole: {fault}"))
}

/// Prints the summary, writes the reports, and returns the run's exit code.
fn conclude(options: &RunOptions, outputs: Outputs, report: &RunReport) -> Result<Exit, RunError> {
    let written = outputs.write(report)?;
    let mut summary = report::summary(report);
    for line in written {
        summary.push_str(&line);
        summary.push('\n');
    }
    if let Some(history) = &options.history {
        summary.extend(["history: ", &history.display().to_string(), "\n"]);
    }
    if options.format == Format::Json {
        eprintln_quietly(summary.trim_end());
    } else {
        // A reader that is gone has been told of in the report.
        let _ = io::stdout().write_all(summary.as_bytes());
    }
    Ok(Exit::of(report))
}

/// Prints to the error stream; if nobody reads it, nothing is lost.
fn eprintln_quietly(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
