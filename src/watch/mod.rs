//! `watch` is read-only: it streams a node's pod events with their latency, and shows what a
//! kubelet makes of them.
//!
//! It creates no pod, so it cannot prove the event stream with a marker, and reports the first
//! event instead. It shows all pods of the node. `observer` is pure and decides all that is
//! reported of events and relists; [`watch()`] asks the runtime, reads the clock and prints.
//!
//! # As JSON
//!
//! One object a line. Each has a `time` of printing (RFC 3339, UTC) and a `type`. Numbers
//! whose name ends in `_ns` are 64-bit integers of nanoseconds, moments among them since 1970.
//! Each object about a container or a sandbox has `namespace`, `pod`, `uid`, `container` (null for
//! a sandbox) and `id`.
//!
//! | type | fields |
//! |---|---|
//! | `event` | `kind` (`CREATED`, `STARTED`, `STOPPED`, `DELETED`), `state`, `exit_code`, `reason` (null if unknown), `created_at_ns`, `arrived_ns`, `lag_ns` (null without a `created_at`), `queued` (created before the stream was requested), `evented` (what the Evented PLEG of kubelet 1.26 to 1.36 does: `taken`, `refused`, `ignored`, `panic`; `unfollowed` if there are too many containers to track), `lifecycle` (what it sends, such as `ContainerDied`), `panic` (why) |
//! | `relist` | `lifecycle`: what the Generic PLEG sends |
//! | `missed` | `kind` of the event that did not come, `listed` (the state that the relist shows, or `gone`), `waited_ns` |
//! | `disagreement` | `namespace`, `pod`, `uid`; `generic` and `evented`, each null or an object of `container`, `state` and `exit_code` by id; `outage`, whether a missing stream is the cause |
//! | `agreement` | `namespace`, `pod`, `uid`: the caches agree again |
//! | `stream` | `what` (`opened`, `live`, `ended`, `overrun`, `relist-failed`, `relist-works`), `detail` |
//! | `summary` | the last line: `watched_ns`, `events` (by kind), `queued`, `lag_median_ns`, `lag_p95_ns`, `lag_max_ns` (null without events), `missed`, `unheard` (transitions while there was no stream), `disagreements`, `disagreements_in_outages` (because there was no stream; they are in no other number), `panics`, `reconnects`, `relists` |

mod lags;
mod ledger;
mod notice;
mod observer;
mod output;
mod session;
mod stream;
#[cfg(test)]
mod tests;
mod text;
mod throttle;
mod views;

pub use notice::{EventSeen, Notice, Subject, Summary, View, Viewed};
pub use output::Output;
pub use session::{WatchError, WatchOptions, watch};
