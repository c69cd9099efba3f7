//! Whether the runtime is one without events: not if this is measured, for then it has them.

use super::Unavailable;

pub(super) fn probe_no_events() -> Result<(), Unavailable> {
    Err(Unavailable::because(
        "the runtime offers events, and this is about one that does not; switch them off, as \
         CRI-O's `enable_pod_events = false` does, and run it again",
    ))
}
