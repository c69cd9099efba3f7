//! Finds the process of the runtime by its socket, reads its CPU time, and restarts a runtime that
//! this process has stopped, however the process ends.
//!
//! The kernel knows which process began to listen on a socket (`SO_PEERCRED`, see `unix(7)`). It is
//! the runtime's only if it still holds that socket: systemd and supervisors listen for others.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};
use tokio::net::UnixStream;

use super::command::CommandError;
use super::container_process::{ProcessError, ProcessHandle};
use super::file_tree::FileTree;
use crate::files::is_trusted_user;

/// The unit of times in `/proc/PID/stat`: `USER_HZ`, 100 a second on every architecture that the
/// suite is built for.
const TICK: Duration = Duration::from_millis(10);
/// The command that starts the runtime, while it is stopped.
static STOPPED: Mutex<Option<String>> = Mutex::new(None);

/// Why the process of the runtime cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeProcessError {
    #[error("connect to {0}: {1}")]
    Connect(PathBuf, #[source] io::Error),
    /// The process has no pid here, or another one than where it runs.
    #[error("the process that serves {0} is not in the pid namespace of this one")]
    OtherNamespace(PathBuf),
    #[error("process 1 listens on {0}: socket activation hides which process serves it")]
    SocketActivated(PathBuf),
    #[error("this process itself serves {0}")]
    Own(PathBuf),
    /// The process that began to listen does not hold the socket now.
    #[error("process {pid} began to listen on {socket} and does not hold it now")]
    NotHeld { pid: u32, socket: PathBuf },
    #[error("process {0}, which served the socket, has ended")]
    Ended(u32),
    /// An error of the system, such as one of permission.
    #[error("look at process {0}, which serves the socket: {1}")]
    System(u32, #[source] io::Error),
}

/// The process of a runtime, with a handle on it, so that a reused pid does no harm.
#[derive(Debug)]
pub struct RuntimeProcess(ProcessHandle);

impl RuntimeProcess {
    /// The process that serves the socket at this path. It is in the pid namespace of this process
    /// and neither this process nor process 1.
    pub async fn find(socket: &Path) -> Result<Self, RuntimeProcessError> {
        let connect = |fault| RuntimeProcessError::Connect(socket.to_owned(), fault);
        let connection = UnixStream::connect(socket).await.map_err(connect)?;
        let pid = connection.peer_cred().map_err(connect)?.pid();
        // 0 stands for a process that is not visible.
        let pid = pid
            .and_then(Pid::from_raw)
            .ok_or_else(|| RuntimeProcessError::OtherNamespace(socket.to_owned()))?;
        if pid.is_init() {
            return Err(RuntimeProcessError::SocketActivated(socket.to_owned()));
        }
        if pid == rustix::process::getpid() {
            return Err(RuntimeProcessError::Own(socket.to_owned()));
        }
        let number = pid.as_raw_nonzero().get().unsigned_abs();
        let system = |fault| RuntimeProcessError::System(number, fault);
        let handle = ProcessHandle::open(pid).map_err(system)?;
        let found = Self(handle.ok_or(RuntimeProcessError::Ended(number))?);
        // All that is read from here on is of the process of the handle, if that lives afterwards.
        let shares_pids = shares_pid_namespace(number).map_err(system)?;
        let holds = holds_listener(number, socket).map_err(system)?;
        found.check_alive()?;
        match (shares_pids, holds) {
            (true, true) => Ok(found),
            (true, false) => Err(RuntimeProcessError::NotHeld {
                pid: number,
                socket: socket.to_owned(),
            }),
            (false, _) => Err(RuntimeProcessError::OtherNamespace(socket.to_owned())),
        }
    }

    pub fn pid(&self) -> u32 {
        self.0.number()
    }

    /// Checks that it has not ended, so that facts read by its pid before are its own.
    pub fn check_alive(&self) -> Result<(), RuntimeProcessError> {
        let pid = self.pid();
        match self.0.has_ended() {
            Ok(false) => Ok(()),
            Ok(true) => Err(RuntimeProcessError::Ended(pid)),
            Err(fault) => Err(RuntimeProcessError::System(pid, fault)),
        }
    }

    /// Kills it and waits for its end, at most this long; returns its pid. Fails if it cannot be
    /// killed, or does not end.
    pub async fn kill(self, bound: Duration) -> Result<u32, ProcessError> {
        self.0.kill(bound).await
    }

    /// The CPU time that it has used, in steps of 10 ms; that of its children is not included.
    pub fn cpu_time(&self) -> io::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()))?;
        self.check_alive().map_err(io::Error::other)?;
        parse(&stat).ok_or_else(|| io::Error::other("/proc/PID/stat has no CPU time"))
    }
}

