//! A run from its options to its exit code: select, prepare, execute, clean up, report.
//!
//! Nothing is printed but through `console` and the closing summary, and nothing is left at the
//! runtime, however the run ends.

mod announce;
mod check;
mod clean_up;
mod console;
mod execution;
mod exit;
mod following;
mod hints;
mod interrupt;
mod known;
mod listing;
mod options;
mod outputs;
mod prepare;
mod rehearsal;
mod selecting;
mod status;
mod telemetry;
mod tested;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::case::{Case, Requirement, load};
use crate::drive::{RecordingClient, Session};
use crate::history::{Body, ExpectationFile, RunEnd, RunId, RunInfo, SandboxId};
use crate::host::{self, Reactor};
use crate::limits;
use crate::metrics::EndpointError;
use crate::oracle::{INVARIANTS, Invariant};
use crate::outcome::RunReport;
use crate::plan::Planned;
use crate::recorder::HistoryFile;
use crate::terminal;
use crate::verdicts::Known;

pub use check::{CheckError, CheckOptions, check};
use clean_up::CleanUp;
use console::{Look, OutputLost, Trial};
use execution::Execution;
pub use exit::{EXIT_CODES, Exit};
use following::Following;
use interrupt::Interrupts;
use known::Listed;
pub use known::{Expectations, KnownError};
pub use options::{Format, ReportOptions, RunOptions};
pub use outputs::OutputError;
use outputs::{Outputs, Places, conclude};
use prepare::Recording;
pub use prepare::{PrepareError, image};
pub use rehearsal::{Rehearsal, rehearse};
pub use selecting::{RerunError, failed_in, list};
use selecting::{invariants, nothing_selected, plan};
use status::Status;
use telemetry::{Counting, Telemetry};
use tested::Stand;
pub use tested::{Target, Tested};

/// Why a run came to no report.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The cases cannot be read.
    #[error(transparent)]
    Cases(#[from] load::LoadError),
    /// Nothing is selected.
    #[error("no case matches {0}")]
    NothingSelected(String),
    /// The expectation file cannot be used.
    #[error(transparent)]
    Known(#[from] KnownError),
    /// A report does not tell what to run again.
    #[error(transparent)]
    Rerun(#[from] RerunError),
    /// A recorded history cannot be judged.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A report could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The metrics cannot be served.
    #[error(transparent)]
    Metrics(#[from] EndpointError),
    /// No case can run.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The model is meant, and there is none to talk to.
    #[error(
        "the model runtime lives within a run alone; serve one with `cri-event-conformance model \
         --listen unix:///PATH`, and name that endpoint"
    )]
    Unserved,
    /// This process may open too few files.
    #[error(
        "this process may open {0} files at once, and a run needs {needed}: allow it more, as with \
         ulimit -n {needed}; nothing was run",
        needed = limits::OPEN_FILES
    )]
    OpenFiles(u64),
    /// The system refused what any program needs.
    #[error("start: {0}")]
    System(#[from] io::Error),
}

impl RunError {
    /// The exit code that tells it.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Cases(_)
            | Self::Known(_)
            | Self::Rerun(_)
            | Self::Output(_)
            | Self::Check(_)
            | Self::Metrics(_)
            | Self::Unserved => Exit::Usage,
            Self::NothingSelected(_) => Exit::NothingRan,
            Self::Prepare(_) | Self::OpenFiles(_) | Self::System(_) => Exit::Undecided,
        }
    }
}

/// The cases from a file or folder, or those that are built in.
///
/// # Errors
/// If they cannot be read, or one of them is invalid.
pub fn read_cases(path: Option<&Path>) -> Result<Vec<Case>, load::LoadError> {
    match path {
        Some(path) => load::from_path(path),
        None => Ok(load::embedded()?),
    }
}

/// The requirements of a folder of cases, or those that are built in.
///
/// # Errors
/// If they cannot be read, or one of them is invalid.
pub fn read_requirements(cases: Option<&Path>) -> Result<Vec<Requirement>, load::LoadError> {
    Ok(load::requirements(cases)?)
}

