//! Defects of the model itself, and permitted deviations.

use std::time::Duration;

use super::replies::behind;
use super::{Fault, Variation};
use crate::history::{EventKind, Reply, Request, Resource, SandboxReport};
use crate::model::behaviour::{Behaviour, EventHook};
use crate::model::{
    Answer, ChildKill, EarlyStreams, ExitDetection, MonitorDeath, MonitorFreeze, NonTransition,
    Order, Replay, Restart, StopSignals, Transition, Twin,
};

defects! { BEHAVIOUR:
    // Transitions whose event is suppressed.
    "no-stopped-after-failed-start" sets { suppressed = &[Transition::FailedStart] }
    "no-stopped-on-forced-removal" sets { suppressed = &[Transition::ForcedRemoval] }
    "no-stopped-with-the-sandbox" sets { suppressed = &[Transition::EndWithSandbox] }
    "no-deleted-with-the-sandbox" sets { suppressed = &[Transition::RemovalWithSandbox] }
    "no-stopped-after-a-failed-deletion" sets { suppressed = &[Transition::EndInCrash] }
    "no-stopped-after-a-pause" sets { suppressed = &[Transition::EndWhilePaused] }
    "no-started-after-a-restore" sets { suppressed = &[Transition::Restore] }
    "no-stopped-after-a-failed-restore" sets { suppressed = &[Transition::FailedRestore] }

    // Spurious events.
    "stopped-for-a-repeated-stop" sets { spurious = &[NonTransition::RepeatedStop] }
    "stopped-for-what-never-ran" sets { spurious = &[NonTransition::StopOfNeverRun] }

    // Container statuses in PodSandboxStatus.
    "report-without-statuses" behaves(it) {
        reports_with(it, |_, answer| reporting(answer, |report| report.containers.clear()));
    }
    "report-read-at-seconds" behaves(it) {
        reports_with(it, |_, answer| {
            reporting(answer, |report| report.timestamp.0 /= 1_000_000_000);
        });
    }
    "report-read-before" behaves(it) {
        reports_with(it, |_, answer| {
            reporting(answer, |report| report.timestamp.0 -= 500_000_000);
        });
    }
    "report-is-behind" behaves(it) {
        reports_with(it, |_, answer| {
            reporting(answer, |report| {
                for status in &mut report.containers {
                    status.state = behind(status.state);
                }
            });
        });
    }
    "started-for-a-refused-start" sets { spurious = &[NonTransition::RefusedStart] }
    "stopped-for-the-end-of-a-command" sets { spurious = &[NonTransition::ExecEnd] }
    "started-for-a-call-that-changes-nothing" sets { spurious = &[NonTransition::NoEventCall] }
    "created-for-an-image" sets { spurious = &[NonTransition::ImageCall] }
    "event-for-an-unknown-id" sets { spurious = &[NonTransition::UnknownId] }
    "event-for-a-foreign-container" sets { spurious = &[NonTransition::OutsideCri] }
    "stopped-for-a-failed-kill" sets { spurious = &[NonTransition::FailedKill] }
    "stopped-for-a-frozen-process" sets { spurious = &[NonTransition::Freeze] }
    "stopped-for-a-checkpoint" sets { spurious = &[NonTransition::Checkpoint] }

    // Exits.
    "exit-never-noticed" sets { exit_detection = ExitDetection::Never }
    "exit-noticed-when-asked" sets { exit_detection = ExitDetection::OnQuery }
    "exit-noticed-late" sets { exit_detection = ExitDetection::Delayed(Duration::from_secs(11)) }
    "exit-noticed-3s-late" sets { exit_detection = ExitDetection::Delayed(Duration::from_secs(3)) }
    "exit-unwatched-after-a-restart" sets { loses_monitors = true }
    "exit-while-down-is-forgotten" sets { restart = Restart::Forgets }
    "exit-code-lost-while-down" sets { restart = Restart::Reports(255, "Unknown") }
    "exit-while-down-is-a-success" sets { restart = Restart::Reports(0, "Completed") }
    "exit-while-down-is-of-the-restart" sets { restart = Restart::RecoversAsOfNow }
    "exit-missed-while-starting" sets { restart = Restart::MissesExitsFor(Duration::from_secs(2)) }
    "exit-missed-after-an-interrupted-stop" sets { loses_interrupted_stops = true }
    "failed-start-forgotten-at-a-restart" sets { forgets_failed_starts = true }
    "addresses-forgotten-at-a-restart" sets { forgets_addresses = true }
    "created-containers-lost-in-a-kill" sets { loses_created_containers = true }
    "stop-waits-for-subscribers" sets { stops_after_streams = true }
    "streams-outlive-the-runtime" sets { streams_outlive_daemon = true }
    "exit-code-255" sets { exit_code = |_| 255 }
    "exit-code-modulo-128" sets { exit_code = |end| end.code % 128 }
    "core-dump-in-the-exit-code" sets {
        exit_code = |end| match end.code {
            132 | 133 | 135 | 139 => end.code + 128,
            code => code,
        }
    }
    "stopped-before-the-core-dump" sets { reports_exit_at_signal = true }
    "killed-with-exit-code-0" sets { exit_code = |end| if end.code == 137 { 0 } else { end.code } }
    "killed-with-its-sandbox-with-exit-code-0" sets { sandbox_stop_exit_code = 0 }
    "oom-kill-is-an-error" sets { exit_reason = |_| "Error" }

    // Monitors that die or are frozen.
    "exit-unnoticed-without-a-monitor" sets { monitor_death = MonitorDeath::Unnoticed }
    "container-unwatched-without-a-monitor" sets { monitor_death = MonitorDeath::Unwatched }
    "stopped-twice-without-a-monitor" sets { monitor_death = MonitorDeath::EndsContainerTwice }
    "process-outlives-its-monitor" sets { monitor_death = MonitorDeath::LeavesProcess }
    "exit-lost-on-a-full-disk" sets { loses_exits_on_full_disk = true }
    "stream-refused-after-a-restart" sets { early_streams = EarlyStreams::Refused }
    "stream-silent-after-a-restart" sets { early_streams = EarlyStreams::Silent }
    "frozen-monitor-delays-others" sets { monitor_freeze = MonitorFreeze::DelaysAllExits }
    "exit-lost-by-a-frozen-monitor" sets { monitor_freeze = MonitorFreeze::LosesExit }

    // Sandboxes that die.
    "sandbox-death-unnoticed" sets { detects_sandbox_deaths = false }
    "dead-sandbox-is-not-stopped" sets { stops_dead_sandboxes = false }

    // Removing.
    "listed-after-deleted" sets { listed_after_removal = Duration::from_millis(500) }

    // Resources.
    "stream-is-never-released" sets { leaks = Some(Resource::Descriptors) }
    "thread-for-each-container" sets { leaks = Some(Resource::Threads) }
    "memory-of-containers-is-kept" sets { leaks = Some(Resource::MemoryKib) }
    "monitor-lives-on" sets { leaks = Some(Resource::Monitors) }
    "cgroup-stays" sets { leaks = Some(Resource::Cgroups) }
    "mount-stays" sets { leaks = Some(Resource::Mounts) }
    "network-namespace-stays" sets { leaks = Some(Resource::NetworkNamespaces) }
    "discarded-events-fill-the-log" sets { logs_discards = true }

    // Stopping.
    "every-137-is-an-oom-kill" sets {
        exit_reason = |end| match end.code {
            137 => "OOMKilled",
            0 => "Completed",
            _ => "Error",
        }
    }
    "oom-kill-of-a-child-ends-it" sets { child_kill = ChildKill::EndsContainer }
    "stop-waits-for-the-one-before" sets { stops_wait_for_stops = true }
    "start-is-never-answered" sets { leaves_starts_unanswered = true }
    "creations-hang-after-a-hundred-calls" sets { creates_until = 100 }
    "failed-start-is-a-success" sets { failed_start = 0 }
    "start-has-no-effect" sets { ignores_starts = true }
    "no-grace-period" sets { grace = |_| Duration::ZERO }
    "ten-seconds-of-grace-at-most" sets { grace = |asked| asked.min(Duration::from_secs(10)) }
    "no-stop-signal" sets { sends_stop_signal = false }
}

