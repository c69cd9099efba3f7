//! The built program as a process: started with a clean environment, its output captured, and its
//! end awaited with a timeout.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, geteuid, kill_process};

/// The timeout of a hanging test. A run of all cases on the model takes 20 s without optimization,
/// and twice as long on a loaded machine.
const BOUND: Duration = Duration::from_secs(120);

/// A command line of the program.
#[derive(Debug)]
pub(crate) struct Suite(Command);

/// A process that has not been waited for.
#[derive(Debug)]
pub(crate) struct Running {
    pid: Pid,
    out: Arc<Captured>,
    err: Arc<Captured>,
    status: Receiver<ExitStatus>,
    over: bool,
}

/// The end of a process, and its output.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code; a shell's 128 + N for a signal's death.
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

#[derive(Debug, Default)]
struct Captured {
    text: Mutex<Text>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Text {
    bytes: Vec<u8>,
    closed: bool,
}

/// The program with these arguments, and only `PATH` in its environment. SIGHUP reaches it even if
/// the tests themselves run under `nohup`.
pub(crate) fn suite<T: AsRef<OsStr>>(args: impl IntoIterator<Item = T>) -> Suite {
    let mut command = Command::new("env");
    command.args([
        "--default-signal=HUP",
        env!("CARGO_BIN_EXE_cri-event-conformance"),
    ]);
    Suite::new(command, args)
}

/// The same, without root's capabilities, except to read, as the program is where it was built.
pub(crate) fn unprivileged<T: AsRef<OsStr>>(args: impl IntoIterator<Item = T>) -> Suite {
    let program = env!("CARGO_BIN_EXE_cri-event-conformance");
    if !geteuid().is_root() {
        return suite(args);
    }
    let mut command = Command::new("setpriv");
    let kept = [
        "--bounding-set",
        "-all,+dac_read_search",
        "--inh-caps",
        "-all",
    ];
    command.args(kept).arg(program);
    Suite::new(command, args)
}

/// The same in a directory that is closed to it, without any of root's capabilities.
pub(crate) fn shut_out<T: AsRef<OsStr>>(of: &Path, args: impl IntoIterator<Item = T>) -> Suite {
    let mut command = Command::new("sh");
    command
        .args(["-c", "cd \"$0\" && chmod 0 . && exec \"$@\""])
        .arg(of);
    if geteuid().is_root() {
        command.args(["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]);
    }
    command.arg(env!("CARGO_BIN_EXE_cri-event-conformance"));
    Suite::new(command, args)
}

#[expect(clippy::print_stderr, reason = "it is a test's reason for passing")]
pub(crate) fn not_tested(why: &dyn std::fmt::Debug) {
    eprintln!("not tested, as it needs root: {why:?}");
}

/// The same in a PID namespace of its own, as in a pod without `hostPID`; `None`, with a note, if
/// that is not permitted here.
pub(crate) fn in_own_pid_namespace<T: AsRef<OsStr>>(
    args: impl IntoIterator<Item = T>,
) -> Option<Suite> {
    let alone = ["--pid", "--fork", "--kill-child", "--mount-proc"];
    let tried = Command::new("unshare").args(alone).arg("true").output();
    if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
        not_tested(&tried);
        return None;
    }
    let mut command = Command::new("unshare");
    let program = env!("CARGO_BIN_EXE_cri-event-conformance");
    command.args(alone).arg(program);
    Some(Suite::new(command, args))
}

/// The same, by its link in the image, in an emulated pod of `kubectl debug` with this profile;
/// `None`, with a note, if that is not permitted here.
pub(crate) fn in_debug_pod(profile: &str, args: &[&str]) -> Option<Suite> {
    const POD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/debug-pod.sh");
    let node = ["--mount", "--pid", "--cgroup", "--fork", "--kill-child"];
    let tried = Command::new("unshare")
        .args(node)
        .args(["mount", "-t", "tmpfs", "tmpfs", "/run"])
        .output();
    if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
        not_tested(&tried);
        return None;
    }
    let mut command = Command::new("unshare");
    command
        .args(node)
        .args(["sh", POD, env!("CARGO_BIN_EXE_cri-event-conformance")])
        .arg(profile)
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    Some(Suite::new(command, args))
}

/// The same, aborted if it uses more memory than this.
pub(crate) fn suite_within<T: AsRef<OsStr>>(
    bytes: usize,
    args: impl IntoIterator<Item = T>,
) -> Suite {
    suite_limited(&format!("--data={bytes}"), args)
}

/// The same, with a limit set by `prlimit`, such as `--nofile=12`.
pub(crate) fn suite_limited<T: AsRef<OsStr>>(
    limit: &str,
    args: impl IntoIterator<Item = T>,
) -> Suite {
    let mut command = Command::new("prlimit");
    command.arg(limit);
    command.arg(env!("CARGO_BIN_EXE_cri-event-conformance"));
    Suite::new(command, args)
}

impl Suite {
    fn new<T: AsRef<OsStr>>(mut command: Command, args: impl IntoIterator<Item = T>) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .args(args)
            .env_clear()
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self(command)
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    pub(crate) fn inside(mut self, folder: &Path) -> Self {
        self.0.current_dir(folder);
        self
    }

    /// Redirects its output to a file.
    pub(crate) fn out(mut self, file: File) -> Self {
        self.0.stdout(file);
        self
    }

    /// Sets its standard input.
    pub(crate) fn input(mut self, from: impl Into<Stdio>) -> Self {
        self.0.stdin(from);
        self
    }

    /// Runs it to its end.
    #[track_caller]
    pub(crate) fn run(self) -> Ended {
        self.start().end()
    }

