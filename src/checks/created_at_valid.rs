//! `created-at-valid`: `created_at` lies between the cause of the event and its arrival.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::{Finding, Word};
use crate::history::EventKind;
use crate::oracle::{TICK_NS, span};
use crate::outcome::{Fact, Kind, Mismatch};

check_on! {
    CreatedAtValidCheck(NameRef)
}

impl Word for CreatedAtValidCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Either);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::CreatedAtBeforeCause, Kind::CreatedAtAfterArrival]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        events.find(|arrival| {
            let event = arrival.event();
            let created_at = event.created_at.0;
            let arrived = arrival.at().realtime_ns;
            let end = event
                .own_status()
                .filter(|_| event.kind == EventKind::Stopped);
            let end = end.map(|end| ("finished_at", end.finished_at.0, None));
            let cause = events.cause(event.kind).map(|call| {
                let began = call.began();
                (
                    call.request().method(),
                    began.at.realtime_ns,
                    Some(began.seq),
                )
            });
            let (after, earliest, seq) = end.filter(|(_, end, _)| *end != 0).or(cause)?;
            let kind = event.kind;
            let evidence = seq.into_iter().chain([arrival.seq()]).collect();
            if created_at.saturating_add(TICK_NS) < earliest {
                let early = span(created_at, earliest);
                let mismatch = Mismatch::new(
                    Kind::CreatedAtBeforeCause,
                    [Fact::Cause(after.to_owned())],
                    [Fact::Event(kind), Fact::Pause(early)],
                );
                return Some((mismatch, evidence));
            }
            (created_at > arrived.saturating_add(TICK_NS)).then(|| {
                let late = span(arrived, created_at);
                let actual = [Fact::Event(kind), Fact::Pause(late)];
                let mismatch = Mismatch::new(Kind::CreatedAtAfterArrival, [], actual);
                (mismatch, evidence)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const VALID: &str = "created-at-valid: {of: c}";

    #[test]
    fn created_at_of_a_sandbox_event_is_not_before_its_cause() {
        let of_pod = "created-at-valid: {of: pod}";
        check(
            of_pod,
            "pass 1s; pod run; pod STARTED; end",
            expect!["holds"],
        );
        check(
            of_pod,
            "pass 1s; pod run; pod STARTED at=-40ms; end",
            expect![[r#"
            ORD-01 at #1 #3: pod (pod.0.beef): expected created_at of STARTED not before RunPodSandbox: 38ms before it
        "#]],
        );
    }

    #[test]
    fn created_at_lies_between_cause_and_arrival() {
        let script = "pod run; pass 1s; c create; c CREATED; pass 1s; c start; c STARTED; end";
        check(VALID, script, expect!["holds"]);
        // The clocks may differ by one kernel tick.
        for made in ["STARTED at=-12ms", "STARTED at=+10ms"] {
            let script = script.replace("STARTED", made);
            check(VALID, &script, expect!["holds"]);
        }
        check(
            VALID,
            &script.replace("STARTED", "STARTED at=-20ms"),
            expect![[r#"
        ORD-01 at #6 #8: c (c.0.beef): expected created_at of STARTED not before StartContainer: 18ms before it
    "#]],
        );
        check(
            VALID,
            &script.replace("STARTED", "STARTED at=+20ms"),
            expect![[r#"
        ORD-01 at #6 #8: c (c.0.beef): expected created_at of STARTED not after its arrival: 20ms after it
    "#]],
        );
    }

    #[test]
    fn a_removal_is_the_cause_of_deleted() {
        let created = "pod run; pod2 run; d create in=pod2; c create in=pod; c CREATED";
        for (removal, expect) in [
            (
                "d remove; pass 1s; c remove",
                expect![[r#"
            ORD-01 at #12 #14: c (c.0.beef): expected created_at of DELETED not before RemoveContainer: 18ms before it
        "#]],
            ),
            (
                "pod2 remove; pass 1s; pod remove",
                expect![[r#"
            ORD-01 at #12 #14: c (c.0.beef): expected created_at of DELETED not before RemovePodSandbox: 18ms before it
        "#]],
            ),
        ] {
            let script = format!("{created}; {removal}; c DELETED at=-20ms; end");
            check(VALID, &script, expect);
        }
    }

    #[test]
    fn a_sandbox_is_stopped_and_deleted_by_calls_of_its_own() {
        let valid = "created-at-valid: {of: pod}";
        let life = "pod run; pod STARTED; pass 1s; pod stop; pod STOPPED; pass 1s; pod remove; \
                pod DELETED; end";
        check(valid, life, expect!["holds"]);
        let wrong = |event: &str| life.replace(event, &format!("{event} at=-20ms"));
        check(
            valid,
            &wrong("STOPPED"),
            expect![[r#"
        ORD-01 at #4 #6: pod (pod.0.beef): expected created_at of STOPPED not before StopPodSandbox: 18ms before it
    "#]],
        );
        check(
            valid,
            &wrong("DELETED"),
            expect![[r#"
        ORD-01 at #7 #9: pod (pod.0.beef): expected created_at of DELETED not before RemovePodSandbox: 18ms before it
    "#]],
        );
    }

    #[test]
    fn created_at_of_stopped_is_after_the_exit() {
        let script = "pod run; c create; c start; pass 2s; c STOPPED finished=-1s; end";
        check(VALID, script, expect!["holds"]);
        check(
            VALID,
            &script.replace("STOPPED", "STOPPED at=-1500ms"),
            expect![[r#"
                ORD-01 at #7: c (c.0.beef): expected created_at of STOPPED not before finished_at: 500ms before it
            "#]],
        );
    }
}
