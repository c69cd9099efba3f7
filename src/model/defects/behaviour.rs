//! Defects of the model itself, and permitted deviations.

use std::time::Duration;

use super::replies::behind;
use super::{Fault, Row, Variation};
use crate::history::{EventKind, Reply, Resource, SandboxReport};
use crate::model::{
    Answer, ChildKill, Delivery, EarlyStreams, ExitDetection, MonitorDeath, MonitorFreeze,
    NonTransition, Order, Replay, Restart, StopSignals, Transition, Twin,
};

pub(super) const BEHAVIOUR: &[Row] = &[
    // Transitions whose event is suppressed.
    (
        "no-stopped-after-failed-start",
        Fault::Behaviour(|behaviour| behaviour.suppressed = &[Transition::FailedStart]),
    ),
    (
        "no-stopped-on-forced-removal",
        Fault::Behaviour(|behaviour| behaviour.suppressed = &[Transition::ForcedRemoval]),
    ),
    (
        "no-stopped-with-the-sandbox",
        Fault::Behaviour(|behaviour| behaviour.suppressed = &[Transition::EndWithSandbox]),
    ),
    (
        "no-deleted-with-the-sandbox",
        Fault::Behaviour(|behaviour| behaviour.suppressed = &[Transition::RemovalWithSandbox]),
    ),
    (
        "no-stopped-after-a-failed-deletion",
        Fault::Behaviour(|behaviour| behaviour.suppressed = &[Transition::EndInCrash]),
    ),
    (
        "no-stopped-after-a-pause",
        Fault::Behaviour(|behaviour| behaviour.suppressed = &[Transition::EndWhilePaused]),
    ),
    (
        "no-started-after-a-restore",
        Fault::Behaviour(|behaviour| behaviour.suppressed = &[Transition::Restore]),
    ),
    (
        "no-stopped-after-a-failed-restore",
        Fault::Behaviour(|behaviour| behaviour.suppressed = &[Transition::FailedRestore]),
    ),
    // Spurious events.
    (
        "stopped-for-a-repeated-stop",
        Fault::Behaviour(|behaviour| behaviour.spurious = &[NonTransition::RepeatedStop]),
    ),
    (
        "stopped-for-what-never-ran",
        Fault::Behaviour(|behaviour| behaviour.spurious = &[NonTransition::StopOfNeverRun]),
    ),
    // Container statuses in PodSandboxStatus.
    (
        "report-without-statuses",
        Fault::Behaviour(|behaviour| {
            behaviour.reports_containers = true;
            behaviour
                .replies
                .push(|_, answer| reporting(answer, |report| report.containers.clear()));
        }),
    ),
    (
        "report-read-at-seconds",
        Fault::Behaviour(|behaviour| {
            behaviour.reports_containers = true;
            behaviour
                .replies
                .push(|_, answer| reporting(answer, |report| report.timestamp.0 /= 1_000_000_000));
        }),
    ),
    (
        "report-read-before",
        Fault::Behaviour(|behaviour| {
            behaviour.reports_containers = true;
            behaviour
                .replies
                .push(|_, answer| reporting(answer, |report| report.timestamp.0 -= 500_000_000));
        }),
    ),
    (
        "report-is-behind",
        Fault::Behaviour(|behaviour| {
            behaviour.reports_containers = true;
            behaviour.replies.push(|_, answer| {
                reporting(answer, |report| {
                    for status in &mut report.containers {
                        status.state = behind(status.state);
                    }
                })
            });
        }),
    ),
    (
        "started-for-a-refused-start",
        Fault::Behaviour(|behaviour| behaviour.spurious = &[NonTransition::RefusedStart]),
    ),
    (
        "stopped-for-the-end-of-a-command",
        Fault::Behaviour(|behaviour| behaviour.spurious = &[NonTransition::ExecEnd]),
    ),
    (
        "started-for-a-call-that-changes-nothing",
        Fault::Behaviour(|behaviour| behaviour.spurious = &[NonTransition::NoEventCall]),
    ),
    (
        "created-for-an-image",
        Fault::Behaviour(|behaviour| behaviour.spurious = &[NonTransition::ImageCall]),
    ),
    (
        "event-for-an-unknown-id",
        Fault::Behaviour(|behaviour| behaviour.spurious = &[NonTransition::UnknownId]),
    ),
    (
        "event-for-a-foreign-container",
        Fault::Behaviour(|behaviour| behaviour.spurious = &[NonTransition::OutsideCri]),
    ),
    (
        "stopped-for-a-failed-kill",
        Fault::Behaviour(|behaviour| behaviour.spurious = &[NonTransition::FailedKill]),
    ),
    (
        "stopped-for-a-frozen-process",
        Fault::Behaviour(|behaviour| behaviour.spurious = &[NonTransition::Freeze]),
    ),
    (
        "stopped-for-a-checkpoint",
        Fault::Behaviour(|behaviour| behaviour.spurious = &[NonTransition::Checkpoint]),
    ),
    // Exits.
    (
        "exit-never-noticed",
        Fault::Behaviour(|behaviour| behaviour.exit_detection = ExitDetection::Never),
    ),
    (
        "exit-noticed-when-asked",
        Fault::Behaviour(|behaviour| behaviour.exit_detection = ExitDetection::OnQuery),
    ),
    (
        "exit-noticed-late",
        Fault::Behaviour(|behaviour| {
            behaviour.exit_detection = ExitDetection::Delayed(Duration::from_secs(11));
        }),
    ),
    (
        "exit-unwatched-after-a-restart",
        Fault::Behaviour(|behaviour| behaviour.loses_monitors = true),
    ),
    (
        "exit-while-down-is-forgotten",
        Fault::Behaviour(|behaviour| behaviour.restart = Restart::Forgets),
    ),
    (
        "exit-code-lost-while-down",
        Fault::Behaviour(|behaviour| behaviour.restart = Restart::ReportsUnknown),
    ),
    (
        "exit-missed-while-starting",
        Fault::Behaviour(|behaviour| {
            behaviour.restart = Restart::MissesExitsFor(Duration::from_secs(2));
        }),
    ),
    (
        "exit-missed-after-an-interrupted-stop",
        Fault::Behaviour(|behaviour| behaviour.loses_interrupted_stops = true),
    ),
    (
        "created-containers-lost-in-a-kill",
        Fault::Behaviour(|behaviour| behaviour.loses_created_containers = true),
    ),
    (
        "stop-waits-for-subscribers",
        Fault::Behaviour(|behaviour| behaviour.stops_after_streams = true),
    ),
    (
        "streams-outlive-the-runtime",
        Fault::Behaviour(|behaviour| behaviour.streams_outlive_daemon = true),
    ),
    (
        "exit-code-255",
        Fault::Behaviour(|behaviour| behaviour.exit_code = |_| 255),
    ),
    (
        "exit-code-modulo-128",
        Fault::Behaviour(|behaviour| behaviour.exit_code = |end| end.code % 128),
    ),
    (
        "core-dump-in-the-exit-code",
        Fault::Behaviour(|behaviour| {
            behaviour.exit_code = |end| match end.code {
                132 | 133 | 135 | 139 => end.code + 128,
                code => code,
            };
        }),
    ),
    (
        "stopped-before-the-core-dump",
        Fault::Behaviour(|behaviour| behaviour.reports_exit_at_signal = true),
    ),
    (
        "killed-with-exit-code-0",
        Fault::Behaviour(|behaviour| {
            behaviour.exit_code = |end| if end.code == 137 { 0 } else { end.code };
        }),
    ),
    (
        "killed-with-its-sandbox-with-exit-code-0",
        Fault::Behaviour(|behaviour| behaviour.sandbox_stop_exit_code = 0),
    ),
    (
        "oom-kill-is-an-error",
        Fault::Behaviour(|behaviour| behaviour.exit_reason = |_| "Error"),
    ),
    // Monitors that die or are frozen.
    (
        "exit-unnoticed-without-a-monitor",
        Fault::Behaviour(|behaviour| behaviour.monitor_death = MonitorDeath::Unnoticed),
    ),
    (
        "container-unwatched-without-a-monitor",
        Fault::Behaviour(|behaviour| behaviour.monitor_death = MonitorDeath::Unwatched),
    ),
    (
        "stopped-twice-without-a-monitor",
        Fault::Behaviour(|behaviour| behaviour.monitor_death = MonitorDeath::EndsContainerTwice),
    ),
    (
        "process-outlives-its-monitor",
        Fault::Behaviour(|behaviour| behaviour.monitor_death = MonitorDeath::LeavesProcess),
    ),
    (
        "exit-lost-on-a-full-disk",
        Fault::Behaviour(|behaviour| behaviour.loses_exits_on_full_disk = true),
    ),
    (
        "stream-refused-after-a-restart",
        Fault::Behaviour(|behaviour| behaviour.early_streams = EarlyStreams::Refused),
    ),
    (
        "stream-silent-after-a-restart",
        Fault::Behaviour(|behaviour| behaviour.early_streams = EarlyStreams::Silent),
    ),
    (
        "frozen-monitor-delays-others",
        Fault::Behaviour(|behaviour| behaviour.monitor_freeze = MonitorFreeze::DelaysAllExits),
    ),
    (
        "exit-lost-by-a-frozen-monitor",
        Fault::Behaviour(|behaviour| behaviour.monitor_freeze = MonitorFreeze::LosesExit),
    ),
    // Sandboxes that die.
    (
        "sandbox-death-unnoticed",
        Fault::Behaviour(|behaviour| behaviour.detects_sandbox_deaths = false),
    ),
    (
        "dead-sandbox-is-not-stopped",
        Fault::Behaviour(|behaviour| behaviour.stops_dead_sandboxes = false),
    ),
    // Removing.
    (
        "listed-after-deleted",
        Fault::Behaviour(|behaviour| {
            behaviour.listed_after_removal = Duration::from_millis(500);
        }),
    ),
    // Resources.
    (
        "stream-is-never-released",
        Fault::Behaviour(|behaviour| behaviour.leaks = Some(Resource::Descriptors)),
    ),
    (
        "thread-for-each-container",
        Fault::Behaviour(|behaviour| behaviour.leaks = Some(Resource::Threads)),
    ),
    (
        "memory-of-containers-is-kept",
        Fault::Behaviour(|behaviour| behaviour.leaks = Some(Resource::MemoryKib)),
    ),
    (
        "monitor-lives-on",
        Fault::Behaviour(|behaviour| behaviour.leaks = Some(Resource::Monitors)),
    ),
    (
        "cgroup-stays",
        Fault::Behaviour(|behaviour| behaviour.leaks = Some(Resource::Cgroups)),
    ),
    (
        "mount-stays",
        Fault::Behaviour(|behaviour| behaviour.leaks = Some(Resource::Mounts)),
    ),
    (
        "network-namespace-stays",
        Fault::Behaviour(|behaviour| behaviour.leaks = Some(Resource::NetworkNamespaces)),
    ),
    (
        "discarded-events-fill-the-log",
        Fault::Behaviour(|behaviour| behaviour.logs_discards = true),
    ),
    // Stopping.
    (
        "every-137-is-an-oom-kill",
        Fault::Behaviour(|behaviour| {
            behaviour.exit_reason = |end| match end.code {
                137 => "OOMKilled",
                0 => "Completed",
                _ => "Error",
            };
        }),
    ),
    (
        "oom-kill-of-a-child-ends-it",
        Fault::Behaviour(|behaviour| behaviour.child_kill = ChildKill::EndsContainer),
    ),
    (
        "stop-waits-for-the-one-before",
        Fault::Behaviour(|behaviour| behaviour.stops_wait_for_stops = true),
    ),
    (
        "no-grace-period",
        Fault::Behaviour(|behaviour| behaviour.grace_percent = 0),
    ),
    (
        "no-stop-signal",
        Fault::Behaviour(|behaviour| behaviour.sends_stop_signal = false),
    ),
];

