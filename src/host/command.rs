//! Runs the user's shell commands on this host.
//!
//! A command has its own process group and a unique variable in its environment, which its child
//! processes inherit: leftover processes are killed, as are all on a timeout or when the
//! caller stops waiting. Only processes that have cleared their environment and left the group
//! survive. A command that starts a runtime is the exception: the processes that it leaves are not
//! killed.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, PipeReader, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use super::clock::real_now;
use super::container_process::has_ended;

/// The variable that marks the processes of a command.
const MARK: &str = "CRI_EVENT_CONFORMANCE_COMMAND";

/// How much of the output of a failed command is reported: the end of it.
const OUTPUT_BYTES: usize = 2 << 10;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("it ended with {status}{}", describe(output))]
    Failed {
        status: ExitStatus,
        /// The end of its output.
        output: String,
    },
    #[error("it did not end within {bound:?} and was killed{}", describe(output))]
    Slow {
        bound: Duration,
        /// The end of its output.
        output: String,
    },
    #[error("run it: {0}")]
    System(#[from] io::Error),
}

impl CommandError {
    /// Whether it failed without a word, as a search does that finds nothing.
    pub fn is_silent_failure(&self) -> bool {
        matches!(self, Self::Failed { output, .. } if output.trim().is_empty())
    }
}

fn describe(output: &str) -> String {
    match output.trim() {
        "" => ", without output".to_owned(),
        output => format!("; its output: {output}"),
    }
}

/// A running command. Dropping it kills its process group.
#[derive(Debug)]
struct Running {
    child: Child,
    mark: String,
    ended: bool,
}

/// The end or timeout of a command, and its output.
#[derive(Debug)]
struct Watched {
    ended: bool,
    output: Tail,
}

/// The end of a command's output.
#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
    /// How many lines all of the output has.
    lines: u64,
}

/// Runs a shell command and waits for its end, at most for `bound`.
pub(super) async fn run(command: &str, bound: Duration) -> Result<(), CommandError> {
    lines(command, bound).await.map(drop)
}

/// Runs a shell command and waits for its end, at most for `bound`; returns how many lines it has
/// printed.
pub(super) async fn lines(command: &str, bound: Duration) -> Result<u64, CommandError> {
    let (mut running, output) = Running::start(command)?;
    let handle = running.handle()?;
    let watching = tokio::task::spawn_blocking(move || watch(&handle, output, bound));
    let watched = watching.await.map_err(io::Error::from)??;
    let status = running.end()?;
    let output = watched.output.text();
    match watched.ended {
        false => Err(CommandError::Slow { bound, output }),
        true if status.success() => Ok(watched.output.lines),
        true => Err(CommandError::Failed { status, output }),
    }
}

