//! `shown`: every list and status after an event shows the state that the event reported.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Span;
use super::kind_words;
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds, Pending};
use super::word::{Finding, Word};
use crate::history::{EventKind, Seq};
use crate::outcome::{Fact, Kind, Mismatch};

/// Every list and status after an event shows the state that the event reported, or a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an event such as `{of: c, event: stopped}`"
)]
pub struct ShownCheck {
    /// The sandbox or container.
    pub of: String,
    /// The event.
    #[serde(deserialize_with = "kind_words::one")]
    #[schemars(with = "kind_words::Word")]
    pub event: EventKind,
    /// Calls sooner than this after the event's arrival do not count.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub within: Option<Duration>,
}

impl Word for ShownCheck {
    fn of(&self) -> &str {
        &self.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.of, Wanted::Either);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![
            Kind::missing(self.event),
            Kind::NothingObserved,
            Kind::OutdatedAnswer,
        ]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let Some(arrival) = events.first(self.event) else {
            return events.awaited(self.event);
        };
        let within = self.within.unwrap_or_default();
        let within = events.index.history.scaled(within);
        let removal = events.removal();
        let mut counted = 0;
        for answer in events.answers() {
            let after = answer.began.at.since(arrival.at());
            if answer.began.seq < arrival.seq() || after < within {
                continue;
            }
            let exists = self.event != EventKind::Deleted
                && removal.is_none_or(|began| answer.ended.seq < began);
            let reached = answer.shown.reached();
            if reached.is_none() && !exists {
                continue;
            }
            counted += 1;
            let too_little = reached.is_none_or(|reached| reached < self.event);
            let vanished = reached == Some(EventKind::Deleted) && exists;
            if too_little || vanished {
                let (event, by) = (self.event, answer.by);
                let actual = [
                    Fact::Event(event),
                    Fact::Method(by.to_owned()),
                    Fact::Text(answer.shown.words()),
                    Fact::Pause(after),
                ];
                return Broken {
                    mismatch: Mismatch::new(Kind::OutdatedAnswer, [], actual),
                    evidence: vec![arrival.seq(), answer.began.seq, answer.ended.seq],
                };
            }
        }
        if counted > 0 {
            return Holds;
        }
        Pending {
            missing: Mismatch::unobserved(format!(
                "a list or status that was asked for after {}",
                self.event
            )),
            evidence: vec![arrival.seq()],
        }
    }
}

