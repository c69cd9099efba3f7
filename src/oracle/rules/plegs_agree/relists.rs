//! The relists of a history: the runtime's answers to each, as input of a kubelet's PLEG.

use std::collections::BTreeMap;

use crate::history::{
    Body, Call, CaseHistory, ContainerListing, ContainerStatus, Entry, Labels, PodUid, Reply,
    Request, SandboxListing, SandboxReport, Seq, StatusCode,
};
use crate::pleg::{ListedItem, ListedPod, Moment, POD_UID_LABEL, State, StatusFault, Statuses};

/// One successful relist: of all pods, or of one on demand.
#[derive(Debug)]
pub(super) struct PlegRelist<'a> {
    pub(super) began: &'a Entry,
    pub(super) ended: &'a Entry,
    /// The pod; `None` for all pods.
    pub(super) pod: Option<&'a str>,
    pub(super) sandboxes: &'a [SandboxListing],
    pub(super) containers: &'a [ContainerListing],
    answers: Vec<&'a Call>,
}

/// The runtime's last answer about each sandbox and container.
#[derive(Debug, Default)]
pub(super) struct Answers<'a> {
    sandboxes: BTreeMap<&'a str, Result<&'a SandboxReport, StatusFault>>,
    containers: BTreeMap<&'a str, Result<&'a ContainerStatus, StatusFault>>,
}

/// Relists that ended before the teardown, in the order of their ends.
pub(super) fn relists(history: &CaseHistory) -> Vec<PlegRelist<'_>> {
    let (of_run, of_case): (Vec<&Call>, Vec<&Call>) =
        history.calls().partition(|call| call.is_of_run());
    let mut relists = grouped(&of_run);
    // A case makes such calls for other reasons, too: only successive ones are an inspection.
    let successive = of_case.split(|call| !asks(call));
    relists.extend(successive.flat_map(grouped).filter(PlegRelist::is_complete));
    relists.retain(|relist| history.within_steps(relist.ended.seq));
    relists.sort_by_key(|relist| relist.ended.seq);
    relists
}

/// The relists of one caller: each begins with a list of sandboxes.
fn grouped<'a>(calls: &[&'a Call]) -> Vec<PlegRelist<'a>> {
    let lists_sandboxes = |call: &&Call| matches!(call.request(), Request::ListSandboxes { .. });
    let starts = (0..calls.len()).filter(|place| lists_sandboxes(&calls[*place]));
    let starts: Vec<usize> = starts.collect();
    let ends = starts.iter().skip(1).copied().chain([calls.len()]);
    let groups = starts.iter().zip(ends);
    groups
        .filter_map(|(start, end)| relist(&calls[*start..end]))
        .collect()
}

fn relist<'a>(calls: &[&'a Call]) -> Option<PlegRelist<'a>> {
    let (first, rest) = calls.split_first()?;
    let (Request::ListSandboxes { labels, .. }, Some(Ok(Reply::Sandboxes(sandboxes)))) =
        (first.request(), first.result())
    else {
        return None;
    };
    // The first list of containers alone: another one may be of another pod.
    let is_list = |call: &&&Call| matches!(call.request(), Request::ListContainers { .. });
    let Some(Ok(Reply::Containers(containers))) = rest.iter().find(is_list)?.result() else {
        return None;
    };
    let answers: Vec<&Call> = rest.iter().filter(|call| asks(call)).copied().collect();
    let ends: Option<Vec<&Entry>> = answers.iter().map(|call| call.ended()).collect();
    Some(PlegRelist {
        began: first.began(),
        ended: ends?.into_iter().max_by_key(|entry| entry.seq)?,
        pod: pod_uid(labels),
        sandboxes,
        containers,
        answers,
    })
}

fn asks(call: &Call) -> bool {
    matches!(
        call.request(),
        Request::ListSandboxes { .. }
            | Request::ListContainers { .. }
            | Request::SandboxStatus(_)
            | Request::ContainerStatus(_)
    )
}

fn pod_uid(labels: &Labels) -> Option<&str> {
    labels.get(POD_UID_LABEL).map(|uid| &**uid)
}