/// Runs a shell command that starts a daemon and waits for its own end, at most for `bound`.
/// Processes that it has started are not killed, except on a timeout.
pub(super) async fn start(command: &str, bound: Duration) -> Result<(), CommandError> {
    // Not a pipe, which would break for surviving processes when this process ends.
    let output = memfd_create("output", MemfdFlags::CLOEXEC).map_err(io::Error::from)?;
    let output = File::from(output);
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .process_group(0)
        .spawn()?;
    let group = i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(io::Error::from(io::ErrorKind::NotFound))?;
    let handle = pidfd_open(group, PidfdFlags::empty()).map_err(io::Error::from)?;
    let waiting = tokio::task::spawn_blocking(move || has_ended(&handle, bound));
    let ended = waiting.await.map_err(io::Error::from)??;
    if !ended {
        // The group may have ended just now.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait()?;
    let output = Tail::from_file(&output)?.text();
    match ended {
        false => Err(CommandError::Slow { bound, output }),
        true if status.success() => Ok(()),
        true => Err(CommandError::Failed { status, output }),
    }
}

/// Runs a program in its own process group, without a shell, and returns its standard output, at
/// most 1 MiB. The group is killed if it does not end within `bound`.
pub(super) fn output(
    program: &Path,
    arguments: &[&str],
    bound: Duration,
) -> Result<String, CommandError> {
    const LARGEST: u64 = 1 << 20;
    let memory = || memfd_create("output", MemfdFlags::CLOEXEC).map_err(io::Error::from);
    let (mut printed, errors) = (File::from(memory()?), File::from(memory()?));
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(printed.try_clone()?)
        .stderr(errors.try_clone()?)
        .process_group(0)
        .spawn()?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let group = group.ok_or(io::Error::from(io::ErrorKind::NotFound))?;
    let handle = pidfd_open(group, PidfdFlags::empty()).map_err(io::Error::from)?;
    let ended = has_ended(&handle, bound);
    // The group may have ended just now.
    let _ = kill_process_group(group, Signal::KILL);
    let status = child.wait()?;
    let output = Tail::from_file(&errors)?.text();
    match ended? {
        false => Err(CommandError::Slow { bound, output }),
        true if status.success() => {
            let mut bytes = Vec::new();
            printed.seek(SeekFrom::Start(0))?;
            printed.take(LARGEST).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        true => Err(CommandError::Failed { status, output }),
    }
}

impl Running {
    fn start(command: &str) -> io::Result<(Self, PipeReader)> {
        let (output, input) = io::pipe()?;
        let mark = uuid::Uuid::new_v4().to_string();
        let child = Command::new("sh")
            .args(["-c", command])
            .env(MARK, &mark)
            .stdin(Stdio::null())
            .stdout(input.try_clone()?)
            .stderr(input)
            .process_group(0)
            .spawn()?;
        let ended = false;
        let mark = format!("{MARK}={mark}");
        Ok((Self { child, mark, ended }, output))
    }

    fn handle(&self) -> io::Result<OwnedFd> {
        let handle = self.pid().map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        Ok(handle.ok_or(io::ErrorKind::NotFound)??)
    }

    /// Kills the rest of its process group, and waits for its end. Until then the pid cannot be
    /// reused.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(group) = self.pid() {
            // The group may have ended already.
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.ended = true;
        let status = self.child.wait();
        end_marked(&self.mark);
        status
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()).ok()?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            // There is no caller to handle the error.
            let _ = self.end();
        }
    }
}

/// Kills all processes with this mark and their new children, for a limited number of rounds.
fn end_marked(mark: &str) {
    const ROUNDS: u32 = 16;
    /// The most time that the kernel needs on an overloaded node.
    const END: Duration = Duration::from_secs(5);
    for _ in 0..ROUNDS {
        let found = marked(mark);
        if found.is_empty() {
            return;
        }
        for handle in &found {
            // It may have ended by itself.
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
        for handle in &found {
            let _ = has_ended(handle, END);
        }
    }
}

/// The processes with this mark. Each handle is opened before the environment is read.
fn marked(mark: &str) -> Vec<OwnedFd> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    let pids = entries.filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        Pid::from_raw(pid)
    });
    let held = pids.filter_map(|pid| {
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
        let mut entries = environment.split(|byte| *byte == 0);
        let is_marked = entries.any(|entry| entry == mark.as_bytes());
        is_marked.then_some(handle)
    });
    held.collect()
}

/// Reads the output of a command until it has ended or the timeout is over.
fn watch(handle: &OwnedFd, mut output: PipeReader, bound: Duration) -> io::Result<Watched> {
    let began = real_now();
    let mut tail = Tail::default();
    let mut open = true;
    loop {
        let left = bound.saturating_sub(real_now().since(began));
        let wait = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut watched = vec![PollFd::new(handle, PollFlags::IN)];
        if open {
            watched.push(PollFd::new(&output, PollFlags::IN));
        }
        match poll(&mut watched, Some(&wait)) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(fault) => return Err(fault.into()),
        }
        let ended = !watched[0].revents().is_empty();
        let says = watched.get(1).is_some_and(|it| !it.revents().is_empty());
        if says && !left.is_zero() {
            open = tail.take(&mut output)?;
        } else if ended || left.is_zero() {
            return Ok(Watched {
                ended,
                output: tail,
            });
        }
    }
}

impl Tail {
    fn from_file(mut file: &File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT_BYTES as u64)))?;
        let mut tail = Self::default();
        file.take(OUTPUT_BYTES as u64)
            .read_to_end(&mut tail.bytes)?;
        Ok(tail)
    }

    /// Reads once; returns whether there may be more.
    fn take(&mut self, output: &mut PipeReader) -> io::Result<bool> {
        let mut read = [0; 1024];
        let length = output.read(&mut read)?;
        let read = &read[..length];
        for byte in read {
            self.lines += u64::from(*byte == b'\n');
        }
        self.bytes.extend_from_slice(read);
        let surplus = self.bytes.len().saturating_sub(OUTPUT_BYTES);
        self.bytes.drain(..surplus);
        Ok(length > 0)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}
