//! What a case expects of its own subscriptions.

#[cfg(test)]
mod tests;

use super::Finding::{self, Broken, Holds, Pending, Unproven};
use super::gaps::APART_NS;
use super::time::{span, within_bounds};
use crate::case::{Check, Code, EndedCheck, HeadersCheck, LatencyCheck};
use crate::history::{Body, CaseHistory, Event, Observed, Sighting, StatusCode, StreamEnd};
use crate::oracle::subscribers::difference;

pub(super) fn assess(check: &Check, history: &CaseHistory, observed: &Observed) -> Finding {
    match check {
        Check::SameEvents(_) => same_events(history, observed),
        Check::SameReplay(_) => same_replay(history, observed),
        Check::Latency(check) => arrive_soon(check, history, observed),
        Check::StaysOpen(_) => stays_open(history, observed),
        Check::NothingOlder(_) => nothing_older(history, observed),
        Check::Headers(check) => headers(check, history, observed),
        Check::Ended(check) => ended(check, history, observed),
        _ => Holds,
    }
}

fn same_events(history: &CaseHistory, observed: &Observed) -> Finding {
    if observed.proven().is_none() {
        return Pending {
            awaited: "an event".to_owned(),
            evidence: vec![observed.opened().seq],
        };
    }
    let ended = observed.ended();
    let ended = ended.filter(|(ended, _)| history.within_steps(ended.seq));
    if let Some((ended, StreamEnd::Closed)) = ended {
        return Broken {
            expected: "an end that tells of what has not come".to_owned(),
            actual: "the runtime ended the stream with OK".to_owned(),
            evidence: vec![observed.opened().seq, ended.seq],
        };
    }
    match difference(history, observed) {
        None => Holds,
        Some(found) if found.is_open => Pending {
            awaited: format!("{} ({})", found.mismatch.expected(), found.subject),
            evidence: found.evidence,
        },
        Some(found) => Broken {
            expected: format!("{} ({})", found.mismatch.expected(), found.subject),
            actual: found.mismatch.actual(),
            evidence: found.evidence,
        },
    }
}

/// Whether what happened before the subscription was asked for is told on it as on the next stream
/// of all cases.
fn same_replay(history: &CaseHistory, observed: &Observed) -> Finding {
    let opened = observed.opened();
    let mut next = history
        .entries()
        .iter()
        .filter(|entry| entry.seq > opened.seq);
    let next = next.find_map(|entry| match entry.body {
        Body::SubscriptionOpened { subscription, .. } => Some((entry.seq, subscription)),
        _ => None,
    });
    let Some((asked, next)) = next else {
        return Pending {
            awaited: "another stream that is asked for later".to_owned(),
            evidence: vec![opened.seq],
        };
    };
    let since = opened.at.realtime_ns + APART_NS;
    let is_old = |seen: &Sighting| seen.event().created_at.0 <= since;
    let subjects = history.subjects();
    let of_case = |seen: &Sighting| subjects.iter().any(|it| it.id == seen.event().container);
    let here = observed
        .events()
        .filter(|seen| is_old(seen) && of_case(seen));
    let here: Vec<Sighting> = here.collect();
    let all = subjects.iter().flat_map(|subject| &subject.sightings);
    let there = all.filter(|seen| seen.subscription() == next && is_old(seen));
    let there: Vec<Sighting> = there.cloned().collect();
    let lacks = |seen: &&Sighting, others: &[Sighting]| {
        let same = |other: &Sighting| {
            let (one, other) = (seen.event(), other.event());
            let identity = |event: &Event| (event.container.clone(), event.kind, event.created_at);
            identity(one) == identity(other)
        };
        !others.iter().any(same)
    };
    let lost = here.iter().find(|seen| lacks(seen, &there));
    let alone = there.iter().find(|seen| lacks(seen, &here));
    let (seen, whose) = match (lost, alone) {
        (None, None) => return Holds,
        (Some(seen), _) => (seen, "the other does not"),
        (None, Some(seen)) => (seen, "this one does not"),
    };
    Broken {
        expected: "the same of what happened before, on both streams".to_owned(),
        actual: format!("one tells {} and {whose}", seen.event().kind),
        evidence: vec![opened.seq, asked, seen.seq()],
    }
}