/// Runs the selected cases and returns how it went.
///
/// # Errors
/// If it came to no report.
pub fn run(options: &RunOptions, cases: Vec<Case>) -> Result<Exit, RunError> {
    let known = match &options.report.expectations {
        Some(Expectations::File(path)) => Listed::In(Some(read_expectations(path, &cases)?)),
        Some(Expectations::Builtin) => Listed::Builtin,
        None => Listed::In(None),
    };
    let planned = plan(cases, &options.selection, options.repeat)?;
    host::allow_open_files(limits::OPEN_FILES).map_err(RunError::OpenFiles)?;
    let history = options.history.as_deref();
    let mut outputs = Outputs::open(Places {
        junit: options.report.junit.as_deref(),
        json: options.report.json.as_deref(),
        expectations: options.report.write_expectations.as_deref(),
        history,
        judged: None,
    })?;
    match run_plan(options, known, planned, &mut outputs, Shown::OnConsole) {
        Ok((report, known)) => {
            let cut = if outputs.history_is_whole() {
                ""
            } else {
                ", which is not whole"
            };
            let history = history.map(|path| format!("{}{cut}", path.display()));
            let reports = [report];
            let told = (&reports[..], &known);
            Ok(conclude(options.report.format, outputs, told, history))
        }
        Err(fault) => Err(fault),
    }
}

/// The failures that a file says are known of a runtime.
///
/// # Errors
/// If it cannot be used for these cases.
pub fn read_expectations(path: &Path, cases: &[Case]) -> Result<ExpectationFile, RunError> {
    Ok(known::read(path, &ids(cases))?.0)
}

/// The ids that an expectation file may list.
fn ids(cases: &[Case]) -> BTreeSet<&str> {
    let invariants = INVARIANTS.iter().map(|invariant| invariant.id);
    let cases = cases.iter().map(|case| case.id.as_str());
    cases.chain(invariants).collect()
}

/// Whether anybody looks on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    OnConsole,
    Nowhere,
}

fn run_plan(
    options: &RunOptions,
    known: Listed,
    planned: Vec<Planned>,
    outputs: &mut Outputs,
    shown: Shown,
) -> Result<(RunReport, Known), RunError> {
    let reactor = options.tested.reactor()?;
    let runtime = reactor.runtime();
    // Whatever is done here is done at the reactor's time.
    let _within = runtime.enter();
    let stop = CancellationToken::new();
    let run = RunId::from(uuid::Uuid::new_v4().to_string());
    let interrupts = interrupts((shown, &reactor), &stop, &run, outputs)?;
    let telemetry = runtime.block_on(Telemetry::serve(options.metrics_address))?;
    let stand = Stand::of(&options.tested)?;
    let connecting = prepare::connect(&stand, &options.drive.runtime_handler, run, outputs, &stop);
    let (caller, info, Recording { following, file }) = runtime.block_on(connecting)?;
    let scale = options.drive.timeout_scale;
    let mut clean_up = CleanUp::after(&info.run, (&caller, &stand.kernel), scale);
    let place = (&stand.target, &stand.kernel, telemetry.metrics());
    let asked = (options, &planned[..]);
    let preparing = prepare::prepare(asked, place, &caller, &info, stop.clone(), &mut clean_up);
    let (session, foreign_pods) = match runtime.block_on(preparing) {
        Ok(prepared) => prepared,
        Err(fault) => {
            runtime.block_on(abandon(&fault, &caller, clean_up, file));
            return Err(fault.into());
        }
    };
    let invariants = invariants(&options.selection);
    let image = session.options().image.as_str();
    let found = (image, foreign_pods, session.audience());
    let mut plan = announce::plan(options, &planned, &invariants, known.of(&info), found);
    plan.offers = session.capabilities();
    if shown == Shown::OnConsole {
        let restarts = session.restarts(planned.iter().map(|planned| &*planned.case));
        let simulated = reactor.is_simulated();
        announce::announce(&info, &plan, session.no_events(), restarts, simulated);
    }
    caller.recorder.record(Body::RunPlanned(Arc::new(plan)));
    let session = Arc::new(session);
    let counting = Counting::begin(&session);
    let execution = execution(options, session, planned.len(), following, &reactor, shown);
    let following = runtime.spawn(execution.clone().follow());
    let status = execution.status();
    let drawing = runtime.spawn(status.clone().draw());
    let look = (shown == Shown::OnConsole).then(|| options.look());
    let ran = run_cases(look, (planned, &invariants), &execution, &reactor, &stop);
    drop(counting);
    status.doing("removing what the run made");
    clean_up.waits = !execution.is_gone();
    let kept = execution.kept();
    let mut faults = runtime.block_on(clean_up.all_but(&kept));
    let removed = faults.is_empty();
    drawing.abort();
    following.abort();
    status.finish();
    faults.extend(cut_short(ran.err(), &interrupts, &execution));
    end(&caller, removed, faults);
    let mut report = execution.report();
    let unwritten = runtime.block_on(finish_history(file));
    report.faults.extend(outputs.history_ended(unwritten));
    if !reactor.is_simulated() {
        tell_kept(&info, &kept);
    }
    Ok((report, execution.known()))
}

