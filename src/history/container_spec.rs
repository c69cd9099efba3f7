//! A container to create, as data.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::any;
use super::{ContainerId, Labels, SandboxId, SandboxSpec, Signal};

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
    /// What makes it fail on purpose; nothing if absent.
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
#[serde(
    rename_all = "kebab-case",
    expecting = "a flaw such as `user` or `crash-at-kill`"
)]
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
