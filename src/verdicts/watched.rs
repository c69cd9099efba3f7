//! The verdicts of a watch: a pod is judged as soon as it is idle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::findings::{Found, Place, Sort, find};
use super::known::{Known, WATCH};
use super::watched_pods::{Loss, WatchedPods};
use crate::history::{
    Body, CallFault, CallId, CaseHistory, Entry, HostInstant, Reply, Request, StatusCode,
    StreamEnd, SubjectKind,
};
use crate::limits;
use crate::oracle::{Index, span};
use crate::outcome::{Latency, Limit, Profile, Spread, Violation, WatchTotals, Worst};

/// The maximum number of violations retained for the live output.
const NEWS: usize = 1_000;

/// The maximum number of violations retained to detect duplicates.
const LATEST: usize = 100;

/// The minimum number of relists for finding a missed event: one before a change, and one after it.
const FEWEST: u64 = 2;

/// The pods of a watch, and the findings so far.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) pods: WatchedPods,
    pub(super) totals: WatchTotals,
    news: Vec<WatchNews>,
    /// The time since the stream's end; `None` with a stream.
    lost: Option<HostInstant>,
    relists: RelistTroubles,
    /// The number of times that a pod had no relist or no status after a change.
    unproven: u64,
    opened: HostInstant,
    /// The lags of events that were created after their stream was requested.
    lags: Option<Worst>,
    /// The latest violations, which the rest of a history that is judged in parts shows again.
    latest: VecDeque<Violation>,
}

/// A violation in a pod of a watch that has just been judged.
#[derive(Clone, Debug)]
pub struct WatchNews {
    pub violation: Violation,
    pub is_known: bool,
}

/// The criteria for judging a pod.
pub(super) struct Measure<'a> {
    pub(super) profiles: &'a [Profile],
    pub(super) known: &'a Known,
    pub(super) filled: &'a BTreeSet<Sort>,
}

/// The calls of relists that failed or were slow.
#[derive(Debug, Default)]
pub(super) struct RelistTroubles {
    under_way: BTreeMap<CallId, (&'static str, HostInstant)>,
    whole: u64,
    /// The begin of the first list that failed since the last successful relist.
    failing: Option<HostInstant>,
    /// The time in which lists failed, or a call was slow.
    without: Duration,
    troubles: BTreeMap<&'static str, Trouble>,
}

/// The failures of the calls of one method.
#[derive(Debug)]
struct Trouble {
    times: u64,
    since: HostInstant,
    last: String,
}

impl Watched {
    /// A watch without a stream so far, in which an event is late after `within`.
    pub(super) fn new(within: Duration, began: HostInstant) -> Self {
        Self {
            pods: WatchedPods::new(within),
            lost: Some(began),
            opened: began,
            ..Self::default()
        }
    }

    /// Processes the next entry; returns the histories that can be judged.
    pub(super) fn push(&mut self, entry: &Arc<Entry>) -> Vec<CaseHistory> {
        self.relists.push(entry);
        match &entry.body {
            Body::Event { event, .. } => {
                self.totals.events += 1;
                self.lagged(event.created_at.0, entry.at);
                if event.has_long_names() {
                    self.pods.untracked.add(Loss::Names, entry.at);
                    return Vec::new();
                }
            }
            Body::SubscriptionOpened { .. } => self.opened = entry.at,
            Body::CallEnded {
                result: Ok(Reply::Containers(_)),
                ..
            } => self.totals.relists += 1,
            Body::SubscriptionEnded { end, .. } => {
                // A watch cancels its stream only if the queue of entries has overflowed.
                if *end == StreamEnd::Cancelled {
                    self.pods.untracked.add(Loss::Overrun, entry.at);
                }
                self.totals.outages += u64::from(self.lost.is_none());
                self.lost.get_or_insert(entry.at);
            }
            Body::HeldUp { by } => self.totals.held_up += *by,
            Body::SubscriptionProven { .. } => self.found_again(entry.at),
            Body::CasesEnded => {
                self.found_again(entry.at);
                self.unproven += self.pods.without_relist(entry.at) as u64;
                return self.pods.finish();
            }
            _ => {}
        }
        self.pods.push(entry)
    }

    /// The lags of events; `None` without events.
    pub(super) fn lags(&self) -> Option<&Worst> {
        self.lags.as_ref()
    }

