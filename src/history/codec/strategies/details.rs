//! What a status tells of a container beside how it fares.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Strategy, any};

use super::{labels, text};
use crate::history::{ContainerDetails, Mount, User};

pub(super) fn details() -> impl Strategy<Value = ContainerDetails> {
    let paths = (text(), text(), any::<[bool; 3]>(), any::<i32>());
    let mount = paths.prop_map(|(container_path, host_path, flags, propagation)| Mount {
        container_path: container_path.into(),
        host_path: host_path.into(),
        readonly: flags[0],
        recursive_readonly: flags[1],
        selinux_relabel: flags[2],
        propagation,
    });
    let user = (any::<i64>(), any::<i64>(), vec(any::<i64>(), 0..3));
    let user = user.prop_map(|(uid, gid, groups)| User { uid, gid, groups });
    let resources = option::of(labels());
    (
        vec(mount, 0..3),
        text(),
        resources,
        text(),
        option::of(user),
    )
        .prop_map(
            |(mounts, log_path, resources, image_id, user)| ContainerDetails {
                mounts,
                log_path: log_path.into(),
                resources,
                image_id: image_id.into(),
                user,
            },
        )
}
