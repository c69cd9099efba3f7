//! What the model can do otherwise: wrongly, or within what is permitted.

use std::time::Duration;

use super::replies::behind;
use super::{Defect, Fault, Variation};
use crate::history::{EventKind, Reply, SandboxReport};
use crate::model::{
    Answer, ChildKill, Delivery, ExitNotice, NonTransition, Order, Replay, StopSignals, Transition,
};

pub(super) const BEHAVIOUR: &[Defect] = &[
    // Transitions that are not told.
    Defect {
        name: "no-stopped-after-failed-start",
        what: "A container that could not be started is EXITED, and no STOPPED says so.",
        imitates: "containerd 1.7 and 2.1, measured",
        requirements: &["R6", "R23"],
        shown_in: &["FLR-02", "FLR-03", "FLR-10", "FLR-10a"],
        noticed_by: &["FLR-02", "FLR-03", "FLR-10", "FLR-10a", "INV-11"],
        fault: Fault::Behaviour(|behaviour| behaviour.untold = &[Transition::FailedStart]),
    },
    Defect {
        name: "no-stopped-on-forced-removal",
        what: "A running container that is removed is not told to have stopped.",
        imitates: "CRI-O main, handleExit: a container that is gone is passed over",
        requirements: &["R6"],
        shown_in: &["STP-06"],
        noticed_by: &["STP-06", "INV-11"],
        fault: Fault::Behaviour(|behaviour| behaviour.untold = &[Transition::ForcedRemoval]),
    },
    Defect {
        name: "no-stopped-with-the-sandbox",
        what: "Containers that end with their sandbox are not told to have stopped.",
        imitates: "cri-o/cri-o#6699 (STOPPED never came)",
        requirements: &["R6", "R23"],
        shown_in: &["SBX-03", "SBX-05"],
        noticed_by: &["SBX-03", "SBX-05", "INV-11"],
        fault: Fault::Behaviour(|behaviour| behaviour.untold = &[Transition::EndWithSandbox]),
    },
    Defect {
        name: "no-deleted-with-the-sandbox",
        what: "Containers that are removed with their sandbox are not told to be deleted.",
        imitates: "CRI-O main, RemovePodSandbox",
        requirements: &["R6"],
        shown_in: &["SBX-04", "SBX-05", "SBX-06"],
        noticed_by: &["SBX-04", "SBX-05", "SBX-06", "INV-11"],
        fault: Fault::Behaviour(|behaviour| behaviour.untold = &[Transition::RemovalWithSandbox]),
    },
    Defect {
        name: "no-stopped-after-a-failed-deletion",
        what: "An exit is not told where the low-level runtime dies as it clears away.",
        imitates: "catalogue: what has ended is deleted first and told then",
        requirements: &["R6", "R23"],
        shown_in: &["FLR-10c"],
        noticed_by: &["FLR-10c"],
        fault: Fault::Behaviour(|behaviour| behaviour.untold = &[Transition::EndInCrash]),
    },
    // What did not happen is told.
    Defect {
        name: "stopped-for-a-repeated-stop",
        what: "Each StopContainer sends STOPPED, also of what has stopped before.",
        imitates: "cri-o/cri-o#6631",
        requirements: &["R8"],
        shown_in: &["CMP-02", "SBX-02"],
        noticed_by: &["CMP-02", "SBX-02", "INV-02"],
        fault: Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::RepeatedStop]),
    },
    Defect {
        name: "stopped-for-what-never-ran",
        what: "A container that was never started is told to have stopped when it is removed.",
        imitates: "CRI-O main, RemoveContainer",
        requirements: &["R6"],
        shown_in: &["CMP-08"],
        noticed_by: &["CMP-08"],
        fault: Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::EndOfNeverRun]),
    },
    // What PodSandboxStatus tells of containers.
    Defect {
        name: "report-without-statuses",
        what: "PodSandboxStatus tells when it read the containers, and none of them.",
        imitates: "containerd/containerd#11312 (containerd 2.0: a pod seems to have no containers)",
        requirements: &["R24"],
        shown_in: &["CMP-05", "REL-05"],
        noticed_by: &["INV-22", "REL-05"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.reports_containers = true;
            behaviour
                .replies
                .push(|_, answer| reporting(answer, |report| report.containers.clear()));
        }),
    },
    Defect {
        name: "report-read-at-seconds",
        what: "PodSandboxStatus tells in seconds when it read the containers.",
        imitates: "cri-o/cri-o#8580",
        requirements: &["R25"],
        shown_in: &["CMP-05", "TIM-04"],
        noticed_by: &["INV-22", "TIM-04"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.reports_containers = true;
            behaviour
                .replies
                .push(|_, answer| reporting(answer, |report| report.timestamp.0 /= 1_000_000_000));
        }),
    },
    Defect {
        name: "report-read-before",
        what: "PodSandboxStatus tells a time at which it read the containers that is 500 ms ago.",
        imitates: "catalogue: the answer is as old as a cache of it",
        requirements: &["R25"],
        shown_in: &["CMP-05", "TIM-04"],
        noticed_by: &["INV-22", "TIM-04"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.reports_containers = true;
            behaviour
                .replies
                .push(|_, answer| reporting(answer, |report| report.timestamp.0 -= 500_000_000));
        }),
    },
    Defect {
        name: "report-is-behind",
        what: "PodSandboxStatus shows containers that run as CREATED, and exited ones as RUNNING.",
        imitates: "containerd/containerd#12600, in the answer that a kubelet asks no further after",
        requirements: &["R22", "R26"],
        shown_in: &["CMP-05"],
        noticed_by: &["INV-22"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.reports_containers = true;
            behaviour.replies.push(|_, answer| {
                reporting(answer, |report| {
                    for status in &mut report.containers {
                        status.state = behind(status.state);
                    }
                })
            });
        }),
    },
    Defect {
        name: "started-for-a-refused-start",
        what: "What runs or has exited is told to have started when a start of it is refused.",
        imitates: "kubernetes/kubernetes#122763 (a container was started twice)",
        requirements: &["R6", "R8"],
        shown_in: &["FLR-07"],
        noticed_by: &["FLR-07", "INV-02"],
        fault: Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::RefusedStart]),
    },
    Defect {
        name: "stopped-for-the-end-of-a-command",
        what: "The end of a command in a container is told as the container's STOPPED.",
        imitates: "containerd/cri#973",
        requirements: &["R6"],
        shown_in: &["NEG-01", "NEG-04", "NEG-07"],
        noticed_by: &["NEG-01", "NEG-04", "NEG-07"],
        fault: Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::ExecEnd]),
    },
    Defect {
        name: "started-for-a-call-that-changes-nothing",
        what: "Calls such as ContainerStats and UpdateContainerResources send STARTED again.",
        imitates: "catalogue: a call that passes for a transition",
        requirements: &["R6"],
        shown_in: &["NEG-05"],
        noticed_by: &["NEG-05", "INV-02"],
        fault: Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::Aside]),
    },
    Defect {
        name: "created-for-an-image",
        what: "Calls to the image service send CREATED of containers again.",
        imitates: "catalogue: events of images on the stream of containers",
        requirements: &["R6"],
        shown_in: &["NEG-06"],
        noticed_by: &["NEG-06"],
        fault: Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::ImageCall]),
    },
    Defect {
        name: "told-of-an-unknown-id",
        what: "Stopping and removing what there is not is told as its STOPPED and its DELETED.",
        imitates: "catalogue: an event that is made before the object is looked for",
        requirements: &["C1"],
        shown_in: &["CMP-04"],
        noticed_by: &["CMP-04"],
        fault: Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::UnknownId]),
    },
    Defect {
        name: "told-of-what-is-outside-the-cri",
        what: "Containers that were not made through the CRI are told, too, without a sandbox.",
        imitates: "catalogue: events of the runtime's core that are passed on unseen",
        requirements: &["R6"],
        shown_in: &["NEG-08"],
        noticed_by: &["NEG-08"],
        fault: Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::OutsideCri]),
    },
    Defect {
        name: "stopped-for-a-failed-kill",
        what: "A stop whose low-level runtime dies is told as STOPPED of what runs on.",
        imitates: "catalogue: an event that is sent before it is known how the call has ended",
        requirements: &["R6", "R8"],
        shown_in: &["FLR-10b"],
        noticed_by: &["FLR-10b", "INV-02"],
        fault: Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::FailedKill]),
    },
    // Exits.
    Defect {
        name: "exit-never-noticed",
        what: "The exit of a process by itself is not noticed.",
        imitates: "containerd/containerd#10603, containerd/containerd#10390 (RUNNING for ever)",
        requirements: &["R6"],
        shown_in: &["CMP-05", "FEA-01"],
        noticed_by: &["CMP-05", "FEA-01"],
        fault: Fault::Behaviour(|behaviour| behaviour.exit_notice = ExitNotice::Never),
    },
    Defect {
        name: "exit-noticed-when-asked",
        what: "The exit of a process is noticed when the next call comes.",
        imitates: "containers/conmon#545 (an exit is missed until somebody looks)",
        requirements: &["R6", "R31"],
        shown_in: &["CMP-05"],
        noticed_by: &["CMP-05"],
        fault: Fault::Behaviour(|behaviour| behaviour.exit_notice = ExitNotice::WhenAsked),
    },
    Defect {
        name: "exit-noticed-late",
        what: "The exit of a process is noticed eleven seconds later.",
        imitates: "cri-o/cri-o#6295 (the exit file is what is watched)",
        requirements: &["R31"],
        shown_in: &["CMP-05", "EXT-05"],
        noticed_by: &["CMP-05", "EXT-05"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.exit_notice = ExitNotice::Late(Duration::from_secs(11));
        }),
    },
    Defect {
        name: "exit-unwatched-after-a-restart",
        what: "The exit of what ran when the runtime was restarted is not noticed.",
        imitates: "containerd/containerd#10390 (exits that a restarted daemon does not handle)",
        requirements: &["R6", "R31"],
        shown_in: &["RST-07"],
        noticed_by: &["RST-07"],
        fault: Fault::Behaviour(|behaviour| behaviour.loses_monitors = true),
    },
    Defect {
        name: "exit-code-255",
        what: "Every exit code is 255.",
        imitates: "cri-o/cri-o#9846",
        requirements: &["R17"],
        shown_in: &["EXT-01", "EXT-03", "MUL-03"],
        noticed_by: &["EXT-01", "EXT-03", "MUL-03", "INV-20"],
        fault: Fault::Behaviour(|behaviour| behaviour.exit_code = |_| 255),
    },
    Defect {
        name: "exit-code-modulo-128",
        what: "Exit codes are told modulo 128.",
        imitates: "catalogue: a wait status that is read wrongly",
        requirements: &["R17"],
        shown_in: &["EXT-01", "EXT-02", "EXT-04"],
        noticed_by: &["EXT-01", "EXT-02", "EXT-04", "INV-20"],
        fault: Fault::Behaviour(|behaviour| behaviour.exit_code = |end| end.code % 128),
    },
    Defect {
        name: "core-dump-in-the-exit-code",
        what: "The exit code of a process that dumped its core is 256 and the signal.",
        imitates: "catalogue: a wait status that is read wrongly, by its bit for a core dump",
        requirements: &["R17"],
        shown_in: &["EXT-02", "EXT-04"],
        noticed_by: &["EXT-02", "EXT-04", "INV-20"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.exit_code = |end| match end.code {
                132 | 133 | 135 | 139 => end.code + 128,
                code => code,
            };
        }),
    },
    Defect {
        name: "death-told-at-the-signal",
        what: "STOPPED of a process that dies of a fault comes while its core is being read.",
        imitates: "catalogue: an end that is told before the process is gone",
        requirements: &["R6"],
        shown_in: &["EXT-04"],
        noticed_by: &["EXT-04"],
        fault: Fault::Behaviour(|behaviour| behaviour.tells_deaths_at_the_signal = true),
    },
    Defect {
        name: "killed-with-exit-code-0",
        what: "A process that was killed has the exit code 0.",
        imitates: "pelagos#343",
        requirements: &["R17"],
        shown_in: &["STP-02", "OOM-01", "EXT-02", "STP-03", "OOM-11"],
        noticed_by: &["STP-02", "OOM-01", "EXT-02", "STP-03", "OOM-11"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.exit_code = |end| if end.code == 137 { 0 } else { end.code };
        }),
    },
    Defect {
        name: "killed-with-its-sandbox-with-exit-code-0",
        what: "What StopPodSandbox kills has the exit code 0.",
        imitates: "catalogue: an exit status that is not waited for, as nobody asks for it any more",
        requirements: &["C8"],
        shown_in: &["SBX-03"],
        noticed_by: &["INV-20"],
        fault: Fault::Behaviour(|behaviour| behaviour.kill_with_sandbox = 0),
    },
    Defect {
        name: "oom-kill-is-an-error",
        what: "The reason of an OOM kill is Error.",
        imitates: "containerd/containerd#8180, cri-o/cri-o#4203",
        requirements: &["R17"],
        shown_in: &["OOM-01", "OOM-02", "OOM-07", "OOM-09", "OOM-12"],
        noticed_by: &["OOM-01", "OOM-02", "OOM-07", "OOM-09", "OOM-12"],
        fault: Fault::Behaviour(|behaviour| behaviour.exit_reason = |_| "Error"),
    },
    // Sandboxes that die.
    Defect {
        name: "sandbox-death-unnoticed",
        what: "The death of a sandbox's own process is not noticed.",
        imitates: "cri-o/cri-o#6295 (only the monitor's exit file is watched)",
        requirements: &["R6", "R23"],
        shown_in: &["SBX-07"],
        noticed_by: &["SBX-07"],
        fault: Fault::Behaviour(|behaviour| behaviour.notices_sandbox_deaths = false),
    },
    Defect {
        name: "dead-sandbox-is-not-stopped",
        what: "StopPodSandbox stops nothing where the sandbox's own process is dead.",
        imitates: "CRI-O 1.36, measured: the containers run on until the sandbox is removed",
        requirements: &["C2"],
        shown_in: &["SBX-07"],
        noticed_by: &["SBX-07"],
        fault: Fault::Behaviour(|behaviour| behaviour.stops_dead_sandboxes = false),
    },
    // Removing.
    Defect {
        name: "listed-after-deleted",
        what: "What has been removed is listed, and has its status, for half a second more.",
        imitates: "containerd main: DELETED is sent before the store forgets",
        requirements: &["R22", "R28"],
        shown_in: &["REL-03"],
        noticed_by: &["REL-03"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.forgets_after = Duration::from_millis(500);
        }),
    },
    // Stopping.
    Defect {
        name: "every-137-is-an-oom-kill",
        what: "The reason of whatever ends with exit code 137 is OOMKilled.",
        imitates: "shortcuts in runtimes that do not watch the kernel's count of OOM kills",
        requirements: &["R17"],
        shown_in: &["OOM-10"],
        noticed_by: &["OOM-10"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.exit_reason = |end| match end.code {
                137 => "OOMKilled",
                0 => "Completed",
                _ => "Error",
            };
        }),
    },
    Defect {
        name: "oom-kill-of-a-child-ends-it",
        what: "A container ends when a child of it is killed for its memory.",
        imitates: "kubernetes/kubernetes#104454 (the kill of a child taken for the container's)",
        requirements: &["R6", "R17"],
        shown_in: &["OOM-04", "OOM-08"],
        noticed_by: &["OOM-04", "OOM-08"],
        fault: Fault::Behaviour(|behaviour| behaviour.child_kill = ChildKill::Ends),
    },
    Defect {
        name: "stop-waits-for-the-one-before",
        what: "A StopContainer waits until an earlier one is over, whose grace period is longer.",
        imitates: "cri-o/cri-o#6699 (stuck in stopping)",
        requirements: &["R29"],
        shown_in: &["STP-05a"],
        noticed_by: &["STP-05a"],
        fault: Fault::Behaviour(|behaviour| behaviour.stops_wait_for_stops = true),
    },
    Defect {
        name: "no-grace-period",
        what: "StopContainer kills at once.",
        imitates: "catalogue: a grace period that is not waited for",
        requirements: &["R29"],
        shown_in: &["STP-02"],
        noticed_by: &["STP-02"],
        fault: Fault::Behaviour(|behaviour| behaviour.grace_percent = 0),
    },
    Defect {
        name: "no-stop-signal",
        what: "StopContainer waits for the grace period and kills, without a signal before.",
        imitates: "catalogue: a stop signal that is not sent",
        requirements: &["R29"],
        shown_in: &["STP-01"],
        noticed_by: &["STP-01"],
        fault: Fault::Behaviour(|behaviour| behaviour.sends_stop_signal = false),
    },
];

