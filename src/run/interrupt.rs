//! Handles SIGINT, SIGTERM and SIGHUP during a run.

use std::io;
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use super::Exit;
use crate::{files, host, terminal};

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
