//! What a status says about the configuration of a container.

use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::any;
use super::{ContainerSpec, Flaw, Labels, Text};

/// A file that is on every host.
const A_FILE: &str = "/dev/null";
const MOUNTED: &str = "/mounted";
/// The file that CRI-O mounts into every container, and demands of one that is restored.
const HOSTS: &str = "/etc/hosts";
/// A directory that is on every host.
const A_DIRECTORY: &str = "/proc";

/// The fields of `runtime.v1.ContainerStatus` that seldom differ from one status to the next.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerSetup {
    /// What is mounted into it.
    pub mounts: Vec<Mount>,
    /// Where its output goes.
    pub log_path: Text,
    /// The resources that are set, by the CRI's names; absent if the runtime reports none.
    #[cfg_attr(test, arbitrary(with = any::resources))]
    pub resources: Option<Labels>,
    pub image_id: Text,
    /// The user of its first process; absent where the runtime does not report it.
    pub user: Option<User>,
}

/// `runtime.v1.Mount`, as far as rules read it.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mount {
    pub container_path: Text,
    pub host_path: Text,
    /// Whether it cannot be written to.
    pub readonly: bool,
    /// Whether what is mounted below it cannot be written to, either.
    pub recursive_readonly: bool,
    /// Whether its `SELinux` labels are to be set.
    pub selinux_relabel: bool,
    /// By its number in `runtime.v1.MountPropagation`.
    pub propagation: i32,
}

/// `runtime.v1.LinuxContainerUser`.
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub uid: i64,
    /// The number of its first group.
    pub gid: i64,
    pub groups: Vec<i64>,
}

impl ContainerSpec {
    /// What is to be mounted into it. Over a file, which its program is, no directory can be.
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

    /// Takes in what was asked to be mounted.
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
