//! Containers as data: the specification of one to create, and the configuration in its status.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::any;
use super::protobuf::{message, written_as};
use super::{ContainerId, Labels, SandboxId, SandboxSpec, Text};

/// A file that is on every host.
const A_FILE: &str = "/dev/null";
const MOUNTED: &str = "/mounted";
/// The file that CRI-O mounts into every container, and demands of one that is restored.
const HOSTS: &str = "/etc/hosts";
/// A directory that is on every host.
const A_DIRECTORY: &str = "/proc";
/// The prefix of limits of huge pages, before the page size.
const HUGEPAGES: &str = "hugepage_limits.";
/// The prefix of settings for cgroup v2, before the name of the file.
const UNIFIED: &str = "unified.";
/// The signals that the suite sends: the name, and the number in Linux.
const SENT: [(Signal, &str, u8); 8] = [
    (Signal::HANGUP, "SIGHUP", 1),
    (Signal::QUIT, "SIGQUIT", 3),
    (Signal::KILL, "SIGKILL", 9),
    (Signal::USER_1, "SIGUSR1", 10),
    (Signal::USER_2, "SIGUSR2", 12),
    (Signal::TERMINATE, "SIGTERM", 15),
    (Signal::CONTINUE, "SIGCONT", 18),
    (Signal::STOP, "SIGSTOP", 19),
];

/// A container to create.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerSpec {
    pub sandbox: SandboxId,
    /// The specification of that sandbox, which `CreateContainer` repeats.
    pub sandbox_spec: Arc<SandboxSpec>,
    pub binding: String,
    /// Its name in the pod; the binding if absent.
    pub name: Option<String>,
    /// The attempt: 0, then 1, 2 and so on when the same name is created again.
    pub attempt: u32,
    /// The image's reference, or the path of the checkpoint that it is restored from.
    pub image: String,
    /// The whole command line.
    pub command: Vec<String>,
    /// The exit code that the workload declares if nothing interferes with it.
    pub declared_exit: Option<i32>,
    /// The memory limit in bytes, without swap; none if absent.
    #[cfg_attr(test, arbitrary(with = any::limit))]
    pub memory_bytes: Option<u64>,
    /// Whether it has a terminal.
    pub tty: bool,
    pub labels: Labels,
    pub annotations: Labels,
    /// A deliberate flaw; none if absent.
    pub flaw: Option<Flaw>,
    pub stop_signal: Signal,
    /// The container whose PID namespace it joins instead of the pod's.
    pub pid_target: Option<ContainerId>,
    /// Whether an OOM kill of one of its processes kills all of them (`memory.oom.group`).
    pub oom_group: bool,
    /// Whether a file of the host is mounted into it.
    pub mounted: bool,
    /// Its log, relative to the sandbox's `log_directory`. The suite always sets it.
    pub log_path: String,
}

/// A deliberate flaw of a container: one that keeps it from running, or the operation at which the
/// faulty OCI runtime of a test handler crashes, once.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[serde(expecting = "a flaw such as `user` or `crash-at-kill`")]
pub enum Flaw {
    /// Its user does not exist in the image.
    User,
    /// Its working directory is a file.
    Directory,
    /// A host directory is mounted over the program, which is a file.
    Mount,
    /// The checkpoint that it is restored from is damaged.
    Checkpoint,
    /// The OCI runtime crashes at `create`.
    CrashAtCreate,
    /// The OCI runtime crashes at `start`.
    CrashAtStart,
    /// The OCI runtime crashes at the first `kill`.
    CrashAtKill,
    /// The OCI runtime crashes at the first `delete`.
    CrashAtDelete,
}

impl Flaw {
    /// The crashes of the OCI runtime, each with its operation.
    pub const CRASHES: [(Self, &str); 4] = [
        (Self::CrashAtCreate, "create"),
        (Self::CrashAtStart, "start"),
        (Self::CrashAtKill, "kill"),
        (Self::CrashAtDelete, "delete"),
    ];

    /// The operation at which the OCI runtime crashes, if it does.
    pub fn crashes_at(self) -> Option<&'static str> {
        let (_, verb) = Self::CRASHES.iter().find(|(flaw, _)| *flaw == self)?;
        Some(verb)
    }
}

impl ContainerSpec {
    /// The end of the name of a damaged checkpoint.
    pub const DAMAGED: &str = ".damaged";

