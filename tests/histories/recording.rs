//! Recorded runs, and their possible mutations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use cri_event_conformance::testing::case::Case;
use cri_event_conformance::testing::history::{
    Body, CallFault, CaseHistory, CaseRun, ContainerId, ContainerListing, ContainerState, Entry,
    Event, EventKind, HostFact, Labels, PodUid, Reply, Request, RuntimeNanos, SandboxId,
    SandboxListing, SandboxMetadata, SandboxState, Seq, StatusCode, StreamEnd, SubjectKind,
    SubscriptionId,
};
use cri_event_conformance::testing::pleg::POD_UID_LABEL;

use crate::anything::{Mutation, alter};
use crate::case_of;

/// Larger than the maximum message.
static HUGE: [u8; 17 << 20] = [0; 17 << 20];

/// A recording, and facts about it that need no judgement.
pub(crate) struct Recording {
    pub(crate) run: CaseRun,
    pub(crate) case: Case,
    pub(crate) entries: Vec<Entry>,
    /// The ids that the runtime returned to the case; whether it is a sandbox's.
    pub(crate) subjects: BTreeMap<ContainerId, bool>,
    pub(crate) steps_ended: usize,
}

impl Recording {
    pub(crate) fn of(entries: Vec<Entry>) -> Self {
        let (run, case) = case_of(&entries);
        let mut history = CaseHistory::new(run);
        for entry in &entries {
            history.push(&Arc::new(entry.clone()));
        }
        let subjects = history.subjects().iter().map(|subject| {
            let is_sandbox = matches!(subject.kind, SubjectKind::Sandbox(_));
            (subject.id.clone(), is_sandbox)
        });
        let subjects = subjects.collect();
        let ended = |entry: &Entry| matches!(entry.body, Body::StepsEnded { .. });
        let steps_ended = entries.iter().position(ended).expect("the steps ended");
        Self {
            run,
            case,
            entries,
            subjects,
            steps_ended,
        }
    }

    /// The event at an index, if it is about an object of the case.
    pub(crate) fn judged(&self, place: usize) -> Option<&Event> {
        match &self.entries[place].body {
            Body::Event { event, .. } => self
                .subjects
                .contains_key(&event.container)
                .then_some(event),
            _ => None,
        }
    }

    /// Whether an index has the reply of a list.
    pub(crate) fn lists(&self, place: usize) -> bool {
        matches!(
            self.entries[place].body,
            Body::CallEnded {
                result: Ok(Reply::Sandboxes(_) | Reply::Containers(_)),
                ..
            }
        )
    }

    /// The request of the reply at this index.
    fn asked(&self, place: usize) -> Option<&Request> {
        let Body::CallEnded { call, .. } = self.entries[place].body else {
            return None;
        };
        self.entries.iter().find_map(|entry| match &entry.body {
            Body::CallBegan {
                call: began,
                request,
                ..
            } => (*began == call).then_some(request),
            _ => None,
        })
    }

    /// Adds an object to a list: to the sandboxes of the requested pod, or to the containers.
    fn list_another(&self, entries: &mut [Entry], place: usize) {
        let Body::CallEnded {
            result: Ok(reply), ..
        } = &mut entries[place].body
        else {
            return;
        };
        match (self.asked(place), reply) {
            (Some(Request::ListSandboxes { labels, .. }), Reply::Sandboxes(listed)) => {
                let uid = labels.get(POD_UID_LABEL).cloned().unwrap_or_default();
                let shown = |id: &str| listed.iter().any(|one| one.id.as_str() == id);
                let own = self.subjects.iter().filter(|(_, is_sandbox)| **is_sandbox);
                let own = own.map(|(id, _)| id.as_str());
                let lacked = own.filter(|id| !shown(id)).chain(["another"]);
                let all = lacked.map(|id| SandboxListing {
                    id: SandboxId::from(id),
                    metadata: Some(SandboxMetadata {
                        uid: PodUid::from(uid.clone()),
                        ..SandboxMetadata::default()
                    }),
                    state: SandboxState::Ready,
                    created_at: RuntimeNanos(1),
                    labels: Labels::new(),
                    ..SandboxListing::default()
                });
                let all: Vec<_> = all.collect();
                listed.extend(all);
            }
            (_, Reply::Containers(listed)) => {
                for (id, is_sandbox) in &self.subjects {
                    let other = ContainerId::from(format!("another-in-{id}"));
                    let another = if *is_sandbox { other } else { id.clone() };
                    if listed.iter().any(|one| one.id == another) {
                        continue;
                    }
                    listed.push(ContainerListing {
                        id: another,
                        sandbox: SandboxId::from(id.as_str()),
                        metadata: None,
                        state: ContainerState::Created,
                        created_at: RuntimeNanos(1),
                        labels: Labels::new(),
                        image: None,
                        ..ContainerListing::default()
                    });
                }
            }
            _ => {}
        }
    }

