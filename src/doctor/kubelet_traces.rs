//! The traces that a running kubelet leaves of Evented PLEG: lines of its log, and its metrics
//! since its start, <https://kubernetes.io/docs/reference/instrumentation/metrics/>.
//!
//! The lines differ by version. Up to 1.36 the kubelet logs at verbosity 4 each status that it
//! derives from an event, and each fallback to relists; 1.37 logs at verbosity 4 each relist for an
//! event, and always the end of its attempts. Only lines of the running process count.

use std::path::PathBuf;
use std::time::Duration;

use super::finding::{Area, Finding, Status};
use crate::host::{Daemon, FileTree};

/// The timeout of `journalctl`: it searches the journal of the whole boot.
const BOUND: Duration = Duration::from_secs(20);

/// The number of bytes read from the end of a log file.
const END_BYTES: u64 = 16 << 20;

/// Log files of kubelets that log neither to the journal nor to standard error; the last one is
/// that of RKE2.
const FILES: [&str; 3] = [
    "/var/log/kubelet.log",
    "/var/log/kubelet/kubelet.log",
    "/var/lib/rancher/rke2/agent/logs/kubelet.log",
];

/// At verbosity 4: up to 1.36, and from 1.37.
const USED: [&str; 2] = [
    "Evented PLEG: Generated pod status from the received event",
    "requested pod relist after container termination",
];

/// Up to 1.36, at verbosity 4; and from 1.37.
const GAVE_UP: [&str; 2] = [
    "Fall back to Generic PLEG relisting since Evented PLEG is not working",
    "fast path after exhausting event stream retries",
];

/// The number of stream errors after which a kubelet stops retrying for good.
const ATTEMPTS: f64 = 5.0;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Log {
    origin: String,
    /// `None` without a line of the running process.
    said: Result<Option<Said>, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Nothing,
    Used,
    GaveUp,
}

/// The metrics; `None` for each that is not served.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct KubeletMetrics {
    pub(super) gate: Option<bool>,
    /// The number of opened streams, and of those that ended with an error.
    connections: Option<(f64, f64)>,
}

/// Reads the log of this process: the file of its standard error, a file of the usual name, or the
/// journal; the first that has a line of the process.
pub(super) fn read(root: &FileTree, kubelet: &Daemon) -> Log {
    let stderr = root.read_link(format!("/proc/{}/fd/2", kubelet.pid));
    let stderr = stderr
        .ok()
        .filter(|path| path.starts_with("/") && !path.starts_with("/dev"));
    let own = stderr.map(|path| (&kubelet.files, path));
    let usual = FILES.map(|path| (root, PathBuf::from(path)));
    let pid = pid_in_log(root, kubelet.pid);
    for (files, path) in own.into_iter().chain(usual) {
        let text = files.read_end(&path, END_BYTES).unwrap_or_default();
        if let Some(said) = said(&text, &pid) {
            let origin = format!("{}, lines of process {pid}", path.display());
            let said = Ok(Some(said));
            return Log { origin, said };
        }
    }
    let said = in_journal(root, kubelet.pid);
    let origin = format!("journalctl --boot --grep ... _PID={}", kubelet.pid);
    Log { origin, said }
}

/// The pid that a process logs, in its own pid namespace.
fn pid_in_log(root: &FileTree, pid: u32) -> String {
    let status = root.read(format!("/proc/{pid}/status")).unwrap_or_default();
    let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let inner = inner.and_then(|pids| pids.split_whitespace().last());
    inner.map_or_else(|| pid.to_string(), str::to_owned)
}

/// The journal's lines of this process. The last line of each kind is enough, and the output is
/// bounded.
fn in_journal(root: &FileTree, pid: u32) -> Result<Option<Said>, String> {
    let pid = format!("_PID={pid}");
    let search = |patterns: &[&str]| {
        let lines = [
            "--boot",
            "--quiet",
            "--no-pager",
            "--output=cat",
            "--lines=1",
        ];
        let arguments = [&lines[..], patterns, &[pid.as_str()]].concat();
        match root.output_of("/usr/bin/journalctl", &arguments, BOUND) {
            Ok(text) => Ok(!text.trim().is_empty()),
            // Nothing matches.
            Err(fault) if fault.is_silent_failure() => Ok(false),
            Err(fault) => Err(fault.to_string()),
        }
    };
    let gave_up = GAVE_UP.map(|line| (line, Said::GaveUp));
    let used = USED.map(|line| (line, Said::Used));
    for (line, said) in gave_up.into_iter().chain(used) {
        if search(&["--grep", line])? {
            return Ok(Some(said));
        }
    }
    Ok(search(&[])?.then_some(Said::Nothing))
}

