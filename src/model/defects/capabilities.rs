//! Defects of filtered lists, and of features that only some pods use: another runtime handler,
//! their own network or memory limit, large annotations.

use super::{Fault, Row};
use crate::history::{ContainerId, ContainerState, Event, EventKind, Reply, Request, SandboxState};
use crate::model::{Delivery, ExitDetection, PodKill, StopSignals, StreamSupport, Transition};

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
