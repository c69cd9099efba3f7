//! Whether the user has a runtime handler whose low-level runtime dies on demand.

use super::Unavailable;
use crate::drive::session::Session;

pub(super) fn probe_faulty_handler(session: &Session) -> Result<(), Unavailable> {
    let handler = session.options().asked.hooks.faulty_handler();
    handler.map(drop).ok_or(Unavailable::because(
        "the low-level runtime has to die on demand: configure a runtime handler with \
         ci/lib/faulty-runtime, as src/run/README.md shows, and name it by --faulty-handler",
    ))
}
