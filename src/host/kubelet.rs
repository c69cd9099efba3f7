//! Finds a running kubelet among the processes of this host, by its name or by its ports, as part
//! of any program, and its configuration: by its file, its drop-ins and its flags, as kubelets 1.28
//! and later read them.
//!
//! Precedence, lowest first: the file of `--config`, the drop-ins of `--config-dir` in the order of
//! their paths, flags. Feature gates are merged one by one. See
//! <https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/>.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::command::CommandError;
use super::daemon::{self, Daemon};
use super::file_tree::FileTree;
use crate::yaml;

/// The names of processes that are or contain a kubelet, of at most 15 bytes.
const NAMES: [&str; 5] = [KUBELET, "kubelite", "k3s-server", "k3s-agent", "hyperkube"];
/// The name of a process that is nothing but a kubelet.
const KUBELET: &str = "kubelet";
/// The ports of a kubelet's health check, its API and its API without authentication, and of the
/// API of `edgecore`, the kubelet of `KubeEdge`.
const PORTS: [u16; 4] = [10248, 10250, 10255, 10350];
/// How much of a list of the kernel's sockets is read: those that listen come first.
const LISTENERS_BYTES: u64 = 1 << 20;
/// The endpoint that a kubelet uses if none is configured, since 1.27:
/// <https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/>.
const DEFAULT_ENDPOINT: &str = "unix:///run/containerd/containerd.sock";
/// Drop-ins are read to this depth.
const DEPTH: usize = 4;
/// The maximum number of entries among which drop-ins are looked for.
const ENTRIES: usize = 1_000;

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

    /// The settings of its configuration files and flags.
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

/// A configuration file or a part of one.
type Map = serde_json::Map<String, Value>;

/// A setting, and where it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    /// The path of a file, or a flag.
    pub origin: String,
}

/// A configuration file of a kubelet that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableFile {
    pub path: PathBuf,
    /// Whether it was read, but a kubelet would refuse it.
    pub is_invalid: bool,
    pub reason: String,
}

/// The settings of a kubelet that matter for events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeletSettings {
    pub feature_gates: BTreeMap<String, Setting<bool>>,
    pub endpoint: Option<Setting<String>>,
    pub cgroup_driver: Option<Setting<String>>,
    pub files: Vec<PathBuf>,
    /// The files that cannot be used.
    pub unusable: Vec<UnusableFile>,
    /// How many entries of directories were looked at.
    entries: usize,
}

impl KubeletSettings {
    pub(super) fn read(kubelet: &KubeletProcess) -> Self {
        let mut settings = Self::default();
        let path = |flag: &str| {
            // That of a larger program is in a format of its own.
            let paths = kubelet.flag(flag).filter(|_| kubelet.is_kubelet_only());
            let path = paths.last().filter(|path| !path.is_empty())?;
            Some(kubelet.directory.join(path))
        };
        if let Some(path) = path("config") {
            settings.add_file(&kubelet.files, path);
        }
        if let Some(path) = path("config-dir") {
            settings.add_directory(&kubelet.files, &path, DEPTH);
        }
        settings.add_flags(kubelet);
        settings
    }

