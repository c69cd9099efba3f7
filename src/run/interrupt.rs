//! Being told to stop: by Ctrl-C, SIGTERM or SIGHUP, or by an output that nobody reads any more.

use std::io;
use std::panic;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread::ThreadId;

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
        std::process::exit(Exit::Undecided as i32);
    });
    Ok(interrupts)
}

type Hook = Box<dyn Fn(&panic::PanicHookInfo<'_>) + Send + Sync>;

/// While this lives, a panic of this thread, which only prints, stops the run without a word.
pub(super) struct LostOutput {
    previous: Arc<OnceLock<Hook>>,
}

/// libtest-mimic panics when it cannot print: then nobody reads, as after `| head`.
pub(super) fn stop_on_lost_output(stop: &CancellationToken) -> LostOutput {
    let printing: ThreadId = std::thread::current().id();
    let previous: Arc<OnceLock<Hook>> = Arc::default();
    let _ = previous.set(panic::take_hook());
    let (stop, others) = (stop.clone(), previous.clone());
    panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == printing {
            stop.cancel();
        } else if let Some(hook) = others.get() {
            hook(info);
        }
    }));
    LostOutput { previous }
}

impl Drop for LostOutput {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            drop(panic::take_hook());
            if let Some(previous) = Arc::get_mut(&mut self.previous).and_then(OnceLock::take) {
                panic::set_hook(previous);
            }
        }
    }
}
