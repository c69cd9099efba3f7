//! Stops a kubelet's systemd unit for a while, and starts it again however this process ends.
//!
//! Stopping a unit ends all its processes, and the units that need it. So only a unit is stopped
//! whose main process is the kubelet, that holds nothing of the runtime, and that no other unit
//! needs.
//!
//! Before the unit is stopped, a transient systemd timer is set that starts it at the latest after
//! some time, also if this process is killed. The timer has a fixed name, so that two runs cannot
//! pause the same kubelet.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::command::{self, CommandError};
use super::container_process::CommandLine;
use super::daemon;
use super::file_tree::FileTree;
use super::kubelet::KubeletProcess;
use super::runtime_process::holds_listener;

/// The timeout of a command of systemd: more than the 90 s after which it gives up stopping or
/// starting a unit.
const COMMAND: Duration = Duration::from_secs(120);
/// It exists where systemd is PID 1, see `sd_booted(3)`.
const BOOTED: &str = "/run/systemd/system";
/// The properties by which systemd stops a unit together with another one, see `systemd.unit(5)`.
const NEEDED: [&str; 3] = ["RequiredBy", "BoundBy", "ConsistsOf"];
const TIMERS: &str = "cri-event-conformance-start-*.timer";

/// Why a kubelet cannot be paused. Nothing has changed then, unless the message says so.
#[derive(Debug, thiserror::Error)]
pub enum PauseError {
    #[error(
        "process {0} is `{1}`, which is more than a kubelet: stopping it may stop the runtime, too"
    )]
    NotOnlyKubelet(u32, String),
    /// The process is not a service of this host's systemd.
    #[error(
        "process {0}, the kubelet, is not a service of this host's systemd: stop it by other means"
    )]
    NoUnit(u32),
    #[error(
        "process {pid}, the kubelet, is a part of {unit}, whose main process is {main}: stopping \
         {unit} would end more than the kubelet. Stop the kubelet by other means"
    )]
    NotMain {
        unit: String,
        pid: u32,
        main: String,
    },
    /// The unit holds a process of the runtime.
    #[error(
        "{unit} holds process {pid} of the runtime, `{name}`, which would end with the kubelet: \
         stop the kubelet by other means"
    )]
    HoldsRuntime {
        unit: String,
        pid: u32,
        name: String,
    },
    /// systemd stops other units with this one, and does not start them again.
    #[error("systemd would stop {1} together with {0}: stop the kubelet by other means")]
    Needed(String, String),
    #[error("ask systemd about {0}: {1}")]
    Unknown(String, #[source] CommandError),
    #[error(
        "there is no {BOOTED}: systemd is not running on this host, or is not visible in this \
         container. Stop the kubelet by other means"
    )]
    NoSystemd,
    #[error(
        "another run has paused a kubelet, or was killed while it had; {TIMERS} starts it within \
         five minutes: run this again then"
    )]
    Paused,
    #[error("set the timer that starts {0} again: {1}")]
    Timer(String, #[source] CommandError),
    #[error("stop {0}: {1}")]
    Stop(String, #[source] CommandError),
}

#[derive(Clone, Debug)]
struct Systemd {
    systemctl: PathBuf,
    /// `systemd-run`.
    run: PathBuf,
    booted: PathBuf,
}

/// A stopped unit, and how to start it.
#[derive(Clone, Debug)]
struct Pause {
    systemd: Systemd,
    unit: String,
}

/// The unit that is stopped at present.
static STOPPED: Mutex<Option<Pause>> = Mutex::new(None);

/// A kubelet whose unit is stopped. It is started when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct PausedKubelet {
    unit: String,
}

impl PausedKubelet {
    /// Sets the timer, which starts the unit after `at_most`, and stops the unit. `runtime` is the
    /// socket of the tested runtime.
    pub fn pause(
        kubelet: &KubeletProcess,
        runtime: Option<&Path>,
        at_most: Duration,
    ) -> Result<Self, PauseError> {
        if !kubelet.is_kubelet_only() {
            let name = kubelet.name.clone();
            return Err(PauseError::NotOnlyKubelet(kubelet.pid, name));
        }
        let unit = kubelet.unit.clone();
        let unit = unit.ok_or(PauseError::NoUnit(kubelet.pid))?;
        let is_served_by = |pid| runtime.is_some_and(|socket| may_hold(pid, socket));
        check_holds_no_runtime(&FileTree::default(), &unit, is_served_by)?;
        let systemd = Systemd::default();
        Self::stop(Pause { systemd, unit }, kubelet.pid, at_most)
    }

    fn stop(pause: Pause, kubelet: u32, at_most: Duration) -> Result<Self, PauseError> {
        if !pause.systemd.booted.exists() {
            return Err(PauseError::NoSystemd);
        }
        pause.systemd.check_none_is_paused()?;
        pause.check_is_only(kubelet)?;
        let unit = pause.unit.clone();
        pause
            .set_timer(at_most)
            .map_err(|fault| PauseError::Timer(unit.clone(), fault))?;
        *STOPPED.lock().unwrap_or_else(PoisonError::into_inner) = Some(pause.clone());
        // From here on, dropping it starts the unit, also one that was not stopped entirely.
        let paused = Self { unit };
        match pause.systemd.systemctl(&["stop", &pause.unit]) {
            Ok(_) => Ok(paused),
            Err(fault) => Err(PauseError::Stop(pause.unit, fault)),
        }
    }

