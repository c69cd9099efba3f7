//! A run from its options to its exit code: select, prepare, execute, clean up, report.
//!
//! Results are printed only by `console` and the final summary, and nothing is left at the runtime,
//! however the run ends.

mod check;
mod clean_up;
mod console;
mod execution;
mod expectations;
mod kubelet;
mod options;
mod outputs;
mod prepare;
mod progress;
mod rehearsal;
mod select;
mod target;
mod telemetry;

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::case::{Case, Requirement, load};
use crate::drive::{RecordingClient, Session};
use crate::history::{Body, RunId, RunInfo, SandboxId};
use crate::host::{self, Reactor};
use crate::metrics::EndpointError;
use crate::oracle::Invariant;
use crate::outcome::RunReport;
use crate::plan::Planned;
use crate::recorder::HistoryFile;
use crate::verdicts::Known;
use crate::{limits, terminal};
use clean_up::{CleanUp, Interrupts};
use console::{ConsoleOptions, OutputLost, Trial};
use execution::Execution;
use outputs::{Conclusion, Outputs, conclude};
use prepare::{Connection, Preparation};
use progress::{EarlierRun, Progress, TimeLeft};
use select::{invariants, plan};
use telemetry::{BackgroundTasks, Telemetry};

pub use crate::verdicts::expectation_schema;
pub use check::{CheckError, CheckOptions, Reporting, check, timeline, trace};
pub use clean_up::{Surroundings, with_session};
pub use expectations::{ExpectationSource, Expectations, ExpectationsError};
pub use options::{EXIT_CODES, Exit, Format, Look, Output, ReportOptions, RunOptions};
pub use outputs::{JUNIT, OutputError};
pub use prepare::{PrepareError, image};
pub use rehearsal::{Rehearsal, rehearse};
pub use select::{RerunError, failed_in, list};
pub use target::{Connected, Endpoints, Target};

/// The reason why a run has no report.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Cases(#[from] load::LoadError),
    #[error("no case matches {0}")]
    NothingSelected(String),
    #[error("no case or invariant matches --skip {0}")]
    NothingSkipped(String),
    #[error(transparent)]
    Expectations(#[from] ExpectationsError),
    #[error(transparent)]
    Rerun(#[from] RerunError),
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Metrics(#[from] EndpointError),
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The command needs a served runtime, but the target is the built-in model.
    #[error(
        "the built-in model runtime exists only during a run; serve one with \
         `cri-event-conformance model --listen unix:///PATH` and name that endpoint"
    )]
    Unserved,
    #[error(
        "this process may open {0} files at once, but a run needs {needed}: raise the limit, for \
         example with ulimit -n {needed}; nothing was run",
        needed = limits::OPEN_FILES
    )]
    OpenFiles(u64),
    /// The run may take longer than the kubelet may be paused.
    #[error(
        "--pause-kubelet needs --tier smoke or core: without a kubelet the node is not ready after \
         50 s, which smoke is not to reach, and after five more minutes its pods are evicted; larger \
         tiers take longer. Stop the kubelet yourself for those"
    )]
    LongPause,
    #[error("start: {0}")]
    System(#[from] io::Error),
}

impl RunError {
    pub fn exit(&self) -> Exit {
        match self {
            Self::Cases(_)
            | Self::NothingSkipped(_)
            | Self::Expectations(_)
            | Self::Rerun(_)
            | Self::Output(_)
            | Self::Check(_)
            | Self::Metrics(_)
            | Self::LongPause
            | Self::Unserved => Exit::Usage,
            Self::NothingSelected(_) => Exit::NothingRan,
            Self::Prepare(_) | Self::OpenFiles(_) | Self::System(_) => Exit::Undecided,
        }
    }
}

/// The cases of a file or directory, or the built-in ones.
pub fn read_cases(path: Option<&Path>) -> Result<Vec<Case>, load::LoadError> {
    match path {
        Some(path) => load::from_path(path),
        None => Ok(load::embedded()?),
    }
}

/// The requirements of a directory of cases, or the built-in ones.
pub fn read_requirements(cases: Option<&Path>) -> Result<Vec<Requirement>, load::LoadError> {
    Ok(load::requirements(cases)?)
}

/// Reports a mistake in the options that can be found without the runtime.
pub fn validate(options: &RunOptions, cases: &[Case]) -> Result<(), RunError> {
    ExpectationSource::open(options.report.expectations.as_ref(), cases)?;
    plan(cases.to_vec(), &options.selection, options.repeat)?;
    Ok(())
}

