//! Defects of answers to calls; of filtered lists, and of features that only some pods use: another
//! runtime handler, their own network or memory limit, large annotations; and of ids, after failed
//! or abandoned creations.

use std::time::Duration;

use super::Fault;
use crate::history::{
    CallFault, ContainerId, ContainerState, Event, EventKind, Labels, NamespaceMode, Reply,
    Request, SandboxState, StatusCode,
};
use crate::model::behaviour::EventHook;
use crate::model::{
    Delivery, ExitDetection, Leftover, PodKill, StopSignals, StreamSupport, Transition, Twin,
};

defects! { REPLIES:
    "list-shows-the-dead-running" answers(answer) {
        if let Ok(Reply::Containers(listed)) = &mut answer.result {
            let exited = |state| state == ContainerState::Exited;
            let dead = listed.iter_mut().filter(|listed| exited(listed.state));
            dead.for_each(|listed| listed.state = ContainerState::Running);
        }
    }
    "list-is-ahead" answers(answer) {
        if let Ok(Reply::Containers(listed)) = &mut answer.result {
            let created = |state| state == ContainerState::Created;
            let early = listed.iter_mut().filter(|listed| created(listed.state));
            early.for_each(|listed| listed.state = ContainerState::Running);
        }
    }
    "list-repeats-a-container" answers(answer) {
        if let Ok(Reply::Containers(listed)) = &mut answer.result {
            listed.extend(listed.first().cloned());
        }
    }
    "list-forgets-exited" answers(answer) {
        if let Ok(Reply::Containers(listed)) = &mut answer.result {
            listed.retain(|listed| listed.state != ContainerState::Exited);
        }
    }
    "status-is-behind" answers(answer) {
        if let Ok(Reply::ContainerStatus(report)) = &mut answer.result {
            report.status.state = behind(report.status.state);
        }
    }
    "status-of-exited-fails" answers(answer) {
        if let Ok(Reply::ContainerStatus(report)) = &answer.result
            && report.status.state == ContainerState::Exited
        {
            answer.result = Err(unknown("the task cannot be loaded"));
        }
    }
    "exited-shown-unknown" answers(answer) {
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
    }
    "status-with-exit-code-255" answers(answer) {
        if let Ok(Reply::ContainerStatus(report)) = &mut answer.result
            && report.status.state == ContainerState::Exited
        {
            report.status.exit_code = 255;
        }
    }
    "update-replaces-resources" answers(answer) {
        if let Ok(Reply::ContainerStatus(report)) = &mut answer.result
            && let Some(set) = &mut report.status.setup.resources
            && set.contains_key("cpu_shares")
        {
            set.retain(|name, _| **name == *"cpu_shares");
        }
    }
    "network-of-the-sandbox-forgotten" answers(answer) {
        if let Ok(Reply::SandboxStatus(report)) = &mut answer.result
            && let Some(namespaces) = &mut report.status.namespaces
        {
            namespaces.network = NamespaceMode::Pod;
        }
    }
    "list-has-its-own-created-at" answers(answer) {
        if let Ok(Reply::Sandboxes(listed)) = &mut answer.result {
            for listed in listed {
                listed.created_at.0 += 1;
            }
        }
    }
    "status-without-message" answers(answer) {
        if let Ok(Reply::ContainerStatus(report)) = &mut answer.result {
            report.status.message.clear();
        }
    }
    "list-is-behind" answers(answer) {
        if let Ok(Reply::Containers(listed)) = &mut answer.result {
            for listed in listed {
                listed.state = behind(listed.state);
            }
        }
    }
    "list-of-all-is-behind" answers(request, answer) {
        let of_all = Request::containers(None, Labels::new());
        if let Ok(Reply::Containers(listed)) = &mut answer.result
            && *request == of_all
        {
            for listed in listed {
                listed.state = behind(listed.state);
            }
        }
    }
    "no-status-of-a-stopped-sandbox" answers(answer) {
        if let Ok(Reply::SandboxStatus(status)) = &answer.result
            && status.status.state == SandboxState::NotReady
        {
            answer.result = Err(unknown("failed to get the sandbox's address"));
        }
    }
}

