//! In what order events can come otherwise, and when.

use std::time::Duration;

use super::stream::{at_once, is_of_sandbox};
use super::{Defect, Fault};
use crate::history::{Event, EventKind, RuntimeNanos};
use crate::model::{Delivery, Passage};

pub(super) const ORDER: &[Defect] = &[
    Defect {
        name: "clock-decides-what-is-new",
        what: "An event is not sent when the wall clock says that it is older than the one before.",
        imitates: "kubernetes pkg/kubelet/container/cache.go (an older time is dropped)",
        requirements: &["R20"],
        shown_in: &["TIM-07"],
        noticed_by: &["TIM-07"],
        fault: Fault::Events(|passage, event| {
            let sent = Event {
                created_at: RuntimeNanos(passage.at.realtime_ns),
                ..event.clone()
            };
            if passage
                .held
                .iter()
                .any(|before| before.created_at > sent.created_at)
            {
                return Vec::new();
            }
            *passage.held = vec![sent];
            Delivery::now(event)
        }),
    },
    Defect {
        name: "stopped-before-started",
        what: "STARTED comes only after STOPPED.",
        imitates: "cri-o/cri-o#9738",
        requirements: &["R9"],
        shown_in: &["ORD-01", "ORD-02", "ORD-03"],
        noticed_by: &["ORD-01", "ORD-02", "ORD-03", "INV-01"],
        fault: Fault::Events(|passage, event| {
            hold(passage, event, EventKind::Started, EventKind::Stopped)
        }),
    },
    Defect {
        name: "started-before-created",
        what: "CREATED comes only after STARTED.",
        imitates: "kubernetes/kubernetes#127086 (a status of CREATED after STARTED)",
        requirements: &["R9"],
        shown_in: &["ORD-05"],
        noticed_by: &["ORD-05", "INV-01"],
        fault: Fault::Events(|passage, event| {
            hold(passage, event, EventKind::Created, EventKind::Started)
        }),
    },
    Defect {
        name: "deleted-before-stopped",
        what: "STOPPED comes only after DELETED.",
        imitates: "containerd 2.1.9, measured: the exit handler is overtaken by the removal",
        requirements: &["R9"],
        shown_in: &["ORD-06", "STP-06"],
        noticed_by: &["ORD-06", "STP-06", "INV-01"],
        fault: Fault::Events(|passage, event| {
            hold(passage, event, EventKind::Stopped, EventKind::Deleted)
        }),
    },
    Defect {
        name: "started-after-deleted",
        what: "STARTED comes only after DELETED.",
        imitates: "cri-o/cri-o#9738, where a removal is what comes at once",
        requirements: &["R9"],
        shown_in: &["STP-07"],
        noticed_by: &["STP-07", "INV-01"],
        fault: Fault::Events(|passage, event| {
            hold(passage, event, EventKind::Started, EventKind::Deleted)
        }),
    },
    Defect {
        name: "late-started",
        what: "STARTED comes half a second late.",
        imitates: "kubernetes/kubernetes#123087 (a late STARTED started a second container)",
        requirements: &["R9", "R31"],
        shown_in: &["EXT-01", "ORD-04", "TIM-06"],
        noticed_by: &["ORD-04", "INV-01", "TIM-06"],
        fault: Fault::Events(|_, event| {
            late(event, EventKind::Started, Duration::from_millis(500))
        }),
    },
    Defect {
        name: "started-beside-the-call",
        what: "One STARTED of 60 on a stream is made 15 ms after the call has returned.",
        imitates: "catalogue: STARTED is sent by a thread of its own",
        requirements: &["R9", "R29"],
        shown_in: &["ORD-11"],
        noticed_by: &["ORD-11", "INV-01", "INV-26"],
        fault: Fault::Events(|passage, mut event| {
            const LATE: Duration = Duration::from_millis(15);
            const ONE_OF: usize = 60;
            if event.kind != EventKind::Started {
                return vec![at_once(event)];
            }
            passage.held.push(event.clone());
            if passage.held.len() < ONE_OF {
                return vec![at_once(event)];
            }
            passage.held.clear();
            event.created_at.0 += 15_000_000;
            vec![Delivery::after(LATE, event)]
        }),
    },
    Defect {
        name: "overtaking",
        what: "Every second event of a stream comes 20 ms late, and others overtake it.",
        imitates: "containerd/containerd#9652 (no approach kept the order)",
        requirements: &["R20"],
        shown_in: &["ORD-08"],
        noticed_by: &["ORD-08", "INV-23"],
        fault: Fault::Events(|passage, event| {
            let late = Duration::from_millis(passage.nth % 2 * 20);
            vec![Delivery::after(late, event)]
        }),
    },
    Defect {
        name: "lanes",
        what: "Events of every second container come 20 ms late: each has its own way to the stream.",
        imitates: "catalogue: the stamp is taken first, and then several workers queue the events",
        requirements: &["R20"],
        shown_in: &["TIM-03"],
        noticed_by: &["INV-23", "TIM-03"],
        fault: Fault::Events(|passage, event| {
            let lane = lane(passage, &event);
            vec![Delivery::after(Duration::from_millis(lane * 20), event)]
        }),
    },
    Defect {
        name: "late-stopped",
        what: "STOPPED comes eleven seconds late.",
        imitates: "kubernetes/kubernetes#124704 (phases were slower with events than without)",
        requirements: &["R31"],
        shown_in: &["CMP-05", "STR-16"],
        noticed_by: &["CMP-05", "STR-16"],
        fault: Fault::Events(|_, event| late(event, EventKind::Stopped, Duration::from_secs(11))),
    },
    Defect {
        name: "two-seconds-late",
        what: "Every event comes two seconds after it was made, in order.",
        imitates: "catalogue: events that are gathered before they are sent",
        requirements: &["R31", "R33"],
        shown_in: &["TIM-08", "STR-05"],
        noticed_by: &["TIM-08"],
        fault: Fault::Events(|_, event| vec![Delivery::after(Duration::from_secs(2), event)]),
    },
    Defect {
        name: "sandbox-deleted-first",
        what: "The DELETED of a container comes after that of its sandbox.",
        imitates: "KEP-3386: the cache entry goes with the sandbox's DELETED and is made again",
        requirements: &["R9", "R10"],
        shown_in: &["SBX-04", "ORD-09"],
        noticed_by: &["SBX-04", "ORD-09"],
        fault: Fault::Events(|passage, event| {
            if event.kind != EventKind::Deleted {
                return vec![at_once(event)];
            }
            if !is_of_sandbox(&event) {
                return vec![Delivery::after(Duration::from_millis(200), event)];
            }
            passage.held.clear();
            vec![at_once(event)]
        }),
    },
];

