//! Subscriptions of the case, in addition to the stream of all cases, and waits.

use std::time::Duration;

use super::{CASE, Extras, Script};
use crate::history::{Body, CallFault, Observer, StatusCode, StreamEnd, SubscriptionId, Took};

impl Script {
    /// `wait 300ms event 2s` waited 300 ms for an event with a bound of 2 s; also for an `end`.
    pub(super) fn wait(&mut self, took: &str, what: &str, bound: &str) {
        let time = |text| humantime::parse_duration(text).expect("a time such as 2s");
        let took = match what {
            "event" => Took::Event(time(took)),
            "end" => Took::End(time(took)),
            _ => panic!("nothing to wait for: {what}"),
        };
        self.record(Body::Waited {
            case: CASE,
            wanted: String::new(),
            met: true,
            bound: time(bound),
            took: Some(took),
            instead: String::new(),
        });
    }

    /// `wait met X`, or `wait in-vain X` with a bound of 10 s and the state that was seen instead;
    /// or `wait not-at-once X` without a bound.
    pub(super) fn wait_for(&mut self, how: &str, wanted: &str, instead: &[&str]) {
        self.record(Body::Waited {
            case: CASE,
            wanted: wanted.replace('_', " "),
            met: how == "met",
            bound: Duration::from_secs(if how == "not-at-once" { 0 } else { 10 }),
            took: None,
            instead: instead.join(" "),
        });
    }

    /// `held-up 5s`: the suite itself was suspended for the last 5 s, which `pass 5s` lets pass.
    pub(super) fn held_up(&mut self, time: &str) {
        let by = humantime::parse_duration(time).expect("a time such as 5s");
        self.record(Body::HeldUp { by });
    }

    /// `observe 7 as=b` opens stream 7 for the case; `observe 7 answered`, `proven`, `cancelled`,
    /// `ends=4` (with a gRPC code). `as=b` also with `stalls` and `deadline=3s`. Its events are
    /// those with `on=7`.
    pub(super) fn observe(&mut self, on: &str, words: &[&str]) {
        let extras = Extras(words);
        let subscription = SubscriptionId(on.parse().expect("a number"));
        if let Some(binding) = extras.value("as") {
            let span = |text| humantime::parse_duration(text).expect("a time such as 3s");
            let observer = Observer {
                case: Some(CASE),
                binding: binding.to_owned(),
                stalls: extras.has("stalls"),
                deadline: extras.value("deadline").map(span),
                ..Observer::default()
            };
            self.record(Body::SubscriptionOpened {
                subscription,
                observer: Some(observer),
            });
        }
        if extras.has("answered") {
            self.record(Body::SubscriptionAnswered { subscription });
        }
        if extras.has("proven") {
            self.record(Body::SubscriptionProven { subscription });
        }
        let cancelled = extras.has("cancelled").then_some(StreamEnd::Cancelled);
        let ended = extras.number("ends").map(|code| match code {
            0 => StreamEnd::Closed,
            code => StreamEnd::Failed(CallFault {
                code: StatusCode(code),
                message: "gone".to_owned(),
                deadline: Duration::ZERO,
            }),
        });
        if let Some(end) = cancelled.or(ended) {
            self.record(Body::SubscriptionEnded { subscription, end });
        }
    }
}
