//! The families about the stream itself: watch (kubelet 1.36) and fastpath (1.37).

use cri_event_conformance::testing::pleg::{
    Hint, Moment, Next, Policy, Reconnect, StreamFate, relist_hint,
};
use serde::Deserialize;

use crate::cri::CriEvent;
use crate::diff::compare;

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Refused,
    Error,
    Closed,
}

/// One call of `GetContainerEvents`. After the last one the stream stays open.
#[derive(Deserialize)]
struct Scripted {
    kind: Kind,
    events: u64,
}

#[derive(Deserialize)]
struct Watch {
    max_stream_retries: u32,
    script: Vec<Scripted>,
    expected_log: Vec<String>,
    expected_success_count: u64,
    expected_error_count: u64,
    expected_in_use: bool,
    expected_pleg_events: i64,
}

#[derive(Deserialize)]
struct Fastpath {
    events: Vec<CriEvent>,
    expected_relist_requests: Vec<String>,
    expected_latency_observations: u64,
    #[serde(default)]
    max_stream_retries: u32,
    script: Option<Vec<Scripted>>,
    #[serde(default)]
    expected_log: Vec<String>,
    expected_disabled: bool,
    expected_success_count: u64,
    expected_error_count: u64,
}

/// The actions of a stream loop.
#[derive(Debug, Default, PartialEq)]
struct Did {
    log: Vec<String>,
    listening: bool,
    successes: u64,
    errors: u64,
    events: u64,
}

pub(crate) fn check_watch(line: &str) -> Result<(), String> {
    let vector: Watch = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let policy = Policy::FallBack {
        failures: vector.max_stream_retries,
    };
    let did = follow(policy, &vector.script);
    // After a fallback it is left to chance which events are still taken.
    let events = u64::try_from(vector.expected_pleg_events).unwrap_or(did.events);
    let expected = Did {
        log: vector.expected_log,
        listening: vector.expected_in_use,
        successes: vector.expected_success_count,
        errors: vector.expected_error_count,
        events,
    };
    compare("the whole script", &expected, &did)
}

pub(crate) fn check_fastpath(line: &str) -> Result<(), String> {
    let vector: Fastpath = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if let Some(script) = &vector.script {
        let policy = Policy::Disable {
            ends: vector.max_stream_retries,
        };
        let expected = Did {
            log: vector.expected_log,
            listening: !vector.expected_disabled,
            successes: vector.expected_success_count,
            errors: vector.expected_error_count,
            events: vector.expected_relist_requests.len() as u64,
        };
        return compare("the whole script", &expected, &follow(policy, script));
    }
    let (mut requests, mut samples) = (Vec::new(), 0);
    for event in &vector.events {
        match relist_hint(&event.to_event()) {
            Hint::Ignored => continue,
            Hint::Sample => {}
            Hint::Relist(uid) => requests.push(uid.to_string()),
        }
        samples += 1;
    }
    compare("the requests", &vector.expected_relist_requests, &requests)?;
    compare(
        "the count of samples",
        &vector.expected_latency_observations,
        &samples,
    )
}

/// Runs a stream loop against a script.
fn follow(policy: Policy, script: &[Scripted]) -> Did {
    let now = Moment::from_ns(0);
    let mut reconnect = Reconnect::new(policy);
    let mut did = Did {
        listening: true,
        ..Did::default()
    };
    let mut script = script.iter();
    let mut then = reconnect.begin();
    loop {
        if then.relist {
            did.log.push("generic.relist".to_owned());
        }
        match then.next {
            Next::Open(_) => {}
            Next::FallBack { period, threshold } => {
                let (period, minutes) = (period.as_secs(), threshold.as_secs() / 60);
                did.log.extend([
                    "generic.stop in_use=false".to_owned(),
                    format!("generic.update period={period}s threshold={minutes}m0s"),
                    "generic.start".to_owned(),
                ]);
                did.listening = false;
                break;
            }
            Next::Disable => {
                did.listening = false;
                break;
            }
        }
        let Some(scripted) = script.next() else {
            reconnect.opened(now);
            did.log.push("stream.open idle".to_owned());
            break;
        };
        let (fate, end) = match scripted.kind {
            Kind::Refused => (StreamFate::Refused, "stream.refused"),
            Kind::Error => (StreamFate::Failed, "stream.error"),
            Kind::Closed => (StreamFate::Closed, "stream.closed-without-error"),
        };
        if fate != StreamFate::Refused {
            reconnect.opened(now);
            did.log.push("stream.open".to_owned());
        }
        did.log.push(end.to_owned());
        did.events += scripted.events;
        then = reconnect.ended(fate, now, 0);
    }
    did.successes = reconnect.successes();
    did.errors = reconnect.errors();
    did
}