/// Changes what an answer of `PodSandboxStatus` tells.
fn reporting(mut answer: Answer, change: impl FnOnce(&mut SandboxReport)) -> Answer {
    if let Ok(Reply::SandboxStatus(report)) = &mut answer.result {
        change(report);
    }
    answer
}

/// What a correct runtime may do otherwise.
pub(super) const VARIATIONS: &[Variation] = &[
    ("as it is", |_| {}),
    ("a sandbox has no CREATED", |behaviour| {
        behaviour.events.push(|_, event| {
            let sandbox = event.sandbox.as_ref();
            let of_sandbox = sandbox.is_some_and(|own| own.id.as_str() == event.container.as_str());
            if of_sandbox && event.kind == EventKind::Created {
                Vec::new()
            } else {
                Delivery::now(event)
            }
        });
    }),
    ("events come after the call has returned", |behaviour| {
        behaviour
            .events
            .push(|_, event| vec![Delivery::after(Duration::from_millis(20), event)]);
    }),
    ("events come before the call returns", |behaviour| {
        behaviour.replies.push(|_, mut answer| {
            answer.after = answer.after.map(|after| after + Duration::from_millis(20));
            answer
        });
    }),
    ("siblings come in any order", |behaviour| {
        behaviour.siblings = Order::Any;
    }),
    (
        "an OOM kill of a child is told as the reason",
        |behaviour| {
            behaviour.child_kill = ChildKill::Marks;
        },
    ),
    ("PodSandboxStatus tells of no containers", |behaviour| {
        behaviour.reports_containers = false;
    }),
    ("lists are not streamed", |behaviour| {
        behaviour.streams_lists = false;
    }),
    ("stop signals are not reported", |behaviour| {
        behaviour.stop_signals = StopSignals::Unreported;
    }),
    ("stop signals are unknown", |behaviour| {
        behaviour.stop_signals = StopSignals::Unknown;
    }),
    ("the first subscriber gets what was queued", |behaviour| {
        behaviour.replay = Replay::ToFirst;
    }),
];
