//! Whether lists by a filter show what passes it, and nothing else.

#[cfg(test)]
mod tests;

use super::readings::carries;
use super::{Broken, Events, Finding, Holds, Pending};
use crate::history::{
    Call, ContainerFilter, ContainerId, ContainerState, EventKind, Reply, Request, SandboxFilter,
    SandboxState, Seq, SubjectKind,
};

/// What a list shows, or has to show, of a sandbox or container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sandbox(SandboxState),
    Container(ContainerState),
}

impl Events<'_> {
    /// Whether each list shows the subject if it passes the filter, once and as its events have
    /// told it, and does not show it otherwise.
    pub(super) fn are_filtered(&self) -> Finding {
        let mut compared = 0;
        for call in self.history.calls() {
            let (Some(ended), Some(Ok(reply))) = (call.ended(), call.result()) else {
                continue;
            };
            let (began, ended) = (call.began().seq, ended.seq);
            let (Some(passes), Some(told)) = (self.passes(call), self.state_at(began, ended))
            else {
                continue;
            };
            compared += 1;
            let shown = self.shown_in(reply);
            let wanted: Vec<State> = told.filter(|told| passes(*told)).into_iter().collect();
            if shown == wanted {
                continue;
            }
            let evidence = self.all().map(super::Sighting::seq);
            return Broken {
                expected: format!("{} in {}", words(&wanted), call.request().method()),
                actual: words(&shown),
                evidence: evidence.chain([began, ended]).collect(),
            };
        }
        if compared > 0 {
            return Holds;
        }
        Pending {
            awaited: "a list by a filter".to_owned(),
            evidence: Vec::new(),
        }
    }

    /// Whether the subject passes the filter of a list, by its state; none if the list is not of
    /// its kind.
    fn passes(&self, call: &Call) -> Option<impl Fn(State) -> bool> {
        let id = &self.subject.id;
        let (admitted, wanted) = match (call.request(), &self.subject.kind) {
            (Request::FindSandboxes(filter), SubjectKind::Sandbox(spec)) => {
                let SandboxFilter {
                    id: wanted,
                    state,
                    labels,
                    streamed: _,
                } = filter;
                let own = wanted
                    .as_ref()
                    .is_none_or(|of| ContainerId::from(of) == *id);
                let admitted = own && carries(&spec.labels, labels);
                (admitted, state.map(State::Sandbox))
            }
            (Request::FindContainers(filter), SubjectKind::Container(spec)) => {
                let ContainerFilter {
                    id: wanted,
                    state,
                    sandbox,
                    labels,
                    streamed: _,
                } = filter;
                let own = wanted.as_ref().is_none_or(|of| of == id);
                let inside = sandbox.as_ref().is_none_or(|of| *of == spec.sandbox);
                let admitted = own && inside && carries(&spec.labels, labels);
                (admitted, state.map(State::Container))
            }
            _ => return None,
        };
        Some(move |state: State| admitted && wanted.is_none_or(|wanted| wanted == state))
    }

    /// The state that events have told before a call, if none came during it; none within if it is
    /// gone.
    #[expect(clippy::option_option, reason = "not to be there is known, too")]
    fn state_at(&self, began: Seq, ended: Seq) -> Option<Option<State>> {
        let is_sandbox = matches!(self.subject.kind, SubjectKind::Sandbox(_));
        if self
            .all()
            .any(|seen| seen.seq() > began && seen.seq() < ended)
        {
            return None;
        }
        let last = self.all().filter(|seen| seen.seq() < began).last()?;
        Some(match (last.event().kind, is_sandbox) {
            (EventKind::Deleted, _) => None,
            (EventKind::Created | EventKind::Started, true) => {
                Some(State::Sandbox(SandboxState::Ready))
            }
            (EventKind::Stopped, true) => Some(State::Sandbox(SandboxState::NotReady)),
            (EventKind::Created, false) => Some(State::Container(ContainerState::Created)),
            (EventKind::Started, false) => Some(State::Container(ContainerState::Running)),
            (EventKind::Stopped, false) => Some(State::Container(ContainerState::Exited)),
            (EventKind::Unknown(_), _) => return None,
        })
    }

    /// The subject's items in a list.
    fn shown_in(&self, reply: &Reply) -> Vec<State> {
        let id = &self.subject.id;
        match reply {
            Reply::Sandboxes(listed) => {
                let own = listed
                    .iter()
                    .filter(|one| ContainerId::from(&one.id) == *id);
                own.map(|one| State::Sandbox(one.state)).collect()
            }
            Reply::Containers(listed) => {
                let own = listed.iter().filter(|one| one.id == *id);
                own.map(|one| State::Container(one.state)).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn words(shown: &[State]) -> String {
    let word = |state: &State| match state {
        State::Sandbox(state) => state.to_string(),
        State::Container(state) => state.to_string(),
    };
    match shown {
        [] => "nothing of it".to_owned(),
        [state] => word(state),
        several => several.iter().map(word).collect::<Vec<_>>().join(" and "),
    }
}
