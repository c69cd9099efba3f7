//! The groups of sandboxes, containers and calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::trace::Path;
use crate::history::{
    Body, CallId, CaseRun, Entry, Event, PodUid, Reply, Request, SandboxId, SandboxMetadata,
};
use crate::report::printable::{cut, short_id};
use crate::report::timeline::attempted;

/// The maximum length of a name, in characters.
const NAME: usize = 80;

/// The group of everything outside cases.
const RUN: &str = "run";

/// The groups of all ids and calls of a history.
#[derive(Debug, Default)]
pub(super) struct Places<'a> {
    cases: BTreeMap<CaseRun, &'a str>,
    pods: BTreeMap<&'a PodUid, Option<CaseRun>>,
    calls: BTreeMap<CallId, (&'a Request, Option<CaseRun>)>,
    /// The ids of the objects that calls have created.
    made: BTreeMap<CallId, &'a str>,
    sandboxes: BTreeMap<&'a str, Path>,
    /// Each with its sandbox and its name.
    containers: BTreeMap<&'a str, (&'a str, String)>,
}

impl<'a> Places<'a> {
    pub(super) fn new(entries: &'a [Arc<Entry>]) -> Self {
        let mut places = Self::default();
        // An event may arrive before the return of the call that created its subject.
        for entry in entries {
            places.learn_from_call(&entry.body);
        }
        for entry in entries {
            match &entry.body {
                Body::Event { event, .. } => places.learn_from_event(event),
                Body::CallEnded {
                    result: Ok(reply), ..
                } => places.learn_from_list(reply),
                _ => {}
            }
        }
        places
    }

    /// The group of a case, or the group of everything outside cases.
    pub(super) fn of_case(&self, case: Option<CaseRun>) -> Path {
        vec![case.map_or_else(
            || RUN.to_owned(),
            |case| match self.cases.get(&case) {
                Some(id) => format!("{} (execution {case})", cut(id, NAME)),
                None => format!("execution {case}"),
            },
        )]
    }

    /// The group of a sandbox or a container; `None` if unknown.
    pub(super) fn of_id(&self, id: &str) -> Option<Path> {
        let Some((sandbox, name)) = self.containers.get(id) else {
            return self.sandboxes.get(id).cloned();
        };
        let mut path = self.sandboxes.get(sandbox)?.clone();
        path.push(format!("{name} ({})", short_id(id)));
        Some(path)
    }

    /// The group of an event's subject.
    pub(super) fn of_event(&self, event: &Event) -> Path {
        let id = event.container.as_str();
        let unknown = || vec!["unknown ids".to_owned(), short_id(id)];
        self.of_id(id).unwrap_or_else(unknown)
    }

    /// The group of a call's subject: the object that it created or names, or else its case.
    pub(super) fn of_call(&self, call: CallId) -> Path {
        let Some((request, case)) = self.calls.get(&call) else {
            return self.of_case(None);
        };
        let made = self.made.get(&call).copied();
        let id = made.or_else(|| subject(request));
        id.and_then(|id| self.of_id(id))
            .unwrap_or_else(|| self.of_case(*case))
    }