/// Runs the selected cases and returns the exit code.
pub fn run(options: &RunOptions, cases: Vec<Case>) -> Result<Exit, RunError> {
    if !kubelet::is_short_enough(options) {
        return Err(RunError::LongPause);
    }
    let known = ExpectationSource::open(options.report.expectations.as_ref(), &cases)?;
    let planned = plan(cases, &options.selection, options.repeat)?;
    host::allow_open_files(limits::OPEN_FILES).map_err(RunError::OpenFiles)?;
    let outputs = Outputs::open(&options.report)?;
    let mut outputs = outputs.with_history(options.history.as_deref(), &options.report)?;
    outputs.cases.clone_from(&options.cases);
    outputs.info = options.target.info();
    match run_plan(options, known, planned, &mut outputs, Visibility::Console) {
        Ok((report, known)) => {
            let cut = if outputs.history_is_whole() {
                ""
            } else {
                " (incomplete)"
            };
            let history = outputs
                .history()
                .map(|path| format!("{}{cut}", path.display()));
            let reports = [report];
            let conclusion = Conclusion {
                look: options.report.look,
                head: String::new(),
                history,
                exit: Exit::from_report(&reports[0]),
            };
            Ok(conclude(outputs, &reports, &known, conclusion))
        }
        Err(fault) => {
            if fault.exit() == Exit::Undecided {
                outputs.write_refusal(fault.to_string());
            }
            Err(fault)
        }
    }
}

/// Whether a run prints to the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visibility {
    Console,
    Silent,
}

fn run_plan(
    options: &RunOptions,
    known: ExpectationSource,
    planned: Vec<Planned>,
    outputs: &mut Outputs,
    shown: Visibility,
) -> Result<(RunReport, Known), RunError> {
    let reactor = options.target.reactor()?;
    let runtime = reactor.runtime();
    // From here on, the reactor's clock applies.
    let _within = runtime.enter();
    let stop = CancellationToken::new();
    let run = RunId::from(uuid::Uuid::new_v4().to_string());
    let again = options.clean_up_command(&run);
    let interrupts = if shown == Visibility::Silent && reactor.is_simulated() {
        Interrupts::default()
    } else {
        clean_up::watch(&stop, again.clone())?
    };
    let telemetry = runtime.block_on(Telemetry::serve(options.metrics_address))?;
    let connected = Connected::start(&options.target)?;
    let handler = &options.drive.pods.runtime_handler;
    let connecting = prepare::connect(&connected, handler, run, outputs, &stop);
    let connection = runtime.block_on(connecting)?;
    let (caller, info) = (&connection.caller, &connection.info);
    let scale = options.drive.timeout_scale;
    let known = match known.resolve(info) {
        Ok(known) => known,
        Err(fault) => {
            return Err(fault.into());
        }
    };
    let mut clean_up = CleanUp::new((&info.run, again), caller, &connected.kernel, scale);
    let preparation = Preparation {
        options,
        planned: &planned,
        connected: &connected,
        metrics: telemetry.metrics(),
        caller,
        info,
    };
    let preparing = prepare::prepare(preparation, stop.clone(), &mut clean_up);
    let prepared = match runtime.block_on(preparing) {
        Ok(prepared) => prepared,
        Err(fault) => {
            runtime.block_on(abandon(&fault, caller, clean_up, connection.file));
            return Err(fault.into());
        }
    };
    let invariants = invariants(&options.selection);
    let plan = execution::plan(options, &planned, &invariants, known, &prepared);
    let session = prepared.session;
    if shown == Visibility::Console {
        let restarts = session.restarts(planned.iter().map(|planned| &*planned.case));
        let simulated = reactor.is_simulated();
        execution::announce(info, &plan, session.no_events(), restarts, simulated);
    }
    caller.recorder.record(Body::RunPlanned(Arc::new(plan)));
    let run = PreparedRun {
        options,
        reactor: &reactor,
        shown,
        stop,
        interrupts,
        session: Arc::new(session),
        connection,
        clean_up,
    };
    Ok(run.execute(planned, &invariants, outputs))
}

/// A run whose plan is recorded.
struct PreparedRun<'a> {
    options: &'a RunOptions,
    reactor: &'a Reactor,
    shown: Visibility,
    stop: CancellationToken,
    interrupts: Interrupts,
    session: Arc<Session>,
    connection: Connection,
    clean_up: CleanUp,
}

