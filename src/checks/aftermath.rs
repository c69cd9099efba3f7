//! `aftermath`: the remains of a sandbox or container whose creation or start may have failed.

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scope::{Scope, Wanted};
use super::word::Finding::{Broken, Holds, Pending};
use super::word::{About, Finding, Word};
use crate::history::{
    Call, CaseHistory, ContainerId, ContainerState, EventArrival, EventKind, PodUid, Reply,
    Request, SandboxId, SandboxState, Seq, Subject, SubjectKind,
};
use crate::oracle::{Index, is_about, makes};
use crate::outcome::{Fact, Facts, Kind, Mismatch};

/// The remains of a sandbox or container whose creation or start may have failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an aftermath such as `{of: c, is: absent}`"
)]
pub struct AftermathCheck {
    /// The sandbox or container that the calls create.
    pub of: String,
    /// The remains that are required.
    pub is: Aftermath,
}

/// The permitted remains of a sandbox or container whose creation or start may have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "an aftermath: `absent`, `rolled-back`, `unstarted` or `consistent`"
)]
pub enum Aftermath {
    /// No event and no later list shows it.
    Absent,
    /// It was never STARTED. If it was CREATED, it was DELETED. No later list shows the container,
    /// or shows the sandbox READY. Where the call succeeded, as `consistent`.
    RolledBack,
    /// It was never STARTED, or it was, where its start succeeded.
    Unstarted,
    /// It may exist, if events and lists agree on it.
    Consistent,
}

impl Word for AftermathCheck {
    fn of(&self) -> &str {
        &self.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve_unsure("of", &self.of, Wanted::Either);
    }

    fn kinds(&self) -> Vec<Kind> {
        match self.is {
            Aftermath::Absent => vec![Kind::UnwantedAnnouncement, Kind::UnwantedListing],
            Aftermath::RolledBack => vec![
                Kind::UnwantedStart,
                Kind::MissingDeleted,
                Kind::UnwantedListing,
                Kind::MissingCreated,
                Kind::MissingStarted,
                Kind::MissingStopped,
            ],
            Aftermath::Unstarted => vec![Kind::UnwantedStart, Kind::MissingStarted],
            Aftermath::Consistent => Kind::MISSING.to_vec(),
        }
    }

    fn is_present(&self, index: &Index<'_>, _: &str) -> bool {
        !self.findings(index).is_empty()
    }

    fn findings(&self, index: &Index<'_>) -> Vec<(About, Finding)> {
        let history = index.history;
        let attempts = history.calls().filter_map(|call| {
            let (binding, attempt, uid, sandbox) = match call.request() {
                Request::RunSandbox(spec) => (&spec.binding, 0, &spec.uid, None),
                Request::CreateContainer(spec) => (
                    &spec.binding,
                    spec.attempt,
                    &spec.sandbox_spec.uid,
                    Some(&spec.sandbox),
                ),
                _ => return None,
            };
            let label = match attempt {
                0 => binding.clone(),
                attempt => format!("{binding}#{attempt}"),
            };
            (*binding == self.of).then_some(Attempt {
                history,
                call,
                label,
                uid,
                sandbox,
            })
        });
        let attempts = attempts.filter(|attempt| history.within_steps(attempt.call.began().seq));
        attempts
            .map(|attempt| (About::new(attempt.label.clone()), attempt.assess(self.is)))
            .collect()
    }
}

/// A call that creates a sandbox or container, with any result.
struct Attempt<'a> {
    history: &'a CaseHistory,
    call: &'a Call,
    label: String,
    /// The UID of the pod, and the sandbox of a container.
    uid: &'a PodUid,
    sandbox: Option<&'a SandboxId>,
}

/// The state in which a list shows an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Ready,
    NotReady,
    Container(ContainerState),
}

/// One list of the pod's sandboxes, or of the sandbox's containers.
struct List<'a> {
    began: Seq,
    ended: Seq,
    shown: Vec<(ContainerId, Shown)>,
    call: &'a Call,
}

impl<'a> Attempt<'a> {
    fn assess(&self, aftermath: Aftermath) -> Finding {
        let mut subjects = self.history.subjects().iter();
        let created = subjects.find(|subject| self.has_made(subject));
        let subjects: Vec<&Subject> = match created {
            Some(created) => vec![created],
            None => self.unknown_ids().collect(),
        };
        let lists = self.lists();
        match aftermath {
            Aftermath::Absent => self.absent(&subjects, &lists),
            Aftermath::RolledBack if created.is_none() => self.rolled_back(&subjects, &lists),
            Aftermath::Unstarted => created.map_or(Holds, |created| self.unstarted(created)),
            Aftermath::RolledBack | Aftermath::Consistent => {
                self.consistent(created, &subjects, &lists)
            }
        }
    }