impl SubjectEvents<'_, '_> {
    /// The entry at which the removal of the subject began.
    fn removal(&self) -> Option<Seq> {
        let removal = self.cause(EventKind::Deleted)?;
        Some(removal.began().seq)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const SHOWN: &str = "shown: {of: c, event: stopped}";

    const LIFE: &str = "pod run; c create; c CREATED; c start; c STARTED";

    const GONE: &str = "shown: {of: c, event: deleted, within: 100ms}";

    #[test]
    fn a_status_after_stopped_shows_exited() {
        let script = format!("{LIFE}; pod inspect c=running; c STOPPED; pod inspect c=exited; end");
        check(SHOWN, &script, expect!["holds"]);
    }

    #[test]
    fn a_status_after_stopped_does_not_show_running() {
        let script = format!("{LIFE}; c STOPPED; pod inspect c=running; end");
        check(
            SHOWN,
            &script,
            expect![[r#"
                ORD-01 at #9 #12 #13: c (c.0.beef): expected what was asked after STOPPED to show as much: ListContainers shows it RUNNING, 3ms after it
            "#]],
        );
    }

    #[test]
    fn a_list_after_stopped_does_not_show_running() {
        check(
            SHOWN,
            &format!("{LIFE}; c STOPPED; pod relist c=running; end"),
            expect![[r#"
            ORD-01 at #9 #10 #11: c (c.0.beef): expected what was asked after STOPPED to show as much: ListContainers shows it RUNNING, 1ms after it
        "#]],
        );
    }

    #[test]
    fn a_list_that_began_before_the_event_does_not_count() {
        let script =
            format!("{LIFE}; pod relist begins; c STOPPED; pod relist returns c=running; end");
        check(
            SHOWN,
            &script,
            expect![[r#"
        waits for a list or status that was asked for after STOPPED of c
        ORD-01 at #10: c (c.0.beef): expected a list or status that was asked for after STOPPED: it has not come
    "#]],
        );
    }

    #[test]
    fn a_container_that_is_being_removed_may_be_absent() {
        let script = format!("{LIFE}; c STOPPED; c remove begins; pod inspect c=gone; end");
        check(SHOWN, &script, expect!["holds"]);
    }

    #[test]
    fn a_container_without_a_removal_is_not_absent() {
        let script = format!("{LIFE}; c STOPPED; pod inspect c=gone; end");
        check(
            SHOWN,
            &script,
            expect![[r#"
        ORD-01 at #9 #16 #17: c (c.0.beef): expected what was asked after STOPPED to show as much: ContainerStatus does not show it, 7ms after it
    "#]],
        );
    }

    #[test]
    fn a_container_is_not_absent_before_its_removal() {
        check(
            SHOWN,
            &format!("{LIFE}; c STOPPED; pod inspect c=gone; c remove; end"),
            expect![[r#"
            ORD-01 at #9 #16 #17: c (c.0.beef): expected what was asked after STOPPED to show as much: ContainerStatus does not show it, 7ms after it
        "#]],
        );
    }

    #[test]
    fn a_failed_call_shows_nothing() {
        check(
            SHOWN,
            &format!("{LIFE}; c STOPPED; pod inspect unlisted c=exited unanswered; end"),
            expect![[r#"
            waits for a list or status that was asked for after STOPPED of c
            ORD-01 at #9: c (c.0.beef): expected a list or status that was asked for after STOPPED: it has not come
        "#]],
        );
    }

    #[test]
    fn a_call_that_the_runtime_fails_shows_too_little() {
        let script = format!("{LIFE}; c STOPPED; pod inspect unlisted c=exited failing; end");
        check(
            SHOWN,
            &script,
            expect![[r#"
            ORD-01 at #9 #16 #17: c (c.0.beef): expected what was asked after STOPPED to show as much: ContainerStatus fails with UNKNOWN, 7ms after it
        "#]],
        );
    }

    #[test]
    fn a_state_that_is_unknown_is_too_little() {
        let script = format!("{LIFE}; c STOPPED; pod inspect c=unknown; end");
        check(
            SHOWN,
            &script,
            expect![[r#"
                ORD-01 at #9 #12 #13: c (c.0.beef): expected what was asked after STOPPED to show as much: ListContainers shows it UNKNOWN(3), 3ms after it
            "#]],
        );
    }

    #[test]
    fn while_it_is_removed_a_status_may_fail() {
        let script = format!(
            "{LIFE}; c STOPPED; c remove begins; pod inspect unlisted c=exited failing; end"
        );
        check(
            SHOWN,
            &script,
            expect![[r#"
            waits for a list or status that was asked for after STOPPED of c
            ORD-01 at #9: c (c.0.beef): expected a list or status that was asked for after STOPPED: it has not come
        "#]],
        );
    }

    #[test]
    fn a_deleted_container_may_be_listed_within_the_given_time() {
        let script = format!(
            "{LIFE}; c STOPPED; c remove; c DELETED; pod relist c=exited; pass 100ms; \
         pod inspect c=gone; end"
        );
        check(GONE, &script, expect!["holds"]);
    }

    #[test]
    fn a_deleted_container_is_not_listed_after_the_given_time() {
        let script =
            format!("{LIFE}; c STOPPED; c remove; c DELETED; pass 99ms; pod relist c=exited; end");
        check(
            GONE,
            &script,
            expect![[r#"
            ORD-01 at #12 #13 #14: c (c.0.beef): expected what was asked after DELETED to show as much: ListContainers shows it EXITED, 100ms after it
        "#]],
        );
    }

    #[test]
    fn a_sandbox_is_shown_as_its_events_report() {
        let script = "pod run; pod STARTED; pod stop; pod STOPPED; pod inspect; end";
        check("shown: {of: pod, event: stopped}", script, expect!["holds"]);
        let listed = script.replace("pod inspect", "run inspect");
        check(
            "shown: {of: pod, event: stopped}",
            &listed,
            expect!["holds"],
        );
    }

    #[test]
    fn a_sandbox_is_not_shown_after_deleted() {
        let script = "pod run; pod STARTED; pod remove; pod DELETED; pod inspect; end";
        check(
            "shown: {of: pod, event: deleted}",
            script,
            expect![[r#"
                ORD-01 at #6 #7 #8: pod (pod.0.beef): expected what was asked after DELETED to show as much: ListPodSandbox shows it NOTREADY, 1ms after it
            "#]],
        );
    }

    #[test]
    fn a_sandbox_is_not_in_a_list_of_all_after_deleted() {
        check(
            "shown: {of: pod, event: deleted}",
            "pod run; pod STARTED; pod remove; pod DELETED; run inspect; end",
            expect![[r#"
            ORD-01 at #6 #7 #8: pod (pod.0.beef): expected what was asked after DELETED to show as much: ListPodSandbox shows it NOTREADY, 1ms after it
        "#]],
        );
    }
}