defects! { FAILURES:
    "created-for-a-refused-creation" sets { leftover = Leftover::Announced }
    "refused-creation-stays" sets { leftover = Leftover::Listed }
    "failed-calls-succeed" sets { accepts_invalid_calls = true }
    "abandoned-container-removed-silently" behaves(it) {
        it.cleans_up_silently = true;
        it.replies.push(|request, answer| {
            if matches!(request, Request::CreateContainer(_)) {
                answer.after = Some(Duration::from_millis(20));
            }
        });
    }
    "later-attempt-stays" sets { refuses_removal_of_later_attempts = true }
    "process-outlives-its-container" sets { leaks_processes = true }
    "container-outlives-its-sandbox" sets { keeps_containers_of_removed_sandboxes = true }
    "second-container-of-a-name" sets { twin = Twin::Second }
    "removal-refused-for-ever" sets { refuses_removal_of_started = true }
    "stop-removes-what-has-exited" sets { stop_removes_exited = true }
    "commands-always-succeed" answers(answer) {
        if let Ok(Reply::Exec(code)) = &mut answer.result {
            *code = 0;
        }
    }
    "timed-out-command-succeeds" answers(request, answer) {
        if matches!((request, &answer.result), (Request::ExecSync { .. }, Err(_))) {
            answer.result = Ok(Reply::Exec(0));
        }
    }
    "sandbox-found-by-uid" sets { resolves_sandbox_by_pod_uid = true }
    "deleted-by-the-id-as-asked" sets { reports_requested_id = true }
}

defects! { CAPABILITIES:
    "ok-where-events-are-off" sets { stream_support = StreamSupport::ClosedAtOnce }
    "filter-hides-what-has-ended" answers(request, answer) {
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
    }
    "streamed-list-repeats" answers(request, answer) {
        match &mut answer.result {
            Ok(Reply::Containers(listed)) if request.is_streamed() => {
                listed.extend(listed.first().cloned());
            }
            Ok(Reply::Sandboxes(listed)) if request.is_streamed() => {
                listed.extend(listed.first().cloned());
            }
            _ => {}
        }
    }
    "streamed-list-lacks-the-last" answers(request, answer) {
        match &mut answer.result {
            Ok(Reply::Containers(listed)) if request.is_streamed() => drop(listed.pop()),
            Ok(Reply::Sandboxes(listed)) if request.is_streamed() => drop(listed.pop()),
            _ => {}
        }
    }
    "no-events-of-another-handler" drops(event) {
        let sandbox = event.sandbox.as_ref();
        sandbox.is_some_and(|sandbox| !sandbox.runtime_handler.is_empty())
    }
    "no-stopped-with-a-network" drops(event) {
        let sandbox = event.sandbox.as_ref();
        let network = sandbox.is_some_and(|sandbox| !sandbox.ips.is_empty());
        network && event.kind == EventKind::Stopped
    }
    "no-addresses" changes(event) {
        if let Some(sandbox) = &mut event.sandbox {
            sandbox.ips.clear();
        }
    }
    "large-events-lost" drops(event) { annotation_bytes(event) > 256 << 10 }
    "huge-events-lost" drops(event) { annotation_bytes(event) > 1 << 20 }
    "own-stop-signal-not-sent" sets { stop_signals = StopSignals::ReportedOnly }
    "exit-reported-for-the-pid-target" sets { reports_pid_target = true }
    "no-stopped-with-the-target" sets { suppressed = &[Transition::EndWithTarget] }
    "exit-waits-for-the-output" sets { exit_detection = ExitDetection::AtEndOfOutput }
    "oom-group-lives-on" sets { honours_oom_groups = false }
    "started-of-an-unknown-id" delivers(event) {
        let mut deliveries = Delivery::now(event.clone());
        if event.kind == EventKind::Started {
            let reversed: String = event.container.as_str().chars().rev().collect();
            let container = ContainerId::from(format!("helper-{reversed}"));
            deliveries.extend(Delivery::now(Event { container, ..event }));
        }
        deliveries
    }
    "oom-kill-by-the-pods-limit-is-an-error" sets { pod_kill = PodKill::MarksNone }
    "oom-kill-by-the-pods-limit-marks-all" sets { pod_kill = PodKill::MarksAll }
    "oom-kill-by-the-pods-limit-ends-all" sets { pod_kill = PodKill::EndsAll }
}

pub(super) fn behind(state: ContainerState) -> ContainerState {
    match state {
        ContainerState::Exited => ContainerState::Running,
        ContainerState::Running => ContainerState::Created,
        ContainerState::Created | ContainerState::Unknown(_) => state,
    }
}

fn annotation_bytes(event: &Event) -> usize {
    let statuses = event.containers.iter();
    let values = statuses.flat_map(|status| status.annotations.values());
    values.map(|value| value.len()).sum()
}

fn unknown(message: &str) -> CallFault {
    CallFault {
        code: StatusCode::UNKNOWN,
        message: message.to_owned(),
        deadline: Duration::ZERO,
    }
}