/// Which of two lanes the events of a container take: the first for sandboxes, and then in turns.
fn lane(passage: &mut Passage<'_>, event: &Event) -> u64 {
    const KEPT: usize = 1_000;
    if is_of_sandbox(event) {
        return 0;
    }
    if passage.held.len() == KEPT {
        passage.held.clear();
    }
    let of_same = |held: &Event| held.container == event.container;
    let known = passage.held.iter().position(of_same);
    let place = known.unwrap_or_else(|| {
        passage.held.push(event.clone());
        passage.held.len() - 1
    });
    u64::from(place % 2 == 1)
}

fn late(event: Event, kind: EventKind, by: Duration) -> Vec<Delivery> {
    let delay = if event.kind == kind {
        by
    } else {
        Duration::ZERO
    };
    vec![Delivery::after(delay, event)]
}

/// Holds a container's event of one kind back until one of another kind has been sent.
fn hold(
    passage: &mut Passage<'_>,
    event: Event,
    held: EventKind,
    until: EventKind,
) -> Vec<Delivery> {
    if is_of_sandbox(&event) {
        return vec![at_once(event)];
    }
    if event.kind == held {
        passage.held.push(event);
        return Vec::new();
    }
    let mut sent = vec![at_once(event.clone())];
    let place = passage
        .held
        .iter()
        .position(|held| held.container == event.container);
    if let Some(place) = place.filter(|_| event.kind == until) {
        sent.push(at_once(passage.held.remove(place)));
    }
    sent
}
