//! Defects of an event's own fields: creation time, type, id, and how its container ended.

use super::statuses::own;
use super::stream::{at_once, own_reason};
use super::{Fault, Row};
use crate::history::{ContainerId, Event, EventKind, RuntimeNanos};
use crate::model::Delivery;

const MILLISECOND_NS: i64 = 1_000_000;
const SECOND_NS: i64 = 1_000_000_000;

pub(super) const FIELDS: &[Row] = &[
    // Time.
    (
        "created-at-in-seconds",
        Fault::Events(|_, event| at(event.created_at.0 / SECOND_NS, event)),
    ),
    (
        "created-at-in-milliseconds",
        Fault::Events(|_, event| at(event.created_at.0 / MILLISECOND_NS, event)),
    ),
    ("created-at-zero", Fault::Events(|_, event| at(0, event))),
    (
        "created-at-in-the-future",
        Fault::Events(|_, event| at(event.created_at.0 + 3_600 * SECOND_NS, event)),
    ),
    (
        "created-at-constant",
        Fault::Events(|context, event| {
            if context.held.is_empty() {
                context.held.push(event.clone());
            }
            at(context.held[0].created_at.0, event)
        }),
    ),
    (
        "created-at-goes-back",
        Fault::Events(|context, event| {
            if context.held.is_empty() {
                context.held.push(event.clone());
            }
            let steps = i64::try_from(context.nth).unwrap_or(i64::MAX);
            at(context.held[0].created_at.0.saturating_sub(steps), event)
        }),
    ),
    (
        "started-stamped-at-the-call",
        Fault::Events(|_, event| {
            let early_ns = match event.kind {
                EventKind::Started => 300 * MILLISECOND_NS,
                _ => 0,
            };
            at(event.created_at.0 - early_ns, event)
        }),
    ),
    // Types and ids.
    (
        "short-id",
        Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                let first: String = event.container.as_str().chars().take(13).collect();
                event.container = first.into();
            }
            vec![at_once(event)]
        }),
    ),
    (
        "id-of-a-sibling",
        Fault::Events(|_, mut event| {
            let others = event.containers.iter().map(|status| &status.id);
            let sibling = others.filter(|id| **id != event.container).max().cloned();
            if event.kind == EventKind::Stopped
                && let Some(sibling) = sibling
            {
                event.container = sibling;
            }
            vec![at_once(event)]
        }),
    ),
    (
        "no-id",
        Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                event.container = ContainerId::default();
            }
            vec![at_once(event)]
        }),
    ),
    (
        "unknown-type",
        Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                event.kind = EventKind::Unknown(9);
            }
            vec![at_once(event)]
        }),
    ),
    // Exit codes and reasons that no status agrees with.
    (
        "stopped-with-exit-code-0",
        Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                own(&mut event, |status| status.exit_code = 0);
            }
            vec![at_once(event)]
        }),
    ),
    (
        "stopped-without-oom-reason",
        Fault::Events(|_, mut event| {
            if own_reason(&event) == "OOMKilled" {
                own(&mut event, |status| status.reason = "Error".into());
            }
            vec![at_once(event)]
        }),
    ),
];

fn at(created_at: i64, mut event: Event) -> Vec<Delivery> {
    event.created_at = RuntimeNanos(created_at);
    vec![at_once(event)]
}
