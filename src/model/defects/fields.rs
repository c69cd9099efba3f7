//! What an event can tell wrong of itself: when it was made, of what type it is, whose, and how its
//! container ended.

use super::statuses::own;
use super::stream::{at_once, own_reason};
use super::{Defect, Fault};
use crate::history::{ContainerId, Event, EventKind, RuntimeNanos};
use crate::model::Delivery;

const MILLISECOND_NS: i64 = 1_000_000;
const SECOND_NS: i64 = 1_000_000_000;

pub(super) const FIELDS: &[Defect] = &[
    // Time.
    Defect {
        name: "created-at-in-seconds",
        what: "created_at counts seconds.",
        imitates: "cri-o/cri-o#8580",
        requirements: &["R18"],
        shown_in: &["ORD-01", "TIM-01"],
        noticed_by: &["INV-04", "TIM-01"],
        fault: Fault::Events(|_, event| at(event.created_at.0 / SECOND_NS, event)),
    },
    Defect {
        name: "created-at-in-milliseconds",
        what: "created_at counts milliseconds.",
        imitates: "cri-o/cri-o#8580",
        requirements: &["R18"],
        shown_in: &["ORD-01"],
        noticed_by: &["INV-04"],
        fault: Fault::Events(|_, event| at(event.created_at.0 / MILLISECOND_NS, event)),
    },
    Defect {
        name: "created-at-zero",
        what: "created_at is not set.",
        imitates: "kubernetes/kubernetes#124297",
        requirements: &["R18"],
        shown_in: &["ORD-01"],
        noticed_by: &["INV-04"],
        fault: Fault::Events(|_, event| at(0, event)),
    },
    Defect {
        name: "created-at-in-the-future",
        what: "created_at is an hour ahead.",
        imitates: "kubernetes/kubernetes#127814 (no event of the pod was taken any more)",
        requirements: &["R19"],
        shown_in: &["ORD-01", "TIM-02"],
        noticed_by: &["INV-04", "TIM-02"],
        fault: Fault::Events(|_, event| at(event.created_at.0 + 3_600 * SECOND_NS, event)),
    },
    Defect {
        name: "created-at-constant",
        what: "created_at is that of the stream's first event.",
        imitates: "catalogue: a time stamp that is taken once",
        requirements: &["R18", "R21"],
        shown_in: &["CMP-05", "STP-02"],
        noticed_by: &["INV-04"],
        fault: Fault::Events(|passage, event| {
            if passage.held.is_empty() {
                passage.held.push(event.clone());
            }
            at(passage.held[0].created_at.0, event)
        }),
    },
    Defect {
        name: "created-at-goes-back",
        what: "created_at gets smaller from event to event.",
        imitates: "containerd main: the stamp is taken after the snapshot, without a lock",
        requirements: &["R20"],
        shown_in: &["ORD-01", "TIM-03"],
        noticed_by: &["INV-05", "TIM-03", "INV-23"],
        fault: Fault::Events(|passage, event| {
            if passage.held.is_empty() {
                passage.held.push(event.clone());
            }
            let steps = i64::try_from(passage.nth).unwrap_or(i64::MAX);
            at(passage.held[0].created_at.0.saturating_sub(steps), event)
        }),
    },
    Defect {
        name: "started-stamped-at-the-call",
        what: "created_at of STARTED is 300 ms before the start.",
        imitates: "catalogue: a time stamp that is taken when the call comes",
        requirements: &["R21"],
        shown_in: &["ORD-01"],
        noticed_by: &["INV-17", "INV-05"],
        fault: Fault::Events(|_, event| {
            let early_ns = match event.kind {
                EventKind::Started => 300 * MILLISECOND_NS,
                _ => 0,
            };
            at(event.created_at.0 - early_ns, event)
        }),
    },
    // Types and ids.
    Defect {
        name: "short-id",
        what: "STOPPED tells the first 13 characters of the id, as people do.",
        imitates: "kubernetes PLEG: an id that no list has is no container",
        requirements: &["R11"],
        shown_in: &["ORD-01"],
        noticed_by: &["ORD-01", "INV-03"],
        fault: Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                let first: String = event.container.as_str().chars().take(13).collect();
                event.container = first.into();
            }
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "id-of-a-sibling",
        what: "STOPPED tells the id of another container of the pod.",
        imitates: "containerd/cri#973 (the wrong id of an exit event was compared)",
        requirements: &["R11"],
        shown_in: &["MUL-04"],
        noticed_by: &["MUL-04"],
        fault: Fault::Events(|_, mut event| {
            let others = event.containers.iter().map(|status| &status.id);
            let sibling = others.filter(|id| **id != event.container).max().cloned();
            if event.kind == EventKind::Stopped
                && let Some(sibling) = sibling
            {
                event.container = sibling;
            }
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "no-id",
        what: "STOPPED tells no id.",
        imitates: "kubernetes PLEG: an id that no list has is no container",
        requirements: &["R11"],
        shown_in: &["ORD-01"],
        noticed_by: &["ORD-01", "INV-03"],
        fault: Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                event.container = ContainerId::default();
            }
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "unknown-type",
        what: "STOPPED comes with the type 9.",
        imitates: "cri-o/cri-o#6531 (an event's type was wrong)",
        requirements: &["R7"],
        shown_in: &["ORD-01"],
        noticed_by: &["ORD-01", "INV-03"],
        fault: Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                event.kind = EventKind::Unknown(9);
            }
            vec![at_once(event)]
        }),
    },
    // Exit codes and reasons that no status agrees with.
    Defect {
        name: "stopped-with-exit-code-0",
        what: "STOPPED tells the exit code 0, whatever the status says.",
        imitates: "pelagos#343, containerd/rust-extensions#142 (a death by a signal became 0)",
        requirements: &["R17"],
        shown_in: &["EXT-01", "STP-02", "OOM-01"],
        noticed_by: &["EXT-01", "STP-02", "OOM-01", "INV-13", "INV-16", "INV-20"],
        fault: Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                own(&mut event, |status| status.exit_code = 0);
            }
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "stopped-without-oom-reason",
        what: "STOPPED of an OOM kill tells Error, and the status says OOMKilled later.",
        imitates: "containerd/containerd#12260",
        requirements: &["R17"],
        shown_in: &["OOM-01", "OOM-03"],
        noticed_by: &["OOM-01", "OOM-03", "INV-13", "INV-16"],
        fault: Fault::Events(|_, mut event| {
            if own_reason(&event) == "OOMKilled" {
                own(&mut event, |status| status.reason = "Error".into());
            }
            vec![at_once(event)]
        }),
    },
];

fn at(created_at: i64, mut event: Event) -> Vec<Delivery> {
    event.created_at = RuntimeNanos(created_at);
    vec![at_once(event)]
}
