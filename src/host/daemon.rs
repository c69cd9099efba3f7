//! Finds daemons among the processes of a host, and the clients of a unix socket by the kernel's
//! list of sockets, see `sock_diag(7)`.
//!
//! Every user can give a process a name and arguments, and run a program of root that has the
//! setuid bit: only a process whose real, effective, saved and file system user are trusted is
//! believed, and its name is that of its program's file.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

use super::file_tree::FileTree;
use crate::files::is_trusted_user;

/// How long the kernel may take for a part of its list, which it makes at once.
const BOUND: Duration = Duration::from_secs(5);
/// The maximum number of parts: a part has some hundred sockets.
const PARTS: usize = 10_000;
/// `struct nlmsghdr` of `linux/netlink.h`, in bytes.
const HEADER: usize = 16;
/// `struct unix_diag_msg` of `linux/unix_diag.h`, in bytes.
const SOCKET: usize = 16;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `TCP_ESTABLISHED`, which all families share.
const CONNECTED: u8 = 1;
const LISTENS: u8 = 10;
const UNIX_DIAG_VFS: u16 = 1;
const UNIX_DIAG_PEER: u16 = 2;

/// A running process of root, or of the user of this process. A process in a container is visible
/// as well if the container is on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Daemon {
    pub pid: u32,
    pub name: String,
    /// Its arguments, without the program.
    pub arguments: Vec<String>,
    /// Its systemd unit, such as `kubelet.service`; none if it is not a service of this host's
    /// systemd.
    pub unit: Option<String>,
    /// The files as it sees them.
    pub files: FileTree,
    /// Its working directory, as it calls it; `/` if that cannot be read.
    pub directory: PathBuf,
    /// Whether it has the host's root directory. Any container can run a program with the name of
    /// a daemon, and so its own claims are not trusted.
    pub is_native: bool,
}

impl Daemon {
    /// The values of a flag, by its name without hyphens, in their order.
    pub fn flag<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let indexed = self.arguments.iter().enumerate();
        indexed.filter_map(move |(place, argument)| {
            let rest = argument.strip_prefix("--")?.strip_prefix(name)?;
            match rest {
                "" => self.arguments.get(place + 1).map(String::as_str),
                _ => rest.strip_prefix('='),
            }
        })
    }

    /// A variable of its environment, as it was when the process started; none if it cannot be
    /// read.
    pub fn variable(&self, host: &FileTree, name: &str) -> Option<String> {
        let environment = host.read(format!("/proc/{}/environ", self.pid)).ok()?;
        let mut variables = environment.split('\0').filter_map(|it| it.split_once('='));
        let (_, value) = variables.find(|(its_name, _)| *its_name == name)?;
        Some(value.to_owned())
    }

    /// Whether its name for a socket and this path of another tree are the same socket.
    pub fn has_socket(
        &self,
        path: impl AsRef<Path>,
        (other, other_path): (&FileTree, &Path),
    ) -> std::io::Result<bool> {
        let theirs = other.identify(other_path)?;
        match self.files.identify(path.as_ref()) {
            Ok(own) => Ok(own == theirs),
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(fault) => Err(fault),
        }
    }
}

/// A unix socket of this network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Socket {
    state: u8,
    /// The inode and the device of the file that it, or the listener that accepted it, is bound to.
    file: Option<(u32, u32)>,
    /// The inode of the socket that it is connected to.
    peer: Option<u32>,
}

/// The processes of a host with one of these names, of at most 15 bytes each, by pid.
pub fn daemons(host: &FileTree, names: &[&str]) -> Vec<Daemon> {
    find(host, |process| known_name(host, process, names))
}

/// The processes to which this gives a name, by their paths such as `/proc/812`; by pid.
pub(super) fn find(host: &FileTree, name: impl Fn(&Path) -> Option<String>) -> Vec<Daemon> {
    let entries = host.list("/proc").unwrap_or_default();
    let processes = entries.iter();
    let mut found: Vec<_> = processes
        .filter_map(|process| {
            let pid = pid_of(process)?;
            read(
                host,
                process,
                pid,
                name(process).filter(|_| is_trusted(host, process))?,
            )
        })
        .collect();
    found.sort_by_key(|process| process.pid);
    found
}

