//! Tracks the transitions of each container and sandbox, and which of them an event has reported.
//!
//! An id makes each transition once, so it suffices to know which kinds of event have arrived for
//! it. Expected are the events that a relist proves: what is listed as running was created and
//! started. One invariant: no event is expected for a transition without an open stream.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::notice::Subject;
use crate::history::{EventKind, HostInstant};
use crate::limits;
use crate::pleg::State;

/// The state of all tracked objects, by id.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    items: BTreeMap<String, Item>,
}

/// An event that did not arrive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) subject: Subject,
    pub(super) kind: EventKind,
    /// The state in the relist; none if the object is gone.
    pub(super) listed: Option<State>,
    pub(super) waited: Duration,
}

#[derive(Debug, Default)]
struct Item {
    subject: Subject,
    reported: BTreeSet<EventKind>,
    last_event: HostInstant,
    /// The state in the last relist.
    seen: Option<State>,
    /// Whether it has ever run.
    ran: bool,
    gone: bool,
    expected: BTreeMap<EventKind, HostInstant>,
}

impl Ledger {
    /// Whether an id is tracked, or there is room for it.
    pub(super) fn can_track(&self, id: &str) -> bool {
        self.items.len() < limits::WATCHED || self.items.contains_key(id)
    }

    /// The names of a tracked object.
    pub(super) fn subject(&self, id: &str) -> Option<&Subject> {
        self.items.get(id).map(|item| &item.subject)
    }

    /// Notes an event. One that was `queued` does not start the tracking of its object.
    pub(super) fn event(
        &mut self,
        subject: &Subject,
        kind: EventKind,
        at: HostInstant,
        queued: bool,
    ) {
        if queued && !self.items.contains_key(&subject.id) {
            return;
        }
        let item = self.item(subject);
        item.reported.insert(kind);
        item.ran |= kind == EventKind::Started;
        item.last_event = at;
        item.expected.remove(&kind);
    }

    /// Notes a list that was requested at `began`. Returns how many transitions happened without a
    /// stream to report them: if `blind`, all new ones.
    pub(super) fn listed(
        &mut self,
        began: HostInstant,
        listed: &[(Subject, State)],
        blind: bool,
    ) -> u64 {
        let present: BTreeSet<&str> = listed.iter().map(|(of, _)| of.id.as_str()).collect();
        for (id, item) in &mut self.items {
            // What is newer than the list is not gone.
            item.gone = !present.contains(id.as_str()) && item.last_event <= began;
        }
        for (subject, state) in listed {
            let item = self.item(subject);
            item.seen = Some(*state);
            item.ran |= *state == State::Running;
        }
        let unheard = self
            .items
            .values_mut()
            .map(|item| item.expect(began, blind))
            .sum();
        self.items
            .retain(|_, item| !item.gone || !item.expected.is_empty());
        unheard
    }

    /// Takes the events that were expected for longer than `within`.
    pub(super) fn missing(&mut self, now: HostInstant, within: Duration) -> Vec<Missing> {
        let mut missing = Vec::new();
        for item in self.items.values_mut() {
            let expected = std::mem::take(&mut item.expected);
            for (kind, since) in expected {
                let waited = now.since(since);
                if waited <= within {
                    item.expected.insert(kind, since);
                    continue;
                }
                item.reported.insert(kind);
                missing.push(Missing {
                    subject: item.subject.clone(),
                    kind,
                    listed: item.seen.filter(|_| !item.gone),
                    waited,
                });
            }
        }
        missing
    }

    fn item(&mut self, subject: &Subject) -> &mut Item {
        let item = self.items.entry(subject.id.clone()).or_default();
        if item.subject.pod.is_empty() || item.subject.id.is_empty() {
            item.subject = subject.clone();
        }
        item
    }
}

impl Item {
    /// Expects the events that are proven and were not reported; if `blind`, only counts them.
    fn expect(&mut self, now: HostInstant, blind: bool) -> u64 {
        let proven = self.proven();
        let unreported: Vec<EventKind> = proven.difference(&self.reported).copied().collect();
        if blind {
            self.expected.clear();
            self.reported.extend(&unreported);
            return unreported.len() as u64;
        }
        self.expected.retain(|kind, _| unreported.contains(kind));
        for kind in unreported {
            self.expected.entry(kind).or_insert(now);
        }
        0
    }

