//! What a status says about the configuration of a container.

#[cfg(test)]
use super::any;
use super::protobuf::{message, written_as};
use super::{ContainerSpec, Flaw, Labels, Signal, Text};

/// A file that is on every host.
const A_FILE: &str = "/dev/null";
const MOUNTED: &str = "/mounted";
/// The file that CRI-O mounts into every container, and demands of one that is restored.
const HOSTS: &str = "/etc/hosts";
/// A directory that is on every host.
const A_DIRECTORY: &str = "/proc";

message! {
    /// The fields of `runtime.v1.ContainerStatus` that seldom differ from one status to the next.
    #[derive(Default, Eq)]
    pub part ContainerSetup {
        /// What is mounted into it.
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
        /// Whether what is mounted below it cannot be written to, either.
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

/// The prefix of limits of huge pages, before the page size.
const HUGEPAGES: &str = "hugepage_limits.";
/// The prefix of settings for cgroup v2, before the name of the file.
const UNIFIED: &str = "unified.";

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
    LinuxUser as Option<ContainerUser> {
        |user| user.0.clone().map(|user| ContainerUser { linux: Some(user) }),
        |reported| Ok(LinuxUser(reported.and_then(|user: ContainerUser| user.linux)))
    }
}
