//! INV-17: the times of a container status are set and in order.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::history::{ContainerState, ContainerStatus, EventArrival, EventKind};
use crate::oracle::clocks::TICK_NS;
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_SHOULD};
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-17",
    name: "invariant::status-times-in-order",
    sentence: "In an event, created_at, started_at and finished_at of a status are set as its \
                   state demands, in this order, and neither was it started after its STARTED was made nor \
                   finished after its STOPPED was.",
    source: "CRI api.proto, ContainerStatus; kubelet toKubeContainerStatus",
    requirements: &["R16", "R17", "C7"],
    kinds: &[Kind::MissingTime, Kind::TimesOutOfOrder, Kind::ZeroTimeOfGo],
    compares_clocks: true,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check,
};

const HOUR_NS: u64 = 3_600 * 1_000_000_000;

/// Go's zero time converted to nanoseconds since 1970, which overflows 64 bits: a moment of the
/// year 1754.
const ZERO_TIME_OF_GO_NS: i64 = -6_795_364_578_871_345_152;

/// Each container has one violation, in its own event if possible: those of its sandbox and its
/// siblings show the same status.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let mut reported = BTreeSet::new();
    let mut found = |of_own: bool| {
        rule.on_each_event(index.history, |_, arrival| {
            let event = arrival.event();
            let statuses = event.containers.iter();
            let mut statuses = statuses.filter(|it| (it.id == event.container) == of_own);
            statuses.find_map(|status| {
                let life = index.container(&status.id);
                let started = life.is_some_and(|life| life.is_started);
                let wrong = wrong_times(status, started, arrival)?;
                if !reported.insert(status.id.clone()) {
                    return None;
                }
                let other = (!of_own).then(|| Fact::Of(status.id.to_string()));
                let event = Fact::Event(event.kind);
                let expected = wrong.expected.iter().cloned();
                let expected = expected.chain([event]).chain(other).collect();
                Some(Mismatch { expected, ..wrong })
            })
        })
    };
    let own = found(true);
    let others = found(false);
    own.into_iter().chain(others).collect()
}

fn wrong_times(
    status: &ContainerStatus,
    was_started: bool,
    arrival: &EventArrival,
) -> Option<Mismatch> {
    let event = arrival.event();
    let has_exited = status.state == ContainerState::Exited;
    let runs = status.state == ContainerState::Running;
    let (created, started) = (status.created_at.0, status.started_at.0);
    let finished = status.finished_at.0;
    let has_zero_time = has_exited && !was_started && started == ZERO_TIME_OF_GO_NS;
    if started == 0 && (runs || has_exited && was_started) {
        return Some(missing("started_at", status));
    }
    if finished == 0 && has_exited {
        return Some(missing("finished_at", status));
    }
    let is_own = |kind| event.kind == kind && status.id == event.container;
    let made = ("the event's created_at", Some(event.created_at.0));
    let created = ("created_at", Some(created));
    let is_set = runs || has_exited && !has_zero_time;
    let started = ("started_at", is_set.then_some(started));
    let finished = ("finished_at", has_exited.then_some(finished));
    let nothing = ("", None);
    // A container can have exited before its STARTED is made. A time far from now is not in
    // nanoseconds, which breaks INV-04.
    let of_now = status.started_at.0.abs_diff(event.created_at.0) < HOUR_NS;
    let made_first = if is_own(EventKind::Started) && of_now {
        made
    } else {
        nothing
    };
    let made_last = if is_own(EventKind::Stopped) {
        made
    } else {
        nothing
    };
    let orders = [
        [created, started, finished, made_last],
        [started, made_first, nothing, nothing],
    ];
    let disorder = orders.iter().find_map(|times| disorder(times));
    disorder.or_else(|| has_zero_time.then(zero_time_of_go))
}

/// The mismatch of a container that never ran and has a start time.
fn zero_time_of_go() -> Mismatch {
    let field = Fact::Field("started_at".to_owned());
    Mismatch::new(Kind::ZeroTimeOfGo, [], [field])
}

fn missing(field: &str, status: &ContainerStatus) -> Mismatch {
    let field = Fact::Field(field.to_owned());
    let state = Fact::State(status.state.to_string());
    Mismatch::new(Kind::MissingTime, [], [field, state])
}

