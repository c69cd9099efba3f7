//! `status-times`: the times of each status are within the calls that set them.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::{Finding, Word};
use crate::history::{Call, ContainerState, ContainerStatus, EventArrival, Request};
use crate::oracle::{TICK_NS, is_about, span};
use crate::outcome::{Fact, Kind, Mismatch};

check_on! {
    StatusTimesCheck(NameRef)
}

impl Word for StatusTimesCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Container);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![
            Kind::UnexpectedTime,
            Kind::TimeBeforeCall,
            Kind::TimeAfterCall,
        ]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let called = |wanted: fn(&Request) -> bool| {
            let about = |call: &&Call| wanted(call.request()) && is_about(call, events.subject);
            events.index.history.calls().find(about)
        };
        let created = called(|request| matches!(request, Request::CreateContainer(_)));
        let started = called(|request| matches!(request, Request::StartContainer(_)));
        events.find(|arrival| {
            let event = arrival.event();
            let status = event.own_status()?;
            let wrong = wrong_time(status, created, started, arrival)?;
            Some((wrong, vec![arrival.seq()]))
        })
    }
}

/// The maximum delay of `started_at` after the return of `StartContainer`: the runtime gets it from
/// a shim, not from the call. The bound of the catalogue.
const START_SLACK_NS: i64 = 50_000_000;

/// The first time of a status that is not within its bounds.
fn wrong_time(
    status: &ContainerStatus,
    created: Option<&Call>,
    started: Option<&Call>,
    arrival: &EventArrival,
) -> Option<Mismatch> {
    let within = |call: Option<&Call>, slack_ns: i64| {
        let call = call?;
        let began = call.began().at.realtime_ns - TICK_NS;
        let ended = call
            .ended()
            .map_or(i64::MAX, |end| end.at.realtime_ns + slack_ns);
        Some((began, ended, call.request().method()))
    };
    let has_run = status.state != ContainerState::Created;
    let has_ended = status.state == ContainerState::Exited;
    let latest = arrival.at().realtime_ns + TICK_NS;
    let end = started.map(|call| {
        let began = call.began().at.realtime_ns - TICK_NS;
        (began, latest, "the start and the event's arrival")
    });
    let times = [
        (
            "created_at",
            status.created_at.0,
            true,
            within(created, TICK_NS),
        ),
        (
            "started_at",
            status.started_at.0,
            has_run,
            within(started, START_SLACK_NS),
        ),
        ("finished_at", status.finished_at.0, has_ended, end),
    ];
    times.into_iter().find_map(|(name, time, is_due, bounds)| {
        if !is_due {
            let expected = [
                Fact::State(status.state.to_string()),
                Fact::Event(arrival.event().kind),
            ];
            let actual = [Fact::Field(name.to_owned()), Fact::Time(time)];
            return (time != 0).then(|| Mismatch::new(Kind::UnexpectedTime, expected, actual));
        }
        let (earliest, latest, what) = bounds?;
        let (kind, off) = if time < earliest {
            (Kind::TimeBeforeCall, span(time, earliest))
        } else if time > latest {
            (Kind::TimeAfterCall, span(latest, time))
        } else {
            return None;
        };
        Some(Mismatch::new(
            kind,
            [Fact::Cause(what.to_owned())],
            [
                Fact::Field(name.to_owned()),
                Fact::Event(arrival.event().kind),
                Fact::Pause(off),
            ],
        ))
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn times_are_within_the_calls_that_set_them() {
        let script = "pod run; c create; c CREATED; c start; c STARTED; c STOPPED; end";
        check("status-times: {of: c}", script, expect!["holds"]);
        let wrong = |words: &str| script.replace("STOPPED", &format!("STOPPED {words}"));
        // A tick before the call began, and 50 ms after it has returned.
        for just in ["started=-3000001ns", "started=+57999999ns"] {
            check("status-times: {of: c}", &wrong(just), expect!["holds"]);
        }
        check(
            "status-times: {of: c}",
            &wrong("started=+1s"),
            expect![[r#"
        ORD-01 at #9: c (c.0.beef): expected started_at within StartContainer in STOPPED: 942.000001ms after it
    "#]],
        );
        check(
            "status-times: {of: c}",
            &wrong("started=-1s"),
            expect![[r#"
        ORD-01 at #9: c (c.0.beef): expected started_at within StartContainer in STOPPED: 996.999999ms before it
    "#]],
        );
        check(
            "status-times: {of: c}",
            &wrong("finished=+1s"),
            expect![[r#"
        ORD-01 at #9: c (c.0.beef): expected finished_at within the start and the event's arrival in STOPPED: 980.000002ms after it
    "#]],
        );
        check(
            "status-times: {of: c}",
            &wrong("finished=0"),
            expect![[r#"
        ORD-01 at #9: c (c.0.beef): expected finished_at within the start and the event's arrival in STOPPED: 1699999999.997s before it
    "#]],
        );
    }
}
