//! The signals that ask this process to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Waits for SIGINT, SIGTERM and SIGHUP, which end the process no more once this listens, nor does
/// SIGXFSZ.
#[derive(Debug)]
pub struct InterruptSignals {
    interrupt: Signal,
    terminate: Signal,
    /// None where SIGHUP is ignored, as `nohup` has it.
    hangup: Option<Signal>,
    /// Handled and ignored: a write beyond the largest size of a file fails with EFBIG, and does
    /// not kill the process.
    _file_too_large: Signal,
}

impl InterruptSignals {
    /// Listens from now on.
    ///
    /// # Errors
    /// If the system does not let us.
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
            None => self.insistent().await,
        }
    }

    /// The name of the next signal that somebody has sent on purpose: of a terminal that is closed,
    /// a process may get SIGHUP twice, from the kernel and from its shell.
    pub async fn insistent(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// Whether whoever started this process wants it to outlive its terminal.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status");
    status.is_ok_and(|status| is_hangup_ignored(&status))
}

/// What the mask of `/proc/PID/status` says of signal 1.
fn is_hangup_ignored(status: &str) -> bool {
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
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