/// Changes an answer to `PodSandboxStatus`.
fn reporting(mut answer: Answer, change: impl FnOnce(&mut SandboxReport)) -> Answer {
    if let Ok(Reply::SandboxStatus(report)) = &mut answer.result {
        change(report);
    }
    answer
}

/// All deviations that a conformant runtime is permitted.
pub(super) const VARIATIONS: &[Variation] = &[
    ("the default", |_| {}),
    ("no CREATED for sandboxes", |behaviour| {
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
    ("events arrive after the call has returned", |behaviour| {
        behaviour
            .events
            .push(|_, event| vec![Delivery::after(Duration::from_millis(20), event)]);
    }),
    ("events arrive before the call returns", |behaviour| {
        behaviour.replies.push(|_, mut answer| {
            answer.after = answer.after.map(|after| after + Duration::from_millis(20));
            answer
        });
    }),
    ("random order of siblings", |behaviour| {
        behaviour.siblings = Order::Random;
    }),
    (
        "the OOM kill of a child becomes the exit reason",
        |behaviour| {
            behaviour.child_kill = ChildKill::MarksContainer;
        },
    ),
    ("PodSandboxStatus without container statuses", |behaviour| {
        behaviour.reports_containers = false;
    }),
    (
        "a container of a name that is taken is returned",
        |behaviour| {
            behaviour.twin = Twin::First;
        },
    ),
    ("no streamed lists", |behaviour| {
        behaviour.streams_lists = false;
    }),
    ("unreported stop signals", |behaviour| {
        behaviour.stop_signals = StopSignals::Unreported;
    }),
    ("unsupported stop signals", |behaviour| {
        behaviour.stop_signals = StopSignals::Unknown;
    }),
    (
        "queued events replayed to the first subscriber",
        |behaviour| {
            behaviour.replay = Replay::ToFirst;
        },
    ),
];
