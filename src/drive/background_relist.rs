//! Relists of pods that a run made, as a kubelet's Generic PLEG makes them: of all pods each
//! second, and of one pod on demand after each call that changes it. What a list shows and no event
//! has reported is a missed event.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::live_pleg::LivePleg;
use super::session::Session;
use crate::history::{Body, CallId, ContainerId, Entry, PodUid, Reply, Request};
use crate::limits;
use crate::pleg::{Generic, SharedUid};
use crate::recorder::Reader;

/// Relists until this is dropped.
#[derive(Debug)]
pub struct BackgroundRelist {
    task: JoinHandle<()>,
}

impl BackgroundRelist {
    /// Relists the pods of a run, except while a case wants silence.
    pub fn begin(session: &Arc<Session>) -> Self {
        let session = session.clone();
        let (client, metrics) = (session.client().clone(), session.metrics().clone());
        let mut reader = session.recorder().reader();
        let mut pleg = LivePleg::new(client, metrics, session.labels());
        let mut syncs = Syncs::default();
        let task = tokio::spawn(async move {
            let mut period = tokio::time::interval(Generic::PERIOD);
            // The first tick comes at once, when there is nothing to list yet.
            period.tick().await;
            loop {
                tokio::select! {
                    biased;
                    _ = period.tick() => {
                        let _quiet = session.relisting().await;
                        syncs.read(&mut reader);
                        syncs.synced.clear();
                        // A list that fails shows nothing; it stands in the history all the same.
                        let _ = pleg.relist().await;
                        period.reset();
                    }
                    // A pod that is popped while a relist of all pods is due is served by that.
                    Some(pod) = std::future::ready(syncs.synced.pop_first()) => {
                        let _quiet = session.relisting().await;
                        let _ = pleg.relist_pod(&SharedUid::from(pod.as_str())).await;
                        syncs.read(&mut reader);
                    }
                    () = reader.changed() => syncs.read(&mut reader),
                }
            }
        });
        Self { task }
    }
}

impl Drop for BackgroundRelist {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The calls of a run that change a pod: a sync of it is one or several at a time.
#[derive(Debug, Default)]
struct Syncs {
    under_way: BTreeMap<CallId, Request>,
    pods: BTreeMap<ContainerId, PodUid>,
    /// The pods to relist on demand.
    synced: BTreeSet<PodUid>,
}

impl Syncs {
    fn read(&mut self, reader: &mut Reader) {
        // Entries that were lost are of pods that the next relist of all pods shows.
        for entry in reader.drain().unwrap_or_default() {
            let synced = self.push(&entry);
            self.synced.extend(synced);
        }
    }

    /// Takes in the next entry. Returns the pod that the call has changed, if it ends one that did.
    /// A call that fails changes none: after a sync with an error a kubelet relists nothing.
    fn push(&mut self, entry: &Entry) -> Option<PodUid> {
        match &entry.body {
            Body::CallBegan { call, request, .. } if changes_a_pod(request) => {
                self.under_way.insert(*call, request.clone());
                None
            }
            Body::CallEnded { call, result, .. } => {
                let request = self.under_way.remove(call)?;
                self.changed(&request, result.as_ref().ok()?)
            }
            _ => None,
        }
    }

    fn changed(&mut self, request: &Request, reply: &Reply) -> Option<PodUid> {
        let (id, pod) = match (request, reply) {
            (Request::RunSandbox(spec), Reply::Sandbox(id)) => {
                (ContainerId::from(id), spec.uid.clone())
            }
            (Request::CreateContainer(spec), Reply::Container(id)) => {
                (id.clone(), spec.sandbox_spec.uid.clone())
            }
            (
                Request::StartContainer(id)
                | Request::StopContainer { container: id, .. }
                | Request::RemoveContainer(id),
                _,
            ) => return self.pods.get(id).cloned(),
            (Request::StopSandbox(id), _) => {
                return self.pods.get(&ContainerId::from(id)).cloned();
            }
            _ => return None,
        };
        if self.pods.len() < limits::RUN_CONTAINERS {
            self.pods.insert(id, pod.clone());
        }
        Some(pod)
    }
}

fn changes_a_pod(request: &Request) -> bool {
    matches!(
        request,
        Request::RunSandbox(_)
            | Request::CreateContainer(_)
            | Request::StartContainer(_)
            | Request::StopContainer { .. }
            | Request::RemoveContainer(_)
            | Request::StopSandbox(_)
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::history::{CallFault, HostInstant, SandboxId, SandboxSpec, Seq, StatusCode};

    /// The pods that calls have changed.
    #[track_caller]
    fn check(calls: &[(Request, Result<Reply, CallFault>)], expected: &[&str]) {
        let mut syncs = Syncs::default();
        let mut synced = Vec::new();
        for (number, (request, result)) in calls.iter().enumerate() {
            let call = CallId(number as u64);
            let began = Body::CallBegan {
                call,
                case: None,
                request: request.clone(),
                message: bytes::Bytes::new(),
            };
            let ended = Body::CallEnded {
                call,
                result: result.clone(),
                message: bytes::Bytes::new(),
            };
            for body in [began, ended] {
                let (seq, at) = (Seq::default(), HostInstant::default());
                synced.extend(syncs.push(&Entry { seq, at, body }));
            }
        }
        let synced: Vec<&str> = synced.iter().map(PodUid::as_str).collect();
        assert_eq!(synced, expected);
    }

    #[test]
    fn a_call_that_changes_a_pod_is_a_sync_and_one_that_fails_or_asks_is_none() {
        let sandbox = SandboxId::from("s");
        let spec = SandboxSpec {
            uid: PodUid::from("u"),
            ..SandboxSpec::default()
        };
        let failed = Err(CallFault {
            code: StatusCode::UNAVAILABLE,
            message: String::new(),
            deadline: Duration::ZERO,
        });
        let run = (
            Request::RunSandbox(Arc::new(spec)),
            Ok(Reply::Sandbox(sandbox.clone())),
        );
        let stop = Request::StopSandbox(sandbox.clone());
        let status = (Request::SandboxStatus(sandbox), Ok(Reply::Done));
        check(
            &[run.clone(), (stop.clone(), Ok(Reply::Done)), status.clone()],
            &["u", "u"],
        );
        check(&[run, (stop.clone(), failed)], &["u"]);
        check(&[(stop, Ok(Reply::Done)), status], &[]);
    }
}
