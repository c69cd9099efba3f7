//! What can be wrong with who gets events, when, and for how long.

use std::time::Duration;

use super::{Defect, Fault};
use crate::history::{EventKind, StreamEnd};
use crate::model::{Audience, Delivery, FullQueue, Replay};

pub(super) const SUBSCRIBERS: &[Defect] = &[
    Defect {
        name: "shared-channel",
        what: "Each event goes to one subscriber alone.",
        imitates: "containerd/containerd#7318 (one channel for all subscribers)",
        requirements: &["R3"],
        shown_in: &["STR-05"],
        noticed_by: &["STR-05", "INV-12"],
        fault: Fault::Behaviour(|behaviour| behaviour.audience = Audience::InTurns),
    },
    Defect {
        name: "newest-subscriber-only",
        what: "Events go to the subscriber that came last.",
        imitates: "catalogue: one slot for a subscriber",
        requirements: &["R3"],
        shown_in: &["STR-05"],
        noticed_by: &["STR-05", "INV-12"],
        fault: Fault::Behaviour(|behaviour| behaviour.audience = Audience::Newest),
    },
    Defect {
        name: "oldest-subscriber-only",
        what: "Events go to the subscriber that came first.",
        imitates: "catalogue: one slot for a subscriber",
        requirements: &["R3"],
        shown_in: &["STR-05"],
        noticed_by: &["STR-05"],
        fault: Fault::Behaviour(|behaviour| behaviour.audience = Audience::Oldest),
    },
    Defect {
        name: "zombie-subscribers",
        what: "A subscriber that has gone takes the next event with it.",
        imitates: "containerd/containerd#7318 (its end is noticed when sending fails)",
        requirements: &["R3"],
        shown_in: &["STR-09", "STR-10", "STR-15"],
        noticed_by: &["STR-09", "STR-10", "STR-15"],
        fault: Fault::Behaviour(|behaviour| behaviour.zombies = true),
    },
    Defect {
        name: "latest-events-for-new-subscribers",
        what: "A new subscriber is told the latest events again.",
        imitates: "catalogue: a replay that is not declared",
        requirements: &["R30"],
        shown_in: &["STR-02", "STR-06a"],
        noticed_by: &["STR-02", "STR-06a"],
        fault: Fault::Behaviour(|behaviour| behaviour.replay = Replay::Latest),
    },
    Defect {
        name: "replay-of-the-tail",
        what: "Of what nobody has listened to, the first subscriber gets the last two events.",
        imitates: "containerd 2.1.9, measured (a subscriber that has gone swallows the first)",
        requirements: &["R30"],
        shown_in: &["STR-06b", "REC-04", "STR-07"],
        noticed_by: &["STR-06b", "REC-04", "STR-07"],
        fault: Fault::Behaviour(|behaviour| behaviour.replay = Replay::TailToFirst),
    },
    Defect {
        name: "replay-for-each-subscriber",
        what: "What nobody has listened to is sent to every subscriber that comes after that.",
        imitates: "catalogue: a queue that is not emptied when it has been sent",
        requirements: &["R8", "R30"],
        shown_in: &["REC-03", "STR-06b"],
        noticed_by: &["INV-25"],
        fault: Fault::Behaviour(|behaviour| behaviour.replay = Replay::ToEach),
    },
    Defect {
        name: "late-subscription",
        what: "A subscription becomes effective after 300 ms.",
        imitates: "catalogue: a subscriber that is registered in the background",
        requirements: &["R3"],
        shown_in: &["REC-06"],
        noticed_by: &["REC-06", "INV-12"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.effective_after = Duration::from_millis(300);
        }),
    },
    Defect {
        name: "headers-with-the-first-event",
        what: "The headers of the response come with the first event.",
        imitates: "containerd 1.7 and 2.1, measured (grpc-go sends them so)",
        requirements: &["R2"],
        shown_in: &["FEA-05"],
        noticed_by: &["FEA-05"],
        fault: Fault::Behaviour(|behaviour| behaviour.answers_at_once = false),
    },
    Defect {
        name: "wedged-by-a-slow-reader",
        what: "When a subscriber does not read, nobody gets any more events.",
        imitates: "containerd 2.1.9, measured; CRI-O main (it sends to one after the other)",
        requirements: &["R5"],
        shown_in: &["STR-08"],
        noticed_by: &["STR-08"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.queue = 100;
            behaviour.full_queue = FullQueue::Wedge;
        }),
    },
    Defect {
        name: "lists-wait-for-a-slow-reader",
        what: "While a subscriber does not read, ListContainers is not answered.",
        imitates: "catalogue: a lock that is held while an event is sent",
        requirements: &["R5"],
        shown_in: &["STR-17"],
        noticed_by: &["STR-17"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.queue = 20;
            behaviour.full_queue = FullQueue::Wedge;
            behaviour.lists_wait_for_events = true;
        }),
    },
    Defect {
        name: "gap-for-a-slow-reader",
        what: "A subscriber that reads too late misses events, and is not told.",
        imitates: "containerd/containerd#8892 (a full channel discards events)",
        requirements: &["R5", "R6"],
        shown_in: &["STR-11", "STR-18"],
        noticed_by: &["STR-11", "STR-18"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.queue = 16;
            behaviour.full_queue = FullQueue::Drop;
        }),
    },
    Defect {
        name: "deadline-ignored",
        what: "A stream goes on after its deadline.",
        imitates: "CRI-O main, GetContainerEvents (it looks at its context with the next event)",
        requirements: &["R3"],
        shown_in: &["STR-12"],
        noticed_by: &["STR-12"],
        fault: Fault::Behaviour(|behaviour| behaviour.heeds_deadlines = false),
    },
    Defect {
        name: "idle-stream-ends",
        what: "A stream is ended with OK after three seconds.",
        imitates: "catalogue: a server's deadline for streams",
        requirements: &["R1"],
        shown_in: &["FEA-04a", "FEA-04b"],
        noticed_by: &["FEA-04a", "FEA-04b"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.streams_last = Some(Duration::from_secs(3));
        }),
    },
    Defect {
        name: "stream-ends-after-half-a-minute",
        what: "A stream is ended with OK after thirty seconds.",
        imitates: "catalogue: a server's time limit for what is idle",
        requirements: &["R1"],
        shown_in: &["FEA-04c", "REC-03"],
        noticed_by: &["FEA-04c", "INV-21"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.streams_last = Some(Duration::from_secs(30));
        }),
    },
    Defect {
        name: "fiftieth-event-ends-the-stream",
        what: "In the place of its fiftieth event a stream is ended with OK.",
        imitates: "catalogue: a stream that is counted out",
        requirements: &["R1"],
        shown_in: &["REC-01"],
        noticed_by: &["REC-01", "INV-21"],
        fault: Fault::Stream(|passage, event| {
            if passage.nth == 49 {
                vec![Delivery::End(Duration::ZERO, StreamEnd::Closed)]
            } else {
                Delivery::now(event)
            }
        }),
    },
    Defect {
        name: "events-by-the-dozen",
        what: "Events are sent when twelve have gathered.",
        imitates: "catalogue: a proxy that buffers",
        requirements: &["R31"],
        shown_in: &["STR-01"],
        noticed_by: &["STR-01"],
        fault: Fault::Stream(|passage, event| {
            passage.held.push(event);
            if passage.held.len() < 12 {
                return Vec::new();
            }
            let gathered = std::mem::take(passage.held);
            gathered.into_iter().flat_map(Delivery::now).collect()
        }),
    },
    Defect {
        name: "each-subscriber-misses-another",
        what: "Each subscriber misses each seventh DELETED of its own stream.",
        imitates: "containerd/containerd#9652 (events are lost for one subscriber alone)",
        requirements: &["R3", "R6"],
        shown_in: &["STR-04", "FEA-06", "STR-14"],
        noticed_by: &["STR-04", "INV-12", "FEA-06", "STR-14"],
        fault: Fault::Events(|passage, event| {
            if event.kind != EventKind::Deleted {
                return Delivery::now(event);
            }
            passage.held.push(event.clone());
            if passage.held.len() % 7 == 0 {
                return Vec::new();
            }
            Delivery::now(event)
        }),
    },
];
