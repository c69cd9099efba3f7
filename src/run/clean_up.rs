//! The end of a run: SIGINT, SIGTERM and SIGHUP, and the removal of everything that it has created,
//! however it ended; also for a command that creates pods without running cases.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::kubelet::KubeletGuard;
use super::outputs::Outputs;
use super::prepare::{self, Connection, Preparation, Prepared};
use super::{Connected, Exit, RunError, RunOptions, abandon};
use crate::drive::{self, RecordingClient, Session};
use crate::history::{Request, RunEnd, RunId, RunInfo, SandboxId, StatusCode};
use crate::host::{self, Kernel, LogDirectory};
use crate::limits::{self, TimeoutScale};
use crate::metrics::Metrics;
use crate::outcome::{NOT_CLEANED_UP, NOT_REMOVED};
use crate::report::short_ids;
use crate::workload::Registry;
use crate::{files, terminal};

/// The objects that a run has created, and how to remove them.
#[derive(Debug)]
pub(super) struct CleanUp {
    caller: RecordingClient,
    kernel: Kernel,
    run: RunId,
    /// The command that removes leftovers.
    again: String,
    /// The time to wait for a lost runtime to come back.
    patience: Duration,
    /// Whether to wait for a lost runtime at all.
    pub(super) waits: bool,
    /// The user's image, if the run had to pull it.
    pub(super) pulled: Option<String>,
    /// The registry of the suite's image, if a case needs it after the pull.
    pub(super) registry: Option<Registry>,
    /// The directory of its containers' logs, once it exists.
    pub(super) logs: Option<LogDirectory>,
    /// The kubelet of the node. A paused one is started last, at the latest when this is dropped.
    pub(super) kubelet: Option<KubeletGuard>,
}

enum Attempt {
    Done(Vec<String>),
    /// The runtime is lost, with its last error.
    Gone(String),
}

impl CleanUp {
    /// The clean-up of a run that has created only labelled pods so far.
    pub(super) fn new(
        (run, again): (&RunId, String),
        caller: &RecordingClient,
        kernel: &Kernel,
        timeout_scale: TimeoutScale,
    ) -> Self {
        Self {
            caller: caller.clone(),
            kernel: kernel.clone(),
            run: run.clone(),
            again,
            patience: timeout_scale.scaled(limits::RUNTIME_RETURN),
            waits: true,
            pulled: None,
            registry: None,
            logs: None,
            kubelet: None,
        }
    }

    /// Removes everything but these sandboxes and the images that they need, looks for a kubelet
    /// again, and starts a paused one; returns the end of the run.
    pub(super) async fn end(&mut self, keep: &[SandboxId]) -> RunEnd {
        let mut faults = self.all_but(keep).await;
        let removed = faults.is_empty();
        let mut kubelet_paused = Duration::ZERO;
        if let Some(guard) = self.kubelet.take() {
            let (of_kubelet, paused) = guard.end(&self.caller).await;
            faults.extend(of_kubelet);
            kubelet_paused = paused;
        }
        RunEnd {
            removed,
            faults,
            kubelet_paused,
        }
    }

    /// Removes everything but these sandboxes and the images that they need; returns the leftovers,
    /// and how to remove them later.
    async fn all_but(&self, keep: &[SandboxId]) -> Vec<String> {
        // Objects of calls in progress are not listed yet.
        self.caller.settled().await;
        let began = host::now();
        let mut pause = tokio::time::interval(limits::RUNTIME_LOOK);
        loop {
            match self.attempt(keep).await {
                Attempt::Done(failures) => return failures,
                // A restarting runtime is back when it answers; there is no other signal.
                Attempt::Gone(_) if self.waits && host::elapsed(began) < self.patience => {
                    pause.tick().await;
                }
                Attempt::Gone(fault) => {
                    return vec![format!("{NOT_CLEANED_UP}{fault}; try {}", self.again)];
                }
            }
        }
    }

