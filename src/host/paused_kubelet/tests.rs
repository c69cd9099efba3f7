//! Pauses with a systemd of scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::MutexGuard;

use super::*;

const AT_MOST: Duration = Duration::from_secs(300);
/// Only one kubelet can be paused at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A systemd of scripts, which record the requests.
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
                 *is-active*) exit 3 ;;\n  *'{pattern}'*) echo no >&2; exit 1 ;;\n  \
                 *show*) cat {log}.show ;;\nesac\n"
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
        fake.describe("MainPID=812\nRequiredBy=\nBoundBy=\nConsistsOf=\n");
        fake
    }

    /// Sets the output of `systemctl show`.
    fn describe(&self, shown: &str) {
        fs::write(self.folder.path().join("log.show"), shown).unwrap();
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
        PausedKubelet::stop(Pause { systemd, unit }, 812, AT_MOST)
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
const SHOW: &str =
    "systemctl show --property=MainPID,RequiredBy,BoundBy,ConsistsOf kubelet.service";
const STOP: &str = "systemctl stop kubelet.service";
const START: &str = "systemctl start kubelet.service";
const UNSET: &str = "systemctl stop cri-event-conformance-start-kubelet.timer";

#[test]
fn the_timer_is_set_before_the_unit_is_stopped_and_removed_after_it_is_started() {
    let fake = FakeSystemd::working();
    let paused = fake.pause().unwrap();
    assert_eq!(fake.asked(), [IS_SET, SHOW, SET, STOP]);
    paused.resume().unwrap();
    assert_eq!(fake.asked(), [IS_SET, SHOW, SET, STOP, START, UNSET]);
    assert_eq!(resume_kubelet_at_once(), None);
}

#[test]
fn a_unit_that_is_more_than_the_kubelet_is_not_stopped() {
    for (shown, reason) in [
        ("MainPID=811\n", "whose main process is 811"),
        ("MainPID=0\n", "whose main process is 0"),
        ("", "whose main process is unknown"),
        (
            "MainPID=812\nRequiredBy=a.target\nConsistsOf=b.service\n",
            "stop a.target b.service",
        ),
    ] {
        let fake = FakeSystemd::working();
        fake.describe(shown);
        let fault = fake.pause().unwrap_err().to_string();
        assert!(fault.contains(reason), "{fault}");
        assert_eq!(fake.asked(), [IS_SET, SHOW]);
    }
    let fake = FakeSystemd::failing("show");
    assert!(matches!(fake.pause(), Err(PauseError::Unknown(..))));
    assert_eq!(fake.asked(), [IS_SET, SHOW]);
}

#[test]
fn a_unit_with_a_process_of_the_runtime_is_not_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let run = |pid: u32, unit: &str, command: &str| {
        let process = folder.path().join(format!("proc/{pid}"));
        fs::create_dir_all(&process).unwrap();
        fs::write(process.join("cmdline"), command).unwrap();
        let cgroup = format!("0::/system.slice/{unit}\n");
        fs::write(process.join("cgroup"), cgroup).unwrap();
    };
    let check = |serving: u32| {
        let host = FileTree::at(folder.path());
        let checked = check_holds_no_runtime(&host, "kubelet.service", |pid| pid == serving);
        checked.map_err(|fault| fault.to_string())
    };
    run(812, "kubelet.service", "/usr/bin/kubelet\0--v=2\0");
    run(813, "kubelet.service", "mount\0");
    run(900, "containerd.service", "/usr/bin/containerd\0");
    run(
        901,
        "containerd.service",
        "/usr/bin/containerd-shim-runc-v2\0-id\0a\0",
    );
    assert_eq!(check(900), Ok(()));
    let holds =
        |name| format!("{name}, which would end with the kubelet: stop the kubelet by other means");
    assert!(
        check(813)
            .unwrap_err()
            .ends_with(&holds("process 813 of the runtime, `mount`"))
    );
    run(
        814,
        "kubelet.service",
        "/usr/bin/containerd-shim-runc-v2\0-id\0a\0",
    );
    let shim = holds("process 814 of the runtime, `containerd-shim-runc-v2`");
    assert!(check(900).unwrap_err().ends_with(&shim));
    run(814, "kubelet.service", "/usr/bin/conmon\0-c\0a\0");
    assert!(
        check(900)
            .unwrap_err()
            .ends_with(&holds("process 814 of the runtime, `conmon`"))
    );
}

#[test]
fn a_process_that_holds_the_runtimes_socket_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("cri.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert!(may_hold(std::process::id(), &socket));
    let other = folder.path().join("other.sock");
    let _other = std::os::unix::net::UnixListener::bind(&other).unwrap();
    // A child inherits neither; what a process of another user holds is not known.
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let holds = [&socket, &other].map(|socket| may_hold(child.id(), socket));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(holds, [false; 2]);
}

#[test]
fn a_panic_starts_the_unit() {
    let fake = FakeSystemd::working();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _paused = fake.pause().unwrap();
        panic!("as the test asked for");
    }));
    assert!(panicked.is_err());
    assert_eq!(fake.asked(), [IS_SET, SHOW, SET, STOP, START, UNSET]);
}

#[test]
fn a_process_that_exits_at_once_starts_the_unit_without_waiting_and_leaves_the_timer() {
    let fake = FakeSystemd::working();
    let paused = fake.pause().unwrap();
    let unit = resume_kubelet_at_once();
    assert_eq!(unit.as_deref(), Some(paused.unit()));
    drop(paused);
    let no_wait = "systemctl start --no-block kubelet.service";
    assert_eq!(fake.asked(), [IS_SET, SHOW, SET, STOP, no_wait]);
}

#[test]
fn nothing_is_stopped_where_the_timer_cannot_be_set() {
    let fake = FakeSystemd::failing("systemd-run");
    let fault = fake.pause().unwrap_err().to_string();
    let expected = "set the timer that starts kubelet.service again: it ended with exit \
                    status: 1; its output: no";
    assert_eq!(fault, expected);
    assert_eq!(fake.asked(), [IS_SET, SHOW, SET]);
}

#[test]
fn a_unit_that_does_not_stop_is_started() {
    let fake = FakeSystemd::failing("stop kubelet.service");
    assert!(matches!(fake.pause(), Err(PauseError::Stop(..))));
    assert_eq!(fake.asked(), [IS_SET, SHOW, SET, STOP, START, UNSET]);
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
    assert_eq!(fake.asked(), [IS_SET, SHOW, STOP, START]);
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
    let fault = PausedKubelet::stop(Pause { systemd, unit }, 812, AT_MOST).unwrap_err();
    assert!(matches!(fault, PauseError::NoSystemd), "{fault}");
}