/// Which of these names a process has: that of its program's file, or its own if that begins with
/// the file's, as `k3s-server` does, or if the file cannot be seen.
pub(super) fn known_name(host: &FileTree, process: &Path, names: &[&str]) -> Option<String> {
    let program = program(host, process);
    let own = || {
        let own = host.read(process.join("comm")).ok()?;
        let own = own.trim_end().to_owned();
        let fits = program
            .as_ref()
            .is_none_or(|program| own.starts_with(program));
        fits.then_some(own)
    };
    let known = |name: &String| names.contains(&name.as_str());
    program
        .clone()
        .filter(known)
        .or_else(|| own().filter(known))
}

/// The name of the file of a process's program; none if it cannot be read.
pub(super) fn program(host: &FileTree, process: &Path) -> Option<String> {
    let file = host.read_link(process.join("exe")).ok()?;
    let name = file.file_name()?.to_str()?;
    // It was upgraded since.
    Some(name.strip_suffix(" (deleted)").unwrap_or(name).to_owned())
}

/// The systemd unit of each process of a host whose cgroup can be read, by pid.
pub(super) fn units(host: &FileTree) -> impl Iterator<Item = (u32, String)> {
    let entries = host.list("/proc").unwrap_or_default();
    let host = host.clone();
    entries.into_iter().filter_map(move |process| {
        let pid = pid_of(&process)?;
        Some((pid, unit(&host.read(process.join("cgroup")).ok()?)?))
    })
}

fn pid_of(process: &Path) -> Option<u32> {
    process.file_name()?.to_str()?.parse().ok()
}

/// Whether all users of a process are trusted: its real, effective, saved and file system user.
fn is_trusted(host: &FileTree, process: &Path) -> bool {
    let status = host.read(process.join("status")).unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let mut users = users.unwrap_or_default().split_whitespace().peekable();
    let is_known = users.peek().is_some();
    is_known && users.all(|user| user.parse().is_ok_and(is_trusted_user))
}

/// The daemon at this path of `/proc`; none if it has ended.
fn read(host: &FileTree, process: &Path, pid: u32, name: String) -> Option<Daemon> {
    let command = host.read(process.join("cmdline")).ok()?;
    // An argument may be empty. A zombie has none, not even a program.
    let mut words = command.strip_suffix('\0').unwrap_or(&command).split('\0');
    words.next().filter(|program| !program.is_empty())?;
    let cgroups = host.read(process.join("cgroup")).unwrap_or_default();
    let files = FileTree::at(host.outside(&process.join("root")));
    let root = Path::new("/");
    let is_native = matches!((files.identify(root), host.identify(root)), (Ok(a), Ok(b)) if a == b);
    let directory = host.read_link(process.join("cwd"));
    Some(Daemon {
        pid,
        name,
        arguments: words.map(str::to_owned).collect(),
        unit: unit(&cgroups).filter(|_| is_native),
        files,
        directory: directory.unwrap_or_else(|_| root.to_owned()),
        is_native,
    })
}

/// The service of this host's systemd that a process belongs to, by its `/proc/PID/cgroup`.
///
/// It is in systemd's own hierarchy: `name=systemd` with cgroup v1 and in hybrid mode, else v2's.
/// The service's cgroup is below slices only: a cgroup below a scope or another service, as in a
/// container or in a user's session, is not a unit of this systemd.
fn unit(cgroups: &str) -> Option<String> {
    let path_in = |hierarchy: &str| {
        let mut lines = cgroups.lines().filter_map(|line| line.split_once(':'));
        lines.find_map(|(_, rest)| {
            let (controllers, path) = rest.split_once(':')?;
            (controllers == hierarchy).then_some(path)
        })
    };
    let path = path_in("name=systemd").or_else(|| path_in(""))?;
    // A cgroup outside of this process's cgroup namespace begins with `..`.
    let is_kind = |part: &str, kind: &str| part.rsplit_once('.').is_some_and(|(_, it)| it == kind);
    let unit = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != "..")
        .find(|part| !is_kind(part, "slice"))?;
    let is_service = is_kind(unit, "service") && !unit.starts_with("user@");
    is_service.then(|| unit.to_owned())
}

