//! `created_at` of events. INV-04: it is a current time in nanoseconds, between the event's cause
//! and its arrival. INV-26: an event is created before the call that causes it returns, and comes
//! after its begin.

use crate::history::{Call, EventArrival, EventKind, Subject, SubjectKind};
use crate::oracle::clocks::{SLACK_NS, TICK_NS, span, unit_hint};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_SHOULD};
use crate::oracle::name_of;
use crate::oracle::objects::{Object, failed_to_start, removes, starts};
use crate::outcome::{Fact, Facts, Kind, Mismatch, Violation};

pub(in crate::oracle) const CURRENT: Invariant = Invariant {
    id: "INV-04",
    name: "invariant::created-at-is-current",
    sentence: "created_at is a time in nanoseconds, not before the call or exit that causes the event and \
               not after its arrival.",
    source: "CRI api.proto, ContainerEventResponse.created_at; cri-o#8580",
    requirements: &["R18", "R19"],
    kinds: &[
        Kind::CreatedAtNotCurrent,
        Kind::CreatedAtBeforeCause,
        Kind::CreatedAtAfterArrival,
    ],
    compares_clocks: true,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check: not_current,
};

/// The maximum age of an event of a foreign pod: a runtime may keep events for its next subscriber.
const DAY_NS: i64 = 24 * 3_600 * 1_000_000_000;

fn not_current(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let began = history.began().map(|at| at.realtime_ns - SLACK_NS);
    if began.is_none() && !history.is_of_foreign_pod() {
        return Vec::new();
    }
    rule.on_each_event(history, |subject, arrival| {
        let at = arrival.event().created_at.0;
        let arrived = arrival.at().realtime_ns;
        let (earliest, latest) = (began.unwrap_or(arrived - DAY_NS), arrived + SLACK_NS);
        if (earliest..=latest).contains(&at) {
            return untimely(index, subject, arrival).filter(|_| began.is_some());
        }
        let hint = unit_hint(at, latest).map(Fact::Hint);
        Some(Mismatch::new(
            Kind::CreatedAtNotCurrent,
            [Fact::Earliest(earliest), Fact::Latest(latest)],
            [Fact::Time(at)].into_iter().chain(hint).collect::<Facts>(),
        ))
    })
}

/// The mismatch of a time before the cause of an event of the case, or after its arrival.
fn untimely(index: &Index<'_>, subject: &Subject, arrival: &EventArrival) -> Option<Mismatch> {
    let (event, arrived) = (arrival.event(), arrival.at().realtime_ns);
    let (kind, at) = (Fact::Event(event.kind), event.created_at.0);
    let exit = event.own_status().map(|end| end.finished_at.0);
    let exit = exit.filter(|at| event.kind == EventKind::Stopped && *at != 0);
    let exit = exit.map(|at| ("finished_at", at));
    let call = || {
        let began = cause(index, subject, arrival)?;
        Some((began.request().method(), began.began().at.realtime_ns))
    };
    let early = exit
        .or_else(call)
        .filter(|(_, from)| at.saturating_add(TICK_NS) < *from);
    if let Some((cause, from)) = early {
        let actual = [kind, Fact::Pause(span(at, from))];
        let cause = [Fact::Cause(cause.to_owned())];
        return Some(Mismatch::new(Kind::CreatedAtBeforeCause, cause, actual));
    }
    (at > arrived.saturating_add(TICK_NS)).then(|| {
        let actual = [kind, Fact::Pause(span(arrived, at))];
        Mismatch::new(Kind::CreatedAtAfterArrival, [], actual)
    })
}

/// The call that an event cannot precede; for the exit of a process, its start.
fn cause<'a>(index: &Index<'a>, subject: &Subject, arrival: &EventArrival) -> Option<&'a Call> {
    let object = index.object(&subject.id)?;
    let sandbox = index.objects().sandbox_of(object);
    let first = |fits: fn(&Call) -> bool| {
        let outer = sandbox.into_iter().flat_map(|sandbox| &sandbox.calls);
        let calls = object.calls.iter().chain(outer).copied();
        calls
            .filter(|call| fits(call))
            .min_by_key(|call| call.began().seq)
    };
    let call = match (arrival.event().kind, sandbox) {
        (EventKind::Created, _) | (EventKind::Started, None) => object.creation,
        (EventKind::Started | EventKind::Stopped, Some(_)) => first(starts),
        (EventKind::Stopped, None) => first(|_| true),
        // A runtime may remove what it cannot start.
        (EventKind::Deleted, _) => first(|call| removes(call) || failed_to_start(call)),
        (EventKind::Unknown(_), _) => None,
    };
    call.filter(|call| call.began().seq < arrival.seq())
}