/// How long an event takes on its way to a subscription, told of the first of all of its name.
fn arrive_soon(check: &LatencyCheck, history: &CaseHistory, observed: &Observed) -> Finding {
    let named = || {
        let all = history.observed();
        all.filter(|other| other.observer().binding == check.of)
    };
    if named()
        .next()
        .is_some_and(|first| first.id() != observed.id())
    {
        return Holds;
    }
    let mut spans = Vec::new();
    for observed in named() {
        let Some(proven) = observed.proven() else {
            continue;
        };
        let subjects = history.subjects();
        let live = observed.events().filter(|seen| {
            let event = seen.event();
            let of_case = subjects.iter().any(|subject| subject.id == event.container);
            let within = history.within_steps(seen.seq()) && seen.seq() > proven.seq;
            event.kind == check.event && within && of_case
        });
        spans.extend(live.map(|seen| span(history, &seen)));
    }
    if spans.is_empty() {
        return Pending {
            awaited: check.event.to_string(),
            evidence: vec![observed.opened().seq],
        };
    }
    within_bounds(check, history, spans)
}

fn stays_open(history: &CaseHistory, observed: &Observed) -> Finding {
    match observed.ended() {
        Some((ended, end)) if history.within_steps(ended.seq) && *end != StreamEnd::Cancelled => {
            Broken {
                expected: "a stream that stays open".to_owned(),
                actual: told(end),
                evidence: vec![observed.opened().seq, ended.seq],
            }
        }
        _ => Holds,
    }
}

fn nothing_older(history: &CaseHistory, observed: &Observed) -> Finding {
    let opened = observed.opened();
    let of_case = |id: &_| history.subjects().iter().any(|subject| subject.id == *id);
    let mut events = observed.events();
    let old = events.find(|seen| {
        let event = seen.event();
        event.created_at.0 < opened.at.realtime_ns && of_case(&event.container)
    });
    let Some(old) = old else {
        return Holds;
    };
    let age_ns = opened.at.realtime_ns.abs_diff(old.event().created_at.0);
    let age = std::time::Duration::from_nanos(age_ns);
    Broken {
        expected: "no event from before the subscription".to_owned(),
        actual: format!("{} from {age:?} before it", old.event().kind),
        evidence: vec![opened.seq, old.seq()],
    }
}

fn headers(check: &HeadersCheck, history: &CaseHistory, observed: &Observed) -> Finding {
    let bound = history.stretched(check.at_most);
    let opened = observed.opened();
    let took = observed
        .answered()
        .map(|answered| answered.at.since(opened.at));
    if took.is_some_and(|took| took <= bound) {
        return Holds;
    }
    let until = observed.answered().map(|answered| answered.at);
    let until = until.or(history.steps_ended_at()).unwrap_or(opened.at);
    let held_up = history.held_up(opened.at, until);
    if !held_up.is_zero() && until.since(opened.at).saturating_sub(held_up) <= bound {
        let late = format!("the suite itself was held up for {held_up:?}");
        return Unproven(format!(
            "the headers came late or not, and {late} meanwhile"
        ));
    }
    let mut evidence = vec![opened.seq];
    evidence.extend(observed.answered().map(|answered| answered.seq));
    Broken {
        expected: format!("the headers of the response within {bound:?}"),
        actual: match took {
            Some(_) => "they came later".to_owned(),
            None => "they did not come".to_owned(),
        },
        evidence,
    }
}

fn ended(check: &EndedCheck, history: &CaseHistory, observed: &Observed) -> Finding {
    let opened = observed.opened();
    let codes: Vec<String> = check
        .with
        .iter()
        .map(|Code(code)| code.to_string())
        .collect();
    let least = check.at_least;
    let ended = observed.ended();
    let ended = ended.filter(|(ended, _)| history.within_steps(ended.seq));
    let Some((ended, end)) = ended else {
        return Broken {
            expected: format!("an end with {}", codes.join(" or ")),
            actual: "the stream stayed open".to_owned(),
            evidence: vec![opened.seq],
        };
    };
    let after = ended.at.since(opened.at);
    let code = match end {
        StreamEnd::Failed(fault) => Some(fault.code),
        StreamEnd::Closed => Some(StatusCode::OK),
        StreamEnd::Cancelled => None,
    };
    if after >= least && check.with.iter().any(|Code(wanted)| Some(*wanted) == code) {
        return Holds;
    }
    let later = if least.is_zero() {
        String::new()
    } else {
        format!(", not before {least:?} have passed")
    };
    Broken {
        expected: format!("an end with {}{later}", codes.join(" or ")),
        actual: format!("{} after {after:?}", told(end)),
        evidence: vec![opened.seq, ended.seq],
    }
}

fn told(end: &StreamEnd) -> String {
    match end {
        StreamEnd::Cancelled => "it was given up".to_owned(),
        StreamEnd::Closed => "the runtime ended it with OK".to_owned(),
        StreamEnd::Failed(fault) => format!("it ended with {}", fault.code),
    }
}