/// Lets `PodSandboxStatus` report container statuses, and changes what it reports.
fn reports_with(behaviour: &mut Behaviour, change: fn(&Request, &mut Answer)) {
    behaviour.reports_containers = true;
    behaviour.replies.push(change);
}

/// Changes an answer to `PodSandboxStatus`.
fn reporting(answer: &mut Answer, change: impl FnOnce(&mut SandboxReport)) {
    if let Ok(Reply::SandboxStatus(report)) = &mut answer.result {
        change(report);
    }
}

/// All deviations that a conformant runtime is permitted.
pub(super) const VARIATIONS: &[Variation] = &[
    ("the default", |_| {}),
    ("no CREATED for sandboxes", |it| {
        it.events.push(EventHook::Drop(|_, event| {
            event.is_of_sandbox() && event.kind == EventKind::Created
        }));
    }),
    ("events arrive after the call has returned", |it| {
        // In simulated time thousands of them are due at once.
        it.queue = 10_000;
        it.events
            .push(EventHook::Delay(|_, _| Duration::from_millis(20)));
    }),
    ("events arrive before the call returns", |it| {
        it.replies.push(|_, answer| {
            answer.after = answer.after.map(|after| after + Duration::from_millis(20));
        });
    }),
    ("random order of siblings", |it| it.siblings = Order::Random),
    ("the OOM kill of a child becomes the exit reason", |it| {
        it.child_kill = ChildKill::MarksContainer;
    }),
    ("PodSandboxStatus without container statuses", |it| {
        it.reports_containers = false;
    }),
    ("a container of a name that is taken is returned", |it| {
        it.twin = Twin::First;
    }),
    ("no streamed lists", |it| it.streams_lists = false),
    ("unreported stop signals", |it| {
        it.stop_signals = StopSignals::Unreported;
    }),
    ("unsupported stop signals", |it| {
        it.stop_signals = StopSignals::Unknown;
    }),
    ("queued events replayed to the first subscriber", |it| {
        it.replay = Replay::ToFirst;
    }),
];
