//! What can be wrong with lists by filters, and with what only some pods have: another handler, a
//! network or a limit of their own, many long annotations, a thing in them that no list shows.

use super::{Defect, Fault};
use crate::history::{ContainerId, ContainerState, Event, EventKind, Reply, Request, SandboxState};
use crate::model::{Delivery, ExitNotice, Offer, PodKill, StopSignals, Transition};

pub(super) const OFFERS: &[Defect] = &[
    Defect {
        name: "ok-where-events-are-off",
        what: "Events are switched off, and a stream ends at once with OK.",
        imitates: "cri-o/cri-o#7164 (enable_pod_events = false)",
        requirements: &["R2"],
        shown_in: &["FEA-02"],
        noticed_by: &["FEA-02"],
        fault: Fault::Behaviour(|behaviour| behaviour.offer = Offer::Closed),
    },
    Defect {
        name: "filter-hides-what-has-ended",
        what: "Lists by a state leave out what has ended, whatever state is asked for.",
        imitates: "catalogue: a filter that looks at an index of what runs",
        requirements: &["R27"],
        shown_in: &["REL-08"],
        noticed_by: &["REL-08"],
        fault: Fault::Replies(|request, mut answer| {
            match (request, &mut answer.result) {
                (Request::FindContainers(filter), Ok(Reply::Containers(listed)))
                    if filter.state.is_some() =>
                {
                    listed.retain(|listed| listed.state != ContainerState::Exited);
                }
                (Request::FindSandboxes(filter), Ok(Reply::Sandboxes(listed)))
                    if filter.state.is_some() =>
                {
                    listed.retain(|listed| listed.state != SandboxState::NotReady);
                }
                _ => {}
            }
            answer
        }),
    },
    Defect {
        name: "streamed-list-repeats",
        what: "A list that is streamed has its first item twice.",
        imitates: "catalogue: the last item of a batch is the first of the next",
        requirements: &["R27"],
        shown_in: &["REL-09"],
        noticed_by: &["REL-09"],
        fault: Fault::Replies(|request, mut answer| {
            match (request, &mut answer.result) {
                (Request::FindContainers(filter), Ok(Reply::Containers(listed)))
                    if filter.streamed =>
                {
                    listed.extend(listed.first().cloned());
                }
                (Request::FindSandboxes(filter), Ok(Reply::Sandboxes(listed)))
                    if filter.streamed =>
                {
                    listed.extend(listed.first().cloned());
                }
                _ => {}
            }
            answer
        }),
    },
    Defect {
        name: "no-events-of-another-handler",
        what: "Pods that ask for a runtime handler by its name have no events.",
        imitates: "containerd/containerd#7658 (no events by another controller of sandboxes)",
        requirements: &["R6"],
        shown_in: &["FEA-07"],
        noticed_by: &["FEA-07"],
        fault: Fault::Events(|_, event| {
            let sandbox = event.sandbox.as_ref();
            let handler = sandbox.is_some_and(|sandbox| !sandbox.runtime_handler.is_empty());
            if handler {
                Vec::new()
            } else {
                Delivery::now(event)
            }
        }),
    },
    Defect {
        name: "no-stopped-with-a-network",
        what: "What has a network of its own has no STOPPED.",
        imitates: "cri-o/cri-o#6699 (STOPPED never came), where a network has to be taken down",
        requirements: &["R6"],
        shown_in: &["SBX-09"],
        noticed_by: &["SBX-09"],
        fault: Fault::Events(|_, event| {
            let sandbox = event.sandbox.as_ref();
            let network = sandbox.is_some_and(|sandbox| !sandbox.ips.is_empty());
            if network && event.kind == EventKind::Stopped {
                Vec::new()
            } else {
                Delivery::now(event)
            }
        }),
    },
    Defect {
        name: "no-addresses",
        what: "Events do not tell the addresses of a pod.",
        imitates: "kubelet evented.go, getPodIPs: it keeps old addresses because events lack them",
        requirements: &["R13"],
        shown_in: &["SNP-12"],
        noticed_by: &["SNP-12"],
        fault: Fault::Events(|_, mut event| {
            if let Some(sandbox) = &mut event.sandbox {
                sandbox.ips.clear();
            }
            Delivery::now(event)
        }),
    },
    Defect {
        name: "large-events-lost",
        what: "Events whose annotations have more than 256 KiB are lost.",
        imitates: "catalogue: a limit on messages, where each event carries all statuses",
        requirements: &["R6"],
        shown_in: &["STR-13"],
        noticed_by: &["STR-13"],
        fault: Fault::Events(|_, event| {
            let annotations = |event: &Event| -> usize {
                let statuses = event.containers.iter();
                let values = statuses.flat_map(|status| status.annotations.values());
                values.map(|value| value.len()).sum()
            };
            if annotations(&event) > 256 << 10 {
                Vec::new()
            } else {
                Delivery::now(event)
            }
        }),
    },
    Defect {
        name: "own-stop-signal-not-sent",
        what: "A container's own stop signal is told, and StopContainer sends SIGTERM.",
        imitates: "catalogue: a stop signal that is stored and not used",
        requirements: &["R17"],
        shown_in: &["STP-04"],
        noticed_by: &["STP-04"],
        fault: Fault::Behaviour(|behaviour| behaviour.stop_signals = StopSignals::Told),
    },
    Defect {
        name: "told-of-the-target",
        what: "The exit of a container in another's PID namespace is told as the other's STOPPED.",
        imitates: "catalogue: a container that is looked up by its PID namespace",
        requirements: &["R11", "R17"],
        shown_in: &["MUL-05"],
        noticed_by: &["MUL-05"],
        fault: Fault::Behaviour(|behaviour| behaviour.mistakes_targets = true),
    },
    Defect {
        name: "no-stopped-with-the-target",
        what: "A container that ends with the one whose PID namespace it has joined has no STOPPED.",
        imitates: "catalogue: an exit that is taken for a part of another's",
        requirements: &["R6"],
        shown_in: &["MUL-05"],
        noticed_by: &["MUL-05", "INV-11"],
        fault: Fault::Behaviour(|behaviour| behaviour.untold = &[Transition::EndWithTarget]),
    },
    Defect {
        name: "exit-waits-for-the-output",
        what: "An exit is noticed when no child of the process holds its output open any more.",
        imitates: "moby/moby#43491, containerd/containerd#6402 (exits that are never reported)",
        requirements: &["R6"],
        shown_in: &["EXT-06"],
        noticed_by: &["EXT-06"],
        fault: Fault::Behaviour(|behaviour| behaviour.exit_notice = ExitNotice::AtEndOfOutput),
    },
    Defect {
        name: "oom-group-lives-on",
        what: "A container that an OOM kill shall take as a whole lives on when a child is killed.",
        imitates: "catalogue: what is to be set in a cgroup of version 2 is left out",
        requirements: &["R17", "C6"],
        shown_in: &["OOM-05"],
        noticed_by: &["OOM-05"],
        fault: Fault::Behaviour(|behaviour| behaviour.heeds_oom_groups = false),
    },
    Defect {
        name: "started-of-an-unknown-id",
        what: "STARTED comes once more, of an id that no list shows.",
        imitates: "catalogue: the event of a helper that is no container of the CRI",
        requirements: &["R11"],
        shown_in: &["ORD-01"],
        noticed_by: &["INV-10"],
        fault: Fault::Events(|_, event| {
            let mut deliveries = Delivery::now(event.clone());
            if event.kind == EventKind::Started {
                let reversed: String = event.container.as_str().chars().rev().collect();
                let container = ContainerId::from(format!("helper-{reversed}"));
                deliveries.extend(Delivery::now(Event { container, ..event }));
            }
            deliveries
        }),
    },
    Defect {
        name: "oom-kill-by-the-pods-limit-is-an-error",
        what: "The reason of an OOM kill by the limit of the pod is Error.",
        imitates: "containerd commit 7275411ec (the count is the parent cgroup's)",
        requirements: &["C6"],
        shown_in: &["OOM-06"],
        noticed_by: &["OOM-06"],
        fault: Fault::Behaviour(|behaviour| behaviour.pod_kill = PodKill::Nobody),
    },
    Defect {
        name: "oom-kill-by-the-pods-limit-marks-all",
        what: "An OOM kill by the limit of the pod is told as the reason of all its containers.",
        imitates: "cgroups of version 1, which notify all cgroups below the limit",
        requirements: &["R17"],
        shown_in: &["OOM-06"],
        noticed_by: &["OOM-06"],
        fault: Fault::Behaviour(|behaviour| behaviour.pod_kill = PodKill::Everybody),
    },
    Defect {
        name: "oom-kill-by-the-pods-limit-ends-all",
        what: "An OOM kill by the limit of the pod ends all its containers.",
        imitates: "kubernetes/kubernetes#117793 (memory.oom.group), at the pod's cgroup",
        requirements: &["R6"],
        shown_in: &["OOM-06"],
        noticed_by: &["OOM-06"],
        fault: Fault::Behaviour(|behaviour| behaviour.pod_kill = PodKill::EndsAll),
    },
];