/// The last relevant line of this process; `None` if it has no line.
fn said(text: &str, pid: &str) -> Option<Said> {
    let mut own = text
        .lines()
        .rev()
        .filter(|line| is_of(line, pid))
        .peekable();
    own.peek()?;
    let any = |line: &str, of: &[&str]| of.iter().any(|words| line.contains(words));
    let telling = own.find_map(|line| match line {
        line if any(line, &GAVE_UP) => Some(Said::GaveUp),
        line => any(line, &USED).then_some(Said::Used),
    });
    Some(telling.unwrap_or(Said::Nothing))
}

/// Whether a process wrote this line: klog begins it with the severity and the date, the time, and
/// the pid, possibly after a prefix of a container runtime or syslog.
fn is_of(line: &str, pid: &str) -> bool {
    let is_day = |word: &str| {
        let digits = word.strip_prefix(['I', 'W', 'E', 'F']);
        digits.is_some_and(|it| it.len() == 4 && it.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut words = line
        .split_whitespace()
        .take(12)
        .skip_while(|word| !is_day(word));
    words.nth(2) == Some(pid)
}

impl Log {
    /// Whether it proves that the kubelet uses events, or has stopped using them.
    pub(super) fn is_telling(&self) -> bool {
        matches!(self.said, Ok(Some(Said::Used | Said::GaveUp)))
    }

    pub(super) fn finding(&self) -> Finding {
        let new = |status, id, finding: &str| {
            let finding = finding.to_owned();
            Finding::new((Area::Kubelet, status), id, finding, self.origin.clone())
        };
        match &self.said {
            Ok(Some(Said::GaveUp)) => gave_up(new(
                Status::Wrong,
                "kubelet-gave-up",
                "the kubelet has given up the event stream, until it is restarted",
            )),
            Ok(Some(Said::Used)) => new(
                Status::Ok,
                "kubelet-uses-events",
                "the kubelet has logged that it uses events",
            ),
            Ok(Some(Said::Nothing)) => new(
                Status::Note,
                "kubelet-log-silent",
                "the kubelet's log says nothing of Evented PLEG",
            )
            .why("A kubelet logs each use of an event at verbosity 4, and 1.37 that it has given up.")
            .fix("Run the kubelet with --v=4 for a while, or read its metrics with --metrics."),
            Ok(None) => new(
                Status::Note,
                "kubelet-log-missing",
                "no line of the running kubelet was found in the journal or a log file",
            )
            .why("Its log may be elsewhere; an empty journal is not a silent log.")
            .fix("Search its log for `Evented PLEG`, or read its metrics with --metrics."),
            Err(fault) => new(
                Status::Note,
                "kubelet-log-unreadable",
                &format!("the kubelet's log cannot be read: {fault}"),
            )
            .why("The log may show whether the kubelet has given up the event stream.")
            .fix("Run this on the node as root; or read its metrics with --metrics."),
        }
    }
}

impl KubeletMetrics {
    /// Reads Prometheus' text format. Fails on a text without metrics of a kubelet.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        if !lines.any(|it| it.starts_with("kubelet_") || it.starts_with("kubernetes_")) {
            return Err("it has no metrics of a kubelet".to_owned());
        }
        let value = |name: &str| {
            let mut values = text.lines().filter_map(|line| {
                let rest = line.strip_prefix(name)?;
                rest.split_whitespace().next()?.parse::<f64>().ok()
            });
            values.next()
        };
        let gate = text.lines().find_map(|line| {
            let labels = line.strip_prefix("kubernetes_feature_enabled{")?;
            let (labels, value) = labels.rsplit_once('}')?;
            let mut labels = labels.split(',');
            let is_it = labels.any(|label| label.trim() == "name=\"EventedPLEG\"");
            let value: f64 = value.split_whitespace().next()?.parse().ok()?;
            is_it.then_some(value > 0.0)
        });
        let opened = value("kubelet_evented_pleg_connection_success_count");
        let failed = value("kubelet_evented_pleg_connection_error_count");
        Ok(Self {
            gate,
            connections: opened.zip(failed),
        })
    }

    /// The finding on the current use of events; `None` if the metrics do not show it.
    pub(super) fn finding(&self, origin: &str) -> Option<Finding> {
        let (opened, failed) = self.connections?;
        let new = |status, id, finding: String| {
            Finding::new((Area::Kubelet, status), id, finding, origin)
        };
        if self.gate == Some(false) || (opened == 0.0 && failed == 0.0) {
            return None;
        }
        let counts = format!("opened {opened} times, ended by an error {failed} times");
        Some(if failed >= ATTEMPTS {
            let finding = format!("the kubelet has given up the event stream: {counts}");
            gave_up(new(Status::Wrong, "kubelet-gave-up", finding))
        } else if opened > 0.0 {
            let finding = format!("the kubelet follows events: its stream was {counts}");
            new(Status::Ok, "kubelet-uses-events", finding)
        } else {
            let finding = format!("the kubelet has no event stream yet: {counts}");
            new(Status::Wrong, "kubelet-without-events", finding)
                .why("After five errors it only relists, until it is restarted.")
                .fix("Make the runtime send events, then restart the kubelet.")
        })
    }
}

