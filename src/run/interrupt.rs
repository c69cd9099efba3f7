//! Being told to stop: by Ctrl-C, SIGTERM or SIGHUP, or by an output that nobody reads any more.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use super::{Exit, outputs};
use crate::history::RunId;
use crate::host::{self, InterruptSignals};
use crate::terminal;

/// Which signal, if any, has stopped the run.
#[derive(Clone, Debug, Default)]
pub(super) struct Interrupts {
    first: Arc<OnceLock<&'static str>>,
}

impl Interrupts {
    pub(super) fn signal(&self) -> Option<&'static str> {
        self.first.get().copied()
    }
}

/// From now on the first signal stops the run, which then cleans up, and the second ends the
/// process at once, without its unfinished files.
///
/// # Errors
/// If the system does not let us listen for signals.
pub(super) fn watch(
    stop: &CancellationToken,
    run: &RunId,
    unfinished: Vec<PathBuf>,
) -> io::Result<Interrupts> {
    let interrupts = Interrupts::default();
    let mut signals = InterruptSignals::listen()?;
    let (stop, run, first) = (stop.clone(), run.clone(), interrupts.first.clone());
    tokio::spawn(async move {
        let name = signals.first().await;
        // The cell is set here alone.
        let _ = first.set(name);
        stop.cancel();
        terminal::say(&format!(
            "\n{name}: stopping, and removing what the run made; again to leave at once"
        ));
        signals.insistent().await;
        terminal::say(&format!(
            "left at once; remove what the run made with: cri-event-conformance cleanup --run-id \
             {run}"
        ));
        outputs::remove(&unfinished);
        host::put_clock_right();
        if let Some(command) = host::start_stopped_runtime() {
            terminal::say(&format!(
                "the runtime was stopped; starting it by: {command}"
            ));
        }
        std::process::exit(Exit::Undecided as i32);
    });
    Ok(interrupts)
}