/// The inodes of the sockets that are connected to the one at this path; none if the kernel does
/// not list that one, as in another network namespace than its server's.
pub fn socket_clients(socket: &Path) -> Option<BTreeSet<u64>> {
    let (device, inode) = FileTree::default().identify(socket).ok()?;
    let device = rustix::fs::major(device) << 20 | rustix::fs::minor(device);
    #[expect(clippy::cast_possible_truncation, reason = "the kernel cuts it, too")]
    let file = Some((inode as u32, device));
    let sockets = list().ok()?;
    let bound = || sockets.iter().filter(|socket| socket.file == file);
    let listens = bound().any(|socket| socket.state == LISTENS);
    let peers = bound().filter_map(|accepted| accepted.peer);
    listens.then(|| peers.map(u64::from).collect())
}

fn list() -> io::Result<Vec<Socket>> {
    let family = AddressFamily::NETLINK;
    let kernel = socket_with(
        family,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    set_socket_timeout(&kernel, Timeout::Recv, Some(BOUND))?;
    let address = SocketAddrNetlink::new(0, 0);
    sendto(&kernel, &request(), SendFlags::empty(), &address)?;
    let mut sockets = Vec::new();
    let mut part = vec![0; 64 << 10];
    for _ in 0..PARTS {
        let (received, _) = recv(&kernel, &mut *part, RecvFlags::empty())?;
        if read_part(&part[..received], &mut sockets)? {
            return Ok(sockets);
        }
    }
    Err(io::Error::other(
        "the kernel's list of sockets does not end",
    ))
}

/// Asks for all that listen or are connected, with their files and peers.
fn request() -> Vec<u8> {
    const NLM_F_REQUEST: u16 = 1;
    const NLM_F_DUMP: u16 = 0x300;
    const UDIAG_SHOW_VFS: u32 = 2;
    const UDIAG_SHOW_PEER: u32 = 4;
    let states = 1_u32 << CONNECTED | 1 << LISTENS;
    let mut request = 40_u32.to_ne_bytes().to_vec();
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    // No sequence number, and the kernel's address; `AF_UNIX`, and any protocol.
    request.extend([0; 8]);
    request.extend([1, 0, 0, 0]);
    // Any inode and cookie.
    for word in [
        states,
        0,
        UDIAG_SHOW_VFS | UDIAG_SHOW_PEER,
        u32::MAX,
        u32::MAX,
    ] {
        request.extend(word.to_ne_bytes());
    }
    request
}

/// Reads the messages of a part; returns whether the list ends with it.
fn read_part(mut part: &[u8], sockets: &mut Vec<Socket>) -> io::Result<bool> {
    let cut = || io::Error::other("a message of the kernel is cut");
    while !part.is_empty() {
        let length = word(part, 0).ok_or_else(cut)? as usize;
        let message = part
            .get(..length)
            .filter(|it| it.len() >= HEADER)
            .ok_or_else(cut)?;
        match half(message, 4) {
            Some(NLMSG_DONE) => return Ok(true),
            Some(NLMSG_ERROR) => {
                let code = word(message, HEADER).unwrap_or_default().cast_signed();
                return Err(io::Error::from_raw_os_error(code.wrapping_neg()));
            }
            Some(SOCK_DIAG_BY_FAMILY) => sockets.extend(socket(&message[HEADER..])),
            _ => {}
        }
        part = part.get(aligned(length)..).unwrap_or_default();
    }
    Ok(false)
}

/// A socket, from its message without the header.
fn socket(message: &[u8]) -> Option<Socket> {
    let mut socket = Socket {
        state: *message.get(2)?,
        ..Socket::default()
    };
    let mut attributes = message.get(SOCKET..)?;
    while let (Some(length), Some(kind)) = (half(attributes, 0), half(attributes, 2)) {
        let length = usize::from(length).max(4);
        match kind {
            UNIX_DIAG_VFS => socket.file = Some((word(attributes, 4)?, word(attributes, 8)?)),
            UNIX_DIAG_PEER => socket.peer = word(attributes, 4),
            _ => {}
        }
        attributes = attributes.get(aligned(length)..).unwrap_or_default();
    }
    Some(socket)
}

/// Messages and attributes begin at multiples of four bytes.
fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn word(bytes: &[u8], place: usize) -> Option<u32> {
    let bytes = bytes.get(place..place + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn half(bytes: &[u8], place: usize) -> Option<u16> {
    let bytes = bytes.get(place..place + 2)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[track_caller]
    fn check(cgroups: &str, expect: Option<&str>) {
        assert_eq!(unit(cgroups).as_deref(), expect, "{cgroups}");
    }

    #[test]
    fn the_unit_is_found_in_each_mode_of_cgroups() {
        let kubelet = Some("kubelet.service");
        check("0::/system.slice/kubelet.service\n", kubelet);
        check(
            "12:cpu:/\n1:name=systemd:/system.slice/kubelet.service\n",
            kubelet,
        );
        check(
            "1:name=systemd:/system.slice/kubelet.service/child\n0::/other\n",
            kubelet,
        );
        check("0::/kubelet.slice/kubelet.service\n", kubelet);
        check("0::/../../system.slice/kubelet.service\n", kubelet);
    }

    #[test]
    fn a_unit_of_another_systemd_is_none() {
        for cgroups in [
            "0::/\n",
            "0::/system.slice/docker-6f1c.scope/kubelet.slice/kubelet.service\n",
            "0::/user.slice/user-0.slice/user@0.service/app.slice/kubelet.service\n",
            "0::/user.slice/user-0.slice/session-1.scope\n",
            "2:cpu:/system.slice/kubelet.service\n",
        ] {
            check(cgroups, None);
        }
    }

    fn inode(stream: &UnixStream) -> u64 {
        let link = format!("/proc/self/fd/{}", stream.as_raw_fd());
        let target = std::fs::read_link(link).unwrap();
        let inode = target.to_str().unwrap().strip_prefix("socket:[").unwrap();
        inode.strip_suffix(']').unwrap().parse().unwrap()
    }

    #[test]
    fn the_clients_of_a_socket_are_those_that_are_connected_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("a.sock"), folder.path().join("b.sock"));
        let at_one = UnixListener::bind(&one).unwrap();
        let at_other = UnixListener::bind(&other).unwrap();
        assert_eq!(socket_clients(&one), Some(BTreeSet::new()));
        let to_one = UnixStream::connect(&one).unwrap();
        let to_other = UnixStream::connect(&other).unwrap();
        let _accepted = (at_one.accept().unwrap(), at_other.accept().unwrap());
        assert_eq!(socket_clients(&one), Some([inode(&to_one)].into()));
        assert_eq!(socket_clients(&other), Some([inode(&to_other)].into()));
        drop(to_one);
        assert_eq!(socket_clients(&folder.path().join("none.sock")), None);
    }

    #[test]
    fn a_file_without_listener_has_no_known_clients() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert_eq!(socket_clients(&path), None);
    }

    #[test]
    fn a_message_that_is_cut_is_an_error() {
        let mut sockets = Vec::new();
        for part in [&[9, 0, 0][..], &[200, 0, 0, 0, 3, 0], &[4, 0, 0, 0]] {
            assert!(read_part(part, &mut sockets).is_err(), "{part:?}");
        }
        let mut done = 16_u32.to_ne_bytes().to_vec();
        done.extend(NLMSG_DONE.to_ne_bytes());
        done.extend([0; 10]);
        assert!(read_part(&done, &mut sockets).unwrap());
        assert_eq!(sockets, []);
        // One without attributes, and one with an attribute that is cut.
        let mut short = vec![1, 1, CONNECTED, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(socket(&short).map(|it| it.peer), Some(None));
        short.extend([8, 0, 2, 0, 9]);
        assert_eq!(socket(&short).map(|it| it.peer), Some(None));
        assert_eq!(socket(&short[..2]), None);
    }
}