/// Adds the effect and the fix.
pub(super) fn gave_up(finding: Finding) -> Finding {
    finding
        .why("After some failed attempts a kubelet only relists; it does not try again.")
        .fix("Fix the other findings, then restart the kubelet.")
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Option<Said>) {
        assert_eq!(said(text, "812"), expect, "{text}");
    }

    fn line(pid: u32, text: &str) -> String {
        format!("I0314 15:09:26.535897    {pid} evented.go:238] \"{text}\" podUID=3b2c6172\n")
    }

    #[test]
    fn the_last_line_of_the_running_kubelet_counts() {
        let [used, fell_back] = [USED[0], GAVE_UP[0]].map(|text| line(812, text));
        let other = line(812, "GenericPLEG: Relisting");
        check(&used, Some(Said::Used));
        check(&format!("{used}{fell_back}{other}"), Some(Said::GaveUp));
        check(&format!("{fell_back}{used}"), Some(Said::Used));
        check(&other, Some(Said::Nothing));
        // Of the kubelet before the last restart, and of no process.
        let before = line(700, GAVE_UP[0]);
        check(&format!("{before}{other}"), Some(Said::Nothing));
        check(&before, None);
        check("", None);
        check(
            &format!("2026-11-27T00:00:00Z stderr F {used}"),
            Some(Said::Used),
        );
    }

    #[test]
    fn the_lines_of_1_37_are_known() {
        let gave_up = "Evented PLEG: disabling container-termination fast path after exhausting \
                       event stream retries";
        check(&line(812, gave_up), Some(Said::GaveUp));
        let used = "Evented PLEG: requested pod relist after container termination";
        check(&line(812, used), Some(Said::Used));
    }

    #[track_caller]
    fn check_metrics(gate: Option<u8>, counts: Option<(u8, u8)>, expect: Option<&str>) {
        let mut text = String::from("# TYPE kubelet_evented_pleg_connection_error_count counter\n");
        if let Some(gate) = gate {
            write!(
                text,
                "kubernetes_feature_enabled{{name=\"AllAlpha\",stage=\"ALPHA\"}} 1\n\
                 kubernetes_feature_enabled{{name=\"EventedPLEG\",stage=\"ALPHA\"}} {gate}\n"
            )
            .expect("a string takes it");
        }
        if let Some((opened, failed)) = counts {
            write!(
                text,
                "kubelet_evented_pleg_connection_success_count {opened}\n\
                 kubelet_evented_pleg_connection_error_count {failed} 1700000000000\n"
            )
            .expect("a string takes it");
        }
        let metrics = KubeletMetrics::parse(&text).unwrap();
        assert_eq!(metrics.gate, gate.map(|gate| gate == 1));
        let finding = metrics.finding("/metrics");
        assert_eq!(finding.map(|it| it.id).as_deref(), expect, "{text}");
    }

    #[test]
    fn the_counts_say_whether_events_are_in_use() {
        let uses = Some("kubelet-uses-events");
        check_metrics(Some(1), Some((1, 0)), uses);
        check_metrics(Some(1), Some((5, 4)), uses);
        check_metrics(None, Some((1, 0)), uses);
        check_metrics(Some(1), Some((1, 5)), Some("kubelet-gave-up"));
        check_metrics(Some(1), Some((0, 2)), Some("kubelet-without-events"));
        // Neither tried nor switched on.
        check_metrics(Some(1), Some((0, 0)), None);
        check_metrics(Some(0), Some((1, 0)), None);
        check_metrics(Some(1), None, None);
        let of_others = KubeletMetrics::parse("etcd_server_has_leader 1\n");
        assert!(of_others.is_err_and(|fault| fault == "it has no metrics of a kubelet"));
    }
}
