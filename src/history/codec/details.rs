//! What a status tells of a container beside how it fares: as bytes, and from them.

use crate::history::wire;
use crate::history::{ContainerDetails, Mount, User};

pub(super) fn to_wire(details: &ContainerDetails) -> wire::ContainerDetails {
    wire::ContainerDetails {
        mounts: details.mounts.iter().map(to_mount).collect(),
        log_path: details.log_path.to_string(),
        resources: details.resources.as_ref().map(|set| wire::Resources {
            set: super::to_wire::pairs(set),
        }),
        image_id: details.image_id.to_string(),
        user: details.user.as_ref().map(|user| wire::User {
            uid: user.uid,
            gid: user.gid,
            groups: user.groups.clone(),
        }),
    }
}

fn to_mount(mount: &Mount) -> wire::Mount {
    wire::Mount {
        container_path: mount.container_path.to_string(),
        host_path: mount.host_path.to_string(),
        readonly: mount.readonly,
        recursive_readonly: mount.recursive_readonly,
        selinux_relabel: mount.selinux_relabel,
        propagation: mount.propagation,
    }
}

pub(super) fn from_wire(details: wire::ContainerDetails) -> ContainerDetails {
    let resources = details.resources;
    ContainerDetails {
        mounts: details.mounts.into_iter().map(mount).collect(),
        log_path: details.log_path.into(),
        resources: resources.map(|resources| resources.set.into_iter().collect()),
        image_id: details.image_id.into(),
        user: details.user.map(|user| User {
            uid: user.uid,
            gid: user.gid,
            groups: user.groups,
        }),
    }
}

fn mount(mount: wire::Mount) -> Mount {
    Mount {
        container_path: mount.container_path.into(),
        host_path: mount.host_path.into(),
        readonly: mount.readonly,
        recursive_readonly: mount.recursive_readonly,
        selinux_relabel: mount.selinux_relabel,
        propagation: mount.propagation,
    }
}