    /// The path of the undamaged checkpoint that it is restored from, if it is.
    pub fn checkpoint(&self) -> Option<&str> {
        let path = self.image.strip_suffix(Self::DAMAGED);
        let path = path.unwrap_or(&self.image);
        path.starts_with('/').then_some(path)
    }

    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.binding)
    }

    /// The path of its log, as its status shows it; empty if it has none.
    pub fn full_log_path(&self) -> String {
        if self.log_path.is_empty() {
            return String::new();
        }
        format!("{}/{}", self.sandbox_spec.log_directory, self.log_path)
    }

    /// Whether only SIGKILL ends its process: its workload ignores SIGTERM and never exits, it has
    /// no flaw, and no memory limit that it could exceed.
    pub fn ends_by_kill_alone(&self) -> bool {
        // Older recordings have `ignore`.
        let mode = self.command.get(1).map(String::as_str);
        let ignores = matches!(mode, Some("ignore-term" | "ignore"));
        let limited = self.memory_bytes.or(self.sandbox_spec.memory_bytes);
        let given = self.stop_signal == Signal::DEFAULT && self.flaw.is_none();
        ignores && given && limited.is_none()
    }
}

message! {
    /// The fields of `runtime.v1.ContainerStatus` that seldom differ from one status to the next.
    #[derive(Default, Eq)]
    pub part ContainerSetup {
        mounts: Vec<Mount> = 14,
        /// Where its output goes.
        log_path: Text = 15,
        /// The resources that are set, by the CRI's names; absent if the runtime reports none.
        #[cfg_attr(test, arbitrary(with = any::resources))]
        resources: Option<Labels> as Resources = 16,
        image_id: Text = 17,
        /// The user of its first process; absent where the runtime does not report it.
        user: Option<User> as LinuxUser = 18,
        /// Its stop signal; [`Signal::DEFAULT`] if the runtime reports none.
        stop_signal: Signal = 19,
    }
}

message! {
    /// `runtime.v1.Mount`, as far as rules read it.
    #[derive(Default, Eq, PartialOrd, Ord)]
    pub struct Mount {
        container_path: Text = 1,
        host_path: Text = 2,
        /// Whether it cannot be written to.
        readonly: bool = 3,
        /// Whether its `SELinux` labels are to be set.
        selinux_relabel: bool = 4,
        /// By its number in `runtime.v1.MountPropagation`.
        propagation: i32 = 5,
        /// Whether mounts below it are read-only as well.
        recursive_readonly: bool = 8,
    }
}

message! {
    /// `runtime.v1.LinuxContainerUser`.
    #[derive(Default, Eq)]
    pub struct User {
        uid: i64 = 1,
        /// The number of its first group.
        gid: i64 = 2,
        groups: Vec<i64> = 3,
    }
}

impl ContainerSpec {
    /// The mounts to request. [`Flaw::Mount`] mounts a directory over the program, which is a file.
    pub fn mounts(&self) -> Vec<Mount> {
        let of = |container_path: &str, host_path: &str| Mount {
            container_path: container_path.into(),
            host_path: host_path.into(),
            readonly: true,
            ..Mount::default()
        };
        let file = self.mounted.then(|| of(MOUNTED, A_FILE));
        let hosts = self.checkpoint().map(|_| of(HOSTS, HOSTS));
        let program = self.command.first();
        let program = program.filter(|_| self.flaw == Some(Flaw::Mount));
        let over = program.map(|program| of(program, A_DIRECTORY));
        file.into_iter().chain(hosts).chain(over).collect()
    }

    /// Sets the fields that [`mounts`](Self::mounts) reads, by the container paths of mounts.
    pub(crate) fn set_mounts<'a>(&mut self, paths: impl IntoIterator<Item = &'a str>) {
        for path in paths {
            match path {
                MOUNTED => self.mounted = true,
                HOSTS => {}
                _ => self.flaw = self.flaw.or(Some(Flaw::Mount)),
            }
        }
    }
}

/// Resources to set, as `runtime.v1.LinuxContainerResources`.
#[derive(Clone)]
pub(super) struct Limits(pub(super) Labels);

/// The resources that are set, as `runtime.v1.ContainerResources`.
struct Resources(Option<Labels>);

message! {
    struct ContainerResources {
        linux: Option<LinuxResources> = 1,
    }
}

message! {
    /// `runtime.v1.LinuxContainerResources`.
    #[derive(Default)]
    pub(super) struct LinuxResources {
        cpu_period: i64 = 1,
        cpu_quota: i64 = 2,
        cpu_shares: i64 = 3,
        memory_limit_in_bytes: i64 = 4,
        oom_score_adj: i64 = 5,
        cpuset_cpus: Text = 6,
        cpuset_mems: Text = 7,
        hugepage_limits: Vec<HugepageLimit> = 8,
        unified: Labels = 9,
        memory_swap_limit_in_bytes: i64 = 10,
    }
}

message! {
    pub(super) struct HugepageLimit {
        page_size: String = 1,
        limit: u64 = 2,
    }
}

type Numbers<'a> = [(&'static str, &'a mut i64); 6];

type Words<'a> = [(&'static str, &'a mut Text); 2];