impl PlegRelist<'_> {
    pub(super) fn at(&self) -> Moment {
        Moment::from_ns(self.began.at.realtime_ns)
    }

    /// Whether it is a case's inspection of a pod. A run relists pods on demand, too, at any time.
    pub(super) fn inspects(&self, pod: &str) -> bool {
        let of_case = matches!(self.began.body, Body::CallBegan { case: Some(_), .. });
        of_case && self.pod == Some(pod)
    }

    /// Whether it lists a sandbox of the pod.
    pub(super) fn lists(&self, pod: &PodUid) -> bool {
        let mut metadata = self.sandboxes.iter().flat_map(|listed| &listed.metadata);
        metadata.any(|metadata| metadata.uid == *pod)
    }

    /// Whether it requested the status of each listed sandbox and container.
    fn is_complete(&self) -> bool {
        let mut sandboxes = self.sandboxes.iter();
        let mut containers = self.containers.iter();
        sandboxes.all(|listed| self.has_asked_for(listed.id.as_str()))
            && containers.all(|listed| self.has_asked_for(listed.id.as_str()))
    }

    /// Whether it requested the status of a sandbox or container.
    fn has_asked_for(&self, wanted: &str) -> bool {
        let mut answers = self.answers.iter();
        answers.any(|call| match call.request() {
            Request::SandboxStatus(id) => id.as_str() == wanted,
            Request::ContainerStatus(id) => id.as_str() == wanted,
            _ => false,
        })
    }

    pub(super) fn evidence(&self) -> [Seq; 2] {
        [self.began.seq, self.ended.seq]
    }
}

impl<'a> Answers<'a> {
    pub(super) fn take(&mut self, relist: &PlegRelist<'a>) {
        for call in &relist.answers {
            match (call.request(), call.result()) {
                (Request::SandboxStatus(id), Some(Ok(Reply::SandboxStatus(report)))) => {
                    self.sandboxes.insert(id.as_str(), Ok(report));
                }
                (Request::ContainerStatus(id), Some(Ok(Reply::ContainerStatus(report)))) => {
                    self.containers.insert(id.as_str(), Ok(&report.status));
                }
                (Request::SandboxStatus(id), answer) => {
                    self.sandboxes.insert(id.as_str(), Err(fault(answer)));
                }
                (Request::ContainerStatus(id), answer) => {
                    self.containers.insert(id.as_str(), Err(fault(answer)));
                }
                _ => {}
            }
        }
    }

    /// Whether a relist lists a part of a pod without a known status, or in another state than the
    /// last answer, and did not request its status.
    pub(super) fn are_outdated(&self, pod: &ListedPod<'_>, relist: &PlegRelist<'_>) -> bool {
        let is_current = |listed: &ListedItem<'_>, last: Option<Result<State, &StatusFault>>| {
            last.is_some_and(|last| last.is_err() || last == Ok(listed.state))
        };
        let containers = pod.containers().iter().map(|listed| {
            let last = self.containers.get(listed.id).map(Result::as_ref);
            let last = last.map(|last| last.map(|last| State::from(last.state)));
            (listed, is_current(listed, last))
        });
        let sandboxes = pod.sandboxes().iter().map(|listed| {
            let last = self.sandboxes.get(listed.id).map(Result::as_ref);
            let last = last.map(|last| last.map(|last| State::from(last.status.state)));
            (listed, is_current(listed, last))
        });
        let mut all = containers.chain(sandboxes);
        all.any(|(listed, is_current)| !is_current && !relist.has_asked_for(listed.id))
    }
}

fn fault(answer: Option<&Result<Reply, crate::history::CallFault>>) -> StatusFault {
    match answer {
        Some(Err(fault)) if fault.code == StatusCode::NOT_FOUND => StatusFault::NotFound,
        Some(Err(fault)) => StatusFault::Failed(fault.to_string()),
        Some(Ok(_)) | None => StatusFault::Empty,
    }
}

impl Statuses for Answers<'_> {
    fn sandbox(&self, id: &str) -> Result<&SandboxReport, StatusFault> {
        let answer = self.sandboxes.get(id).ok_or(StatusFault::Empty)?;
        answer.as_ref().copied().map_err(Clone::clone)
    }

    fn container(&self, id: &str) -> Result<&ContainerStatus, StatusFault> {
        let answer = self.containers.get(id).ok_or(StatusFault::Empty)?;
        answer.as_ref().copied().map_err(Clone::clone)
    }
}