/// The first of these times that is set and later than the next one that is set. [`wrong_times`]
/// reports unset times.
fn disorder(times: &[(&str, Option<i64>)]) -> Option<Mismatch> {
    let set = times
        .iter()
        .filter_map(|(name, time)| Some((name, time.filter(|time| *time != 0)?)));
    let mut pairs = set.clone().zip(set.skip(1));
    pairs.find_map(|((before, earlier), (after, later))| {
        (later.saturating_add(TICK_NS) < earlier).then(|| {
            let early = Duration::from_nanos(earlier.abs_diff(later));
            Mismatch::new(
                Kind::TimesOutOfOrder,
                [Fact::Pause(early)],
                [
                    Fact::Field(before.to_string()),
                    Fact::AfterField(after.to_string()),
                ],
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::RULE;
    use crate::oracle::rules::testing::check;

    /// Checks the rule after a container has been created and started.
    #[track_caller]
    fn timed(script: &str, expect: Expect) {
        let made = "pod run; c create; c CREATED; c start";
        check(&RULE, &format!("{made}; {script}"), expect);
    }

    #[test]
    fn a_running_or_exited_container_was_started() {
        timed("c STARTED", expect![]);
        timed(
            "c STARTED started=0",
            expect![[r#"
        INV-17 at #8: c (c.0.beef): expected started_at in STARTED: none, of what is RUNNING
    "#]],
        );
        timed(
            "c STOPPED started=0",
            expect![[r#"
        INV-17 at #8: c (c.0.beef): expected started_at in STOPPED: none, of what is EXITED
    "#]],
        );
        timed("c STARTED state=created started=0", expect![]);
    }

    #[test]
    fn an_exited_container_is_finished() {
        timed("c STOPPED", expect![]);
        timed(
            "c STOPPED finished=0",
            expect![[r#"
        INV-17 at #8: c (c.0.beef): expected finished_at in STOPPED: none, of what is EXITED
    "#]],
        );
        timed(
            "c STARTED state=exited finished=0",
            expect![[r#"
        INV-17 at #8: c (c.0.beef): expected finished_at in STARTED: none, of what is EXITED
    "#]],
        );
        timed("c STARTED finished=0", expect![]);
    }

    #[test]
    fn a_container_that_was_never_started_has_no_start_time() {
        let made = "pod run; c create; c CREATED";
        let unstarted = |script: &str, expect| check(&RULE, &format!("{made}; {script}"), expect);
        unstarted("c start fails; c STOPPED started=0", expect![]);
        unstarted("c stop; c STOPPED started=0", expect![]);
        unstarted(
            "c start fails; c STOPPED started=0 finished=0",
            expect![[r#"
        INV-17 at #8: c (c.0.beef): expected finished_at in STOPPED: none, of what is EXITED
    "#]],
        );
    }

    #[test]
    fn the_zero_time_of_go_is_none_of_a_container_that_never_ran() {
        let unstarted = |script: &str, expect| {
            check(
                &RULE,
                &format!("pod run; c create; c CREATED; {script}"),
                expect,
            );
        };
        unstarted(
            "c remove begins; c STOPPED started=go",
            expect![[r#"
                INV-17 at #7: c (c.0.beef): expected no started_at in STOPPED, as it never ran: the zero time of Go in nanoseconds, which is in the year 1754
            "#]],
        );
        unstarted("c remove begins; c STOPPED started=0", expect![]);
        // What else is wrong with the times is found first, and what ran has been started.
        unstarted(
            "c stop; c STOPPED started=go finished=-100ms",
            expect![[r#"
            INV-17 at #8: c (c.0.beef): expected created_at not 99.999998ms after finished_at in STOPPED: created_at after finished_at
        "#]],
        );
        unstarted(
            "c stop; c STOPPED started=-100ms",
            expect![[r#"
            INV-17 at #8: c (c.0.beef): expected created_at not 99.999999ms after started_at in STOPPED: created_at after started_at
        "#]],
        );
        timed(
            "c STOPPED started=go",
            expect![[r#"
            INV-17 at #8: c (c.0.beef): expected created_at not 8495364578.871345152s after started_at in STOPPED: created_at after started_at
        "#]],
        );
    }

    #[test]
    fn times_are_in_order() {
        timed(
            "c STARTED started=-11ms",
            expect![[r#"
            INV-17 at #8: c (c.0.beef): expected created_at not 10.999999ms after started_at in STARTED: created_at after started_at
        "#]],
        );
        timed("c STARTED started=-10000001ns", expect![]);
        timed(
            "c STOPPED started=+11ms",
            expect![[r#"
            INV-17 at #8: c (c.0.beef): expected started_at not 10.999999ms after finished_at in STOPPED: started_at after finished_at
        "#]],
        );
        timed("c STOPPED started=+9ms", expect![]);
        timed(
            "c STOPPED finished=-11ms",
            expect![[r#"
            INV-17 at #8: c (c.0.beef): expected started_at not 10.999999ms after finished_at in STOPPED: started_at after finished_at
        "#]],
        );
    }

    #[test]
    fn stopped_is_made_after_the_exit() {
        timed(
            "c STOPPED at=-60ms",
            expect![[r#"
            INV-17 at #8: c (c.0.beef): expected finished_at not 51.000002ms after the event's created_at in STOPPED: finished_at after the event's created_at
        "#]],
        );
        timed("c STOPPED at=-10ms", expect![]);
        timed("c STARTED state=exited finished=+60ms", expect![]);
    }

    #[test]
    fn siblings_have_times_too() {
        timed(
            "c STARTED started=0; d create; d CREATED",
            expect![[r#"
            INV-17 at #8: c (c.0.beef): expected started_at in STARTED: none, of what is RUNNING
        "#]],
        );
        timed(
            "c STARTED started=0 missing; d create; d CREATED",
            expect![[r#"
                INV-17 at #11: d (d.0.beef): expected started_at in CREATED, of c.0.beef: none, of what is RUNNING
            "#]],
        );
        timed("c STARTED; d create; d CREATED", expect![]);
    }

    #[test]
    fn started_is_not_made_before_the_start() {
        timed("c STARTED", expect![]);
        timed("c STARTED started=+300ms at=+295ms", expect![]);
        timed(
            "c STARTED started=+300ms at=+200ms",
            expect![[r#"
            INV-17 at #8: c (c.0.beef): expected started_at not 91.000001ms after the event's created_at in STARTED: started_at after the event's created_at
        "#]],
        );
        timed(
            "d create; d CREATED; c STARTED started=+300ms at=+400ms; d STARTED at=+200ms",
            expect![],
        );
        timed("c CREATED state=running started=+300ms", expect![]);
        timed(
            "c STARTED state=exited started=+300ms finished=+500ms at=+400ms",
            expect![],
        );
    }
}