impl PreparedRun<'_> {
    /// Executes the plan and cleans up; returns the report, and the known failures it accepts.
    fn execute(
        self,
        planned: Vec<Planned>,
        invariants: &[&'static Invariant],
        outputs: &mut Outputs,
    ) -> (RunReport, Known) {
        let Connection {
            caller,
            info,
            live_verdicts,
            file,
        } = self.connection;
        let runtime = self.reactor.runtime();
        let background = BackgroundTasks::begin(&self.session);
        // A simulated run is over at once, and drawing would take part in its simulated time.
        let draws = self.options.report.look.format == Format::Pretty
            && self.shown == Visibility::Console
            && !self.reactor.is_simulated();
        let (session, options) = (self.session, self.options);
        let earlier = options.rerun_failed.as_deref().or(outputs.json());
        let earlier = earlier.filter(|_| draws).and_then(EarlierRun::read);
        let time_left = TimeLeft::new(&planned, earlier.as_ref());
        let progress = Arc::new(Progress::new(time_left, draws));
        let execution = Execution::new(
            session,
            options,
            planned.len(),
            progress.clone(),
            live_verdicts,
        );
        let following = runtime.spawn(execution.clone().follow());
        let drawing = runtime.spawn(progress.clone().draw());
        let console = (self.shown == Visibility::Console).then(|| options.console_options());
        let ran = run_cases(
            console,
            planned,
            invariants,
            &execution,
            self.reactor,
            &self.stop,
        );
        drop(background);
        progress.doing("cleaning up");
        let mut clean_up = self.clean_up;
        clean_up.waits = !execution.is_gone();
        let kept = execution.kept();
        let mut ended = runtime.block_on(clean_up.end(&kept));
        drawing.abort();
        following.abort();
        progress.finish();
        let cut_short = cut_short(ran.err(), &self.interrupts, &execution);
        ended.faults.extend(cut_short);
        caller.recorder.record(Body::RunEnded(ended));
        let mut report = execution.report();
        let unwritten = runtime.block_on(finish_history(file));
        report.faults.extend(outputs.history_ended(unwritten));
        if !self.reactor.is_simulated() {
            print_kept_sandboxes(self.options, &info, &kept);
        }
        (report, execution.known())
    }
}

/// Runs the cases, and prints their results if requested.
fn run_cases(
    console: Option<ConsoleOptions>,
    planned: Vec<Planned>,
    invariants: &[&'static Invariant],
    execution: &Arc<Execution>,
    reactor: &Reactor,
    stop: &CancellationToken,
) -> Result<(), OutputLost> {
    let Some(options) = console else {
        let cases = rehearsal::execute(planned, invariants, execution);
        reactor.runtime().block_on(cases);
        return Ok(());
    };
    reactor.drive_during(|handle| {
        let trials = trials(planned, invariants, execution, handle);
        console::present(options, trials, stop)
    })
}

/// The reasons why the run ended early or was disturbed.
fn cut_short(
    lost: Option<OutputLost>,
    interrupts: &Interrupts,
    execution: &Execution,
) -> Vec<String> {
    let mut faults = Vec::from_iter(execution.lost());
    if let Some(OutputLost(fault)) = lost {
        let fault = match fault.kind() {
            io::ErrorKind::BrokenPipe => {
                "the output was closed before the end of the run".to_owned()
            }
            _ => format!("cannot write to the output: {fault}"),
        };
        // The summary would go to the closed output.
        terminal::say(&format!("{fault}: stopped"));
        faults.push(fault);
    } else if let Some(signal) = interrupts.signal() {
        faults.push(format!("interrupted by {signal}"));
    }
    faults
}

async fn abandon(
    fault: &PrepareError,
    caller: &RecordingClient,
    mut clean_up: CleanUp,
    file: Option<HistoryFile>,
) {
    let mut ended = clean_up.end(&[]).await;
    let mut faults = ended.faults.clone();
    ended.faults.insert(0, fault.to_string());
    caller.recorder.record(Body::RunEnded(ended));
    faults.extend(finish_history(file).await);
    for fault in faults {
        terminal::say(&fault);
    }
}

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

/// Prints the kept sandboxes, and the command that removes them.
fn print_kept_sandboxes(options: &RunOptions, info: &RunInfo, kept: &[SandboxId]) {
    if kept.is_empty() {
        return;
    }
    let ids: Vec<&str> = kept.iter().map(SandboxId::as_str).collect();
    terminal::say(&format!(
        "kept for inspection: sandbox {}\nremove with: {}",
        ids.join(", "),
        options.clean_up_command(&info.run)
    ));
}

/// Completes the history file; returns its error, if any.
async fn finish_history(history: Option<HistoryFile>) -> Option<String> {
    let fault = history?.finish().await.err()?;
    Some(format!("the history is incomplete: {fault}"))
}
