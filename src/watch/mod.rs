//! What happens on a node now: its events as they come, and what a kubelet makes of them.
//!
//! It only reads: it makes no pod, so it cannot prove the event stream by a marker, and says when
//! the first event has. Pods of others are shown. `observer` is pure and decides all that is said
//! of events and relists; [`watch()`] asks the runtime, reads the clock and prints.
//!
//! # As JSON
//!
//! One object a line. Each has `time`, when it was printed (RFC 3339, UTC), and a `type`. Numbers
//! whose name ends in `_ns` are 64-bit integers of nanoseconds, moments among them since 1970.
//! Whatever is about a container or a sandbox has `namespace`, `pod`, `uid`, `container` (null for
//! a sandbox) and `id`.
//!
//! | type | fields |
//! |---|---|
//! | `event` | `kind` (`CREATED`, `STARTED`, `STOPPED`, `DELETED`), `state`, `exit_code`, `reason` (null if not told), `created_at_ns`, `arrived_ns`, `lag_ns` (null without a `created_at`), `queued` (made before the stream was asked for), `evented` (what the Evented PLEG of kubelet 1.26 to 1.36 does: `taken`, `refused`, `ignored`, `panic`; `unfollowed` if there are too many containers to follow), `lifecycle` (what it sends, such as `ContainerDied`), `panic` (why) |
//! | `relist` | `lifecycle`: what the Generic PLEG sends |
//! | `missed` | `kind` of the event that did not come, `listed` (the state that the relist shows, or `gone`), `waited_ns` |
//! | `disagreement` | `namespace`, `pod`, `uid`; `generic` and `evented`, each null or an object of `container`, `state` and `exit_code` by id; `outage`, whether that is because there was no stream |
//! | `agreement` | `namespace`, `pod`, `uid`: the caches are the same again |
//! | `stream` | `what` (`opened`, `live`, `ended`, `overrun`, `relist-failed`, `relist-works`), `detail` |
//! | `summary` | the last line: `watched_ns`, `events` (by kind), `queued`, `lag_median_ns`, `lag_p95_ns`, `lag_max_ns` (null without events), `missed`, `unheard` (transitions while there was no stream), `disagreements`, `disagreements_in_outages` (because there was no stream; they are in no other number), `panics`, `reconnects`, `relists` |

mod lags;
mod ledger;
mod live;
mod notice;
mod observer;
mod output;
mod repeated;
mod stream;
#[cfg(test)]
mod tests;
mod text;
mod views;

pub use live::{WatchError, WatchOptions, watch};
pub use notice::{EventSeen, Notice, Subject, Summary, View, Viewed};
pub use output::Output;
