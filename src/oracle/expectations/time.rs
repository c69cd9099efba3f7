//! When events are made, in their own words, and when statuses say that things happened.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::{Broken, Events, Finding, Holds};
use crate::case::LatencyCheck;
use crate::history::{
    Call, CaseHistory, ContainerState, ContainerStatus, EventKind, Request, Seq, Sighting,
};
use crate::oracle::clocks::TICK_NS;

/// How long after `StartContainer` has returned a runtime may say that the start was: it is told of
/// it by a shim, on another way than its caller. The catalogue's bound.
const START_SLACK_NS: i64 = 50_000_000;

impl Events<'_> {
    /// Whether `created_at` lies between what caused the event and the event's arrival.
    pub(super) fn are_stamped(&self) -> Finding {
        self.find(|sighting| {
            let event = sighting.event();
            let made = event.created_at.0;
            let arrived = sighting.at().realtime_ns;
            let end = event
                .own_status()
                .filter(|_| event.kind == EventKind::Stopped);
            let end = end.map(|end| ("finished_at", end.finished_at.0, None));
            let cause = self.cause(event.kind).map(|call| {
                let began = call.began();
                (
                    call.request().method(),
                    began.at.realtime_ns,
                    Some(began.seq),
                )
            });
            let (after, earliest, seq) = end.filter(|(_, end, _)| *end != 0).or(cause)?;
            let kind = event.kind;
            let evidence = seq.into_iter().chain([sighting.seq()]).collect();
            if made.saturating_add(TICK_NS) < earliest {
                let early = ns(earliest.saturating_sub(made));
                let expected = format!("created_at of {kind} not before {after}");
                return Some((expected, format!("{early:?} before it"), evidence));
            }
            (made > arrived.saturating_add(TICK_NS)).then(|| {
                let late = ns(made.saturating_sub(arrived));
                let expected = format!("created_at of {kind} not after its arrival");
                (expected, format!("{late:?} after it"), evidence)
            })
        })
    }

    /// Whether the times of each status lie within the calls that set them.
    pub(super) fn have_times_within_calls(&self) -> Finding {
        let called = |wanted: fn(&Request) -> bool| {
            let about =
                |call: &&Call| wanted(call.request()) && super::calls::is_about(call, self.subject);
            self.history.calls().find(about)
        };
        let created = called(|request| matches!(request, Request::CreateContainer(_)));
        let started = called(|request| matches!(request, Request::StartContainer(_)));
        self.find(|sighting| {
            let event = sighting.event();
            let status = event.own_status()?;
            let wrong = wrong_time(status, created, started, sighting)?;
            let (expected, actual) = wrong;
            Some((
                format!("{expected} in {}", event.kind),
                actual,
                vec![sighting.seq()],
            ))
        })
    }

    /// How long the event takes on its way, told of the first subject for all of its name.
    pub(super) fn arrive_soon(&self, check: &LatencyCheck) -> Finding {
        let name = self.subject.binding().unwrap_or_default();
        let mut all = Vec::new();
        for (place, subject) in self.history.named(name).enumerate() {
            if place == 0 && subject.id != self.subject.id {
                return Holds;
            }
            let events = Events {
                history: self.history,
                subject,
            };
            let Some(sighting) = events.first(check.event) else {
                return self.awaited(check.event);
            };
            all.push(span(self.history, sighting));
        }
        // There is one, which is this subject's.
        within_bounds(check, self.history, all)
    }

    /// The first event of which something is wrong: what was expected, what is, and the proof.
    fn find(&self, wrong: impl Fn(&Sighting) -> Option<(String, String, Vec<Seq>)>) -> Finding {
        let found = self.all().find_map(wrong);
        found.map_or(Holds, |(expected, actual, evidence)| Broken {
            expected,
            actual,
            evidence,
        })
    }
}

/// How long an event took on its way, without what the suite itself was held up for, and where it
/// arrived.
pub(super) fn span(history: &CaseHistory, seen: &Sighting) -> (Duration, Seq) {
    let made = seen.event().created_at.0;
    let took = ns(seen.at().realtime_ns.saturating_sub(made));
    let held_up = history.held_up_before(seen.at(), took).unwrap_or_default();
    (took.saturating_sub(held_up), seen.seq())
}

/// Whether events, one or more, took no longer than a check allows.
pub(super) fn within_bounds(
    check: &LatencyCheck,
    history: &CaseHistory,
    mut all: Vec<(Duration, Seq)>,
) -> Finding {
    all.sort_unstable();
    // At least so many of 100 take no longer.
    let at = |percent: usize| all[(all.len() * percent).div_ceil(100) - 1];
    let [(median, _), (p99, _), (worst, slowest)] = [50, 99, 100].map(at);
    let bounds = [check.median, check.p99].map(|bound| history.stretched(bound));
    if median <= bounds[0] && p99 <= bounds[1] {
        return Holds;
    }
    let (event, number) = (check.event, all.len());
    Broken {
        expected: format!(
            "{event} within {:?}, 99 of 100 within {:?}",
            bounds[0], bounds[1]
        ),
        actual: format!("median {median:?}, p99 {p99:?}, worst {worst:?} of {number}"),
        evidence: vec![slowest],
    }
}

/// The first time of a status that cannot be: what it should be, and what is told.
fn wrong_time(
    status: &ContainerStatus,
    created: Option<&Call>,
    started: Option<&Call>,
    sighting: &Sighting,
) -> Option<(String, String)> {
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
    let arrival = sighting.at().realtime_ns + TICK_NS;
    let end = started.map(|call| {
        let began = call.began().at.realtime_ns - TICK_NS;
        (began, arrival, "the start and the event's arrival")
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
            let expected = format!("{name} 0 of what is {}", status.state);
            return (time != 0).then(|| (expected, time.to_string()));
        }
        let (earliest, latest, what) = bounds?;
        let off = if time < earliest {
            format!("{:?} before it", ns(earliest.saturating_sub(time)))
        } else if time > latest {
            format!("{:?} after it", ns(time.saturating_sub(latest)))
        } else {
            return None;
        };
        Some((format!("{name} within {what}"), off))
    })
}

/// A span that is not negative.
fn ns(span: i64) -> Duration {
    Duration::from_nanos(u64::try_from(span).unwrap_or_default())
}