/// The user's commands for a shell that stop, kill and start the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeCommands {
    /// Stops it, and returns once it has ended.
    pub stop: String,
    /// Kills it by SIGKILL, and returns once it has ended; if absent, the process that serves the
    /// runtime's socket is killed.
    pub kill: Option<String>,
    /// Starts it, and returns.
    pub start: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeEnd {
    Stop,
    /// It is killed by SIGKILL.
    Kill,
}

/// Why the runtime was not ended.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeEndError {
    #[error("the command that ends the runtime: {0}")]
    Command(#[from] CommandError),
    #[error("find the process of the runtime to kill it: {0}")]
    Unknown(#[from] RuntimeProcessError),
    #[error("kill the process of the runtime: {0}")]
    Lives(#[from] ProcessError),
    /// There is no socket by which its process is found.
    #[error("the runtime has no socket by which its process is found")]
    NoSocket,
}

/// Whether the process that began to listen on a socket is in the pid namespace of this one, or in
/// one below: only then are the other processes of its host seen here, too.
pub async fn is_server_visible(socket: &Path) -> bool {
    server(socket).await.is_some()
}

/// Whether that process is of root or of the user of this one.
pub async fn is_server_trusted(socket: &Path) -> bool {
    let connection = UnixStream::connect(socket).await;
    let server = connection.and_then(|connection| connection.peer_cred());
    server.is_ok_and(|server| is_trusted_user(server.uid()))
}

/// Whether that process is in the pid namespace of this one. It is not if that cannot be read.
pub(super) async fn shares_pids(socket: &Path) -> bool {
    let server = server(socket).await;
    server.is_some_and(|pid| shares_pid_namespace(pid).unwrap_or(false))
}

/// The process that began to listen on a socket; none if it has no pid here.
async fn server(socket: &Path) -> Option<u32> {
    let connection = UnixStream::connect(socket).await.ok()?;
    let pid = connection.peer_cred().ok()?.pid()?;
    u32::try_from(pid).ok().filter(|pid| *pid > 0)
}

fn shares_pid_namespace(pid: u32) -> io::Result<bool> {
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/pid"));
    Ok(namespace(&pid.to_string())? == namespace("self")?)
}

/// Whether a process holds a socket that listens at this path, by any of its names.
pub(super) fn holds_listener(pid: u32, socket: &Path) -> io::Result<bool> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let wanted = FileTree::default().identify(socket)?;
    let theirs = FileTree::at(process.join("root"));
    let listed = std::fs::read_to_string(process.join("net/unix"))?;
    let listeners: Vec<_> = listed
        .lines()
        .filter_map(listener)
        .filter(|(_, path)| theirs.identify(path).is_ok_and(|found| found == wanted))
        .map(|(inode, _)| PathBuf::from(format!("socket:[{inode}]")))
        .collect();
    for descriptor in std::fs::read_dir(process.join("fd"))? {
        // One that is closed meanwhile is not the listener.
        let target = std::fs::read_link(descriptor?.path());
        if target.is_ok_and(|target| listeners.contains(&target)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The inode and the path of a listening socket, from a line of `/proc/net/unix`; none for other
/// sockets and those without an absolute path.
fn listener(line: &str) -> Option<(u64, &Path)> {
    /// `__SO_ACCEPTCON` in the kernel's `include/linux/net.h`.
    const LISTENS: u32 = 1 << 16;
    let path = line.find('/').map(|start| &line[start..])?;
    let mut fields = line.split_whitespace().skip(3);
    let flags = u32::from_str_radix(fields.next()?, 16).ok()?;
    let inode = fields.nth(2)?.parse().ok()?;
    (flags & LISTENS != 0).then_some((inode, Path::new(path)))
}

/// The CPU time that this process has used.
pub fn own_cpu_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

/// Fields 14 and 15 of `/proc/PID/stat`: the time in user mode and in the kernel.
fn parse(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut times = fields.split(' ').skip(11).map(str::parse::<u32>);
    let (user, kernel) = (times.next()?.ok()?, times.next()?.ok()?);
    TICK.checked_mul(user.checked_add(kernel)?)
}

/// Notes the command that starts the runtime when it may be stopped from now on; `None` when it is
/// running again.
pub(super) fn note(start: Option<&str>) {
    *STOPPED.lock().unwrap_or_else(PoisonError::into_inner) = start.map(str::to_owned);
}

/// Starts the runtime if this process has stopped it, without waiting; returns the command. Used
/// when the process is about to exit.
pub fn start_stopped_runtime() -> Option<String> {
    let command = STOPPED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()?;
    let begun = Command::new("sh")
        .args(["-c", &command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    // The caller prints the command; errors show when the runtime does not come back.
    drop(begun);
    Some(command)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    use std::process::{Child, Command, Stdio};

    use rustix::process::Uid;

    use super::*;
    use crate::files::tests::{STRANGER, without_another_user};
    use crate::host::{elapsed, now};

    const SERVE: &str = "TEST_SOCKET_TO_SERVE";
    const BOUND: Duration = Duration::from_secs(60);

    /// This test program again, which serves a socket until it is killed or its input ends.
    struct Server {
        child: Child,
    }

    impl Server {
        fn new(socket: &Path) -> Self {
            let child = Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "host::runtime_process::tests::another_process_serves",
                ])
                .env(SERVE, socket)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let began = now();
            while std::os::unix::net::UnixStream::connect(socket).is_err() {
                assert!(elapsed(began) < BOUND, "the socket is not served");
                std::thread::yield_now();
            }
            Self { child }
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }

    /// The program of [`Server`]; alone it does nothing.
    #[test]
    fn another_process_serves() {
        if let Some(socket) = std::env::var_os(SERVE) {
            let _listener = UnixListener::bind(socket).unwrap();
            io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
        }
    }

    #[tokio::test]
    async fn the_process_is_found_by_its_socket_and_killed_by_its_handle() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("a.sock");
        let server = Server::new(&socket);
        let link = folder.path().join("link.sock");
        std::os::unix::fs::symlink(&socket, &link).unwrap();
        for path in [&socket, &link] {
            let found = RuntimeProcess::find(path).await.unwrap();
            assert_eq!(found.pid(), server.child.id());
            found.check_alive().unwrap();
        }
        let found = RuntimeProcess::find(&socket).await.unwrap();
        let other = RuntimeProcess::find(&socket).await.unwrap();
        assert_eq!(found.kill(BOUND).await.unwrap(), server.child.id());
        assert!(matches!(
            other.check_alive(),
            Err(RuntimeProcessError::Ended(_))
        ));
        let gone = RuntimeProcess::find(&socket).await.unwrap_err();
        assert!(matches!(gone, RuntimeProcessError::Connect(..)), "{gone}");
    }

    #[tokio::test]
    async fn this_process_is_no_runtime() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("a.sock");
        let _listener = UnixListener::bind(&socket).unwrap();
        let own = RuntimeProcess::find(&socket).await.unwrap_err();
        assert!(matches!(own, RuntimeProcessError::Own(_)), "{own}");
        let nothing = folder.path().join("b.sock");
        assert!(is_server_visible(&socket).await && shares_pids(&socket).await);
        assert!(is_server_trusted(&socket).await && !is_server_trusted(&nothing).await);
        assert!(!is_server_visible(&nothing).await && !shares_pids(&nothing).await);
    }

    #[tokio::test]
    async fn a_runtime_of_another_user_is_not_trusted() {
        if !rustix::process::geteuid().is_root() {
            return without_another_user(&rustix::process::geteuid());
        }
        // Open to all, wherever the tests have their temporary files.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        let socket = folder.path().join("a.sock");
        let theirs = socket.clone();
        // Only this thread becomes another user.
        let listening = std::thread::spawn(move || {
            rustix::thread::set_thread_uid(Uid::from_raw(STRANGER))?;
            Ok::<_, rustix::io::Errno>(UnixListener::bind(theirs).unwrap())
        });
        let _listener = match listening.join().unwrap() {
            Ok(listener) => listener,
            Err(fault) => return without_another_user(&fault),
        };
        assert!(!is_server_trusted(&socket).await);
    }

    #[test]
    fn a_process_that_has_passed_on_its_socket_does_not_hold_it() {
        let folder = tempfile::tempdir().unwrap();
        let (mine, theirs) = (folder.path().join("a.sock"), folder.path().join("b.sock"));
        let _listener = UnixListener::bind(&mine).unwrap();
        let server = Server::new(&theirs);
        let holds = |pid, socket: &Path| holds_listener(pid, socket).unwrap();
        assert!(holds(std::process::id(), &mine));
        assert!(holds(server.child.id(), &theirs));
        assert!(!holds(std::process::id(), &theirs));
        assert!(!holds(server.child.id(), &mine));
    }

    #[test]
    fn only_a_listening_socket_with_a_path_is_a_listener() {
        let line = "0000000000000000: 00000002 00000000 00010000 0001 01 812 /run/a b.sock";
        assert_eq!(listener(line), Some((812, Path::new("/run/a b.sock"))));
        for line in [
            "Num       RefCount Protocol Flags    Type St Inode Path",
            "0000000000000000: 00000003 00000000 00000000 0001 03 812 /run/a.sock",
            "0000000000000000: 00000002 00000000 00010000 0001 01 812 @abstract",
            "0000000000000000: 00000003 00000000 00000000 0001 03 812",
        ] {
            assert_eq!(listener(line), None, "{line}");
        }
    }

    #[test]
    fn user_and_kernel_time_are_added_whatever_the_name_of_the_program() {
        let fields = "S 1 7 7 0 -1 4194560 1 2 3 4 250 31 5 6 20 0 9 0 100";
        let used = parse(&format!("7 (a) b) {fields}"));
        assert_eq!(used, Some(Duration::from_millis(2_810)));
        assert_eq!(parse("7 (a) S 1"), None);
    }

    #[test]
    fn work_uses_cpu_time() {
        let before = own_cpu_time();
        let mut sum = 0_u64;
        while own_cpu_time() == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(own_cpu_time() > before);
    }

    #[test]
    fn a_runtime_that_was_stopped_is_started_once() {
        let folder = tempfile::tempdir().unwrap();
        let started = folder.path().join("started");
        let command = format!("echo >{}", started.display());
        note(Some("false"));
        note(None);
        assert_eq!(start_stopped_runtime(), None);
        note(Some(&command));
        assert_eq!(start_stopped_runtime(), Some(command));
        assert_eq!(start_stopped_runtime(), None);
        let began = now();
        while !started.exists() {
            assert!(elapsed(began).as_secs() < 60, "it was not started");
            std::thread::yield_now();
        }
    }
}
