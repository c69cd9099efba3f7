//! INV-19: no event shows a state before the container reached it.

use std::collections::BTreeMap;

use crate::history::{
    CaseHistory, ContainerId, ContainerState, Entry, EventArrival, Reply, Request, Subject,
};
use crate::oracle::invariants::{Invariant, MUST_MAY};
use crate::oracle::lifecycle::progress;
use crate::oracle::name_of;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

/// The rule and where it comes from.
pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-19",
    name: "invariant::no-state-ahead-of-time",
    sentence: "No event shows a container in a state that calls prove to have come later.",
    source: "KEP-3386, failure modes (incorrect container statuses); R22 of the kubelet",
    requirements: &["R17", "R22"],
    kinds: &[Kind::PrematureState],
    compares_clocks: false,
    levels: MUST_MAY,
    check,
};

/// A call that found a container no further than in this state; it may have got on meanwhile.
struct Found<'a> {
    state: ContainerState,
    by: &'static str,
    began: &'a Entry,
    ended: &'a Entry,
}

/// Each container that an event showed further than a call found it that began after the event had
/// come.
fn check(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let (found, shown) = (found(history), shown(history));
    let ahead = |subject: &Subject| {
        let found = found.get(&subject.id)?;
        let mut shown = shown.get(&subject.id)?.iter();
        shown.find_map(|(arrival, state)| {
            let is_later = |found: &&Found| found.began.seq > arrival.seq();
            let is_less = |found: &&Found| progress(found.state) < progress(*state);
            let found = found.iter().filter(is_later).find(is_less)?;
            let event = arrival.event();
            let mismatch = Mismatch::new(
                Kind::PrematureState,
                [
                    Fact::State(found.state.to_string()),
                    Fact::Event(event.kind),
                    Fact::Method(found.by.to_owned()),
                ],
                [Fact::State(state.to_string()), Fact::Event(event.kind)],
            );
            let evidence = vec![arrival.seq(), found.began.seq, found.ended.seq];
            Some(rule.violation(name_of(subject), mismatch, evidence))
        })
    };
    history.subjects().iter().filter_map(ahead).collect()
}

/// What calls found of each container, where it had not come to its end. Only what was created and
/// no more can be started.
fn found(history: &CaseHistory) -> BTreeMap<&ContainerId, Vec<Found<'_>>> {
    let mut all = BTreeMap::<&ContainerId, Vec<Found<'_>>>::new();
    for call in history.calls() {
        let (Some(ended), Some(Ok(reply))) = (call.ended(), call.result()) else {
            continue;
        };
        let mut find = |id, state, by| {
            if state == ContainerState::Created || state == ContainerState::Running {
                let began = call.began();
                let found = Found {
                    state,
                    by,
                    began,
                    ended,
                };
                all.entry(id).or_default().push(found);
            }
        };
        match (call.request(), reply) {
            (Request::StartContainer(id), _) => find(id, ContainerState::Created, "StartContainer"),
            (_, Reply::ContainerStatus(report)) => {
                let status = &report.status;
                find(&status.id, status.state, "ContainerStatus");
            }
            (_, Reply::Containers(listed)) => {
                for listing in listed {
                    find(&listing.id, listing.state, "ListContainers");
                }
            }
            _ => {}
        }
    }
    all
}

/// What events have shown of each container, unless it was only created.
fn shown(history: &CaseHistory) -> BTreeMap<&ContainerId, Vec<(&EventArrival, ContainerState)>> {
    let mut shown = BTreeMap::<_, Vec<_>>::new();
    let subjects = history.subjects().iter();
    for arrival in subjects.flat_map(|subject| &subject.arrivals) {
        for status in &arrival.event().containers {
            if progress(status.state) > Some(0) {
                let states = shown.entry(&status.id).or_default();
                states.push((arrival, status.state));
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::RULE;
    use crate::oracle::rules::testing::check;

    /// After a container has been made, and another.
    #[track_caller]
    fn then(script: &str, expect: Expect) {
        check(
            &RULE,
            &format!("pod run; c create; c CREATED; d create; {script}"),
            expect,
        );
    }

    #[test]
    fn what_can_be_started_had_not_begun() {
        then(
            "d CREATED stale=c:running; c start",
            expect![[r#"
        INV-19 at #8 #9 #10: c (c.0.beef): expected CREATED in CREATED, as StartContainer found it later: RUNNING
    "#]],
        );
        then("d CREATED stale=c:created; c start", expect![]);
        then(
            "c start begins; d CREATED stale=c:running; c start returns",
            expect![],
        );
        then("d CREATED stale=c:exited; c start fails", expect![]);
        check(
            &RULE,
            "pod run; c create; c CREATED state=exited; c start",
            expect![[r#"
            INV-19 at #5 #6 #7: c (c.0.beef): expected CREATED in CREATED, as StartContainer found it later: EXITED
        "#]],
        );
    }

    #[test]
    fn what_is_found_running_had_not_exited() {
        then(
            "c STARTED; d CREATED stale=c:exited; pod relist c=running",
            expect![[r#"
            INV-19 at #9 #10 #11: c (c.0.beef): expected RUNNING in CREATED, as ListContainers found it later: EXITED
        "#]],
        );
        then(
            "c STARTED; pod relist c=running; d CREATED stale=c:exited",
            expect![],
        );
        then(
            "c STARTED; d CREATED stale=c:exited; pod relist c=exited",
            expect![],
        );
        then(
            "c STARTED; d CREATED stale=c:exited; pod relist c=unknown",
            expect![],
        );
        then(
            "c STARTED state=exited; pod inspect c=running",
            expect![[r#"
        INV-19 at #8 #11 #12: c (c.0.beef): expected RUNNING in STARTED, as ListContainers found it later: EXITED
    "#]],
        );
        then(
            "c STARTED state=exited; pod inspect unlisted c=running",
            expect![[r#"
        INV-19 at #8 #15 #16: c (c.0.beef): expected RUNNING in STARTED, as ContainerStatus found it later: EXITED
    "#]],
        );
    }

    #[test]
    fn a_call_that_was_under_way_proves_nothing() {
        then(
            "c STARTED; pod relist begins; d CREATED stale=c:exited; pod relist returns c=running",
            expect![],
        );
    }
}
