//! Defects of answers to calls; of filtered lists, and of features that only some pods use: another
//! runtime handler, their own network or memory limit, large annotations; and of ids, after failed
//! or abandoned creations.

use std::time::Duration;

use super::{Fault, Row};
use crate::history::{
    CallFault, ContainerId, ContainerState, Event, EventKind, Reply, Request, SandboxState,
    StatusCode,
};
use crate::model::{
    Delivery, ExitDetection, Leftover, PodKill, StopSignals, StreamSupport, Transition, Twin,
};

pub(super) const REPLIES: &[Row] = &[
    (
        "list-shows-the-dead-running",
        Fault::Replies(|_, mut answer| {
            if let Ok(Reply::Containers(listed)) = &mut answer.result {
                let exited = |state| state == ContainerState::Exited;
                let dead = listed.iter_mut().filter(|listed| exited(listed.state));
                dead.for_each(|listed| listed.state = ContainerState::Running);
            }
            answer
        }),
    ),
    (
        "list-forgets-exited",
        Fault::Replies(|_, mut answer| {
            if let Ok(Reply::Containers(listed)) = &mut answer.result {
                listed.retain(|listed| listed.state != ContainerState::Exited);
            }
            answer
        }),
    ),
    (
        "status-is-behind",
        Fault::Replies(|_, mut answer| {
            if let Ok(Reply::ContainerStatus(report)) = &mut answer.result {
                report.status.state = behind(report.status.state);
            }
            answer
        }),
    ),
    (
        "status-of-exited-fails",
        Fault::Replies(|_, mut answer| {
            if let Ok(Reply::ContainerStatus(report)) = &answer.result
                && report.status.state == ContainerState::Exited
            {
                answer.result = Err(CallFault {
                    code: StatusCode::UNKNOWN,
                    message: "the task cannot be loaded".to_owned(),
                    deadline: Duration::ZERO,
                });
            }
            answer
        }),
    ),
    (
        "exited-shown-unknown",
        Fault::Replies(|_, mut answer| {
            let unknown = |state: &mut ContainerState| {
                if *state == ContainerState::Exited {
                    *state = ContainerState::Unknown(3);
                }
            };
            match &mut answer.result {
                Ok(Reply::ContainerStatus(report)) => unknown(&mut report.status.state),
                Ok(Reply::Containers(listed)) => {
                    for listed in listed {
                        unknown(&mut listed.state);
                    }
                }
                _ => {}
            }
            answer
        }),
    ),
    (
        "status-with-exit-code-255",
        Fault::Replies(|_, mut answer| {
            if let Ok(Reply::ContainerStatus(report)) = &mut answer.result
                && report.status.state == ContainerState::Exited
            {
                report.status.exit_code = 255;
            }
            answer
        }),
    ),
    (
        "status-without-message",
        Fault::Replies(|_, mut answer| {
            if let Ok(Reply::ContainerStatus(report)) = &mut answer.result {
                report.status.message.clear();
            }
            answer
        }),
    ),
    (
        "list-is-behind",
        Fault::Replies(|_, mut answer| {
            if let Ok(Reply::Containers(listed)) = &mut answer.result {
                for listed in listed {
                    listed.state = behind(listed.state);
                }
            }
            answer
        }),
    ),
    (
        "no-status-of-a-stopped-sandbox",
        Fault::Replies(|_, mut answer| {
            if let Ok(Reply::SandboxStatus(status)) = &answer.result
                && status.status.state == SandboxState::NotReady
            {
                answer.result = Err(CallFault {
                    code: StatusCode::UNKNOWN,
                    message: "failed to get the sandbox's address".to_owned(),
                    deadline: Duration::ZERO,
                });
            }
            answer
        }),
    ),
];
pub(super) const FAILURES: &[Row] = &[
    (
        "created-for-a-refused-creation",
        Fault::Behaviour(|behaviour| behaviour.leftover = Leftover::Announced),
    ),
    (
        "refused-creation-stays",
        Fault::Behaviour(|behaviour| behaviour.leftover = Leftover::Listed),
    ),
    (
        "failed-calls-succeed",
        Fault::Behaviour(|behaviour| behaviour.accepts_invalid_calls = true),
    ),
    (
        "abandoned-container-removed-silently",
        Fault::Behaviour(|behaviour| {
            behaviour.cleans_up_silently = true;
            behaviour.replies.push(|request, mut answer| {
                if matches!(request, Request::CreateContainer(_)) {
                    answer.after = Some(Duration::from_millis(20));
                }
                answer
            });
        }),
    ),
    (
        "process-outlives-its-container",
        Fault::Behaviour(|behaviour| behaviour.leaks_processes = true),
    ),
    (
        "container-outlives-its-sandbox",
        Fault::Behaviour(|behaviour| behaviour.keeps_containers_of_removed_sandboxes = true),
    ),
    (
        "second-container-of-a-name",
        Fault::Behaviour(|behaviour| behaviour.twin = Twin::Second),
    ),
    (
        "removal-refused-for-ever",
        Fault::Behaviour(|behaviour| behaviour.refuses_removal_of_started = true),
    ),
    (
        "sandbox-found-by-uid",
        Fault::Behaviour(|behaviour| behaviour.resolves_sandbox_by_pod_uid = true),
    ),
    (
        "deleted-by-the-id-as-asked",
        Fault::Behaviour(|behaviour| behaviour.reports_requested_id = true),
    ),
];
pub(super) const CAPABILITIES: &[Row] = &[
    (
        "ok-where-events-are-off",
        Fault::Behaviour(|behaviour| behaviour.stream_support = StreamSupport::ClosedAtOnce),
    ),
    (
        "filter-hides-what-has-ended",
        Fault::Replies(|request, mut answer| {
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
    ),
    (
        "streamed-list-repeats",
        Fault::Replies(|request, mut answer| {
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
    ),
    (
        "no-events-of-another-handler",
        Fault::Events(|_, event| {
            let sandbox = event.sandbox.as_ref();
            let handler = sandbox.is_some_and(|sandbox| !sandbox.runtime_handler.is_empty());
            if handler {
                Vec::new()
            } else {
                Delivery::now(event)
            }
        }),
    ),
    (
        "no-stopped-with-a-network",
        Fault::Events(|_, event| {
            let sandbox = event.sandbox.as_ref();
            let network = sandbox.is_some_and(|sandbox| !sandbox.ips.is_empty());
            if network && event.kind == EventKind::Stopped {
                Vec::new()
            } else {
                Delivery::now(event)
            }
        }),
    ),
    (
        "no-addresses",
        Fault::Events(|_, mut event| {
            if let Some(sandbox) = &mut event.sandbox {
                sandbox.ips.clear();
            }
            Delivery::now(event)
        }),
    ),
    (
        "large-events-lost",
        Fault::Events(|_, event| {
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
    ),
    (
        "own-stop-signal-not-sent",
        Fault::Behaviour(|behaviour| behaviour.stop_signals = StopSignals::ReportedOnly),
    ),
    (
        "exit-reported-for-the-pid-target",
        Fault::Behaviour(|behaviour| behaviour.reports_pid_target = true),
    ),
    (
        "no-stopped-with-the-target",
        Fault::Behaviour(|behaviour| behaviour.suppressed = &[Transition::EndWithTarget]),
    ),
    (
        "exit-waits-for-the-output",
        Fault::Behaviour(|behaviour| behaviour.exit_detection = ExitDetection::AtEndOfOutput),
    ),
    (
        "oom-group-lives-on",
        Fault::Behaviour(|behaviour| behaviour.honours_oom_groups = false),
    ),
    (
        "started-of-an-unknown-id",
        Fault::Events(|_, event| {
            let mut deliveries = Delivery::now(event.clone());
            if event.kind == EventKind::Started {
                let reversed: String = event.container.as_str().chars().rev().collect();
                let container = ContainerId::from(format!("helper-{reversed}"));
                deliveries.extend(Delivery::now(Event { container, ..event }));
            }
            deliveries
        }),
    ),
    (
        "oom-kill-by-the-pods-limit-is-an-error",
        Fault::Behaviour(|behaviour| behaviour.pod_kill = PodKill::MarksNone),
    ),
    (
        "oom-kill-by-the-pods-limit-marks-all",
        Fault::Behaviour(|behaviour| behaviour.pod_kill = PodKill::MarksAll),
    ),
    (
        "oom-kill-by-the-pods-limit-ends-all",
        Fault::Behaviour(|behaviour| behaviour.pod_kill = PodKill::EndsAll),
    ),
];

pub(super) fn behind(state: ContainerState) -> ContainerState {
    match state {
        ContainerState::Exited => ContainerState::Running,
        ContainerState::Running => ContainerState::Created,
        ContainerState::Created | ContainerState::Unknown(_) => state,
    }
}