    /// The events that the known state proves. CREATED of a sandbox is not among them: not all
    /// runtimes send it.
    fn proven(&self) -> BTreeSet<EventKind> {
        let is_container = self.subject.container.is_some();
        let exited = self.seen == Some(State::Exited);
        let kinds = [
            (EventKind::Created, is_container && self.seen.is_some()),
            (EventKind::Started, self.ran),
            (EventKind::Stopped, exited || (self.gone && self.ran)),
            (EventKind::Deleted, self.gone),
        ];
        let proven = kinds.into_iter().filter(|(_, proven)| *proven);
        proven.map(|(kind, _)| kind).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(5);

    fn at(seconds: u64) -> HostInstant {
        HostInstant {
            monotonic_ns: seconds * 1_000_000_000,
            ..HostInstant::default()
        }
    }

    fn container() -> Subject {
        Subject {
            pod: "p".to_owned(),
            container: Some("c".to_owned()),
            id: "1".to_owned(),
            ..Subject::default()
        }
    }

    /// A script: `c@3` is CREATED at second 3 (`s`, `x`, `d` the others), `C@3` a list that
    /// shows it created (`R`, `X`, `-` running, exited, absent), `!@3` one without a stream.
    #[track_caller]
    fn check(script: &str, expect: &str) {
        let mut ledger = Ledger::default();
        let mut found = Vec::new();
        for word in script.split(' ') {
            let (what, second) = word.split_once('@').unwrap();
            let now = at(second.parse().unwrap());
            let kind = match what {
                "c" => Some(EventKind::Created),
                "s" => Some(EventKind::Started),
                "x" => Some(EventKind::Stopped),
                "d" => Some(EventKind::Deleted),
                _ => None,
            };
            if let Some(kind) = kind {
                ledger.event(&container(), kind, now, false);
                continue;
            }
            let state = match what {
                "C" => Some(State::Created),
                "R" | "!" => Some(State::Running),
                "X" => Some(State::Exited),
                _ => None,
            };
            let listed: Vec<_> = state
                .map(|state| (container(), state))
                .into_iter()
                .collect();
            let unheard = ledger.listed(now, &listed, what == "!");
            if unheard > 0 {
                found.push(format!("{unheard} unheard"));
            }
            let missing = ledger.missing(now, WITHIN);
            found.extend(missing.iter().map(|missing| missing.kind.to_string()));
        }
        assert_eq!(found.join(" "), expect, "{script}");
        if script.ends_with("-@99") {
            assert!(ledger.items.is_empty(), "{script}: {ledger:?}");
        }
    }

    #[test]
    fn no_event_is_missed_if_all_are_reported() {
        check("c@1 s@2 R@3 x@4 X@5 d@6 -@20 -@99", "");
    }

    #[test]
    fn a_life_between_two_lists_misses_nothing() {
        check("c@1 s@1 x@1 d@1 -@2 -@99", "");
    }

    #[test]
    fn an_event_is_missed_once() {
        check("c@1 s@1 R@2 X@3 X@8 X@9 X@20", "STOPPED");
        check("R@2 R@8 R@20", "CREATED STARTED");
        check("c@1 s@1 R@2 x@3 -@4 -@10 -@99", "DELETED");
        check("c@1 s@1 -@2 -@8 -@99", "STOPPED DELETED");
    }

    #[test]
    fn a_late_event_within_the_bound_is_not_missed() {
        check("c@1 R@2 R@7 s@7 R@20", "");
    }

    #[test]
    fn a_container_that_could_not_start_has_stopped_and_never_started() {
        check("c@1 X@2 X@8", "STOPPED");
        check("c@1 C@2 x@2 d@3 -@4 -@99", "");
    }

    #[test]
    fn what_happens_without_a_stream_is_not_missed() {
        check("!@1 R@20 x@21 X@22 X@30", "2 unheard");
    }

    #[test]
    fn an_event_newer_than_the_list_does_not_prove_a_deletion() {
        check("c@3 -@2 C@4 C@20", "");
    }
}
