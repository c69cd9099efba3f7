//! The Evented PLEG of kubelet 1.37 and later: STOPPED is a hint to relist one pod, and everything
//! else in an event is ignored. Only the Generic PLEG writes the cache.
//!
//! Source: kubernetes `pkg/kubelet/pleg/evented.go` after pull request 139262 (`processCRIEvents`).

use super::shared_id::SharedUid;
use crate::history::{Event, EventKind};

/// The effect of an event on such a kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// None: it has no sandbox status, or one without metadata.
    Ignored,
    /// A sample of the latency, from `created_at` to now.
    Sample,
    /// A sample of the latency, and an on-demand relist of this pod.
    Relist(SharedUid),
}

/// The effect of an event of the runtime.
pub fn relist_hint(event: &Event) -> Hint {
    match (event.pod_uid(), event.kind) {
        (None, _) => Hint::Ignored,
        (Some(uid), EventKind::Stopped) => Hint::Relist(SharedUid::from(uid.as_str())),
        (Some(_), _) => Hint::Sample,
    }
}