    async fn attempt(&self, keep: &[SandboxId]) -> Attempt {
        let place = (&self.caller, &self.kernel);
        let swept = match drive::sweep(place, &self.run, keep).await {
            Ok(swept) => swept,
            Err(fault) if is_gone(fault.fault.code) => return Attempt::Gone(fault.to_string()),
            Err(fault) => {
                return Attempt::Done(vec![format!("{NOT_CLEANED_UP}{fault}; try {}", self.again)]);
            }
        };
        for process in &swept.processes {
            let line = format!("killed {process}, which the runtime had left behind");
            terminal::say(&short_ids(&line));
        }
        for reason in &swept.skipped {
            terminal::say(&format!("left alone: {reason}"));
        }
        let hint = |fault: &String| {
            let again = &self.again;
            format!(
                "{NOT_REMOVED}{fault}; try {again}, and if that fails, restart the runtime first"
            )
        };
        let mut failures: Vec<String> = swept.failures.iter().map(hint).collect();
        if let (Some(image), true) = (&self.pulled, keep.is_empty()) {
            let removed = self
                .caller
                .call(None, Request::RemoveImage(image.clone()))
                .await;
            failures.extend(
                removed
                    .err()
                    .map(|fault| format!("{NOT_REMOVED}{image}: {fault}")),
            );
        }
        // Where something is left, the next attempt needs the records.
        if let (Some(logs), true) = (&self.logs, keep.is_empty()) {
            let kept = if failures.is_empty() {
                logs.remove().err().map(|fault| fault.to_string())
            } else {
                Some("it has the records of what is left".to_owned())
            };
            let path = logs.path().display();
            let kept = kept.map(|why| format!("{NOT_REMOVED}{path}: {why}; try {}", self.again));
            failures.extend(kept);
        }
        // Removals that failed because the runtime was lost are retried when it is back.
        match self.caller.call(None, Request::Version).await {
            Err(fault) if !failures.is_empty() && is_gone(fault.code) => {
                Attempt::Gone(failures.swap_remove(0))
            }
            Ok(_) | Err(_) => Attempt::Done(failures),
        }
    }
}

/// The signal that stopped the run, if any.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupts {
    first: Arc<OnceLock<&'static str>>,
}

impl Interrupts {
    pub(super) fn signal(&self) -> Option<&'static str> {
        self.first.get().copied()
    }
}

/// The facts about a session's runtime and node.
#[derive(Clone, Debug)]
pub struct Surroundings {
    pub info: RunInfo,
    /// The number of sandboxes that no run of this suite has created.
    pub foreign_pods: usize,
    pub simulated: bool,
}

#[derive(Debug)]
pub struct WorkEnd<T> {
    /// The result of the work; `None` if it was interrupted or has panicked.
    pub result: Option<T>,
    /// The reasons for an interruption, and the leftovers.
    pub faults: Vec<String>,
}

/// Whether an error can come from a restarting runtime: containerd 1.7 returns UNKNOWN, "server is
/// not initialized yet", until it is up.
fn is_gone(code: StatusCode) -> bool {
    [StatusCode::UNAVAILABLE, StatusCode::UNKNOWN].contains(&code)
}

/// Installs the handlers: the first signal stops the run, which then cleans up; the second one ends
/// the process at once and removes its unfinished files.
pub(super) fn watch(stop: &CancellationToken, again: String) -> io::Result<Interrupts> {
    let interrupts = Interrupts::default();
    let (stop, first) = (stop.clone(), interrupts.first.clone());
    let begin_end = move |name| {
        // Only the first signal sets the cell.
        let _ = first.set(name);
        stop.cancel();
        terminal::say(&format!(
            "\n{name}: stopping and cleaning up; repeat to exit at once"
        ));
    };
    host::on_interrupt(
        begin_end,
        move || end_at_once(&again),
        Exit::Undecided as i32,
    )?;
    Ok(interrupts)
}

