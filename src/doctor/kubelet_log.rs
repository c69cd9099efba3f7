//! What a kubelet's log says of Evented PLEG.
//!
//! The lines differ by version: up to 1.36 the kubelet logs each status that it makes of an event,
//! at verbosity 4, and that it falls back to relists; 1.37 logs only that it has given up.

use std::time::Duration;

use super::finding::{Area, Finding, Status};
use crate::host::{Daemon, FileTree};

/// How long `journalctl` may take: it searches the journal of the whole boot.
const BOUND: Duration = Duration::from_secs(20);
/// How much of the end of a log file is read.
const END_BYTES: u64 = 16 << 20;
/// Log files of kubelets that do not log to the journal.
const FILES: [&str; 2] = ["/var/log/kubelet.log", "/var/log/kubelet/kubelet.log"];

/// Up to 1.36, at verbosity 4.
const USED: &str = "Evented PLEG: Generated pod status from the received event";
/// Up to 1.36, at verbosity 4.
const FELL_BACK: &str = "Fall back to Generic PLEG relisting since Evented PLEG is not working";
/// From 1.37.
const GAVE_UP: &str = "disabling unexpected-termination fast path after exhausting event stream";

/// What the log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Log {
    /// Where it was read.
    origin: String,
    said: Result<Option<Said>, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Used,
    GaveUp,
}

/// Reads the log of this process, from the journal or else from a file.
pub(super) fn read(root: &FileTree, kubelet: &Daemon) -> Log {
    for path in FILES {
        if let Ok(text) = root.read_end(path, END_BYTES) {
            let origin = path.to_owned();
            return Log {
                origin,
                said: Ok(said(&text)),
            };
        }
    }
    let pid = format!("_PID={}", kubelet.pid);
    let mut outcome = Ok(None);
    // The most telling line of each kind is enough, and the output is bounded.
    for line in [GAVE_UP, FELL_BACK, USED] {
        let arguments = [
            "--boot",
            "--quiet",
            "--no-pager",
            "--output=cat",
            "--lines=1",
            "--grep",
            line,
            &pid,
        ];
        match root.output_of("/usr/bin/journalctl", &arguments, BOUND) {
            Ok(text) => outcome = Ok(said(&text)),
            // Nothing matches.
            Err(fault) if fault.is_silent_failure() => {}
            Err(fault) => outcome = Err(fault.to_string()),
        }
        if !matches!(outcome, Ok(None)) {
            break;
        }
    }
    Log {
        origin: format!("journalctl --boot --grep ... {pid}"),
        said: outcome,
    }
}

/// What the last line says that says anything.
fn said(text: &str) -> Option<Said> {
    text.lines().rev().find_map(|line| {
        if line.contains(FELL_BACK) || line.contains(GAVE_UP) {
            Some(Said::GaveUp)
        } else {
            line.contains(USED).then_some(Said::Used)
        }
    })
}

impl Log {
    pub(super) fn finding(&self) -> Finding {
        let new = |status, id, finding: &str| {
            let finding = finding.to_owned();
            Finding::new((Area::Kubelet, status), id, finding, self.origin.clone())
        };
        match &self.said {
            Ok(Some(Said::GaveUp)) => new(
                Status::Wrong,
                "kubelet-gave-up",
                "the kubelet has given up the event stream, until it is restarted",
            )
            .why("After some failed attempts a kubelet only relists; it does not try again.")
            .fix("Mend what else is wrong here, then restart the kubelet."),
            Ok(Some(Said::Used)) => new(
                Status::Ok,
                "kubelet-uses-events",
                "the kubelet has logged that it uses events",
            ),
            Ok(None) => new(
                Status::Note,
                "kubelet-log-silent",
                "the kubelet's log says nothing of Evented PLEG",
            )
            .why(
                "Up to 1.36 a kubelet logs each use of an event at verbosity 4; from 1.37 it logs \
                 only that it has given up.",
            )
            .fix("For a proof up to 1.36, run the kubelet with --v=4 for a while."),
            Err(fault) => new(
                Status::Note,
                "kubelet-log-unreadable",
                &format!("the kubelet's log cannot be read: {fault}"),
            )
            .why("Only the log shows whether the kubelet has given up the event stream.")
            .fix("Run this on the node as root; or search the log for `Evented PLEG`."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<Said>) {
        assert_eq!(said(text), expect, "{text}");
    }

    #[test]
    fn the_last_line_counts() {
        let used = format!("I0314 1 evented.go:238] \"{USED}\" podUID=3b2c6172");
        let fell_back = format!("I0314 1 evented.go:150] \"{FELL_BACK}\"");
        let gave_up = format!("E0314 1 evented.go:120] \"Evented PLEG: {GAVE_UP} retries\"");
        check(&used, Some(Said::Used));
        check(&format!("{used}\n{fell_back}\nother"), Some(Said::GaveUp));
        check(&format!("{fell_back}\n{used}\n"), Some(Said::Used));
        check(&gave_up, Some(Said::GaveUp));
        check("I0314 1 generic.go:1] \"GenericPLEG: Relisting\"", None);
        check("", None);
    }
}