pub(in crate::oracle) const WITHIN_CALL: Invariant = Invariant {
    id: "INV-26",
    name: "invariant::event-within-call",
    sentence: "CREATED, STARTED and DELETED of a container are made before the call that causes \
               them returns, and none of them comes before such a call begins.",
    source: "kubernetes#123087 (a late STARTED, a second container), kubernetes#137362",
    requirements: &["R29"],
    kinds: &[Kind::CreatedAtAfterCall, Kind::UncausedEvent],
    compares_clocks: true,
    of_foreign_pods: false,
    levels: MUST_SHOULD,
    check: late,
};

/// The wall clock may be slewed during a run, and some runtimes read it in ticks of the kernel.
const APART_NS: i64 = 10_000_000;

/// Finds each container with an event created after the return of the call that it reports, or
/// before any such call began.
fn late(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let wrong = |object: &Object<'_>| {
        let mut removals = object.calls.iter().copied();
        let removal = removals.find(|call| removes(call) && matches!(call.result(), Some(Ok(_))));
        let causes = [
            (EventKind::Created, object.creation),
            (EventKind::Started, object.start),
            (EventKind::Deleted, removal),
        ];
        let late = causes.into_iter().find_map(|(kind, call)| {
            let (call, seen) = (call?, object.subject.first(kind)?);
            let (ended, at) = (call.ended()?, seen.event().created_at.0);
            let late_ns = at.saturating_sub(ended.at.realtime_ns);
            // A time that is far from now breaks INV-04.
            (APART_NS..DAY_NS).contains(&late_ns).then(|| {
                let method = Fact::Method(call.request().method().to_owned());
                let kind = Fact::Event(kind);
                let mismatch = Mismatch::new(Kind::CreatedAtAfterCall, [method], [kind]);
                let proof = vec![call.began().seq, ended.seq, seen.seq()];
                rule.violation(name_of(object.subject), mismatch, proof)
            })
        });
        late.or_else(|| uncaused(rule, index, object))
    };
    let is_container =
        |object: &&Object<'_>| matches!(object.subject.kind, SubjectKind::Container(_));
    let containers = index.objects().iter().filter(is_container);
    containers.filter_map(wrong).collect()
}

