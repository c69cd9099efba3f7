//! What can happen to answers on their way.

use std::time::Duration;

use super::{Defect, Fault};
use crate::history::{CallFault, ContainerState, Reply, SandboxState, StatusCode};

pub(super) const REPLIES: &[Defect] = &[
    Defect {
        name: "list-shows-the-dead-running",
        what: "ListContainers shows what has exited as RUNNING.",
        imitates: "containerd/containerd#10603 (RUNNING for ever)",
        requirements: &["R27", "R32"],
        shown_in: &["REC-03"],
        noticed_by: &["REC-03"],
        fault: Fault::Replies(|_, mut answer| {
            if let Ok(Reply::Containers(listed)) = &mut answer.result {
                let exited = |state| state == ContainerState::Exited;
                let dead = listed.iter_mut().filter(|listed| exited(listed.state));
                dead.for_each(|listed| listed.state = ContainerState::Running);
            }
            answer
        }),
    },
    Defect {
        name: "list-forgets-exited",
        what: "ListContainers leaves out what has exited.",
        imitates: "pelagos#379 (a list that reaps)",
        requirements: &["R27"],
        shown_in: &["CMP-05", "EXT-01", "REL-07"],
        noticed_by: &["INV-11", "INV-13", "REL-07"],
        fault: Fault::Replies(|_, mut answer| {
            if let Ok(Reply::Containers(listed)) = &mut answer.result {
                listed.retain(|listed| listed.state != ContainerState::Exited);
            }
            answer
        }),
    },
    Defect {
        name: "status-is-behind",
        what: "ContainerStatus shows what runs as CREATED, and what has exited as RUNNING.",
        imitates: "containerd/containerd#12600, containerd/containerd#9132",
        requirements: &["R22"],
        shown_in: &["STP-01", "REL-01"],
        noticed_by: &["INV-13", "REL-01"],
        fault: Fault::Replies(|_, mut answer| {
            if let Ok(Reply::ContainerStatus(report)) = &mut answer.result {
                report.status.state = behind(report.status.state);
            }
            answer
        }),
    },
    Defect {
        name: "status-with-exit-code-255",
        what: "ContainerStatus tells the exit code 255, whatever STOPPED told.",
        imitates: "cri-o/cri-o#9846",
        requirements: &["R17", "R22"],
        shown_in: &["EXT-01", "SNP-09"],
        noticed_by: &["INV-13", "SNP-09"],
        fault: Fault::Replies(|_, mut answer| {
            if let Ok(Reply::ContainerStatus(report)) = &mut answer.result
                && report.status.state == ContainerState::Exited
            {
                report.status.exit_code = 255;
            }
            answer
        }),
    },
    Defect {
        name: "status-without-message",
        what: "ContainerStatus has no message, whatever it tells of.",
        imitates: "catalogue: the error of a start goes to who has called, and is not kept",
        requirements: &["C11"],
        shown_in: &["EXT-08"],
        noticed_by: &["EXT-08"],
        fault: Fault::Replies(|_, mut answer| {
            if let Ok(Reply::ContainerStatus(report)) = &mut answer.result {
                report.status.message.clear();
            }
            answer
        }),
    },
    Defect {
        name: "list-is-behind",
        what: "ListContainers shows what runs as CREATED, and what has exited as RUNNING.",
        imitates: "catalogue: an event that is sent before the state is stored",
        requirements: &["R22"],
        shown_in: &["REL-01", "REL-02"],
        noticed_by: &["REL-01", "REL-02"],
        fault: Fault::Replies(|_, mut answer| {
            if let Ok(Reply::Containers(listed)) = &mut answer.result {
                for listed in listed {
                    listed.state = behind(listed.state);
                }
            }
            answer
        }),
    },
    Defect {
        name: "no-status-of-a-stopped-sandbox",
        what: "PodSandboxStatus of a sandbox that has stopped fails.",
        imitates: "kubernetes/kubernetes#122475 (an error while the network was torn down)",
        requirements: &["R28"],
        shown_in: &["REL-06"],
        noticed_by: &["REL-06"],
        fault: Fault::Replies(|_, mut answer| {
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
    },
];

pub(super) fn behind(state: ContainerState) -> ContainerState {
    match state {
        ContainerState::Exited => ContainerState::Running,
        ContainerState::Running => ContainerState::Created,
        ContainerState::Created | ContainerState::Unknown(_) => state,
    }
}