    /// The request of a call, if the history has its beginning.
    pub(super) fn request(&self, call: CallId) -> Option<&'a Request> {
        self.calls.get(&call).map(|(request, _)| *request)
    }

    /// The id of the object that a call created.
    pub(super) fn made(&self, call: CallId) -> Option<&'a str> {
        self.made.get(&call).copied()
    }

    pub(super) fn sandbox_of(&self, id: &str) -> Option<&'a str> {
        self.containers.get(id).map(|(sandbox, _)| *sandbox)
    }

    fn learn_from_call(&mut self, body: &'a Body) {
        match body {
            Body::CaseBegan { case, id, .. } => {
                self.cases.insert(*case, id);
            }
            Body::CallBegan {
                call,
                case,
                request,
                ..
            } => {
                self.calls.insert(*call, (request, *case));
                if let Request::RunSandbox(spec) = request {
                    self.pods.insert(&spec.uid, *case);
                }
            }
            Body::CallEnded {
                call,
                result: Ok(reply),
                ..
            } => match (self.calls.get(call), reply) {
                (Some((Request::RunSandbox(spec), case)), Reply::Sandbox(id)) => {
                    let mut path = self.of_case(*case);
                    path.push(sandbox_name(&spec.binding, id));
                    self.sandboxes.insert(id.as_str(), path);
                    self.made.insert(*call, id.as_str());
                }
                (Some((Request::CreateContainer(spec), _)), Reply::Container(id)) => {
                    let name = attempted(&spec.binding, spec.attempt);
                    let container = (spec.sandbox.as_str(), name);
                    self.containers.insert(id.as_str(), container);
                    self.made.insert(*call, id.as_str());
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn learn_from_event(&mut self, event: &'a Event) {
        let Some(sandbox) = event.sandbox.as_deref() else {
            return;
        };
        self.sandbox_shown(&sandbox.id, sandbox.metadata.as_ref());
        for status in &event.containers {
            let name = status.metadata.as_ref().map(|own| &*own.name);
            self.container_shown(status.id.as_str(), &sandbox.id, name);
        }
        if event.container.as_str() != sandbox.id.as_str() {
            self.container_shown(event.container.as_str(), &sandbox.id, None);
        }
    }

    fn learn_from_list(&mut self, reply: &'a Reply) {
        match reply {
            Reply::Sandboxes(listed) => {
                for listed in listed {
                    self.sandbox_shown(&listed.id, listed.metadata.as_ref());
                }
            }
            Reply::Containers(listed) => {
                for listed in listed {
                    let name = listed.metadata.as_ref().map(|own| &*own.name);
                    self.container_shown(listed.id.as_str(), &listed.sandbox, name);
                }
            }
            _ => {}
        }
    }

    /// A sandbox that no call of the history created is in the group of the case that chose the UID
    /// of its pod, or in a group for its pod.
    fn sandbox_shown(&mut self, id: &'a SandboxId, metadata: Option<&SandboxMetadata>) {
        if self.sandboxes.contains_key(id.as_str()) {
            return;
        }
        let case = metadata.and_then(|own| self.pods.get(&own.uid));
        let mut path = match (case, metadata) {
            (Some(case), _) => self.of_case(*case),
            (
                None,
                Some(SandboxMetadata {
                    name, namespace, ..
                }),
            ) => {
                vec![format!("{}/{}", cut(namespace, NAME), cut(name, NAME))]
            }
            (None, None) => vec!["unknown pods".to_owned()],
        };
        path.push(sandbox_name("sandbox", id));
        self.sandboxes.insert(id.as_str(), path);
    }

    fn container_shown(&mut self, id: &'a str, sandbox: &'a SandboxId, name: Option<&str>) {
        let name = || cut(name.unwrap_or("container"), NAME);
        let known = self.containers.entry(id);
        known.or_insert_with(|| (sandbox.as_str(), name()));
    }
}

fn sandbox_name(name: &str, id: &SandboxId) -> String {
    format!("{} ({})", cut(name, NAME), short_id(id.as_str()))
}

/// The id of the sandbox or the container that a request names.
fn subject(request: &Request) -> Option<&str> {
    match request {
        Request::StopSandbox(id) | Request::RemoveSandbox(id) | Request::SandboxStatus(id) => {
            Some(id.as_str())
        }
        Request::CreateContainer(spec) => Some(spec.sandbox.as_str()),
        Request::StartContainer(id)
        | Request::RemoveContainer(id)
        | Request::ContainerStatus(id) => Some(id.as_str()),
        Request::StopContainer { container, .. }
        | Request::ExecSync { container, .. }
        | Request::CheckpointContainer { container, .. } => Some(container.as_str()),
        Request::ListContainers { sandbox, .. } => sandbox.as_ref().map(SandboxId::as_str),
        Request::NoEventCall(_, id) => Some(id),
        Request::Version
        | Request::RunSandbox(_)
        | Request::ListSandboxes(_)
        | Request::RuntimeStatus
        | Request::FindSandboxes(_)
        | Request::FindContainers(_)
        | Request::ImageStatus(_)
        | Request::PullImage(_)
        | Request::RemoveImage(_)
        | Request::ListImages => None,
    }
}