    pub(crate) fn start(mut self) -> Running {
        let mut child = self.0.spawn().unwrap();
        let out = match child.stdout.take() {
            Some(out) => capture(out),
            None => capture(std::io::empty()),
        };
        Running::new(child, out)
    }

    /// Runs it with a closed output, as after `| head` has ended.
    #[track_caller]
    pub(crate) fn run_unread(mut self) -> Ended {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = self.0.stdout(writer).spawn().unwrap();
        // Our own copy of the writing end goes with the command.
        drop(self);
        Running::new(child, capture(std::io::empty())).end()
    }

    /// Starts it with a full output that is not read, such as a pager. The caller must keep the
    /// reader.
    pub(crate) fn start_stalled(mut self) -> (Running, PipeReader) {
        let (reader, writer) = full_pipe();
        let child = self.0.stdout(writer).spawn().unwrap();
        drop(self);
        (Running::new(child, capture(std::io::empty())), reader)
    }

    /// Runs it as in `| head -1`.
    #[track_caller]
    pub(crate) fn run_for_a_line(mut self) -> Ended {
        let mut child = self.0.spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        drop(out);
        let mut ended = Running::new(child, capture(std::io::empty())).end();
        ended.out = line;
        ended
    }
}

impl Running {
    fn new(mut child: Child, out: Arc<Captured>) -> Self {
        let pid = Pid::from_child(&child);
        let err = capture(child.stderr.take().unwrap());
        let (sender, status) = mpsc::channel();
        thread::spawn(move || sender.send(child.wait().unwrap()));
        Self {
            pid,
            out,
            err,
            status,
            over: false,
        }
    }

    /// Waits until the error stream contains a text, and returns its content.
    #[track_caller]
    pub(crate) fn wait_for(&self, wanted: &str) -> String {
        let err = self.err.wait_until(|text| text.contains(wanted));
        assert!(err.contains(wanted), "no {wanted:?} came, but:\n{err}");
        err
    }

    /// Waits until the error stream contains a text this many times.
    #[track_caller]
    pub(crate) fn wait_for_times(&self, wanted: &str, times: usize) {
        let err = self
            .err
            .wait_until(|text| text.matches(wanted).count() >= times);
        let found = err.matches(wanted).count();
        assert!(found >= times, "{wanted:?} came {found} times:\n{err}");
    }

    /// Waits until the output contains a text.
    #[track_caller]
    pub(crate) fn wait_for_output(&self, wanted: &str) {
        let out = self.out.wait_until(|text| text.contains(wanted));
        assert!(out.contains(wanted), "no {wanted:?} came, but:\n{out}");
    }

    /// Sends a signal, unless the process has ended.
    pub(crate) fn send(&self, signal: Signal) {
        let sent = kill_process(self.pid, signal);
        assert!(matches!(sent, Ok(()) | Err(Errno::SRCH)), "{sent:?}");
    }

    /// Sends a signal repeatedly until it ends, like an impatient user.
    #[track_caller]
    pub(crate) fn end_by(self, signal: Signal, bound: Duration) -> Ended {
        // A third signal may overtake what the second one does, if it follows at once.
        const PAUSE: Duration = Duration::from_millis(150);
        for _ in 0..bound.as_millis() / PAUSE.as_millis() {
            self.send(signal);
            if let Ok(status) = self.status.recv_timeout(PAUSE) {
                return self.ended(status);
            }
        }
        panic!(
            "it still runs; its error stream:\n{}",
            self.err.wait_until(|_| true)
        );
    }

    #[track_caller]
    pub(crate) fn end(self) -> Ended {
        self.end_within(BOUND)
    }

    #[track_caller]
    pub(crate) fn end_within(self, bound: Duration) -> Ended {
        let status = self.status.recv_timeout(bound);
        let Ok(status) = status else {
            let err = self.err.wait_until(|_| true);
            panic!("it still runs after {bound:?}; its error stream:\n{err}");
        };
        self.ended(status)
    }

    fn ended(mut self, status: ExitStatus) -> Ended {
        self.over = true;
        let code = status.code().or(status.signal().map(|signal| 128 + signal));
        Ended {
            code: code.unwrap(),
            out: self.out.wait_until(|_| false),
            err: self.err.wait_until(|_| false),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.over {
            // Gone already is as good.
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }
}

impl Ended {
    /// Asserts the exit code, and that the error stream contains all of these.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, message: &[&str]) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        for message in message {
            assert!(
                self.err.contains(message),
                "it does not print {message:?}: {self:#?}"
            );
        }
        assert!(!self.err.contains("panicked"), "{self:#?}");
        self
    }

    /// Asserts success without error output; returns the output.
    #[track_caller]
    pub(crate) fn succeeds(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{self:#?}");
        self.out
    }
}

impl Captured {
    /// The captured output once the condition holds, the output has ended, or the timeout is over.
    fn wait_until(&self, condition: impl Fn(&str) -> bool) -> String {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let missing =
            |text: &mut Text| !text.closed && !condition(&String::from_utf8_lossy(&text.bytes));
        let (text, _) = self
            .changed
            .wait_timeout_while(text, BOUND, missing)
            .unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&text.bytes).into_owned()
    }

    fn add(&self, bytes: &[u8]) {
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        text.bytes.extend_from_slice(bytes);
        text.closed = bytes.is_empty();
        self.changed.notify_all();
    }
}

/// A full pipe that blocks until it is read.
pub(crate) fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

fn capture(mut source: impl Read + Send + 'static) -> Arc<Captured> {
    let captured = Arc::new(Captured::default());
    let filled = captured.clone();
    thread::spawn(move || {
        let mut chunk = [0; 4096];
        loop {
            let length = source.read(&mut chunk).unwrap_or(0);
            filled.add(&chunk[..length]);
            if length == 0 {
                break;
            }
        }
    });
    captured
}