    /// Checks that no kubelet is paused, such as one that no longer runs for that reason.
    pub fn check_none() -> Result<(), PauseError> {
        Systemd::default().check_none_is_paused()
    }

    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// Starts the unit. Fails if it does not start; its timer tries it again then.
    pub fn resume(self) -> Result<(), CommandError> {
        let started = take().map_or(Ok(()), |pause| pause.start());
        drop(self);
        started
    }
}

impl Drop for PausedKubelet {
    fn drop(&mut self) {
        if let Some(pause) = take() {
            // There is no caller to handle the error; the timer tries it again.
            let _ = pause.start();
        }
    }
}

/// Starts the kubelet's unit if this process has stopped it, without waiting; returns the unit.
/// Used when the process is about to exit.
pub fn resume_kubelet_at_once() -> Option<String> {
    let pause = take()?;
    // If that fails, the timer starts it.
    let _ = pause
        .systemd
        .systemctl(&["start", "--no-block", &pause.unit]);
    Some(pause.unit)
}

fn take() -> Option<Pause> {
    STOPPED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()
}

impl Default for Systemd {
    fn default() -> Self {
        Self {
            systemctl: PathBuf::from("systemctl"),
            run: PathBuf::from("systemd-run"),
            booted: PathBuf::from(BOOTED),
        }
    }
}

/// Whether a process holds the runtime's listening socket; also if that cannot be seen.
fn may_hold(pid: u32, socket: &Path) -> bool {
    let held = holds_listener(pid, socket);
    held.unwrap_or_else(|fault| fault.kind() != std::io::ErrorKind::NotFound)
}

/// Checks that a unit holds neither the process that serves the runtime's socket nor a monitor of a
/// container.
fn check_holds_no_runtime(
    host: &FileTree,
    unit: &str,
    is_served_by: impl Fn(u32) -> bool,
) -> Result<(), PauseError> {
    for (pid, _) in daemon::units(host).filter(|(_, of)| of == unit) {
        let command = host
            .read(format!("/proc/{pid}/cmdline"))
            .unwrap_or_default();
        let command = CommandLine::parse(&command);
        if command.as_ref().is_some_and(CommandLine::is_monitor) || is_served_by(pid) {
            let name = command.map(|command| command.program.to_owned());
            return Err(PauseError::HoldsRuntime {
                unit: unit.to_owned(),
                pid,
                name: name.unwrap_or_default(),
            });
        }
    }
    Ok(())
}

impl Pause {
    /// Checks that systemd stops nothing but this process with the unit.
    fn check_is_only(&self, kubelet: u32) -> Result<(), PauseError> {
        let properties = format!("--property=MainPID,{}", NEEDED.join(","));
        let shown = self.systemd.systemctl(&["show", &properties, &self.unit]);
        let shown = shown.map_err(|fault| PauseError::Unknown(self.unit.clone(), fault))?;
        let value = |name: &str| {
            let mut lines = shown.lines().filter_map(|line| line.split_once('='));
            lines.find_map(|(property, value)| (property == name).then_some(value))
        };
        let main = value("MainPID").unwrap_or("unknown");
        if main != kubelet.to_string() {
            return Err(PauseError::NotMain {
                unit: self.unit.clone(),
                pid: kubelet,
                main: main.to_owned(),
            });
        }
        let needing = NEEDED.iter().filter_map(|property| value(property));
        match needing.collect::<Vec<_>>().join(" ").trim() {
            "" => Ok(()),
            needing => Err(PauseError::Needed(self.unit.clone(), needing.to_owned())),
        }
    }

    /// The name of the timer and its service, without the ending.
    fn start_unit(&self) -> String {
        let name = Path::new(&self.unit).file_stem().unwrap_or_default();
        format!("cri-event-conformance-start-{}", name.to_string_lossy())
    }

    fn set_timer(&self, at_most: Duration) -> Result<(), CommandError> {
        let arguments = [
            "--quiet",
            "--collect",
            &format!("--unit={}", self.start_unit()),
            &format!("--on-active={}s", at_most.as_secs()),
            "--timer-property=AccuracySec=1s",
            "systemctl",
            "start",
            &self.unit,
        ];
        command::output(&self.systemd.run, &arguments, COMMAND).map(drop)
    }

    /// Starts the unit, and then removes the timer.
    fn start(&self) -> Result<(), CommandError> {
        self.systemd.systemctl(&["start", &self.unit])?;
        // One that has elapsed is gone.
        let _ = self
            .systemd
            .systemctl(&["stop", &format!("{}.timer", self.start_unit())]);
        Ok(())
    }
}

impl Systemd {
    fn check_none_is_paused(&self) -> Result<(), PauseError> {
        let is_set = self.systemctl(&["is-active", "--quiet", TIMERS]).is_ok();
        if is_set {
            Err(PauseError::Paused)
        } else {
            Ok(())
        }
    }

    fn systemctl(&self, arguments: &[&str]) -> Result<String, CommandError> {
        command::output(&self.systemctl, arguments, COMMAND)
    }
}
