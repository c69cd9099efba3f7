//! The signals that end this process.

use std::io;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;

use crate::{limits, queue};

/// Receives SIGINT, SIGTERM and SIGHUP, which no longer kill the process, nor does SIGXFSZ.
#[derive(Debug)]
pub struct InterruptSignals {
    interrupt: Signal,
    terminate: Signal,
    /// None if SIGHUP is ignored, as under `nohup`.
    hangup: Option<Signal>,
    /// Handled and ignored, so that a write beyond the file size limit fails with EFBIG and does
    /// not kill the process.
    _file_too_large: Signal,
}

impl InterruptSignals {
    pub fn listen() -> io::Result<Self> {
        let hangup = (!ignores_hangup()).then(|| signal(SignalKind::hangup()));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: hangup.transpose()?,
            _file_too_large: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// The name of the next signal.
    pub async fn first(&mut self) -> &'static str {
        match &mut self.hangup {
            Some(hangup) => tokio::select! {
                _ = self.interrupt.recv() => "SIGINT",
                _ = self.terminate.recv() => "SIGTERM",
                _ = hangup.recv() => "SIGHUP",
            },
            None => self.second().await,
        }
    }

    /// Waits for a signal that is not part of the one before, which has just arrived.
    async fn again(&mut self) {
        let before = super::now();
        while super::elapsed(before) < limits::SAME_SIGNAL {
            self.second().await;
        }
    }

    /// The name of the next signal other than SIGHUP: when a terminal is closed, a process may get
    /// SIGHUP twice, from the kernel and from its shell.
    pub async fn second(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// Handles signals on a thread of its own, which nothing can block, until the process ends. The
/// first one calls `first` with its name; the next one calls `second`, which ends the process, and
/// any later one ends it with `code` at once.
///
/// Signals that follow at once are the same: `timeout` sends one to the process and one to its
/// group.
pub fn on_interrupt(
    first: impl FnOnce(&'static str) + Send + 'static,
    second: impl FnOnce() + Send + 'static,
    code: i32,
) -> io::Result<()> {
    let reactor = Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _within = reactor.enter();
        InterruptSignals::listen()?
    };
    let handled = async move {
        let name = signals.first().await;
        queue::hurry();
        // On other threads, so that no signal waits for what they do.
        spawn_blocking(move || first(name));
        signals.again().await;
        spawn_blocking(second);
        signals.again().await;
        std::process::exit(code)
    };
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread.spawn(move || reactor.block_on(handled))?;
    Ok(())
}

/// Whether SIGHUP is ignored, so that the process outlives its terminal.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status");
    status.is_ok_and(|status| is_hangup_ignored(&status))
}

/// Whether the mask in `/proc/PID/status` contains signal 1.
fn is_hangup_ignored(status: &str) -> bool {
    let mut lines = status.lines();
    let mask = lines
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nohup_is_known_by_the_mask_of_ignored_signals() {
        assert!(is_hangup_ignored("SigBlk:\t0\nSigIgn:\t0000000000001001\n"));
        assert!(!is_hangup_ignored(
            "SigIgn:\t0000000000001000\nSigCgt:\t1\n"
        ));
        assert!(!is_hangup_ignored("Name:\tcat\n"));
    }
}
