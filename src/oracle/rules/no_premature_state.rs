//! INV-19: no event shows a state before the container reached it.

use crate::history::{ContainerState, Subject};
use crate::oracle::index::{CallEnds, Index, Reading, Source};
use crate::oracle::invariants::{Invariant, MUST_MAY};
use crate::oracle::lifecycle::progress;
use crate::oracle::name_of;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-19",
    name: "invariant::no-premature-state",
    sentence: "No event shows a container in a state that it reached later, as calls prove.",
    source: "KEP-3386, failure modes (incorrect container statuses); R22 of the kubelet",
    requirements: &["R17", "R22"],
    kinds: &[Kind::PrematureState],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_MAY,
    check,
};

/// A state in which a call found a container; it may have changed since.
struct Found<'a> {
    state: ContainerState,
    by: &'static str,
    call: CallEnds<'a>,
}

impl<'a> Found<'a> {
    /// `None` for the snapshot of an event, or for a container that has exited.
    fn from_reading(reading: &Reading<'a>) -> Option<Self> {
        let (by, call) = match reading.source {
            Source::Start(call) => ("StartContainer", call),
            Source::List(call) => ("ListContainers", call),
            Source::Status(call, _) => ("ContainerStatus", call),
            Source::Event(..) => return None,
        };
        let state = reading.state;
        let is_early = matches!(state, ContainerState::Created | ContainerState::Running);
        is_early.then_some(Self { state, by, call })
    }
}

/// Finds containers that a snapshot shows in a later state than a call that began afterwards.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let premature = |subject: &Subject| {
        let readings = index.readings(&subject.id).iter();
        let calls: Vec<Found<'_>> = readings.clone().filter_map(Found::from_reading).collect();
        readings.clone().find_map(|shown| {
            let Source::Event(arrival) = shown.source else {
                return None;
            };
            let found = calls.iter().find(|found| {
                found.call.began.seq > arrival.seq()
                    && progress(found.state) < progress(shown.state)
            })?;
            let kind = arrival.event().kind;
            let mismatch = Mismatch::new(
                Kind::PrematureState,
                [
                    Fact::State(found.state.to_string()),
                    Fact::Event(kind),
                    Fact::Method(found.by.to_owned()),
                ],
                [Fact::State(shown.state.to_string()), Fact::Event(kind)],
            );
            let evidence = [arrival.seq()].into_iter().chain(found.call.evidence());
            Some(rule.violation(name_of(subject), mismatch, evidence.collect()))
        })
    };
    let subjects = index.history.subjects().iter();
    subjects.filter_map(premature).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::RULE;
    use crate::oracle::rules::testing::check;

    /// Checks the rule after two containers have been created.
    #[track_caller]
    fn then(script: &str, expect: Expect) {
        check(
            &RULE,
            &format!("pod run; c create; c CREATED; d create; {script}"),
            expect,
        );
    }

    #[test]
    fn a_container_that_can_be_started_was_not_running() {
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
    fn a_container_that_is_found_running_had_not_exited() {
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
