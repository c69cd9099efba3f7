//! What a case expects of its own subscriptions.

#[cfg(test)]
mod tests;

use super::Finding::{self, Broken, Holds, Pending};
use crate::case::{Check, Code, EndedCheck, HeadersCheck};
use crate::history::{CaseHistory, Observed, StatusCode, StreamEnd};
use crate::oracle::audience::difference;

pub(super) fn assess(check: &Check, history: &CaseHistory, observed: &Observed) -> Finding {
    match check {
        Check::SameEvents(_) => same_events(history, observed),
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
            awaited: format!("{} ({})", found.expected, found.subject),
            evidence: found.evidence,
        },
        Some(found) => Broken {
            expected: format!("{} ({})", found.expected, found.subject),
            actual: found.actual,
            evidence: found.evidence,
        },
    }
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
    Broken {
        expected: format!(
            "an end with {}, not before {least:?} have passed",
            codes.join(" or ")
        ),
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
