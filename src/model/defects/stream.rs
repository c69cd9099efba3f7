//! What can happen to events on their way. Long, because a table reads best when it is whole.

use std::time::Duration;

use super::{Defect, Fault};
use crate::history::{
    CallFault, ContainerId, ContainerState, ContainerStatus, Event, EventKind, Labels, PodUid,
    RuntimeNanos, SandboxId, SandboxState, Shared, StatusCode, StreamEnd, Text,
};
use crate::model::{Delivery, Passage};

const MILLISECOND_NS: i64 = 1_000_000;
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
    // Sandbox status.
    Defect {
        name: "no-sandbox",
        what: "No event has a pod_sandbox_status.",
        imitates: "containerd/containerd#8047, kubernetes/kubernetes#114371 (the kubelet panicked)",
        requirements: &["R12"],
        shown_in: &["SNP-01"],
        noticed_by: &["SNP-01", "INV-06"],
        fault: Fault::Events(|_, mut event| {
            event.sandbox = None;
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "no-sandbox-in-deleted",
        what: "DELETED has no pod_sandbox_status.",
        imitates: "containerd/containerd#12418",
        requirements: &["R12"],
        shown_in: &["SNP-01", "SBX-04"],
        noticed_by: &["SNP-01", "SBX-04", "INV-06"],
        fault: Fault::Events(|_, mut event| {
            event.sandbox = event.sandbox.filter(|_| event.kind != EventKind::Deleted);
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "no-sandbox-metadata",
        what: "The pod_sandbox_status of STOPPED has no metadata.",
        imitates: "kubernetes/kubernetes#114351",
        requirements: &["R12"],
        shown_in: &["STP-01"],
        noticed_by: &["INV-06"],
        fault: Fault::Events(|_, mut event| {
            if let Some(sandbox) = event
                .sandbox
                .as_mut()
                .filter(|_| event.kind == EventKind::Stopped)
            {
                sandbox.metadata = None;
            }
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "empty-uid",
        what: "The pod_sandbox_status of STOPPED has an empty UID.",
        imitates: "KEP-3386, 2026: an event without a UID cannot be matched to a pod",
        requirements: &["R12"],
        shown_in: &["STP-01"],
        noticed_by: &["INV-06"],
        fault: Fault::Events(|_, event| with_uid_in_stopped(event, "")),
    },
    Defect {
        name: "foreign-uid",
        what: "STOPPED tells the UID of another pod.",
        imitates: "CRI-O main: snapshots are selected by label and mix sandboxes",
        requirements: &["R12", "R13"],
        shown_in: &["STP-01"],
        noticed_by: &["INV-06"],
        fault: Fault::Events(|_, event| with_uid_in_stopped(event, "another-pod")),
    },
    Defect {
        name: "foreign-sandbox",
        what: "STOPPED tells the id of another sandbox.",
        imitates: "CRI-O main: snapshots are selected by label and mix sandboxes",
        requirements: &["R13"],
        shown_in: &["ORD-01", "SNP-02"],
        noticed_by: &["INV-13", "INV-18", "SNP-02"],
        fault: Fault::Events(|_, mut event| {
            let stopped = event.kind == EventKind::Stopped;
            if let Some(sandbox) = event.sandbox.as_mut().filter(|_| stopped) {
                sandbox.id = SandboxId::from("another-sandbox");
            }
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "sandbox-always-ready",
        what: "Events tell that the sandbox is READY, also when it has stopped.",
        imitates: "catalogue: a sandbox's state that is not of the event's time",
        requirements: &["R13"],
        shown_in: &["SBX-04", "SNP-11"],
        noticed_by: &["INV-18", "SNP-11"],
        fault: Fault::Events(|_, mut event| {
            if let Some(sandbox) = event.sandbox.as_mut() {
                sandbox.state = SandboxState::Ready;
            }
            vec![at_once(event)]
        }),
    },
    // Container statuses.
    Defect {
        name: "zero-status",
        what: "Snapshots have an element in which nothing is set.",
        imitates: "cri-o/cri-o#9663 (the kubelet panicked)",
        requirements: &["R16"],
        shown_in: &["ORD-01", "SNP-03"],
        noticed_by: &["INV-07", "SNP-03"],
        fault: Fault::Events(|_, mut event| {
            event.containers.push(Shared::from(ContainerStatus {
                id: ContainerId::default(),
                metadata: None,
                state: ContainerState::Created,
                created_at: RuntimeNanos(0),
                started_at: RuntimeNanos(0),
                finished_at: RuntimeNanos(0),
                exit_code: 0,
                image: None,
                image_ref: Text::default(),
                reason: Text::default(),
                message: String::new(),
                labels: Labels::new(),
                annotations: Labels::new(),
                details: None,
            }));
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "no-image",
        what: "Statuses in events have no image.",
        imitates: "cri-o/cri-o#9663",
        requirements: &["R16"],
        shown_in: &["ORD-01"],
        noticed_by: &["INV-07", "INV-13"],
        fault: Fault::Events(|_, mut event| {
            event
                .containers
                .iter_mut()
                .for_each(|status| status.image = None);
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "own-status-missing",
        what: "Snapshots lack the event's own container.",
        imitates: "CRI-O main: a container without the pod's label is not in the snapshot",
        requirements: &["R15", "R17"],
        shown_in: &["SNP-04", "STP-01", "MUL-02", "SNP-14"],
        noticed_by: &["SNP-04", "STP-01", "MUL-02", "INV-13", "INV-14", "SNP-14"],
        fault: Fault::Events(|_, mut event| {
            event
                .containers
                .retain(|status| status.id != event.container);
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "own-status-twice",
        what: "Snapshots have the event's own container twice.",
        imitates: "CRI-O main: snapshots of two sandboxes of a pod are mixed",
        requirements: &["R15"],
        shown_in: &["SNP-04"],
        noticed_by: &["SNP-04", "INV-14"],
        fault: Fault::Events(|_, mut event| {
            event.containers.extend(event.own_status().cloned());
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "own-status-in-deleted",
        what: "DELETED still shows its container.",
        imitates: "containerd main: DELETED of a sandbox is sent before the store forgets it",
        requirements: &["R17"],
        shown_in: &["SNP-04"],
        noticed_by: &["SNP-04", "INV-08"],
        fault: Fault::Events(|passage, mut event| {
            if event.kind == EventKind::Deleted {
                let held = passage
                    .held
                    .iter()
                    .find(|held| held.container == event.container);
                event
                    .containers
                    .extend(held.and_then(Event::own_status).cloned());
            } else if event.kind == EventKind::Stopped {
                keep(passage, &event);
            }
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "state-too-old",
        what: "The snapshot of STOPPED shows the container RUNNING.",
        imitates: "kubernetes/kubernetes#127086",
        requirements: &["R17", "R21"],
        shown_in: &["STP-01", "SNP-08"],
        noticed_by: &["INV-08", "SNP-08"],
        fault: Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                for status in event
                    .containers
                    .iter_mut()
                    .filter(|status| status.id == event.container)
                {
                    status.state = ContainerState::Running;
                }
            }
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "siblings-go-back",
        what: "Snapshots show the event's siblings as they were first.",
        imitates: "containerd 2.1.9, measured: of two exits at once, the later event has the older snapshot",
        requirements: &["R20", "R21"],
        shown_in: &["SNP-04", "SNP-07"],
        noticed_by: &["INV-09", "SNP-07"],
        fault: Fault::Events(|passage, mut event| {
            keep(passage, &event);
            let own = event.container.clone();
            for status in event
                .containers
                .iter_mut()
                .filter(|status| status.id != own)
            {
                let first = passage.held.iter().find(|held| held.container == status.id);
                if let Some(first) = first.and_then(Event::own_status) {
                    status.clone_from(first);
                }
            }
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "siblings-missing",
        what: "Snapshots show the event's own container alone.",
        imitates: "kubernetes/kubernetes#121003 (what looked gone was created again)",
        requirements: &["R15"],
        shown_in: &["SNP-04", "SNP-05", "REL-04"],
        noticed_by: &["INV-15", "SNP-05", "REL-04"],
        fault: Fault::Events(|_, mut event| {
            event
                .containers
                .retain(|status| status.id == event.container);
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "unlabelled-missing",
        what: "Snapshots lack containers that do not carry the label of their pod's UID.",
        imitates: "CRI-O main, getContainerStatuses: selected by that label",
        requirements: &["R15", "R17"],
        shown_in: &["SNP-06"],
        noticed_by: &["SNP-06"],
        fault: Fault::Events(|_, mut event| {
            let label = "io.kubernetes.pod.uid";
            event
                .containers
                .retain(|status| status.labels.contains_key(label));
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "no-mounts",
        what: "Statuses in events tell of no mounts.",
        imitates: "catalogue: an event's status is shorter than that of ContainerStatus",
        requirements: &["R16"],
        shown_in: &["SNP-10"],
        noticed_by: &["SNP-10"],
        fault: Fault::Events(|_, mut event| {
            let statuses = event.containers.iter_mut();
            for details in statuses.filter_map(|status| status.details.as_mut()) {
                details.mounts.clear();
            }
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "no-annotations",
        what: "Statuses in events have no annotations.",
        imitates: "kubelet toKubeContainerStatus: hash and restart count are annotations",
        requirements: &["R16", "R27"],
        shown_in: &["SNP-10", "SNP-13"],
        noticed_by: &["SNP-10", "SNP-13"],
        fault: Fault::Events(|_, mut event| {
            let containers = event.containers.iter_mut();
            containers.for_each(|status| status.annotations = Labels::new());
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "no-finished-at",
        what: "STOPPED does not tell when its container has exited.",
        imitates: "cri-o/cri-o#6404 (the status was not brought up to date before the event)",
        requirements: &["R17"],
        shown_in: &["ORD-01", "TIM-05"],
        noticed_by: &["INV-17", "TIM-05"],
        fault: Fault::Events(|_, mut event| {
            if event.kind == EventKind::Stopped {
                own(&mut event, |status| status.finished_at = RuntimeNanos(0));
            }
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "state-too-new",
        what: "The snapshot of CREATED shows the container RUNNING.",
        imitates: "catalogue: a snapshot that is not of its time",
        requirements: &["R17", "R22"],
        shown_in: &["ORD-01", "ORD-05"],
        noticed_by: &["INV-09", "INV-19"],
        fault: Fault::Events(|_, mut event| {
            if event.kind == EventKind::Created {
                own(&mut event, |status| {
                    status.state = ContainerState::Running;
                    status.started_at = status.created_at;
                });
            }
            vec![at_once(event)]
        }),
    },
    Defect {
        name: "bulky-stopped",
        what: "An event of a pod with thirty containers or more has a message of 5 MiB.",
        imitates: "catalogue: a stream that dies of RESOURCE_EXHAUSTED, as clients take 4 MiB",
        requirements: &["R1"],
        shown_in: &["STR-13"],
        noticed_by: &["STR-13"],
        fault: Fault::Events(|passage, mut event| {
            let is_first = passage.held.is_empty() && event.kind == EventKind::Stopped;
            if event.containers.len() >= 30 && is_first {
                passage.held.push(event.clone());
                event.containers[0].message = "x".repeat(5 << 20);
            }
            vec![at_once(event)]
        }),
    },
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

fn at(created_at: i64, mut event: Event) -> Vec<Delivery> {
    event.created_at = RuntimeNanos(created_at);
    vec![at_once(event)]
}

/// Keeps the first event of each container. Of many, the oldest are forgotten.
fn keep(passage: &mut Passage<'_>, event: &Event) {
    const KEPT: usize = 1_000;
    if passage
        .held
        .iter()
        .any(|held| held.container == event.container)
    {
        return;
    }
    if passage.held.len() == KEPT {
        passage.held.remove(0);
    }
    passage.held.push(event.clone());
}

fn with_uid_in_stopped(mut event: Event, uid: &str) -> Vec<Delivery> {
    let stopped = event.kind == EventKind::Stopped;
    let sandbox = event.sandbox.as_mut().filter(|_| stopped);
    if let Some(metadata) = sandbox.and_then(|sandbox| sandbox.metadata.as_mut()) {
        metadata.uid = PodUid::from(uid);
    }
    vec![at_once(event)]
}

pub(super) fn is_of_sandbox(event: &Event) -> bool {
    let sandbox = event.sandbox.as_ref();
    sandbox.is_some_and(|sandbox| sandbox.id.as_str() == event.container.as_str())
}

fn own_reason(event: &Event) -> &str {
    event.own_status().map_or("", |status| &*status.reason)
}

fn own(event: &mut Event, change: fn(&mut ContainerStatus)) {
    let own = event.container.clone();
    let statuses = event.containers.iter_mut();
    statuses
        .filter(|status| status.id == own)
        .for_each(|status| change(status));
}
