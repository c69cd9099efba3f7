//! Finds a running kubelet among the processes of this host: by its name, or by what it does, as
//! part of whatever program.

mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use settings::DEFAULT_ENDPOINT;
pub use settings::KubeletSettings;

use super::command::CommandError;
use super::daemon::{self, Daemon};
use super::file_tree::FileTree;

/// The names of processes that are or contain a kubelet, of at most 15 bytes.
const NAMES: [&str; 5] = [KUBELET, "kubelite", "k3s-server", "k3s-agent", "hyperkube"];
/// The name of a process that is nothing but a kubelet.
const KUBELET: &str = "kubelet";
/// The ports of a kubelet's health check, its API and its API without authentication, and of the
/// API of `edgecore`, the kubelet of `KubeEdge`.
const PORTS: [u16; 4] = [10248, 10250, 10255, 10350];
/// How much of a list of the kernel's sockets is read: those that listen come first.
const LISTENERS_BYTES: u64 = 1 << 20;

/// A process that is or contains a kubelet. The kubelet of a kind node on this host is one, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletProcess {
    daemon: Daemon,
    /// Whether it is connected to the runtime's socket; none if that is unknown.
    is_connected: Option<bool>,
}

impl Deref for KubeletProcess {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

impl KubeletProcess {
    /// Whether the process is nothing but a kubelet. k3s, for example, contains the runtime, too.
    pub fn is_kubelet_only(&self) -> bool {
        self.name == KUBELET
    }

    /// What its configuration files and flags set.
    pub fn settings(&self) -> KubeletSettings {
        KubeletSettings::read(self)
    }

    /// Whether it uses the runtime at this socket, a path of this process: whether it is connected
    /// to it, or the socket that is configured for the kubelet, as the kubelet sees it, is the same
    /// file. So the kubelet of a kind node, which has a runtime of its own, does not use the
    /// runtime of the host, but a kubelet in a container with the host's socket does. Where the
    /// configuration of a kubelet of the host cannot be read and its connections are unknown, it
    /// counts as using the runtime; one in a container only if it has the socket in the usual
    /// place, or its files cannot be seen.
    pub fn uses(&self, socket: &Path) -> bool {
        if self.is_connected == Some(true) {
            return true;
        }
        let unknown = self.is_native && self.is_connected.is_none();
        let endpoint = match self.settings().runtime_endpoint(self) {
            Some(endpoint) => endpoint,
            None if self.is_native => return unknown || self.is_kubelet_only(),
            None => DEFAULT_ENDPOINT.to_owned(),
        };
        let path = endpoint.strip_prefix("unix:").unwrap_or(&endpoint);
        let path = path.strip_prefix("//").unwrap_or(path);
        if !path.starts_with('/') {
            return self.is_native;
        }
        match self.has_socket(path, (&FileTree::default(), socket)) {
            Ok(has_socket) => has_socket,
            Err(fault) => self.is_native || fault.kind() == std::io::ErrorKind::PermissionDenied,
        }
    }

    /// Its version, such as `v1.36.1`, as its own program prints it for `--version`, which does
    /// nothing else. Only a program of the host is run, and only if no other user can have put it
    /// there.
    pub fn version(&self, host: &FileTree) -> Result<String, CommandError> {
        const BOUND: Duration = Duration::from_secs(10);
        let other = |text: String| CommandError::System(std::io::Error::other(text));
        if !self.is_native {
            return Err(other(
                "not run: it is a program of a container or of another user".into(),
            ));
        }
        let program = format!("/proc/{}/exe", self.pid);
        let printed = host.output_of_trusted(Path::new(&program), &["--version"], BOUND)?;
        let version = printed.trim().strip_prefix("Kubernetes ");
        version.map(str::to_owned).ok_or_else(|| {
            let printed = printed.trim();
            other(format!("its program printed `{printed}` for --version"))
        })
    }
}

/// The processes of a host that are or contain a kubelet, by pid; those in containers come last.
/// One that has one of these sockets, see [`socket_clients`](super::socket_clients), and listens at
/// a kubelet's port is a kubelet whatever its name.
pub fn kubelets(host: &FileTree, clients: Option<&BTreeSet<u64>>) -> Vec<KubeletProcess> {
    let is_connected = |process: &Path| {
        let clients = clients.filter(|clients| !clients.is_empty());
        clients.is_some_and(|clients| !sockets(host, process).is_disjoint(clients))
    };
    let name = |process: &Path| {
        daemon::known_name(host, process, &NAMES).or_else(|| {
            let acts_as_one = is_connected(process) && listens(host, process);
            daemon::program(host, process).filter(|_| acts_as_one)
        })
    };
    let found = daemon::find(host, name).into_iter();
    let mut found: Vec<_> = found
        .map(|daemon| {
            let process = Path::new("/proc").join(daemon.pid.to_string());
            let is_connected = clients.map(|_| is_connected(&process));
            KubeletProcess {
                daemon,
                is_connected,
            }
        })
        .collect();
    found.sort_by_key(|process| !process.is_native);
    found
}

/// The inodes of the sockets that a process has; empty if they cannot be seen.
fn sockets(host: &FileTree, process: &Path) -> BTreeSet<u64> {
    let descriptors = host.list(process.join("fd")).unwrap_or_default();
    let inodes = descriptors.iter().filter_map(|descriptor| {
        let target = host.read_link(descriptor).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?;
        inode.strip_suffix(']')?.parse().ok()
    });
    inodes.collect()
}

/// Whether a process listens at a port of a kubelet.
fn listens(host: &FileTree, process: &Path) -> bool {
    let own = sockets(host, process);
    ["net/tcp", "net/tcp6"].iter().any(|list| {
        let list = host.read_start(process.join(list), LISTENERS_BYTES);
        let list = list.unwrap_or_default();
        let list = String::from_utf8_lossy(&list);
        let mut listeners = list.lines().filter_map(listener);
        listeners.any(|(port, inode)| PORTS.contains(&port) && own.contains(&inode))
    })
}

/// The port and the inode of a socket that listens, from a line of `/proc/net/tcp`.
fn listener(line: &str) -> Option<(u16, u64)> {
    /// `TCP_LISTEN` of the kernel's `include/net/tcp_states.h`.
    const LISTENS: &str = "0A";
    let mut fields = line.split_whitespace().skip(1);
    let (_, port) = fields.next()?.rsplit_once(':')?;
    let state = fields.nth(1)?;
    let inode = fields.nth(5)?.parse().ok()?;
    let port = u16::from_str_radix(port, 16).ok()?;
    (state == LISTENS).then_some((port, inode))
}
