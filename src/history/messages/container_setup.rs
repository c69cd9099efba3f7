//! The fields of `ContainerStatus` about a container's configuration, in both directions.

use k8s_cri::v1;

use super::to_map;
use crate::history::{ContainerSetup, Flaw, Labels, Mount, User};

/// The prefix of limits of huge pages, before the page size.
const HUGEPAGES: &str = "hugepage_limits.";
/// The prefix of settings for cgroup v2, before the name of the file.
const UNIFIED: &str = "unified.";

/// The environment variable of a container that says at which operation the faulty OCI runtime
/// crashes.
const DEMAND: &str = "CRI_EVENT_CONFORMANCE_FAULT";

/// The environment that makes the faulty OCI runtime crash for this flaw.
pub(super) fn demand(flaw: Option<Flaw>) -> Vec<v1::KeyValue> {
    let verb = flaw.and_then(Flaw::crashes_at);
    let variable = verb.map(|verb| v1::KeyValue {
        key: DEMAND.to_owned(),
        value: verb.to_owned(),
    });
    variable.into_iter().collect()
}

pub(super) fn demanded(environment: &[v1::KeyValue]) -> Option<Flaw> {
    let variable = environment.iter().find(|variable| variable.key == DEMAND)?;
    let mut crashes = Flaw::CRASHES.into_iter();
    let (flaw, _) = crashes.find(|(_, verb)| *verb == variable.value)?;
    Some(flaw)
}

/// Takes the configuration out of a status.
pub(super) fn take(status: &mut v1::ContainerStatus) -> ContainerSetup {
    let mounts = std::mem::take(&mut status.mounts);
    let user = status.user.take();
    ContainerSetup {
        mounts: mounts.into_iter().map(mount).collect(),
        log_path: std::mem::take(&mut status.log_path).into(),
        resources: status.resources.take().map(resources),
        image_id: std::mem::take(&mut status.image_id).into(),
        user: user.and_then(|user| user.linux).map(|user| User {
            uid: user.uid,
            gid: user.gid,
            groups: user.supplemental_groups,
        }),
    }
}

/// Puts the configuration into a status.
pub(super) fn put(setup: &ContainerSetup, status: &mut v1::ContainerStatus) {
    status.mounts = setup.mounts.iter().map(to_mount).collect();
    status.log_path = setup.log_path.to_string();
    status.resources = setup.resources.as_ref().map(to_resources);
    status.image_id = setup.image_id.to_string();
    status.user = setup.user.as_ref().map(|user| v1::ContainerUser {
        linux: Some(v1::LinuxContainerUser {
            uid: user.uid,
            gid: user.gid,
            supplemental_groups: user.groups.clone(),
        }),
    });
}

fn mount(mount: v1::Mount) -> Mount {
    Mount {
        container_path: mount.container_path.into(),
        host_path: mount.host_path.into(),
        readonly: mount.readonly,
        recursive_readonly: mount.recursive_read_only,
        selinux_relabel: mount.selinux_relabel,
        propagation: mount.propagation,
    }
}

pub(super) fn to_mount(mount: &Mount) -> v1::Mount {
    v1::Mount {
        container_path: mount.container_path.to_string(),
        host_path: mount.host_path.to_string(),
        readonly: mount.readonly,
        recursive_read_only: mount.recursive_readonly,
        selinux_relabel: mount.selinux_relabel,
        propagation: mount.propagation,
        ..Default::default()
    }
}

type Numbers<'a> = [(&'static str, &'a mut i64); 6];
type Words<'a> = [(&'static str, &'a mut String); 2];

fn parts(linux: &mut v1::LinuxContainerResources) -> (Numbers<'_>, Words<'_>) {
    let numbers = [
        ("cpu_period", &mut linux.cpu_period),
        ("cpu_quota", &mut linux.cpu_quota),
        ("cpu_shares", &mut linux.cpu_shares),
        ("memory_limit_in_bytes", &mut linux.memory_limit_in_bytes),
        ("oom_score_adj", &mut linux.oom_score_adj),
        (
            "memory_swap_limit_in_bytes",
            &mut linux.memory_swap_limit_in_bytes,
        ),
    ];
    let words = [
        ("cpuset_cpus", &mut linux.cpuset_cpus),
        ("cpuset_mems", &mut linux.cpuset_mems),
    ];
    (numbers, words)
}

/// The resources that are set, by name.
fn resources(reported: v1::ContainerResources) -> Labels {
    let mut linux = reported.linux.unwrap_or_default();
    let pages = std::mem::take(&mut linux.hugepage_limits).into_iter();
    let pages = pages.map(|page| {
        let name = format!("{HUGEPAGES}{}", page.page_size);
        (name, page.limit.to_string())
    });
    let unified = std::mem::take(&mut linux.unified).into_iter();
    let unified = unified.map(|(name, value)| (format!("{UNIFIED}{name}"), value));
    let mut set: Vec<(String, String)> = pages.chain(unified).collect();
    let (numbers, words) = parts(&mut linux);
    let numbers = numbers.into_iter().filter(|(_, number)| **number != 0);
    let words = words.into_iter().filter(|(_, word)| !word.is_empty());
    set.extend(numbers.map(|(name, number)| (name.to_owned(), number.to_string())));
    set.extend(words.map(|(name, word)| (name.to_owned(), word.clone())));
    set.into_iter().collect()
}

/// Names without a field are dropped.
fn to_resources(set: &Labels) -> v1::ContainerResources {
    let mut linux = v1::LinuxContainerResources::default();
    let (numbers, words) = parts(&mut linux);
    for (name, number) in numbers {
        *number = set
            .get(name)
            .and_then(|text| text.parse().ok())
            .unwrap_or_default();
    }
    for (name, word) in words {
        *word = set.get(name).map(ToString::to_string).unwrap_or_default();
    }
    for (name, value) in to_map(set) {
        if let Some(page_size) = name.strip_prefix(HUGEPAGES) {
            linux.hugepage_limits.push(v1::HugepageLimit {
                page_size: page_size.to_owned(),
                limit: value.parse().unwrap_or_default(),
            });
        } else if let Some(name) = name.strip_prefix(UNIFIED) {
            linux.unified.insert(name.to_owned(), value);
        }
    }
    v1::ContainerResources {
        linux: Some(linux),
        ..Default::default()
    }
}
