//! What scripts say of subscriptions beside the one that all cases read.

use std::time::Duration;

use super::{CASE, Extras, Script};
use crate::history::{Body, CallFault, Observer, StatusCode, StreamEnd, SubscriptionId};

impl Script {
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