/// Removes the unfinished files and undoes temporary changes, then ends the process.
fn end_at_once(again: &str) {
    terminal::say(&format!("exiting at once; clean up with: {again}"));
    files::remove_drafts();
    host::undo_disturbances();
    if let Some(command) = host::start_stopped_runtime() {
        terminal::say(&format!(
            "the runtime was stopped; starting it with: {command}"
        ));
    }
    if let Some(unit) = host::resume_kubelet_at_once() {
        terminal::say(&format!("{unit} was stopped; starting it"));
    }
    terminal::show_status(&[]);
    std::process::exit(Exit::Undecided as i32);
}

/// Executes work in a session whose event stream is live if the runtime has one, and removes all
/// that the session has created, however the work ends. The options are those of a run without its
/// selection of cases. Fails if the work cannot begin; then nothing is left at the runtime, either.
pub fn with_session<T, W>(
    options: &RunOptions,
    work: impl FnOnce(Arc<Session>, Surroundings) -> W,
) -> Result<WorkEnd<T>, RunError>
where
    T: Send + 'static,
    W: Future<Output = T> + Send + 'static,
{
    host::allow_open_files(limits::OPEN_FILES).map_err(RunError::OpenFiles)?;
    let reactor = options.target.reactor()?;
    let runtime = reactor.runtime();
    // From here on, the reactor's clock applies.
    let _within = runtime.enter();
    let stop = CancellationToken::new();
    let run = RunId::from(uuid::Uuid::new_v4().to_string());
    let again = options.clean_up_command(&run);
    let interrupts = watch(&stop, again.clone())?;
    let connected = Connected::start(&options.target)?;
    let (mut none, handler) = (Outputs::default(), &options.drive.pods.runtime_handler);
    let connecting = prepare::connect(&connected, handler, run, &mut none, &stop);
    // The history is not judged, so nothing of it need be kept.
    let Connection { caller, info, .. } = runtime.block_on(connecting)?;
    let scale = options.drive.timeout_scale;
    let mut clean_up = CleanUp::new((&info.run, again), &caller, &connected.kernel, scale);
    let preparation = Preparation {
        options,
        planned: &[],
        connected: &connected,
        metrics: &Metrics::default(),
        caller: &caller,
        info: &info,
    };
    let preparing = prepare::prepare(preparation, stop.clone(), &mut clean_up);
    let Prepared {
        session,
        foreign_pods,
    } = match runtime.block_on(preparing) {
        Ok(prepared) => prepared,
        Err(fault) => {
            runtime.block_on(abandon(&fault, &caller, clean_up, None));
            return Err(fault.into());
        }
    };
    let session = Arc::new(session);
    let surroundings = Surroundings {
        info,
        foreign_pods,
        simulated: reactor.is_simulated(),
    };
    // In a task of its own, so that a panic of ours ends the work and not the clean-up.
    let working = runtime.spawn(work(session.clone(), surroundings));
    let worked = runtime.block_on(unless_stopped(working, &stop));
    terminal::show_status(&[]);
    let mut faults: Vec<String> = interrupts
        .signal()
        .map(|signal| format!("interrupted by {signal}"))
        .into_iter()
        .collect();
    let result = worked.map_err(|fault| faults.extend(fault)).ok();
    runtime.block_on(session.unsubscribe());
    faults.extend(runtime.block_on(clean_up.end(&[])).faults);
    Ok(WorkEnd { result, faults })
}

/// The result of a task, which is aborted when the run is stopped.
async fn unless_stopped<T>(
    mut working: tokio::task::JoinHandle<T>,
    stop: &CancellationToken,
) -> Result<T, Option<String>> {
    let failed = |fault| Some(format!("the suite itself failed: {fault}"));
    tokio::select! {
        done = &mut working => done.map_err(failed),
        () = stop.cancelled() => {
            working.abort();
            working.await.map_err(|fault| fault.is_panic().then(|| failed(fault)).flatten())
        }
    }
}