/// Runs the cases, and shows how they go if anybody looks on.
///
/// # Errors
/// If that can be written no more.
fn run_cases(
    look: Option<Look>,
    (planned, invariants): (Vec<Planned>, &[&'static Invariant]),
    execution: &Arc<Execution>,
    reactor: &Reactor,
    stop: &CancellationToken,
) -> Result<(), OutputLost> {
    let Some(look) = look else {
        let cases = rehearsal::execute(planned, invariants, execution);
        reactor.runtime().block_on(cases);
        return Ok(());
    };
    reactor.drive_during(|handle| {
        let trials = trials(planned, invariants, execution, handle);
        console::present(look, trials, stop)
    })
}

/// What signals do to a run; nothing if nobody sees it and it takes no time.
fn interrupts(
    (shown, reactor): (Shown, &Reactor),
    stop: &CancellationToken,
    run: &RunId,
    outputs: &Outputs,
) -> Result<Interrupts, RunError> {
    if shown == Shown::Nowhere && reactor.is_simulated() {
        return Ok(Interrupts::default());
    }
    Ok(interrupt::watch(stop, run, outputs.unfinished())?)
}

fn execution(
    options: &RunOptions,
    session: Arc<Session>,
    cases: usize,
    following: Following,
    reactor: &Reactor,
    shown: Shown,
) -> Arc<Execution> {
    let pretty = options.report.format == Format::Pretty && shown == Shown::OnConsole;
    // What passes in no time is nothing to look at, and drawing it would take part in that time.
    let status = Arc::new(Status::new(cases, pretty && !reactor.is_simulated()));
    Execution::new(session, (options, cases), status, following)
}

/// Why the run did not come to its end, or not at once.
fn cut_short(
    lost: Option<OutputLost>,
    interrupts: &Interrupts,
    execution: &Execution,
) -> Vec<String> {
    let mut faults = Vec::from_iter(execution.lost());
    if let Some(OutputLost(fault)) = lost {
        let fault = match fault.kind() {
            io::ErrorKind::BrokenPipe => "the output was closed before the run's end".to_owned(),
            _ => format!("the output could not be written to: {fault}"),
        };
        // The summary goes where nobody reads.
        terminal::say(&format!("{fault}: stopped"));
        faults.push(fault);
    } else if let Some(signal) = interrupts.signal() {
        faults.push(format!("interrupted by {signal}"));
    }
    faults
}

/// Ends a run in which no case can run.
async fn abandon(
    fault: &PrepareError,
    caller: &RecordingClient,
    clean_up: CleanUp,
    file: Option<HistoryFile>,
) {
    let mut faults = clean_up.all_but(&[]).await;
    let told = [&[fault.to_string()], &faults[..]].concat();
    end(caller, faults.is_empty(), told);
    faults.extend(finish_history(file).await);
    for fault in faults {
        terminal::say(&fault);
    }
}

/// Records the end of a run.
fn end(caller: &RecordingClient, removed: bool, faults: Vec<String>) {
    let end = RunEnd { removed, faults };
    caller.recorder.record(Body::RunEnded(end));
}

/// What the console shows, each thing with what makes its outcome.
fn trials(
    planned: Vec<Planned>,
    invariants: &[&'static Invariant],
    execution: &Arc<Execution>,
    handle: &Handle,
) -> Vec<Trial> {
    let cases = planned.len();
    let mut trials = Vec::with_capacity(cases + invariants.len());
    for (place, planned) in planned.into_iter().enumerate() {
        let (execution, handle) = (execution.clone(), handle.clone());
        let name = console::name(&planned.case.id, &planned.case.name, planned.repetition);
        let run = move || handle.block_on(execution.case(place, &planned));
        trials.push(Trial::case(name, run));
    }
    for (place, invariant) in invariants.iter().enumerate() {
        let (execution, handle) = (execution.clone(), handle.clone());
        let name = console::name(invariant.id, invariant.name, None);
        let judge = move || handle.block_on(execution.invariant(cases + place));
        trials.push(Trial::invariant(name, judge));
    }
    trials
}

/// Says what was left for a look, and how it goes away.
fn tell_kept(info: &RunInfo, kept: &[SandboxId]) {
    if kept.is_empty() {
        return;
    }
    let ids: Vec<&str> = kept.iter().map(SandboxId::as_str).collect();
    let run = &info.run;
    terminal::say(&format!(
        "kept for a look: sandbox {}\nremove with: cri-event-conformance cleanup --run-id {run}",
        ids.join(", ")
    ));
}

/// Writes the rest of the history; returns what is wrong with it.
async fn finish_history(history: Option<HistoryFile>) -> Option<String> {
    let fault = history?.finish().await.err()?;
    Some(format!("the history could not be written whole: {fault}"))
}
