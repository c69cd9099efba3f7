//! What can happen to events on their way: they are lost, or come too often; and to their stream.

use std::time::Duration;

use super::{Defect, Fault};
use crate::history::{CallFault, Event, EventKind, StatusCode, StreamEnd};
use crate::model::{Delivery, Passage};

const SECOND_NS: i64 = 1_000_000_000;

pub(super) const STREAM: &[Defect] = &[
    // Lost.
    Defect {
        name: "drop-created",
        what: "CREATED is never sent.",
        imitates: "cri-o/cri-o#6625 (RunPodSandbox gave only STARTED)",
        requirements: &["R6"],
        shown_in: &["ORD-05", "CMP-08"],
        noticed_by: &["ORD-05", "CMP-08", "INV-11"],
        fault: Fault::Events(|_, event| unless(event.kind == EventKind::Created, event)),
    },
    Defect {
        name: "drop-started",
        what: "STARTED is never sent.",
        imitates: "containerd/containerd#8892 (a full channel discards events)",
        requirements: &["R6", "R23"],
        shown_in: &["ORD-05", "REC-02", "SNP-04", "STR-03", "FLR-09a", "SBX-10"],
        noticed_by: &[
            "ORD-05", "REC-02", "SNP-04", "STR-03", "FLR-09a", "SBX-10", "INV-11",
        ],
        fault: Fault::Events(|_, event| unless(event.kind == EventKind::Started, event)),
    },
    Defect {
        name: "drop-stopped",
        what: "STOPPED is never sent.",
        imitates: "containerd/containerd#8892 (the STOPPED of an OOM-killed container was discarded)",
        requirements: &["R6", "R23"],
        shown_in: &[
            "FEA-01", "CMP-05", "CMP-06", "STP-01", "STP-02", "EXT-07", "MUL-01", "MUL-06",
            "NEG-02", "NEG-03",
        ],
        noticed_by: &[
            "CMP-05", "CMP-06", "FEA-01", "STP-01", "STP-02", "EXT-07", "MUL-01", "MUL-06",
            "NEG-02", "NEG-03", "INV-11",
        ],
        fault: Fault::Events(|_, event| unless(event.kind == EventKind::Stopped, event)),
    },
    Defect {
        name: "drop-deleted",
        what: "DELETED is never sent.",
        imitates: "CRI-O main, RemovePodSandbox: no DELETED of a container or of the sandbox",
        requirements: &["R6", "R23"],
        shown_in: &["ORD-01", "SBX-04", "CMP-07", "STP-07", "STP-08"],
        noticed_by: &["ORD-01", "SBX-04", "CMP-07", "STP-07", "STP-08", "INV-11"],
        fault: Fault::Events(|_, event| unless(event.kind == EventKind::Deleted, event)),
    },
    Defect {
        name: "drop-every-ninth",
        what: "Every ninth event on a stream is not sent.",
        imitates: "containerd/containerd#9652 (events beyond the channel's size are lost)",
        requirements: &["R5", "R6"],
        shown_in: &["CMP-01", "REC-05"],
        noticed_by: &["CMP-01", "REC-05"],
        fault: Fault::Events(|passage, event| unless(passage.nth % 9 == 8, event)),
    },
    Defect {
        name: "drop-sandbox-events",
        what: "Sandboxes have no events.",
        imitates: "containerd/containerd#7658 (none with the sandbox server)",
        requirements: &["R6"],
        shown_in: &["SBX-01", "SBX-03"],
        noticed_by: &["SBX-01", "SBX-03"],
        fault: Fault::Events(|_, event| unless(is_of_sandbox(&event), event)),
    },
    Defect {
        name: "drop-oom-stopped",
        what: "The STOPPED of a container that was killed for its memory is not sent.",
        imitates: "containerd/containerd#8892",
        requirements: &["R6"],
        shown_in: &["OOM-01"],
        noticed_by: &["OOM-01", "INV-11"],
        fault: Fault::Events(|_, event| unless(own_reason(&event) == "OOMKilled", event)),
    },
    // The stream itself.
    Defect {
        name: "stall",
        what: "A stream brings nothing more once it has brought the STARTED of a container.",
        imitates: "containerd/cri#1427 (a node stops seeing exits)",
        requirements: &["R1", "R6"],
        shown_in: &["ORD-01"],
        noticed_by: &["ORD-01"],
        fault: Fault::Stream(|passage, event| unless(over(passage, &event), event)),
    },
    Defect {
        name: "cut",
        what: "A stream breaks once it has brought the STARTED of a container.",
        imitates: "kubernetes/kubernetes#129827 (an outage burnt all attempts to reconnect)",
        requirements: &["R1"],
        shown_in: &["ORD-01"],
        noticed_by: &["INV-21"],
        fault: Fault::Stream(|passage, event| {
            let broken = StreamEnd::Failed(CallFault {
                code: StatusCode::UNAVAILABLE,
                message: "the connection was cut".to_owned(),
                deadline: Duration::ZERO,
            });
            end(passage, event, broken)
        }),
    },
    Defect {
        name: "half-close",
        what: "A stream is ended with OK once it has brought the STARTED of a container.",
        imitates: "cri-o/cri-o#7164 (EOF after a call that succeeded)",
        requirements: &["R1"],
        shown_in: &["ORD-01"],
        noticed_by: &["INV-21"],
        fault: Fault::Stream(|passage, event| end(passage, event, StreamEnd::Closed)),
    },
    // Too many.
    Defect {
        name: "repeat-every-event",
        what: "Each event is sent twice.",
        imitates: "cri-o/cri-o#6631 (two emitters for one transition)",
        requirements: &["R8"],
        shown_in: &["CMP-01"],
        noticed_by: &["CMP-01", "INV-02"],
        fault: Fault::Events(|_, event| vec![at_once(event.clone()), at_once(event)]),
    },
    Defect {
        name: "repeat-stopped",
        what: "STOPPED is sent twice.",
        imitates: "containerd/containerd#4769 (a shim's end repeats the exit)",
        requirements: &["R8"],
        shown_in: &["CMP-02", "ORD-07", "STP-05"],
        noticed_by: &["CMP-02", "ORD-07", "STP-05", "INV-02"],
        fault: Fault::Events(|_, event| again(event, EventKind::Stopped, Duration::ZERO)),
    },
    Defect {
        name: "repeat-stopped-late",
        what: "STOPPED is sent again 2 ms later.",
        imitates: "containerd/containerd#4769 (a shim's end repeats the exit)",
        requirements: &["R8"],
        shown_in: &["CMP-05"],
        noticed_by: &["INV-02"],
        fault: Fault::Events(|_, event| again(event, EventKind::Stopped, Duration::from_millis(2))),
    },
    Defect {
        name: "deleted-with-stopped",
        what: "A container that stops is told to be deleted, too.",
        imitates: "cri-o/cri-o#6625",
        requirements: &["R7", "R8"],
        shown_in: &["STP-01", "CMP-03"],
        noticed_by: &["STP-01", "CMP-03"],
        fault: Fault::Events(|_, event| {
            let mut deleted = event.clone();
            deleted.kind = EventKind::Deleted;
            deleted
                .containers
                .retain(|status| status.id != deleted.container);
            let stopped = event.kind == EventKind::Stopped && !is_of_sandbox(&event);
            let deleted = stopped.then(|| at_once(deleted));
            [at_once(event)].into_iter().chain(deleted).collect()
        }),
    },
    Defect {
        name: "started-for-a-failed-start",
        what: "A container that could not be started is told to have started.",
        imitates: "containerd/containerd#6429 (an exit was told of a command that never ran)",
        requirements: &["R6"],
        shown_in: &["FLR-02"],
        noticed_by: &["FLR-02"],
        fault: Fault::Events(|_, event| {
            let failed = event.kind == EventKind::Stopped && own_reason(&event) == "StartError";
            let mut started = event.clone();
            started.kind = EventKind::Started;
            let started = failed.then(|| at_once(started));
            started.into_iter().chain([at_once(event)]).collect()
        }),
    },
];