/// The first event that came before any call that can have caused it. A process can end without
/// one.
fn uncaused(rule: &Invariant, index: &Index<'_>, object: &Object<'_>) -> Option<Violation> {
    let needs_call = |kind| {
        matches!(
            kind,
            EventKind::Created | EventKind::Started | EventKind::Deleted
        )
    };
    object.creation?;
    let mut arrivals = object.subject.arrivals.iter();
    let seen = arrivals.find(|seen| {
        needs_call(seen.event().kind) && cause(index, object.subject, seen).is_none()
    })?;
    let fact = || [Fact::Event(seen.event().kind)];
    let mismatch = Mismatch::new(Kind::UncausedEvent, fact(), fact());
    Some(rule.violation_by(object.subject, mismatch, [seen]))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::CURRENT;
    use crate::oracle::index::Index;
    use crate::oracle::invariants::invariants;
    use crate::oracle::rules::testing::{after_create, check, check_all};
    use crate::oracle::script::{history, render};

    #[test]
    fn a_time_in_seconds_is_recognized() {
        after_create(
            "c STARTED at=s",
            expect![[r#"
                INV-04 at #7: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001008000000: 1700000000, which looks like seconds
                INV-05 at #6 #7: c (c.0.beef): expected created_at of 1700000000007000000 or later: 1700000000, which is 1699999998307000000 ns earlier
                INV-23 at #3 #7: pod (pod.0.beef): expected STARTED of c, which came after STARTED of pod, to be made after it, too, and not 1699999998304000000 ns before: its created_at is earlier
            "#]],
        );
    }

    #[test]
    fn a_time_in_milliseconds_is_recognized() {
        after_create(
            "c STARTED at=ms",
            expect![[r#"
                INV-04 at #7: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001008000000: 1700000000008, which looks like milliseconds
                INV-05 at #6 #7: c (c.0.beef): expected created_at of 1700000000007000000 or later: 1700000000008, which is 1699998300006999992 ns earlier
                INV-23 at #3 #7: pod (pod.0.beef): expected STARTED of c, which came after STARTED of pod, to be made after it, too, and not 1699998300003999992 ns before: its created_at is earlier
            "#]],
        );
    }

    #[test]
    fn a_time_in_microseconds_is_recognized() {
        after_create(
            "c STARTED at=us",
            expect![[r#"
                INV-04 at #7: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001008000000: 1700000000008000, which looks like microseconds
                INV-05 at #6 #7: c (c.0.beef): expected created_at of 1700000000007000000 or later: 1700000000008000, which is 1698300000006992000 ns earlier
                INV-23 at #3 #7: pod (pod.0.beef): expected STARTED of c, which came after STARTED of pod, to be made after it, too, and not 1698300000003992000 ns before: its created_at is earlier
            "#]],
        );
    }

    #[test]
    fn an_unset_time_is_reported() {
        check_all(
            "pod run; c create; c CREATED at=0",
            expect![[r#"
        INV-04 at #5: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001006000000: 0, which means not set
    "#]],
        );
    }

    #[test]
    fn a_time_in_the_future_is_reported() {
        after_create(
            "c STARTED at=+1001ms",
            expect![[r#"
                INV-04 at #7: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001008000000: 1700000001009000000
            "#]],
        );
    }

    #[test]
    fn clocks_may_differ_by_a_tick() {
        after_create("c STARTED at=+10ms", expect![]);
        after_create(
            "c STARTED at=+11ms",
            expect![[r#"
                INV-04 at #7: c (c.0.beef): expected created_at of STARTED not after its arrival: 11ms after it
            "#]],
        );
    }

    #[test]
    fn a_time_long_before_the_case_is_reported() {
        check(
            &CURRENT,
            "pod run; c create; c CREATED at=-1100ms",
            expect![[r#"
        INV-04 at #5: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001006000000: 1699999998906000000
    "#]],
        );
    }

    #[test]
    fn a_time_a_second_before_the_case_is_before_its_cause() {
        check(
            &CURRENT,
            "pod run; c create; c CREATED at=-1005ms",
            expect![[r#"
                INV-04 at #5: c (c.0.beef): expected created_at of CREATED not before CreateContainer: 1.003s before it
            "#]],
        );
    }

    #[test]
    fn the_extreme_times_are_reported() {
        check_all(
            "pod run; c create; c CREATED at=last; c STARTED at=first",
            expect![[r#"
                INV-04 at #5: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001006000000: 9223372036854775807
                INV-05 at #5 #6: c (c.0.beef): expected created_at of 9223372036854775807 or later: -9223372036854775808, which is 18446744073709551615 ns earlier
            "#]],
        );
    }

    #[test]
    fn created_at_of_a_sandbox_event_is_not_before_its_cause() {
        check(&CURRENT, "pass 1s; pod run; pod STARTED; end", expect![]);
        check(
            &CURRENT,
            "pass 1s; pod run; pod STARTED at=-40ms; end",
            expect![[r#"
                INV-04 at #3: pod (pod.0.beef): expected created_at of STARTED not before RunPodSandbox: 38ms before it
            "#]],
        );
    }

    #[test]
    fn created_at_lies_between_cause_and_arrival() {
        let script = "pod run; pass 1s; c create; c CREATED; pass 1s; c start; c STARTED; end";
        check(&CURRENT, script, expect![]);
        // The clocks may differ by one kernel tick.
        for made in ["STARTED at=-12ms", "STARTED at=+10ms"] {
            let script = script.replace("STARTED", made);
            check(&CURRENT, &script, expect![]);
        }
        check(
            &CURRENT,
            &script.replace("STARTED", "STARTED at=-20ms"),
            expect![[r#"
                INV-04 at #8: c (c.0.beef): expected created_at of STARTED not before StartContainer: 18ms before it
            "#]],
        );
        check(
            &CURRENT,
            &script.replace("STARTED", "STARTED at=+20ms"),
            expect![[r#"
                INV-04 at #8: c (c.0.beef): expected created_at of STARTED not after its arrival: 20ms after it
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
                    INV-04 at #14: c (c.0.beef): expected created_at of DELETED not before RemoveContainer: 18ms before it
                "#]],
            ),
            (
                "pod2 remove; pass 1s; pod remove",
                expect![[r#"
                    INV-04 at #14: c (c.0.beef): expected created_at of DELETED not before RemovePodSandbox: 18ms before it
                "#]],
            ),
        ] {
            let script = format!("{created}; {removal}; c DELETED at=-20ms; end");
            check(&CURRENT, &script, expect);
        }
    }

    #[test]
    fn a_sandbox_is_stopped_and_deleted_by_calls_of_its_own() {
        let life = "pod run; pod STARTED; pass 1s; pod stop; pod STOPPED; pass 1s; pod remove; \
                pod DELETED; end";
        check(&CURRENT, life, expect![]);
        let wrong = |event: &str| life.replace(event, &format!("{event} at=-20ms"));
        check(
            &CURRENT,
            &wrong("STOPPED"),
            expect![[r#"
                INV-04 at #6: pod (pod.0.beef): expected created_at of STOPPED not before StopPodSandbox: 18ms before it
            "#]],
        );
        check(
            &CURRENT,
            &wrong("DELETED"),
            expect![[r#"
                INV-04 at #9: pod (pod.0.beef): expected created_at of DELETED not before RemovePodSandbox: 18ms before it
            "#]],
        );
    }

    #[test]
    fn created_at_of_stopped_is_after_the_exit() {
        let script = "pod run; c create; c start; pass 2s; c STOPPED finished=-1s; end";
        check(&CURRENT, script, expect![]);
        check(
            &CURRENT,
            &script.replace("STOPPED", "STOPPED at=-1500ms"),
            expect![[r#"
                INV-04 at #7: c (c.0.beef): expected created_at of STOPPED not before finished_at: 500ms before it
            "#]],
        );
    }

    /// Checks the rule on events that may have been created after the return of their call.
    #[track_caller]
    fn made_late(script: &str, expect: Expect) {
        let found = invariants(&Index::new(&history(script)));
        expect.assert_eq(&render(found.iter().filter(|found| found.rule == "INV-26")));
    }

    #[test]
    fn an_event_has_a_cause() {
        made_late(
            "pod run; c create begins; c CREATED; c create returns",
            expect![],
        );
        made_late(
            "pod run; c create; c start begins; c STARTED; c start returns",
            expect![],
        );
        made_late(
            "pod run; c create; c STARTED; c start",
            expect![[r#"
            INV-26 at #5: c (c.0.beef): expected STARTED after a call that can cause it: STARTED without one
        "#]],
        );
        made_late("pod run; c create; c STOPPED", expect![]);
        for cause in ["c remove", "pod remove", "c start fails"] {
            made_late(&format!("pod run; c create; {cause}; c DELETED"), expect![]);
        }
        for other in ["c stop", "pod stop", "c start"] {
            made_late(
                &format!("pod run; c create; {other}; c DELETED"),
                expect![[r#"
                INV-26 at #7: c (c.0.beef): expected DELETED after a call that can cause it: DELETED without one
            "#]],
            );
        }
    }

    #[test]
    fn an_event_is_made_within_its_call() {
        made_late("pod run; c create; c CREATED at=-1ms", expect![]);
        made_late("pod run; c create; c CREATED", expect![]);
        made_late(
            "pod run; c create; pass 20ms; c CREATED",
            expect![[r#"
            INV-26 at #3 #4 #5: c (c.0.beef): expected CREATED to be made before CreateContainer returned: its created_at is later
        "#]],
        );
        made_late(
            "pod run; c create; c start; c STARTED at=+20ms; c remove; c DELETED at=+20ms",
            expect![[r#"
            INV-26 at #5 #6 #7: c (c.0.beef): expected STARTED to be made before StartContainer returned: its created_at is later
        "#]],
        );
    }

    #[test]
    fn an_event_that_arrives_late_was_made_in_time() {
        made_late(
            "pod run; c create; pass 20ms; c CREATED at=-21ms",
            expect![],
        );
    }

    #[test]
    fn the_end_of_a_process_may_be_noticed_after_the_stop() {
        made_late(
            "pod run; c create; c start; c stop; c STOPPED at=+20ms",
            expect![],
        );
        made_late(
            "pod run; c create; c start fails; c STARTED at=+20ms",
            expect![],
        );
    }
}
