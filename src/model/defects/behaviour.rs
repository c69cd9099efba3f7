//! What the model can do otherwise: wrongly, or within what is permitted.

use std::time::Duration;

use super::replies::behind;
use super::{Fault, Row, Variation};
use crate::history::{EventKind, Reply, SandboxReport};
use crate::model::{
    Answer, ChildKill, Delivery, ExitNotice, NonTransition, Order, Replay, StopSignals, Transition,
};

pub(super) const BEHAVIOUR: &[Row] = &[
    // Transitions that are not reported.
    (
        "no-stopped-after-failed-start",
        Fault::Behaviour(|behaviour| behaviour.untold = &[Transition::FailedStart]),
    ),
    (
        "no-stopped-on-forced-removal",
        Fault::Behaviour(|behaviour| behaviour.untold = &[Transition::ForcedRemoval]),
    ),
    (
        "no-stopped-with-the-sandbox",
        Fault::Behaviour(|behaviour| behaviour.untold = &[Transition::EndWithSandbox]),
    ),
    (
        "no-deleted-with-the-sandbox",
        Fault::Behaviour(|behaviour| behaviour.untold = &[Transition::RemovalWithSandbox]),
    ),
    (
        "no-stopped-after-a-failed-deletion",
        Fault::Behaviour(|behaviour| behaviour.untold = &[Transition::EndInCrash]),
    ),
    // Events for what did not happen.
    (
        "stopped-for-a-repeated-stop",
        Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::RepeatedStop]),
    ),
    (
        "stopped-for-what-never-ran",
        Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::EndOfNeverRun]),
    ),
    // What PodSandboxStatus reports about containers.
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
        Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::RefusedStart]),
    ),
    (
        "stopped-for-the-end-of-a-command",
        Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::ExecEnd]),
    ),
    (
        "started-for-a-call-that-changes-nothing",
        Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::Aside]),
    ),
    (
        "created-for-an-image",
        Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::ImageCall]),
    ),
    (
        "told-of-an-unknown-id",
        Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::UnknownId]),
    ),
    (
        "told-of-what-is-outside-the-cri",
        Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::OutsideCri]),
    ),
    (
        "stopped-for-a-failed-kill",
        Fault::Behaviour(|behaviour| behaviour.told_too = &[NonTransition::FailedKill]),
    ),
    // Exits.
    (
        "exit-never-noticed",
        Fault::Behaviour(|behaviour| behaviour.exit_notice = ExitNotice::Never),
    ),
    (
        "exit-noticed-when-asked",
        Fault::Behaviour(|behaviour| behaviour.exit_notice = ExitNotice::WhenAsked),
    ),
    (
        "exit-noticed-late",
        Fault::Behaviour(|behaviour| {
            behaviour.exit_notice = ExitNotice::Late(Duration::from_secs(11));
        }),
    ),
    (
        "exit-unwatched-after-a-restart",
        Fault::Behaviour(|behaviour| behaviour.loses_monitors = true),
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
        "death-told-at-the-signal",
        Fault::Behaviour(|behaviour| behaviour.tells_deaths_at_the_signal = true),
    ),
    (
        "killed-with-exit-code-0",
        Fault::Behaviour(|behaviour| {
            behaviour.exit_code = |end| if end.code == 137 { 0 } else { end.code };
        }),
    ),
    (
        "killed-with-its-sandbox-with-exit-code-0",
        Fault::Behaviour(|behaviour| behaviour.kill_with_sandbox = 0),
    ),
    (
        "oom-kill-is-an-error",
        Fault::Behaviour(|behaviour| behaviour.exit_reason = |_| "Error"),
    ),
    // Sandboxes that die.
    (
        "sandbox-death-unnoticed",
        Fault::Behaviour(|behaviour| behaviour.notices_sandbox_deaths = false),
    ),
    (
        "dead-sandbox-is-not-stopped",
        Fault::Behaviour(|behaviour| behaviour.stops_dead_sandboxes = false),
    ),
    // Removing.
    (
        "listed-after-deleted",
        Fault::Behaviour(|behaviour| {
            behaviour.forgets_after = Duration::from_millis(500);
        }),
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
        Fault::Behaviour(|behaviour| behaviour.child_kill = ChildKill::Ends),
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
