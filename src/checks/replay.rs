//! `replay`: a new stream replays all events from the time without a subscription, or none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind_words;
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds};
use super::word::{Finding, Word};
use crate::history::{Body, CaseHistory, Entry, EventArrival, EventKind};
use crate::oracle::CLOCKS_APART_NS;
use crate::outcome::{Fact, Kind, Mismatch};

/// The replay of a new stream after the time without a subscription: all of these events, or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "all events, such as `{of: c, all: [started, stopped]}`"
)]
pub struct ReplayCheck {
    /// The container.
    pub of: String,
    /// All events of the container in that time.
    #[serde(deserialize_with = "kind_words::list")]
    #[schemars(with = "Vec<kind_words::Word>")]
    pub all: Vec<EventKind>,
}

impl Word for ReplayCheck {
    fn of(&self) -> &str {
        &self.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.of, Wanted::Container);
        if self.all.is_empty() {
            scope.error_at("all", "without an event this cannot fail");
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::NewCreatedAt, Kind::PartialReplay]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let replayed: Vec<&EventArrival> = events.all().collect();
        let new = replayed.iter().find(|seen| {
            let opened = opened_before(events.index.history, seen);
            opened.is_some_and(|opened| {
                seen.event().created_at.0 > opened.at.realtime_ns + CLOCKS_APART_NS
            })
        });
        if let Some(new) = new {
            return Broken {
                mismatch: Mismatch::new(Kind::NewCreatedAt, [], [Fact::Event(new.event().kind)]),
                evidence: vec![new.seq()],
            };
        }
        let kinds: Vec<EventKind> = replayed.iter().map(|seen| seen.event().kind).collect();
        let others = events
            .index
            .history
            .named(events.subject.binding().unwrap_or_default());
        let mut others = others.flat_map(|subject| &subject.arrivals);
        let any = others.any(|seen| events.index.history.within_steps(seen.seq()));
        if kinds == self.all || !any {
            return Holds;
        }
        events.broken_by(Mismatch::new(
            Kind::PartialReplay,
            [Fact::Events(self.all.clone())],
            [Fact::Events(kinds)],
        ))
    }
}

/// The request of the stream on which an event arrived.
fn opened_before<'a>(history: &'a CaseHistory, seen: &EventArrival) -> Option<&'a Entry> {
    let entries = history.entries().iter();
    let mut opened = entries.filter(|entry| {
        matches!(&entry.body, Body::SubscriptionOpened { subscription, .. }
            if *subscription == seen.subscription())
    });
    opened.next().map(AsRef::as_ref)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const REPLAY: &str = "replay: {of: c, all: [created, stopped]}";

    #[test]
    fn a_replay_is_whole_or_there_is_none() {
        check(
            REPLAY,
            "pod run; c create; resubscribe; end",
            expect!["holds"],
        );
        check(
            REPLAY,
            "pod run; c create; resubscribe; c CREATED at=-1s; c STOPPED at=-1s; end",
            expect!["holds"],
        );
        check(
            REPLAY,
            "pod run; c create; resubscribe; c STOPPED at=-1s; end",
            expect![[r#"
            ORD-01 at #7: c (c.0.beef): expected CREATED, STOPPED, or nothing at all: STOPPED
        "#]],
        );
    }

    #[test]
    fn a_replay_keeps_created_at() {
        check(
            REPLAY,
            "pod run; c create; resubscribe; c CREATED; c STOPPED; end",
            expect![[r#"
            ORD-01 at #8: c (c.0.beef): expected the time at which it happened: a new created_at in STOPPED
        "#]],
        );
    }
}