    fn lagged(&mut self, created_at_ns: i64, arrived: HostInstant) {
        if created_at_ns < self.opened.realtime_ns {
            return;
        }
        let took = span(created_at_ns, arrived.realtime_ns);
        let lags = self.lags.get_or_insert_with(|| Worst {
            latency: Latency {
                limit: Limit::EventLag,
                bound: self.pods.within(),
                took,
            },
            spread: Spread::default(),
            case: WATCH.into(),
        });
        lags.latency.took = lags.latency.took.max(took);
        lags.spread.add(took);
    }

    pub(super) fn judge(&mut self, history: &CaseHistory, by: &Measure<'_>) -> Vec<Found> {
        self.totals.judged += 1;
        let subjects = history.subjects().iter();
        let containers = subjects.filter(|it| matches!(it.kind, SubjectKind::Container(_)));
        self.totals.containers += containers.count() as u64;
        let (name, index) = (name(history), Index::new(history));
        let place = (Place::Pod(&name), by.profiles);
        self.unproven += u64::from(lacks_a_status(history));
        let mut found = find(place, &index, by.known, by.filled);
        found.retain(|found| {
            let same = |earlier: &Violation| {
                let found = found.violation();
                earlier.rule == found.rule
                    && earlier.evidence == found.evidence
                    && earlier.subject == found.subject
            };
            !self.latest.iter().any(same)
        });
        for found in &found {
            if self.latest.len() == LATEST {
                self.latest.pop_front();
            }
            self.latest.push_back(found.violation().clone());
        }
        let room = NEWS.saturating_sub(self.news.len());
        self.news
            .extend(found.iter().take(room).map(|found| WatchNews {
                violation: found.violation().clone(),
                is_known: found.is_listed(),
            }));
        found
    }

    /// Removes the findings since the last call.
    pub(super) fn take_news(&mut self) -> Vec<WatchNews> {
        std::mem::take(&mut self.news)
    }

    /// The faults of a watch of this duration that ended at `ended`, one sentence each.
    pub(super) fn faults(&self, duration: Duration, ended: HostInstant) -> Vec<String> {
        let relists = self.relists.fault(duration, ended, self.unproven);
        self.interruption(duration)
            .into_iter()
            .chain(relists)
            .chain(self.pods.untracked.faults(ended))
            .collect()
    }

    fn interruption(&self, duration: Duration) -> Option<String> {
        let whats = [
            (self.totals.without_stream, "there was no event stream"),
            (self.totals.held_up, "the suite itself was held up"),
        ];
        let (time, what) = whats.into_iter().find(|(time, _)| *time * 2 > duration)?;
        let [time, all] = [time, duration].map(|span| span.as_secs_f64());
        Some(format!("{what} for {time:.1} s of {all:.1} s"))
    }

    fn found_again(&mut self, at: HostInstant) {
        if let Some(lost) = self.lost.take() {
            self.totals.without_stream += at.since(lost);
        }
    }
}

/// Whether the last status call for a part of the pod has failed, unless it was deleted or a later
/// list does not show it.
fn lacks_a_status(history: &CaseHistory) -> bool {
    let (mut sandboxes, mut containers) = (BTreeSet::new(), BTreeSet::new());
    for call in history.calls() {
        let Some(result) = call.result() else {
            continue;
        };
        let has_failed = matches!(result, Err(fault) if fault.code != StatusCode::NOT_FOUND);
        let (failed, id) = match (call.request(), result) {
            (Request::SandboxStatus(id), _) => (&mut sandboxes, id.as_str()),
            (Request::ContainerStatus(id), _) => (&mut containers, id.as_str()),
            (_, Ok(Reply::Sandboxes(listed))) => {
                sandboxes.retain(|id| listed.iter().any(|it| it.id.as_str() == *id));
                continue;
            }
            (_, Ok(Reply::Containers(listed))) => {
                containers.retain(|id| listed.iter().any(|it| it.id.as_str() == *id));
                continue;
            }
            _ => continue,
        };
        if has_failed {
            failed.insert(id);
        } else {
            failed.remove(id);
        }
    }
    !sandboxes.is_empty() || !containers.is_empty()
}

/// The pod's namespace and name, or its UID.
fn name(history: &CaseHistory) -> String {
    let mut subjects = history.subjects().iter();
    let named = subjects.find_map(|subject| match &subject.kind {
        SubjectKind::Sandbox(spec) => Some(spec.clone()),
        SubjectKind::Container(spec) => Some(spec.sandbox_spec.clone()),
        SubjectKind::Stray => None,
    });
    let uid = || history.pods().iter().map(ToString::to_string).collect();
    named.map_or_else(uid, |spec| format!("{}/{}", spec.namespace, spec.name))
}

impl RelistTroubles {
    pub(super) fn push(&mut self, entry: &Entry) {
        match &entry.body {
            Body::CallBegan { call, request, .. } => {
                let is_of_relist = matches!(
                    request,
                    Request::ListSandboxes { .. }
                        | Request::ListContainers { .. }
                        | Request::SandboxStatus(_)
                        | Request::ContainerStatus(_)
                );
                if is_of_relist && self.under_way.len() < limits::UNASKED {
                    self.under_way.insert(*call, (request.method(), entry.at));
                }
            }
            Body::CallEnded { call, result, .. } => {
                if let Some(of) = self.under_way.remove(call) {
                    self.ended(of, entry.at, result.as_ref());
                }
            }
            _ => {}
        }
    }

