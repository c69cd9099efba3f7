//! Stops a kubelet's systemd unit for a while, and starts it again however this process ends.
//!
//! Before the unit is stopped, a transient systemd timer is set that starts it at the latest after
//! some time, also if this process is killed. The timer has a fixed name, so that two runs cannot
//! pause the same kubelet.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::command::{self, CommandError};
use super::kubelet::KubeletProcess;

/// The timeout of a command of systemd: more than the 90 s after which it gives up stopping or
/// starting a unit.
const COMMAND: Duration = Duration::from_secs(120);
/// It exists where systemd is PID 1, see `sd_booted(3)`.
const BOOTED: &str = "/run/systemd/system";
/// The timers of all kubelets.
const TIMERS: &str = "cri-event-conformance-start-*.timer";

/// Why a kubelet cannot be paused. Nothing has changed then, unless the message says so.
#[derive(Debug, thiserror::Error)]
pub enum PauseError {
    /// The process is more than a kubelet.
    #[error(
        "process {0} is `{1}`, which is more than a kubelet: stopping it may stop the runtime, too"
    )]
    NotOnlyKubelet(u32, String),
    /// The process is not a service of this host's systemd.
    #[error(
        "process {0}, the kubelet, is not a service of this host's systemd: stop it by other means"
    )]
    NoUnit(u32),
    /// systemd is not running, or not visible.
    #[error(
        "there is no {BOOTED}: systemd is not running on this host, or is not visible in this \
         container. Stop the kubelet by other means"
    )]
    NoSystemd,
    /// Another run has paused it.
    #[error(
        "another run has paused a kubelet, or was killed while it had; {TIMERS} starts it within \
         five minutes: run this again then"
    )]
    Paused,
    /// The timer cannot be set.
    #[error("set the timer that starts {0} again: {1}")]
    Timer(String, #[source] CommandError),
    /// The unit cannot be stopped.
    #[error("stop {0}: {1}")]
    Stop(String, #[source] CommandError),
}

/// How systemd is reached.
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
    /// Sets the timer, which starts the unit after `at_most`, and stops the unit.
    ///
    /// # Errors
    /// If it cannot be stopped safely.
    pub fn pause(kubelet: &KubeletProcess, at_most: Duration) -> Result<Self, PauseError> {
        if !kubelet.is_kubelet_only() {
            let name = kubelet.name.clone();
            return Err(PauseError::NotOnlyKubelet(kubelet.pid, name));
        }
        let unit = kubelet.unit.clone();
        let unit = unit.ok_or(PauseError::NoUnit(kubelet.pid))?;
        let systemd = Systemd::default();
        Self::stop(Pause { systemd, unit }, at_most)
    }

    fn stop(pause: Pause, at_most: Duration) -> Result<Self, PauseError> {
        if !pause.systemd.booted.exists() {
            return Err(PauseError::NoSystemd);
        }
        pause.systemd.check_none_is_paused()?;
        let unit = pause.unit.clone();
        pause
            .set_timer(at_most)
            .map_err(|fault| PauseError::Timer(unit.clone(), fault))?;
        *STOPPED.lock().unwrap_or_else(PoisonError::into_inner) = Some(pause.clone());
        // From here on, dropping it starts the unit, also one that was not stopped entirely.
        let paused = Self { unit };
        match pause.systemctl(&["stop", &pause.unit]) {
            Ok(_) => Ok(paused),
            Err(fault) => Err(PauseError::Stop(pause.unit, fault)),
        }
    }

    /// Checks that no kubelet is paused, such as one that no longer runs for that reason.
    ///
    /// # Errors
    /// If one is.
    pub fn check_none() -> Result<(), PauseError> {
        Systemd::default().check_none_is_paused()
    }

    /// The unit.
    #[must_use]
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// Starts the unit.
    ///
    /// # Errors
    /// If it does not start; its timer tries it again then.
    pub fn resume(self) -> Result<(), CommandError> {
        take().map_or(Ok(()), |pause| pause.start())
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
#[must_use]
pub fn resume_kubelet_at_once() -> Option<String> {
    let pause = take()?;
    // If that fails, the timer starts it.
    let _ = pause.systemctl(&["start", "--no-block", &pause.unit]);
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

impl Pause {
    /// The name of the timer and its service, without the ending.
    fn start_unit(&self) -> String {
        let name = Path::new(&self.unit).file_stem().unwrap_or_default();
        format!("cri-event-conformance-start-{}", name.to_string_lossy())
    }

    fn timer(&self) -> String {
        format!("{}.timer", self.start_unit())
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
        self.systemctl(&["start", &self.unit])?;
        // One that has elapsed is gone.
        let _ = self.systemctl(&["stop", &self.timer()]);
        Ok(())
    }

    fn systemctl(&self, arguments: &[&str]) -> Result<String, CommandError> {
        self.systemd.systemctl(arguments)
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::process::Command;
    use std::sync::MutexGuard;

    use super::*;

    const AT_MOST: Duration = Duration::from_secs(300);
    /// Only one kubelet can be paused at a time.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    /// A systemd of scripts, which write down what they are asked to do.
    struct FakeSystemd {
        folder: tempfile::TempDir,
        _turn: MutexGuard<'static, ()>,
    }

    impl FakeSystemd {
        /// With commands that fail: those that contain this text.
        fn failing(pattern: &str) -> Self {
            let turn = ONE_AT_A_TIME.lock();
            let fake = Self {
                folder: tempfile::tempdir().unwrap(),
                _turn: turn.unwrap_or_else(PoisonError::into_inner),
            };
            for name in ["systemctl", "systemd-run"] {
                let log = fake.log().display().to_string();
                let script = format!(
                    "#!/bin/sh\necho \"{name} $*\" >>{log}\ncase \"{name} $*\" in\n  \
                     *is-active*) exit 3 ;;\n  *'{pattern}'*) echo no >&2; exit 1 ;;\nesac\n"
                );
                // Another program writes it: it cannot be run while it is open for writing here, as
                // in a process that another test starts meanwhile.
                let place = fake.folder.path().join(name);
                let written = Command::new("sh")
                    .args(["-c", "printf %s \"$1\" >\"$2\" && chmod 755 \"$2\"", "sh"])
                    .args([script.as_ref(), place.as_os_str()])
                    .status();
                assert!(written.unwrap().success());
                assert!(fs::metadata(place).unwrap().permissions().mode() & 0o100 != 0);
            }
            fake
        }

        fn working() -> Self {
            Self::failing("nothing")
        }

        fn log(&self) -> PathBuf {
            self.folder.path().join("log")
        }

        fn pause(&self) -> Result<PausedKubelet, PauseError> {
            let systemd = Systemd {
                systemctl: self.folder.path().join("systemctl"),
                run: self.folder.path().join("systemd-run"),
                booted: self.folder.path().to_owned(),
            };
            let unit = "kubelet.service".to_owned();
            PausedKubelet::stop(Pause { systemd, unit }, AT_MOST)
        }

        fn asked(&self) -> Vec<String> {
            let log = fs::read_to_string(self.log()).unwrap_or_default();
            log.lines().map(str::to_owned).collect()
        }
    }

    const IS_SET: &str = "systemctl is-active --quiet cri-event-conformance-start-*.timer";
    const SET: &str = "systemd-run --quiet --collect --unit=cri-event-conformance-start-kubelet \
                       --on-active=300s --timer-property=AccuracySec=1s systemctl start \
                       kubelet.service";
    const STOP: &str = "systemctl stop kubelet.service";
    const START: &str = "systemctl start kubelet.service";
    const UNSET: &str = "systemctl stop cri-event-conformance-start-kubelet.timer";

    #[test]
    fn the_timer_is_set_before_the_unit_is_stopped_and_removed_after_it_is_started() {
        let fake = FakeSystemd::working();
        let paused = fake.pause().unwrap();
        assert_eq!(fake.asked(), [IS_SET, SET, STOP]);
        paused.resume().unwrap();
        assert_eq!(fake.asked(), [IS_SET, SET, STOP, START, UNSET]);
        assert_eq!(resume_kubelet_at_once(), None);
    }

    #[test]
    fn a_panic_starts_the_unit() {
        let fake = FakeSystemd::working();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _paused = fake.pause().unwrap();
            panic!("as the test asked for");
        }));
        assert!(panicked.is_err());
        assert_eq!(fake.asked(), [IS_SET, SET, STOP, START, UNSET]);
    }

    #[test]
    fn a_process_that_exits_at_once_starts_the_unit_without_waiting_and_leaves_the_timer() {
        let fake = FakeSystemd::working();
        let paused = fake.pause().unwrap();
        let unit = resume_kubelet_at_once();
        assert_eq!(unit.as_deref(), Some(paused.unit()));
        drop(paused);
        let no_wait = "systemctl start --no-block kubelet.service";
        assert_eq!(fake.asked(), [IS_SET, SET, STOP, no_wait]);
    }

    #[test]
    fn nothing_is_stopped_where_the_timer_cannot_be_set() {
        let fake = FakeSystemd::failing("systemd-run");
        let fault = fake.pause().unwrap_err().to_string();
        let expected = "set the timer that starts kubelet.service again: it ended with exit \
                        status: 1; its output: no";
        assert_eq!(fault, expected);
        assert_eq!(fake.asked(), [IS_SET, SET]);
    }

    #[test]
    fn a_unit_that_does_not_stop_is_started() {
        let fake = FakeSystemd::failing("stop kubelet.service");
        assert!(matches!(fake.pause(), Err(PauseError::Stop(..))));
        assert_eq!(fake.asked(), [IS_SET, SET, STOP, START, UNSET]);
    }

    #[test]
    fn the_timer_stays_where_the_unit_does_not_start() {
        let fake = FakeSystemd::failing("systemctl start kubelet");
        // The timer's command contains these words, too.
        let systemd_run = fake.folder.path().join("systemd-run");
        fs::remove_file(&systemd_run).unwrap();
        fs::hard_link("/bin/true", &systemd_run)
            .or_else(|_| std::os::unix::fs::symlink("/bin/true", &systemd_run))
            .unwrap();
        let paused = fake.pause().unwrap();
        assert!(paused.resume().is_err());
        assert_eq!(fake.asked(), [IS_SET, STOP, START]);
    }

    #[test]
    fn two_runs_do_not_pause_the_same_kubelet() {
        let fake = FakeSystemd::working();
        let systemctl = fake.folder.path().join("systemctl");
        fs::remove_file(&systemctl).unwrap();
        // The timer is active.
        std::os::unix::fs::symlink("/bin/true", &systemctl).unwrap();
        let fault = fake.pause().unwrap_err();
        assert!(matches!(fault, PauseError::Paused), "{fault}");
        assert_eq!(fake.asked(), Vec::<String>::new());
    }

    #[test]
    fn nothing_is_asked_where_systemd_does_not_run() {
        let fake = FakeSystemd::working();
        let systemd = Systemd {
            booted: fake.folder.path().join("missing"),
            ..Systemd::default()
        };
        let unit = "kubelet.service".to_owned();
        let fault = PausedKubelet::stop(Pause { systemd, unit }, AT_MOST).unwrap_err();
        assert!(matches!(fault, PauseError::NoSystemd), "{fault}");
    }
}
