//! The Evented PLEG of kubelet 1.37 and later: STOPPED is a hint to relist one pod, and nothing
//! else of an event counts. The Generic PLEG alone writes the cache.
//!
//! Source: kubernetes `pkg/kubelet/pleg/evented.go` after pull request 139262 (`processCRIEvents`).

use super::shared_id::SharedUid;
use crate::history::{Event, EventKind};

/// What an event is to such a kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// It has no sandbox status, or one without metadata: it is as if it had not come.
    Ignored,
    /// A sample of latency, from `created_at` to now.
    Sample,
    /// That, and a reason to relist this pod on demand.
    Relist(SharedUid),
}

/// Reads an event of the runtime.
#[must_use]
pub fn relist_hint(event: &Event) -> Hint {
    match (event.pod_uid(), event.kind) {
        (None, _) => Hint::Ignored,
        (Some(uid), EventKind::Stopped) => Hint::Relist(SharedUid::from(uid.as_str())),
        (Some(_), _) => Hint::Sample,
    }
}
