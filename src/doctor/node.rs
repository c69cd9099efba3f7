//! The kernel and the operating system.

use super::finding::{Area, Finding, Status};
use crate::history;
use crate::host::FileTree;

/// The findings, from the kernel's facts and the files of the node.
pub(super) fn findings(facts: Option<&history::Host>, root: &FileTree) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(facts) = facts {
        let cgroup = facts.cgroup.as_deref().unwrap_or("unknown");
        found.push(Finding::new(
            (Area::Host, Status::Ok),
            "kernel",
            format!("kernel {}, cgroup version {cgroup}", facts.kernel),
            "/proc/sys/kernel/osrelease, /proc/self/mounts",
        ));
    }
    if is_openshift(root) {
        found.push(openshift());
    }
    found
}

fn is_openshift(root: &FileTree) -> bool {
    let release = root.read("/etc/os-release").unwrap_or_default();
    let mut lines = release.lines();
    lines.any(|line| line.starts_with("OPENSHIFT_VERSION=") || line == "ID=\"rhcos\"")
}

fn openshift() -> Finding {
    let finding = Finding::new(
        (Area::Host, Status::Note),
        "openshift",
        "this is a node of OpenShift, which has no field of its own for Evented PLEG",
        "/etc/os-release",
    );
    finding
        .why(
            "`nodes.config` was proposed to have one and never got it. What counts are the files \
             that the machine config operator has written on this node.",
        )
        .fix(
            "Switch the gate on by a FeatureGate with `featureSet: CustomNoUpgrade`, and CRI-O's \
             events by a MachineConfig with a file in /etc/crio/crio.conf.d.",
        )
        .source("https://github.com/openshift/enhancements/pull/1368")
}
