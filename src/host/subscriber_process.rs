//! A subscriber's connection in a process of its own, which can be stopped and killed like any
//! consumer.
//!
//! The process is this program again. It connects to the runtime, and passes on what either side
//! sends. While SIGSTOP has stopped it, the runtime sees a peer that neither reads nor answers nor
//! closes: a consumer that hangs or is stopped in a debugger, and all that can be seen of one whose
//! machine is frozen, as a unix socket cannot be cut off without an end. When it is killed, the
//! kernel closes the connection with all that was not read.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, set_parent_process_death_signal};
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;

use super::container_process::ProcessHandle;
use crate::history::Signal;

/// The name of the process, by which the program knows that it is to be one.
const NAME: &str = "cri-event-conformance-subscriber";

/// The byte that the process sends to the suite once it is connected to the runtime.
const CONNECTED: u8 = b'+';

/// A process that holds a subscriber's connection. It ends when the suite closes the connection,
/// and is killed with the suite, and when this is dropped while it is stopped.
#[derive(Debug)]
pub struct SubscriberProcess {
    handle: ProcessHandle,
    is_stopped: AtomicBool,
}

impl SubscriberProcess {
    /// Starts a process that is connected to the runtime's socket, and returns it with the suite's
    /// end of the connection. Fails if the process cannot be started, or cannot connect within
    /// `bound`.
    pub async fn start(
        socket: &Path,
        bound: Duration,
    ) -> io::Result<(Self, tokio::net::UnixStream)> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0(NAME).arg(socket);
        Self::start_by(command, bound).await
    }

    async fn start_by(
        mut command: Command,
        bound: Duration,
    ) -> io::Result<(Self, tokio::net::UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        command
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // What interrupts the suite is not for it.
            .process_group(0);
        let (sender, started) = oneshot::channel();
        // It is killed at the end of the thread that has started it.
        let thread = std::thread::Builder::new().name("subscriber".to_owned());
        thread.spawn(move || match spawn(command) {
            Ok((mut child, handle)) => {
                // Without a receiver the suite's end is closed, and the process ends by itself.
                let _ = sender.send(Ok(handle));
                let _ = child.wait();
            }
            Err(fault) => drop(sender.send(Err(fault))),
        })?;
        let process = Self {
            handle: started.await.map_err(io::Error::other)??,
            is_stopped: AtomicBool::new(false),
        };
        ours.set_nonblocking(true)?;
        let mut stream = tokio::net::UnixStream::from_std(ours)?;
        let connected = tokio::time::timeout(bound, stream.read_u8()).await;
        match connected {
            Ok(Ok(CONNECTED)) => Ok((process, stream)),
            _ => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }

    /// Stops it by SIGSTOP, or continues it.
    pub fn set_running(&self, runs: bool) {
        self.is_stopped.store(!runs, Ordering::Relaxed);
        let signal = if runs { Signal::CONTINUE } else { Signal::STOP };
        // It may have ended with its connection.
        let _ = self.handle.signal(signal);
    }

    /// Kills it by SIGKILL.
    pub fn kill(&self) {
        // It may have ended with its connection.
        let _ = self.handle.signal(Signal::KILL);
    }
}

impl Drop for SubscriberProcess {
    fn drop(&mut self) {
        if self.is_stopped.load(Ordering::Relaxed) {
            self.kill();
        }
    }
}

/// Starts it, and closes the descriptors that only the process may hold.
fn spawn(mut command: Command) -> io::Result<(Child, ProcessHandle)> {
    let mut child = command.spawn()?;
    drop(command);
    match ProcessHandle::open(Pid::from_child(&child)) {
        Ok(Some(handle)) => Ok((child, handle)),
        failed => {
            child.kill()?;
            child.wait()?;
            Err(failed.err().unwrap_or(io::ErrorKind::NotFound.into()))
        }
    }
}

/// The socket to which this process is to hold a subscriber's connection, by its arguments; none
/// for a process that a user has started.
pub fn connection_to_hold(mut arguments: impl Iterator<Item = OsString>) -> Option<PathBuf> {
    let is_one = arguments.next().is_some_and(|name| name == NAME);
    let socket = arguments.next().filter(|_| is_one)?;
    Some(PathBuf::from(socket))
}

/// Holds a connection to the runtime for the suite, which is at the other end of the standard
/// input, until one of them closes it.
pub fn hold_connection(socket: &Path) -> io::Result<()> {
    // While it is stopped, it cannot notice that the suite is gone.
    set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let suite = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let runtime = UnixStream::connect(socket)?;
    (&suite).write_all(&[CONNECTED])?;
    std::thread::scope(|scope| {
        scope.spawn(|| pass(&suite, &runtime));
        pass(&runtime, &suite);
    });
    Ok(())
}