    /// The endpoint of the runtime that the kubelet uses; none if that is unknown, as where a file
    /// cannot be read or the kubelet is part of a larger program.
    pub(super) fn runtime_endpoint(&self, kubelet: &KubeletProcess) -> Option<String> {
        let is_known = kubelet.is_kubelet_only() && self.unusable.is_empty();
        let configured = self
            .endpoint
            .as_ref()
            .map(|endpoint| endpoint.value.clone());
        let is_flag = |setting: &Setting<String>| setting.origin.starts_with("--");
        if self.endpoint.as_ref().is_some_and(is_flag) {
            return configured;
        }
        is_known.then(|| configured.unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned()))
    }

    fn add_file(&mut self, files: &FileTree, path: PathBuf) {
        let text = match files.read(&path) {
            Ok(text) => text,
            Err(fault) => return self.cannot_use(path, false, &fault),
        };
        let merged = parse(&text).and_then(|config| self.merge(&config, &text, &path));
        match merged {
            Ok(()) => self.files.push(path),
            Err(reason) => self.cannot_use(path, true, &reason),
        }
    }

    fn cannot_use(&mut self, path: PathBuf, is_invalid: bool, fault: &dyn fmt::Display) {
        self.unusable.push(UnusableFile {
            path,
            is_invalid,
            reason: fault.to_string(),
        });
    }

    /// Adds the drop-ins, as the kubelet finds them: files named `*.conf`, also in subdirectories.
    /// A link to a directory is no directory for it, not even the first one.
    fn add_directory(&mut self, files: &FileTree, directory: &Path, depth: usize) {
        if depth == DEPTH && files.is_link(directory) {
            return;
        }
        let entries = match files.list(directory) {
            Ok(entries) => entries,
            Err(fault) => return self.cannot_use(directory.to_owned(), false, &fault),
        };
        for path in entries {
            self.entries += 1;
            if self.entries > ENTRIES {
                let fault = std::io::Error::other("it has too many entries");
                return self.cannot_use(directory.to_owned(), false, &fault);
            }
            if !files.is_link(&path) && files.list(&path).is_ok() {
                if depth > 0 {
                    self.add_directory(files, &path, depth - 1);
                }
            } else if path.extension().is_some_and(|ending| ending == "conf") {
                self.add_file(files, path);
            }
        }
    }

    /// Merges a file over those before it, see RFC 7396: null removes a setting of theirs.
    fn merge(&mut self, config: &Map, text: &str, path: &Path) -> Result<(), String> {
        let origin = path.display().to_string();
        match config.get("featureGates") {
            None => {}
            Some(Value::Null) => self.feature_gates.clear(),
            Some(Value::Object(gates)) => {
                for (gate, value) in gates {
                    let value = match value {
                        Value::Null => None,
                        value => Some(boolean(gate, value, text)?),
                    };
                    self.feature_gates.remove(gate);
                    let origin = origin.clone();
                    let set = value.map(|value| (gate.clone(), Setting { value, origin }));
                    self.feature_gates.extend(set);
                }
            }
            Some(other) => return Err(format!("featureGates is {other}, no mapping of gates")),
        }
        let texts = [
            ("containerRuntimeEndpoint", &mut self.endpoint),
            ("cgroupDriver", &mut self.cgroup_driver),
        ];
        for (key, setting) in texts {
            match config.get(key) {
                None => {}
                Some(Value::Null) => *setting = None,
                Some(Value::String(text)) if text.is_empty() => {}
                Some(Value::String(text)) => {
                    let (value, origin) = (text.clone(), origin.clone());
                    *setting = Some(Setting { value, origin });
                }
                Some(other) => return Err(format!("{key} is {other}, no text")),
            }
        }
        Ok(())
    }

    fn add_flags(&mut self, kubelet: &KubeletProcess) {
        let text = |flag: &'static str| {
            let value = kubelet
                .flag(flag)
                .last()
                .filter(|value| !value.is_empty())?;
            Some(Setting {
                value: value.to_owned(),
                origin: format!("--{flag}"),
            })
        };
        self.endpoint = text("container-runtime-endpoint").or(self.endpoint.take());
        self.cgroup_driver = text("cgroup-driver").or(self.cgroup_driver.take());
        for gate in kubelet
            .flag("feature-gates")
            .flat_map(|gates| gates.split(','))
        {
            let Some((gate, value)) = gate.split_once('=') else {
                continue;
            };
            // As Go parses booleans of flags.
            let value = match value.trim() {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
                "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
                _ => continue,
            };
            let origin = "--feature-gates".to_owned();
            let setting = Setting { value, origin };
            self.feature_gates.insert(gate.trim().to_owned(), setting);
        }
    }
}

/// The processes of a host that are or contain a kubelet, by pid; those in containers come last.
/// One that has one of these sockets, see [`socket_clients`](super::socket_clients), and listens at
/// a kubelet's port is a kubelet of any name.
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

/// A configuration file or a drop-in: the first document of it, in which the last of equal keys
/// counts.
fn parse(text: &str) -> Result<Map, String> {
    let mut documents = yaml::parser(text).map_err(|fault| fault.to_string())?;
    let first = documents.next().map(Value::deserialize).transpose();
    let config = match first.map_err(|fault| fault.to_string())? {
        Some(Value::Object(config)) => config,
        Some(Value::Null) | None => return Err("it is empty".to_owned()),
        Some(other) => return Err(format!("it is {other}, no mapping")),
    };
    for key in ["apiVersion", "kind"] {
        let named = config.get(key).and_then(Value::as_str);
        if named.is_none_or(str::is_empty) {
            return Err(format!("it has no {key}"));
        }
    }
    Ok(config)
}

/// The value of a gate, as a kubelet reads YAML 1.1, for which a bare `yes` or `on` is a boolean.
fn boolean(gate: &str, value: &Value, text: &str) -> Result<bool, String> {
    const TRUE: [&str; 8] = ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"];
    const FALSE: [&str; 8] = ["n", "N", "no", "No", "NO", "off", "Off", "OFF"];
    match value {
        Value::Bool(value) => Ok(*value),
        Value::String(word) if TRUE.contains(&word.as_str()) && is_bare(gate, text) => Ok(true),
        Value::String(word) if FALSE.contains(&word.as_str()) && is_bare(gate, text) => Ok(false),
        other => Err(format!("featureGates.{gate} is {other}, not true or false")),
    }
}

/// Whether the value of this key is written without quotes, wherever the key is in the text.
fn is_bare(key: &str, text: &str) -> bool {
    let mut places = text.match_indices(key);
    places.all(|(place, _)| {
        let rest = text[place + key.len()..]
            .trim_start_matches(['"', '\''])
            .trim_start();
        let value = rest.strip_prefix(':').map(str::trim_start);
        !value.is_some_and(|value| value.starts_with(['"', '\'']))
    })
}
