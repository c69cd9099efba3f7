//! What an event can show wrong of its sandbox, and of the containers in it.

use super::stream::at_once;
use super::{Defect, Fault};
use crate::history::{
    ContainerId, ContainerState, ContainerStatus, Event, EventKind, Labels, PodUid, Reply,
    RuntimeNanos, SandboxId, SandboxState, Shared, Text,
};
use crate::model::{Delivery, Passage};

pub(super) const STATUSES: &[Defect] = &[
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
        name: "no-image-ref-once-exited",
        what: "Neither events nor ContainerStatus have the image_ref of what has exited.",
        imitates: "catalogue: what is looked up with a task is gone with it",
        requirements: &["R16"],
        shown_in: &["ORD-01"],
        noticed_by: &["INV-07"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.events.push(|_, mut event| {
                let exited =
                    |status: &&mut Shared<ContainerStatus>| status.state == ContainerState::Exited;
                let containers = event.containers.iter_mut();
                let exited = containers.filter(exited);
                exited.for_each(|status| status.image_ref = Text::default());
                vec![at_once(event)]
            });
            behaviour.replies.push(|_, mut answer| {
                if let Ok(Reply::ContainerStatus(report)) = &mut answer.result
                    && report.status.state == ContainerState::Exited
                {
                    report.status.image_ref = Text::default();
                }
                answer
            });
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
        name: "snapshot-lost-in-a-removal",
        what: "The event that follows a DELETED in its sandbox shows no container at all.",
        imitates: "catalogue: a list of statuses that is given up when one of them is gone meanwhile",
        requirements: &["R15"],
        shown_in: &["SNP-03"],
        noticed_by: &["SNP-03", "INV-24"],
        fault: Fault::Events(|passage, mut event| {
            let of_same = |held: &Event| held.pod_uid() == event.pod_uid();
            let follows = passage.held.iter().any(of_same);
            passage.held.clear();
            if event.kind == EventKind::Deleted {
                passage.held.push(event.clone());
            } else if follows {
                event.containers.clear();
            }
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
];

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

pub(super) fn own(event: &mut Event, change: fn(&mut ContainerStatus)) {
    let own = event.container.clone();
    let statuses = event.containers.iter_mut();
    statuses
        .filter(|status| status.id == own)
        .for_each(|status| change(status));
}