impl LinuxResources {
    /// The resources that are set, by name.
    fn set(mut self) -> Labels {
        let pages = std::mem::take(&mut self.hugepage_limits).into_iter();
        let pages = pages.map(|page| {
            let name = format!("{HUGEPAGES}{}", page.page_size);
            (name, page.limit.to_string())
        });
        let unified = std::mem::take(&mut self.unified).into_inner().into_iter();
        let unified = unified.map(|(name, value)| (format!("{UNIFIED}{name}"), value.to_string()));
        let mut set: Labels = pages.chain(unified).collect();
        let (numbers, words) = self.parts();
        let numbers = numbers.into_iter().filter(|(_, number)| **number != 0);
        let words = words.into_iter().filter(|(_, word)| !word.is_empty());
        set.extend(numbers.map(|(name, number)| (name, number.to_string())));
        set.extend(words.map(|(name, word)| (name, word.clone())));
        set
    }

    /// The inverse; names without a field are dropped.
    fn of(set: &Labels) -> Self {
        let mut linux = Self::default();
        let (numbers, words) = linux.parts();
        for (name, number) in numbers {
            let text = set.get(name);
            *number = text.and_then(|text| text.parse().ok()).unwrap_or_default();
        }
        for (name, word) in words {
            *word = set.get(name).cloned().unwrap_or_default();
        }
        for (name, value) in set {
            if let Some(page_size) = name.strip_prefix(HUGEPAGES) {
                linux.hugepage_limits.push(HugepageLimit {
                    page_size: page_size.to_owned(),
                    limit: value.parse().unwrap_or_default(),
                });
            } else if let Some(name) = name.strip_prefix(UNIFIED) {
                linux.unified.insert(name, value.clone());
            }
        }
        linux
    }

    fn parts(&mut self) -> (Numbers<'_>, Words<'_>) {
        let numbers = [
            ("cpu_period", &mut self.cpu_period),
            ("cpu_quota", &mut self.cpu_quota),
            ("cpu_shares", &mut self.cpu_shares),
            ("memory_limit_in_bytes", &mut self.memory_limit_in_bytes),
            ("oom_score_adj", &mut self.oom_score_adj),
            (
                "memory_swap_limit_in_bytes",
                &mut self.memory_swap_limit_in_bytes,
            ),
        ];
        let words = [
            ("cpuset_cpus", &mut self.cpuset_cpus),
            ("cpuset_mems", &mut self.cpuset_mems),
        ];
        (numbers, words)
    }
}

/// The user of a container, as `runtime.v1.ContainerUser`.
struct LinuxUser(Option<User>);

message! {
    struct ContainerUser {
        linux: Option<User> = 1,
    }
}

written_as! {
    Resources as Option<ContainerResources> {
        |resources| resources.0.as_ref().map(|set| ContainerResources {
            linux: Some(LinuxResources::of(set)),
        }),
        |reported| Ok(Resources(reported.map(|reported: ContainerResources| {
            reported.linux.unwrap_or_default().set()
        })))
    }
    Limits as Option<LinuxResources> {
        |limits| Some(LinuxResources::of(&limits.0)),
        |linux| Ok(Limits(linux.map(LinuxResources::set).unwrap_or_default()))
    }
    LinuxUser as Option<ContainerUser> {
        |user| user.0.clone().map(|user| ContainerUser { linux: Some(user) }),
        |reported| Ok(LinuxUser(reported.and_then(|user: ContainerUser| user.linux)))
    }
}

/// A signal to a container, by its number in `runtime.v1.Signal`.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signal(pub i32);

impl Signal {
    /// The runtime's default. In a status: the runtime reports none.
    pub const DEFAULT: Self = Self(0);
    /// `SIGCONT`.
    pub const CONTINUE: Self = Self(6);
    /// `SIGHUP`.
    pub const HANGUP: Self = Self(8);
    /// `SIGKILL`.
    pub const KILL: Self = Self(13);
    /// `SIGQUIT`.
    pub const QUIT: Self = Self(18);
    /// `SIGSTOP`.
    pub const STOP: Self = Self(21);
    /// `SIGTERM`.
    pub const TERMINATE: Self = Self(23);
    /// `SIGUSR1`.
    pub const USER_1: Self = Self(29);
    /// `SIGUSR2`.
    pub const USER_2: Self = Self(30);

    /// Its number in Linux, if it is one that the suite sends.
    pub fn linux_number(self) -> Option<u8> {
        self.sent().map(|(_, _, number)| number)
    }

    fn sent(self) -> Option<(Self, &'static str, u8)> {
        SENT.into_iter().find(|(signal, ..)| *signal == self)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sent() {
            Some((_, name, _)) => f.write_str(name),
            None => write!(f, "signal {} of the CRI", self.0),
        }
    }
}

written_as! {
    Signal as i32 { |signal| signal.0, |number| Ok(Signal(number)) }
}
