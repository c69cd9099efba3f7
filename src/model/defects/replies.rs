//! Defects of answers to calls.

use std::time::Duration;

use super::{Fault, Row};
use crate::history::{CallFault, ContainerState, Reply, SandboxState, StatusCode};

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

pub(super) fn behind(state: ContainerState) -> ContainerState {
    match state {
        ContainerState::Exited => ContainerState::Running,
        ContainerState::Running => ContainerState::Created,
        ContainerState::Created | ContainerState::Unknown(_) => state,
    }
}
