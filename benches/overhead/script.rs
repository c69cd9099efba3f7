//! The parts of a recorded run for a bare loop: the calls of its cases, and the pause of each after
//! the end of the case's wait.

use std::collections::BTreeMap;
use std::time::Duration;

use cri_event_conformance::testing::history::{Body, CallId, CaseRun, Entry, Reply, Request};

/// The calls of one case, in the order in which they began.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) case: CaseRun,
    pub(crate) calls: Vec<Recorded>,
}

#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// The time from the end of the case's wait until the call.
    pub(crate) pause: Duration,
    pub(crate) request: Request,
    /// The id that it returned.
    pub(crate) made: Option<String>,
    /// When it began and when it ended, in nanoseconds.
    pub(crate) began: u64,
    pub(crate) ended: u64,
}

/// The end of a case's wait: the time, and the subject of the event, if any.
type Came = (u64, Option<String>);

/// The entries of one case.
#[derive(Debug, Default)]
struct CaseRecord {
    calls: Vec<Recorded>,
    waits: Vec<Came>,
}

/// The cases' calls out of a history, in the order in which the cases began.
pub(crate) fn scripts(entries: &[Entry]) -> Vec<Script> {
    let mut records = BTreeMap::<CaseRun, CaseRecord>::new();
    let mut open = BTreeMap::<CallId, (CaseRun, Request, u64)>::new();
    let mut events = Vec::<Came>::new();
    for entry in entries {
        let at = entry.at.monotonic_ns;
        match &entry.body {
            Body::CallBegan {
                call,
                case: Some(case),
                request,
                ..
            } if !is_relist(request) => {
                open.insert(*call, (*case, request.clone(), at));
            }
            Body::CallEnded { call, result, .. } => {
                let Some((case, request, began)) = open.remove(call) else {
                    continue;
                };
                let made = match result {
                    Ok(Reply::Sandbox(id)) => Some(id.to_string()),
                    Ok(Reply::Container(id)) => Some(id.to_string()),
                    _ => None,
                };
                records.entry(case).or_default().calls.push(Recorded {
                    pause: Duration::ZERO,
                    request,
                    made,
                    began,
                    ended: at,
                });
            }
            Body::Event { event, .. } => events.push((at, Some(event.container.to_string()))),
            Body::Waited {
                case, wanted, met, ..
            } => records.entry(*case).or_default().waited(at, wanted, *met),
            _ => {}
        }
    }
    records
        .into_iter()
        .map(|(case, records)| records.script(case, &events))
        .collect()
}

impl CaseRecord {
    /// Records the end of a wait that has no event: a time in which no event may arrive, an end, or
    /// an event that never arrived.
    fn waited(&mut self, at: u64, wanted: &str, met: bool) {
        let id = wanted
            .rsplit_once(" (")
            .and_then(|(_, id)| id.strip_suffix(')'));
        if !met || id.is_none() {
            self.waits.push((at, id.map(str::to_owned)));
        }
    }

    fn script(self, case: CaseRun, events: &[Came]) -> Script {
        let Self { mut calls, waits } = self;
        calls.sort_by_key(|call| call.began);
        let ours = |(_, id): &&Came| {
            let mut made = calls.iter().map(|call| &call.made);
            made.any(|made| made == id)
        };
        let awaited: Vec<Came> = events.iter().filter(ours).chain(&waits).cloned().collect();
        let pauses: Vec<Duration> = (0..calls.len())
            .map(|place| pause(&calls, place, &awaited))
            .collect();
        for (call, pause) in calls.iter_mut().zip(pauses) {
            call.pause = pause;
        }
        Script { case, calls }
    }
}

/// The time from the previous call, of the same container or else of all, or the last possible end
/// of a wait before this call.
fn pause(calls: &[Recorded], place: usize, awaited: &[Came]) -> Duration {
    let call = &calls[place];
    let of_sandbox = is_about_sandbox(&call.request);
    let id = container_of(call);
    let is_first = call.made.as_ref() == Some(&id);
    let before = calls[..place]
        .iter()
        .filter(|earlier| of_sandbox || is_first || container_of(earlier) == id);
    let Some(after) = before.map(|earlier| earlier.ended).max() else {
        return Duration::ZERO;
    };
    let counts = |of: &Option<String>| match of {
        Some(of) => of_sandbox || (!is_first && *of == id),
        None => true,
    };
    let last = awaited
        .iter()
        .filter(|(at, of)| *at <= call.began && counts(of))
        .map(|(at, _)| *at)
        .max();
    Duration::from_nanos(last.unwrap_or(0).saturating_sub(after))
}

/// The calls of each container, one container after the other.
pub(crate) fn chains(calls: Vec<Recorded>) -> Vec<Vec<Recorded>> {
    let mut chains: Vec<(String, Vec<Recorded>)> = Vec::new();
    for call in calls {
        let id = container_of(&call);
        match chains.iter_mut().find(|(chain, _)| *chain == id) {
            Some((_, chain)) => chain.push(call),
            None => chains.push((id, vec![call])),
        }
    }
    chains.into_iter().map(|(_, chain)| chain).collect()
}

/// The maximum number of parallel chains.
pub(crate) fn most_at_once(chains: &[Vec<Recorded>]) -> usize {
    let span = |chain: &Vec<Recorded>| {
        let ended = chain.iter().map(|call| call.ended).max();
        Some((chain.first()?.began, ended?))
    };
    let spans: Vec<_> = chains.iter().filter_map(span).collect();
    let at_once = |at: u64| {
        let under_way = spans
            .iter()
            .filter(|(began, ended)| *began <= at && at < *ended);
        under_way.count()
    };
    let most = spans.iter().map(|(began, _)| at_once(*began)).max();
    most.unwrap_or(0).max(1)
}

pub(crate) fn is_about_sandbox(request: &Request) -> bool {
    matches!(
        request,
        Request::RunSandbox(_) | Request::StopSandbox(_) | Request::RemoveSandbox(_)
    )
}

/// Relists belong to the suite's observation, not to the cases.
fn is_relist(request: &Request) -> bool {
    matches!(
        request,
        Request::ListSandboxes { .. }
            | Request::FindSandboxes(_)
            | Request::FindContainers(_)
            | Request::SandboxStatus(_)
            | Request::ListContainers { .. }
            | Request::ContainerStatus(_)
    )
}

/// The recorded id of the container that a call is about.
fn container_of(call: &Recorded) -> String {
    match &call.request {
        Request::StartContainer(id)
        | Request::RemoveContainer(id)
        | Request::StopContainer { container: id, .. }
        | Request::ExecSync { container: id, .. } => id.to_string(),
        _ => call.made.clone().unwrap_or_default(),
    }
}
