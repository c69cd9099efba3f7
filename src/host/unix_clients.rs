//! Finds the clients of a unix socket, by the kernel's list of sockets, see `sock_diag(7)`.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

use super::file_tree::FileTree;

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

/// A unix socket of this network namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Socket {
    state: u8,
    /// The inode and the device of the file that it, or the listener that accepted it, is bound to.
    file: Option<(u32, u32)>,
    /// The inode of the socket that it is connected to.
    peer: Option<u32>,
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
        if read(&part[..received], &mut sockets)? {
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
fn read(mut part: &[u8], sockets: &mut Vec<Socket>) -> io::Result<bool> {
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
    fn a_file_that_nobody_listens_at_has_no_known_clients() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert_eq!(socket_clients(&path), None);
    }

    #[test]
    fn a_message_that_is_cut_is_an_error() {
        let mut sockets = Vec::new();
        for part in [&[9, 0, 0][..], &[200, 0, 0, 0, 3, 0], &[4, 0, 0, 0]] {
            assert!(read(part, &mut sockets).is_err(), "{part:?}");
        }
        let mut done = 16_u32.to_ne_bytes().to_vec();
        done.extend(NLMSG_DONE.to_ne_bytes());
        done.extend([0; 10]);
        assert!(read(&done, &mut sockets).unwrap());
        assert_eq!(sockets, []);
        // One without attributes, and one with an attribute that is cut.
        let mut short = vec![1, 1, CONNECTED, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(socket(&short).map(|it| it.peer), Some(None));
        short.extend([8, 0, 2, 0, 9]);
        assert_eq!(socket(&short).map(|it| it.peer), Some(None));
        assert_eq!(socket(&short[..2]), None);
    }
}