    pub(crate) fn with(&self, mutation: Mutation, place: usize, other: usize) -> Vec<Entry> {
        let mut entries = self.entries.clone();
        match mutation {
            Mutation::Remove => drop(entries.remove(place)),
            Mutation::Repeat => entries.insert(place + 1, entries[place].clone()),
            Mutation::Swap => {
                let body = entries[place].body.clone();
                entries[place].body = std::mem::replace(&mut entries[other].body, body);
            }
            Mutation::CallFails => {
                if let Body::CallEnded { result, .. } = &mut entries[place].body {
                    *result = Err(CallFault {
                        code: StatusCode::UNKNOWN,
                        message: "it fails".to_owned(),
                        deadline: Duration::ZERO,
                    });
                }
            }
            Mutation::ReportsNone => {
                let now_ns = entries[place].at.realtime_ns;
                if let Body::CallEnded { result, .. } = &mut entries[place].body
                    && let Ok(Reply::SandboxStatus(report)) = result
                {
                    report.containers.clear();
                    report.timestamp.0 = now_ns;
                }
            }
            Mutation::AlsoListed => self.list_another(&mut entries, place),
            _ => {
                if let Body::Event { event, .. } = &mut entries[place].body {
                    alter(event, mutation);
                }
            }
        }
        for (place, entry) in entries.iter_mut().enumerate() {
            entry.seq = Seq(place as u64);
        }
        entries
    }
}

impl Recording {
    /// The recording with a change at an index without an event: lists are wrong from there on, a
    /// stream is ended with OK before the teardown, has no headers, begins with a replay, or
    /// delivers a message that is too large.
    pub(crate) fn with_other(&self, place: usize) -> Option<Vec<Entry>> {
        let mut entries = self.entries.clone();
        match &mut entries[place].body {
            Body::CallEnded {
                result: Ok(Reply::Containers(_)),
                ..
            } => entries[place..].iter_mut().for_each(list_wrongly),
            Body::CallEnded {
                result: Ok(Reply::ContainerStatus(report)),
                ..
            } => report.status.state = ContainerState::Unknown(7),
            Body::Fact {
                fact: HostFact::Held { count, .. },
                ..
            } => *count += 1 << 30,
            Body::SubscriptionEnded { end, .. } => {
                *end = StreamEnd::Closed;
                let ended = entries.remove(place);
                entries.insert(self.steps_ended.min(place), ended);
            }
            Body::SubscriptionAnswered { .. } => drop(entries.remove(place)),
            Body::SubscriptionProven { subscription } => {
                let subscription = *subscription;
                let replayed = self.replayed(place, subscription)?;
                entries.insert(place + 1, replayed);
            }
            Body::Event { message, .. } => *message = Bytes::from_static(&HUGE),
            _ => return None,
        }
        for (place, entry) in entries.iter_mut().enumerate() {
            entry.seq = Seq(place as u64);
        }
        Some(entries)
    }

    /// An event of the latest container before an index, as replayed to a new subscriber.
    fn replayed(&self, place: usize, subscription: SubscriptionId) -> Option<Entry> {
        let earlier = || self.entries[..place].iter().rev();
        let made = earlier().find_map(|entry| match &entry.body {
            Body::CallEnded {
                result: Ok(Reply::Container(id)),
                ..
            } if self.subjects.contains_key(id) => Some(id.clone()),
            _ => None,
        });
        let event = earlier().find_map(|entry| match &entry.body {
            Body::Event { event, .. } if self.subjects.contains_key(&event.container) => {
                Some(event.clone())
            }
            _ => None,
        });
        let event = event?;
        let event = Event {
            container: made?,
            kind: EventKind::Started,
            created_at: RuntimeNanos(event.created_at.0 - 1_000_000_000),
            ..event
        };
        let body = Body::Event {
            subscription,
            event,
            message: Bytes::new(),
        };
        Some(Entry {
            body,
            ..self.entries[place].clone()
        })
    }
}

/// Lets a list show exited objects as running, and all others as exited.
fn list_wrongly(entry: &mut Entry) {
    if let Body::CallEnded {
        result: Ok(Reply::Containers(listed)),
        ..
    } = &mut entry.body
    {
        for listed in listed {
            listed.state = match listed.state {
                ContainerState::Exited => ContainerState::Running,
                _ => ContainerState::Exited,
            };
        }
    }
}
