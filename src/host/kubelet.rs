//! Finds a running kubelet among the processes of this host.

mod settings;
#[cfg(test)]
mod tests;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use settings::DEFAULT_ENDPOINT;
pub use settings::{KubeletSettings, Setting, UnusableFile};

use super::command::CommandError;
use super::daemon::{Daemon, daemons};
use super::file_tree::FileTree;

/// The names of processes that are or contain a kubelet, of at most 15 bytes.
const NAMES: [&str; 5] = [KUBELET, "kubelite", "k3s-server", "k3s-agent", "hyperkube"];
/// The name of a process that is nothing but a kubelet.
const KUBELET: &str = "kubelet";

/// A process that is or contains a kubelet. The kubelet of a kind node on this host is one, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeletProcess(Daemon);

impl Deref for KubeletProcess {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.0
    }
}

impl KubeletProcess {
    /// Whether the process is nothing but a kubelet. k3s, for example, contains the runtime, too.
    #[must_use]
    pub fn is_kubelet_only(&self) -> bool {
        self.name == KUBELET
    }

    /// What its configuration files and flags set.
    #[must_use]
    pub fn settings(&self) -> KubeletSettings {
        KubeletSettings::read(self)
    }

    /// Whether it uses the runtime at this socket, a path of this process: whether the socket that
    /// configured for the kubelet, as the kubelet sees it, is the same file. So the kubelet of a
    /// kind node, which has a runtime of its own, does not use the runtime of the host, but a
    /// kubelet in a container with the host's socket does. Where the configuration of a kubelet of
    /// the host cannot be read, it counts as using the runtime; one in a container only if it has
    /// the socket in the usual place.
    #[must_use]
    pub fn uses(&self, socket: &Path) -> bool {
        let endpoint = match self.settings().runtime_endpoint(self) {
            Some(endpoint) => endpoint,
            None if self.is_native => return true,
            None => DEFAULT_ENDPOINT.to_owned(),
        };
        let path = endpoint.strip_prefix("unix:").unwrap_or(&endpoint);
        let path = path.strip_prefix("//").unwrap_or(path);
        if !path.starts_with('/') {
            return self.is_native;
        }
        let has_socket = self.has_socket(path, (&FileTree::default(), socket));
        has_socket.unwrap_or(self.is_native)
    }

    /// Its version, such as `v1.36.1`, as its own program prints it for `--version`, which does
    /// nothing else. Only a program of the host is run, and only if no other user can have put it
    /// there.
    ///
    /// # Errors
    /// If the program cannot be run, or prints something else.
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
#[must_use]
pub fn kubelets(host: &FileTree) -> Vec<KubeletProcess> {
    let mut found = daemons(host, &NAMES);
    found.sort_by_key(|process| !process.is_native);
    found.into_iter().map(KubeletProcess).collect()
}

/// Resolves a path of the kubelet's flags, which is relative to its working directory: systemd's
/// default is `/`.
fn absolute(path: &str) -> PathBuf {
    Path::new("/").join(path)
}