    fn ended(
        &mut self,
        (method, began): (&'static str, HostInstant),
        at: HostInstant,
        result: Result<&Reply, &CallFault>,
    ) {
        let took = at.since(began);
        match result {
            // An object removed after a list has no status.
            Err(fault) if fault.code != StatusCode::NOT_FOUND => {
                self.note(method, began, format!("failed: {fault}"));
                if method.starts_with("List") {
                    self.failing.get_or_insert(began);
                }
            }
            _ if took > limits::LATE_RELIST => {
                self.note(method, began, format!("took {:.1} s", took.as_secs_f64()));
            }
            _ => {}
        }
        if let Ok(Reply::Containers(_)) = result {
            self.whole += 1;
            let failing = self.failing.take();
            self.without += failing.map_or(Duration::ZERO, |since| at.since(since));
        } else if took > limits::LATE_RELIST && self.failing.is_none() {
            self.without += took;
        }
    }

    fn note(&mut self, method: &'static str, since: HostInstant, last: String) {
        let trouble = self.troubles.entry(method).or_insert(Trouble {
            times: 0,
            since,
            last: String::new(),
        });
        (trouble.times, trouble.last) = (trouble.times + 1, last);
    }

    /// The reason why the relists prove too little, as a sentence, given the duration and end of
    /// the watch; `unproven` pods have changed without a relist or a status since.
    pub(super) fn fault(
        &self,
        duration: Duration,
        ended: HostInstant,
        unproven: u64,
    ) -> Option<String> {
        let hanging = self.under_way.values();
        let hanging = hanging.map(|(method, began)| (*method, ended.since(*began)));
        let hanging: Vec<_> = hanging
            .filter(|(_, time)| *time > limits::LATE_RELIST)
            .collect();
        let failing = self.failing.map(|since| ended.since(since));
        let open = failing.or(hanging.iter().map(|(_, time)| *time).max());
        let without = self.without + open.unwrap_or_default();
        let what = if self.whole < FEWEST {
            format!(
                "only {} relists succeeded, and the rules need {FEWEST}",
                self.whole
            )
        } else if without * 2 > duration {
            let [time, all] = [without, duration].map(|span| span.as_secs_f64());
            format!("there was no relist for {time:.1} s of {all:.1} s")
        } else if unproven > 0 {
            format!("{unproven} times a pod had no relist or no status after a change")
        } else {
            return None;
        };
        let troubles = self.troubles.iter().map(|(method, trouble)| {
            let Trouble { times, since, last } = trouble;
            let since = ended.since(*since).as_secs_f64();
            format!("{method}, {times} times, the first {since:.1} s before the end, {last}")
        });
        let hanging = hanging.iter().map(|(method, time)| {
            let time = time.as_secs_f64();
            format!("{method} has not answered for {time:.1} s")
        });
        let why: Vec<String> = troubles.chain(hanging).collect();
        let why = if why.is_empty() {
            String::new()
        } else {
            format!(": {}", why.join("; "))
        };
        Some(what + &why)
    }
}

#[cfg(test)]
mod tests {
    use super::lacks_a_status;
    use crate::oracle::script::history;

    #[test]
    fn a_status_is_lacking_until_the_object_is_listed_no_more() {
        let lacks = |then: &str| {
            let life = "pod run; c create; c CREATED; c start; c STARTED";
            let script = format!("{life}; pod inspect c=running unanswered; {then}end");
            lacks_a_status(&history(&script))
        };
        assert!(lacks(""));
        assert!(lacks("pod relist c=running; "));
        assert!(!lacks("pod inspect; "));
        assert!(!lacks("pod inspect c=running; "));
    }
}