    /// Whether the call has created it: a call may return the id of an object that an earlier one
    /// has created.
    fn has_made(&self, subject: &Subject) -> bool {
        let began = self.call.began().seq;
        let mut earlier = self.history.calls().take_while(|it| it.began().seq < began);
        makes(self.call, subject) && !earlier.any(|call| makes(call, subject))
    }

    /// The subjects of the pod's events whose ids no call has returned.
    fn unknown_ids(&self) -> impl Iterator<Item = &'a Subject> {
        let since = self.call.began().seq;
        let (uid, sandbox) = (self.uid, self.sandbox);
        let history = self.history;
        history.subjects().iter().filter(move |subject| {
            let of_pod = subject.arrivals.iter().any(|seen| {
                let event = seen.event();
                let its_own = event.sandbox.as_ref().map(|status| &status.id);
                seen.seq() > since
                    && event.pod_uid() == Some(uid)
                    && sandbox.is_none_or(|sandbox| its_own == Some(sandbox))
            });
            matches!(subject.kind, SubjectKind::Stray) && of_pod
        })
    }

    /// The lists of the pod after the call, without the ids that other calls have returned.
    fn lists(&self) -> Vec<List<'a>> {
        let history = self.history;
        let known = |id: &ContainerId| {
            let mut others = history.subjects().iter();
            others.any(|subject| {
                subject.id == *id
                    && !matches!(subject.kind, SubjectKind::Stray)
                    && !self.has_made(subject)
            })
        };
        let since = self.call.ended().map(|ended| ended.seq);
        let lists = history.calls().filter_map(|call| {
            let (began, ended) = (call.began().seq, call.ended()?.seq);
            if since.is_none_or(|since| began < since) || !history.within_steps(ended) {
                return None;
            }
            let mut shown = self.shown_by(call)?;
            shown.retain(|(id, _)| !known(id));
            Some(List {
                began,
                ended,
                shown,
                call,
            })
        });
        lists.collect()
    }

    fn shown_by(&self, call: &Call) -> Option<Vec<(ContainerId, Shown)>> {
        if !call.request().lists(self.uid) {
            return None;
        }
        match (call.request(), call.result()?.as_ref().ok()?, self.sandbox) {
            (Request::ListSandboxes { .. }, Reply::Sandboxes(listed), None) => {
                let of_pod = listed.iter().filter(|listed| {
                    let metadata = listed.metadata.as_ref();
                    metadata.is_some_and(|metadata| metadata.uid == *self.uid)
                });
                let shown = of_pod.map(|listed| {
                    let shown = match listed.state {
                        SandboxState::Ready => Shown::Ready,
                        SandboxState::NotReady | SandboxState::Unknown(_) => Shown::NotReady,
                    };
                    (ContainerId::from(&listed.id), shown)
                });
                Some(shown.collect())
            }
            (Request::ListContainers { sandbox: of, .. }, Reply::Containers(listed), Some(own)) => {
                if of.as_ref().is_some_and(|of| of != own) {
                    return None;
                }
                let of_pod = listed.iter().filter(|listed| listed.sandbox == *own);
                let shown =
                    of_pod.map(|listed| (listed.id.clone(), Shown::Container(listed.state)));
                Some(shown.collect())
            }
            _ => None,
        }
    }

    fn absent(&self, subjects: &[&Subject], lists: &[List<'_>]) -> Finding {
        if let Some(subject) = subjects.first() {
            let event = subject.arrivals.iter().map(|seen| seen.event().kind).next();
            let events = Fact::Events(event.into_iter().collect());
            let actual = [events, Fact::Id(subject.id.to_string())];
            return self.broken(Kind::UnwantedAnnouncement, actual, subject);
        }
        self.unlisted(lists, |_| true)
    }

    fn rolled_back(&self, subjects: &[&Subject], lists: &[List<'_>]) -> Finding {
        for subject in subjects {
            if subject.first(EventKind::Started).is_some() {
                let actual = [Fact::Id(subject.id.to_string())];
                return self.broken(Kind::UnwantedStart, actual, subject);
            }
            if subject.first(EventKind::Created).is_some()
                && subject.first(EventKind::Deleted).is_none()
            {
                return self.awaited(EventKind::Deleted, subject, None);
            }
        }
        self.unlisted(lists, |shown| shown != Shown::NotReady)
    }

    fn unstarted(&self, subject: &Subject) -> Finding {
        let starts = self.history.calls().filter(|call| {
            matches!(call.request(), Request::StartContainer(_)) && is_about(call, subject)
        });
        let succeeded = starts
            .into_iter()
            .any(|call| matches!(call.result(), Some(Ok(_))));
        match (succeeded, subject.first(EventKind::Started)) {
            (true, None) => self.awaited(EventKind::Started, subject, None),
            (false, Some(_)) => {
                let actual = [Fact::Id(subject.id.to_string())];
                self.broken(Kind::UnwantedStart, actual, subject)
            }
            _ => Holds,
        }
    }

    fn unlisted(&self, lists: &[List<'_>], counts: impl Fn(Shown) -> bool) -> Finding {
        for list in lists {
            if let Some((id, _)) = list.shown.iter().find(|(_, shown)| counts(*shown)) {
                return Broken {
                    mismatch: Mismatch::new(
                        Kind::UnwantedListing,
                        [],
                        [
                            Fact::Method(list.call.request().method().to_owned()),
                            Fact::Id(id.to_string()),
                        ],
                    ),
                    evidence: self.evidence(None, Some(list)),
                };
            }
        }
        Holds
    }

    /// Events have announced the state in the last list, and it shows the states announced before.
    fn consistent(
        &self,
        created: Option<&Subject>,
        subjects: &[&Subject],
        lists: &[List<'_>],
    ) -> Finding {
        if let Some(created) = created
            && created.first(EventKind::Created).is_none()
            && self.sandbox.is_some()
        {
            return self.awaited(EventKind::Created, created, None);
        }
        if self.is_removed_with_its_sandbox() {
            let left = subjects.iter().find(|subject| {
                subject.first(EventKind::Created).is_some()
                    && subject.first(EventKind::Deleted).is_none()
            });
            if let Some(left) = left {
                return self.awaited(EventKind::Deleted, left, None);
            }
        }
        let Some(last) = lists.last() else {
            return Holds;
        };
        let all = self.history.subjects();
        for (id, shown) in &last.shown {
            let subject = all.iter().find(|subject| subject.id == *id);
            let is_announced = |kind| subject.is_some_and(|subject| subject.first(kind).is_some());
            if let Some(missing) = needed(*shown).into_iter().find(|kind| !is_announced(*kind)) {
                return Pending {
                    missing: Mismatch::missing(
                        missing,
                        [
                            Fact::Of(id.to_string()),
                            Fact::Because("which a list shows,".to_owned()),
                        ],
                    ),
                    evidence: self.evidence(subject, Some(last)),
                };
            }
        }
        for subject in subjects {
            let created = subject.first(EventKind::Created);
            let was_announced = created.is_some_and(|created| created.seq() < last.began);
            let is_listed = last.shown.iter().any(|(id, _)| *id == subject.id);
            if was_announced && !is_listed && subject.first(EventKind::Deleted).is_none() {
                return self.awaited(EventKind::Deleted, subject, Some(last));
            }
        }
        Holds
    }

    /// Whether a call has removed the container's sandbox.
    fn is_removed_with_its_sandbox(&self) -> bool {
        let removes = |call: &Call| match (call.request(), self.sandbox) {
            (Request::RemoveSandbox(removed), Some(own)) => removed == own,
            _ => false,
        };
        let in_time = |call: &Call| {
            let ended = call.ended();
            ended.is_some_and(|ended| self.history.within_steps(ended.seq))
        };
        let mut calls = self.history.calls();
        calls.any(|call| removes(call) && in_time(call) && matches!(call.result(), Some(Ok(_))))
    }

    fn awaited(&self, kind: EventKind, subject: &Subject, list: Option<&List<'_>>) -> Finding {
        Pending {
            missing: Mismatch::missing(kind, [Fact::Of(subject.id.to_string())]),
            evidence: self.evidence(Some(subject), list),
        }
    }

    fn broken(&self, kind: Kind, actual: impl Into<Facts>, subject: &Subject) -> Finding {
        Broken {
            mismatch: Mismatch::new(kind, [], actual),
            evidence: self.evidence(Some(subject), None),
        }
    }

    fn evidence(&self, subject: Option<&Subject>, list: Option<&List<'_>>) -> Vec<Seq> {
        let mut evidence = vec![self.call.began().seq];
        evidence.extend(self.call.ended().map(|ended| ended.seq));
        let arrivals = subject.iter().flat_map(|subject| &subject.arrivals);
        evidence.extend(arrivals.map(EventArrival::seq));
        evidence.extend(list.iter().flat_map(|list| [list.began, list.ended]));
        evidence.sort_unstable();
        evidence.dedup();
        evidence
    }
}

/// The events that must have announced the state that a list shows.
fn needed(shown: Shown) -> Vec<EventKind> {
    match shown {
        // Not every runtime announces the creation of a sandbox.
        Shown::Ready => vec![EventKind::Started],
        Shown::NotReady | Shown::Container(ContainerState::Unknown(_)) => Vec::new(),
        Shown::Container(ContainerState::Created) => vec![EventKind::Created],
        Shown::Container(ContainerState::Running) => vec![EventKind::Created, EventKind::Started],
        Shown::Container(ContainerState::Exited) => vec![EventKind::Created, EventKind::Stopped],
    }
}
