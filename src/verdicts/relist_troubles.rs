//! Whether the relists of a watch succeeded: without them missing events cannot be detected.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::history::{Body, CallFault, CallId, Entry, HostInstant, Reply, Request, StatusCode};
use crate::limits;

/// The minimum number of relists for finding a missed event: one before a change, and one after it.
const FEWEST: u64 = 2;

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

impl RelistTroubles {
    pub(super) fn push(&mut self, entry: &Entry) {
        match &entry.body {
            Body::CallBegan { call, request, .. } => {
                let is_of_relist = matches!(
                    request,
                    Request::ListSandboxes(_)
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