pub(super) fn at_once(event: Event) -> Delivery {
    Delivery::after(Duration::ZERO, event)
}

fn unless(lost: bool, event: Event) -> Vec<Delivery> {
    if lost {
        Vec::new()
    } else {
        vec![at_once(event)]
    }
}

/// Ends a stream in the place of the event that follows the first STARTED of a container.
fn end(passage: &mut Passage<'_>, event: Event, end: StreamEnd) -> Vec<Delivery> {
    if over(passage, &event) {
        vec![Delivery::End(Duration::ZERO, end)]
    } else {
        vec![at_once(event)]
    }
}

/// Whether a stream has brought the STARTED of a container before, not counting what was queued.
fn over(passage: &mut Passage<'_>, event: &Event) -> bool {
    const QUEUED_NS: i64 = SECOND_NS / 2;
    let over = !passage.held.is_empty();
    let age_ns = passage.at.realtime_ns.saturating_sub(event.created_at.0);
    let started = event.kind == EventKind::Started && !is_of_sandbox(event);
    if started && age_ns < QUEUED_NS && !over {
        passage.held.push(event.clone());
    }
    over
}

fn again(event: Event, kind: EventKind, after: Duration) -> Vec<Delivery> {
    let repeated = event.kind == kind;
    let again = repeated.then(|| Delivery::after(after, event.clone()));
    [at_once(event)].into_iter().chain(again).collect()
}

pub(super) fn is_of_sandbox(event: &Event) -> bool {
    let sandbox = event.sandbox.as_ref();
    sandbox.is_some_and(|sandbox| sandbox.id.as_str() == event.container.as_str())
}

pub(super) fn own_reason(event: &Event) -> &str {
    event.own_status().map_or("", |status| &*status.reason)
}
