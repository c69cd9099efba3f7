//! A session for a command that creates pods without running cases: prepared, interrupted and
//! cleaned up like a run.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::clean_up::CleanUp;
use super::outputs::Outputs;
use super::prepare::{self, Connection, Preparation, Prepared};
use super::{Connected, RunError, RunOptions, abandon, interrupt};
use crate::drive::Session;
use crate::history::{RunId, RunInfo};
use crate::metrics::Metrics;
use crate::{host, limits, terminal};

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
    let interrupts = interrupt::watch(&stop, again.clone())?;
    let connected = Connected::start(&options.target)?;
    let (mut none, handler) = (Outputs::default(), &options.drive.pods.runtime_handler);
    let connecting = prepare::connect(&connected, handler, run, &mut none, &stop);
    // Nobody judges the history, so that nothing of it need be kept.
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
    faults.extend(runtime.block_on(clean_up.end(&[])).1);
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