/// Forwards bytes until one side closes, and closes both then.
fn pass(mut from: &UnixStream, mut to: &UnixStream) {
    // However it ends, it is over.
    let _ = io::copy(&mut from, &mut to);
    for side in [from, to] {
        let _ = side.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixListener;

    use tokio::io::AsyncWriteExt;

    use super::*;

    const SOCKET: &str = "TEST_SOCKET_OF_THE_RUNTIME";
    /// How long the kernel may take, on a busy machine.
    const BOUND: Duration = Duration::from_secs(60);

    /// This test program again, as a subscriber's process.
    fn command(socket: &Path) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command
            .args([
                "--exact",
                "host::subscriber_process::tests::another_process_holds_a_connection",
            ])
            .env(SOCKET, socket);
        command
    }

    /// The program of [`command`]; alone it does nothing.
    #[test]
    fn another_process_holds_a_connection() {
        if let Some(socket) = std::env::var_os(SOCKET) {
            hold_connection(Path::new(&socket)).unwrap();
        }
    }

    /// A subscriber's process, the suite's end, and the runtime's.
    async fn connected() -> (SubscriberProcess, tokio::net::UnixStream, UnixStream) {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("runtime.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let (process, ours) = SubscriberProcess::start_by(command(&socket), BOUND)
            .await
            .unwrap();
        let (theirs, _) = listener.accept().unwrap();
        theirs.set_read_timeout(Some(BOUND)).unwrap();
        (process, ours, theirs)
    }

    /// Waits until its state in `/proc/PID/stat` is this one.
    async fn await_state(process: &SubscriberProcess, state: char) {
        let path = format!("/proc/{}/stat", process.handle.number());
        let began = crate::host::now();
        loop {
            let stat = std::fs::read_to_string(&path).unwrap_or_default();
            if stat
                .rsplit_once(") ")
                .is_some_and(|(_, it)| it.starts_with(state))
            {
                return;
            }
            assert!(crate::host::elapsed(began) < BOUND, "{stat}");
            tokio::task::yield_now().await;
        }
    }

    async fn stop(process: &SubscriberProcess) {
        process.set_running(false);
        await_state(process, 'T').await;
    }

    /// Waits until the other side has closed; returns how.
    fn end_of(runtime: &mut UnixStream) -> io::Result<usize> {
        runtime.set_nonblocking(false).unwrap();
        runtime.read(&mut [0; 1])
    }

    #[tokio::test]
    async fn it_forwards_both_directions_until_one_side_closes() {
        let (process, mut ours, mut theirs) = connected().await;
        ours.write_all(b"request").await.unwrap();
        let mut request = [0; 7];
        theirs.read_exact(&mut request).unwrap();
        assert_eq!(&request, b"request");
        theirs.write_all(b"answer").unwrap();
        let mut answer = [0; 6];
        ours.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"answer");
        ours.write_all(b"last").await.unwrap();
        drop(ours);
        let mut rest = Vec::new();
        theirs.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"last");
        let began = crate::host::now();
        while !process.handle.has_ended().unwrap() {
            assert!(crate::host::elapsed(began) < BOUND);
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn while_it_is_stopped_the_runtime_sees_a_peer_that_neither_reads_nor_closes() {
        let (process, mut ours, mut theirs) = connected().await;
        stop(&process).await;
        theirs.set_nonblocking(true).unwrap();
        let full = loop {
            if let Err(fault) = theirs.write(&[0; 4096]) {
                break fault;
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        process.set_running(true);
        assert_eq!(ours.read_u8().await.unwrap(), 0);
    }

    #[tokio::test]
    async fn killed_before_it_has_read_all_it_resets_the_connection() {
        let (process, _ours, mut theirs) = connected().await;
        stop(&process).await;
        theirs.write_all(b"unread").unwrap();
        process.kill();
        let end = end_of(&mut theirs).unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn dropped_while_it_is_stopped_it_is_killed() {
        let (process, ours, mut theirs) = connected().await;
        stop(&process).await;
        drop(process);
        assert_eq!(end_of(&mut theirs).unwrap(), 0);
        drop(ours);
    }

    #[tokio::test]
    async fn a_runtime_that_is_not_there_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("nobody");
        let fault = SubscriberProcess::start_by(command(&socket), BOUND).await;
        assert_eq!(fault.unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn only_a_process_of_that_name_holds_a_connection() {
        let held = |words: &[&str]| connection_to_hold(words.iter().map(OsString::from));
        assert_eq!(held(&[NAME, "/run/c.sock"]), Some("/run/c.sock".into()));
        assert_eq!(held(&[NAME]), None);
        assert_eq!(held(&["cri-event-conformance", "/run/c.sock"]), None);
        assert_eq!(held(&[]), None);
    }
}
