//! Whether the user has a command that makes a container outside the CRI.

use super::Unavailable;
use crate::drive::session::Session;

pub(super) fn probe_outside_cri(session: &Session) -> Result<(), Unavailable> {
    let command = session.options().asked.hooks.outside_cri();
    command.map(drop).ok_or(Unavailable::because(
        "no call of the CRI makes such a container: give a command that does by --outside-cri, \
         such as 'ctr --namespace beside run --rm --null-io IMAGE outsider COMMAND'; \
         src/run/README.md says more",
    ))
}
