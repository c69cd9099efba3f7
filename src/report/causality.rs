//! Causal links: the events that a call can cause, and the states in a list that show the change of
//! an event.

use crate::history::{ContainerState, EventKind, Reply, Request, SandboxState};

/// The events that a call can cause, each by the id of its subject; `made` is the object that the
/// call has created. A call that ends a sandbox also ends its containers, but does not name them.
pub(super) fn effects<'a>(
    request: &'a Request,
    made: Option<&'a str>,
) -> Vec<(&'a str, EventKind)> {
    use EventKind::{Created, Deleted, Started, Stopped};
    let (id, kinds): (Option<&str>, &[EventKind]) = match request {
        Request::RunSandbox(_) => (made, &[Created, Started]),
        Request::CreateContainer(_) => (made, &[Created]),
        Request::StartContainer(id) => (Some(id.as_str()), &[Started]),
        Request::StopContainer { container, .. } => (Some(container.as_str()), &[Stopped]),
        Request::StopSandbox(id) => (Some(id.as_str()), &[Stopped]),
        Request::RemoveContainer(id) => (Some(id.as_str()), &[Stopped, Deleted]),
        Request::RemoveSandbox(id) => (Some(id.as_str()), &[Stopped, Deleted]),
        _ => (None, &[]),
    };
    let of = |id| kinds.iter().map(move |kind| (id, *kind));
    id.into_iter().flat_map(of).collect()
}

/// The state of a sandbox or container in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shown {
    Created,
    Started,
    Stopped,
}

impl Shown {
    /// Whether the change that such an event reports has happened.
    pub(super) fn is_past(self, kind: EventKind) -> bool {
        match kind {
            EventKind::Created => true,
            EventKind::Started => self >= Self::Started,
            EventKind::Stopped => self == Self::Stopped,
            EventKind::Deleted | EventKind::Unknown(_) => false,
        }
    }
}

/// All subjects in a reply, by id.
pub(super) fn shown(reply: &Reply) -> Vec<(&str, Shown)> {
    match reply {
        Reply::Sandboxes(listed) => {
            let states = listed.iter();
            let states = states.map(|it| (it.id.as_str(), of_sandbox(it.state)));
            states.collect()
        }
        Reply::Containers(listed) => {
            let states = listed.iter();
            let states = states.map(|it| (it.id.as_str(), of_container(it.state)));
            states.collect()
        }
        Reply::ContainerStatus(report) => {
            let status = &report.status;
            vec![(status.id.as_str(), of_container(status.state))]
        }
        Reply::SandboxStatus(report) => {
            let own = (report.status.id.as_str(), of_sandbox(report.status.state));
            let containers = report.containers.iter();
            let containers = containers.map(|it| (it.id.as_str(), of_container(it.state)));
            containers.chain([own]).collect()
        }
        _ => Vec::new(),
    }
}

fn of_sandbox(state: SandboxState) -> Shown {
    match state {
        SandboxState::Ready | SandboxState::Unknown(_) => Shown::Started,
        SandboxState::NotReady => Shown::Stopped,
    }
}

fn of_container(state: ContainerState) -> Shown {
    match state {
        ContainerState::Created | ContainerState::Unknown(_) => Shown::Created,
        ContainerState::Running => Shown::Started,
        ContainerState::Exited => Shown::Stopped,
    }
}
