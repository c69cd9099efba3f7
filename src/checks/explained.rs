//! `explained`: each status that shows the end has a message.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds, Pending};
use super::word::{Finding, Word};
use crate::history::{ContainerState, ContainerStatus, Request, Seq};
use crate::oracle::{Message, Source};
use crate::outcome::{Fact, Kind, Mismatch};

check_on! {
    ExplainedCheck(NameRef)
}

impl Word for ExplainedCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Container);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::NothingObserved, Kind::MissingMessage]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let ends: Vec<_> = events.ends_shown().collect();
        if let Some((by, seq, status)) = ends.iter().find(|(_, _, shown)| shown.message.is_empty())
        {
            return Broken {
                mismatch: Mismatch::new(
                    Kind::MissingMessage,
                    [Fact::Of(by.clone())],
                    [Fact::Reason(status.reason.to_string())],
                ),
                evidence: vec![*seq],
            };
        }
        if !ends.is_empty() || events.is_gone() {
            return Holds;
        }
        Pending {
            missing: Mismatch::unobserved("a status that shows it EXITED"),
            evidence: Vec::new(),
        }
    }
}

impl SubjectEvents<'_, '_> {
    /// Each status that shows the container EXITED: the event or method that carries it, its entry,
    /// and the status.
    fn ends_shown(&self) -> impl Iterator<Item = (String, Seq, &ContainerStatus)> {
        let in_events = self.all().filter_map(|arrival| {
            let event = arrival.event();
            let status: &ContainerStatus = event.own_status()?;
            Some((event.kind.to_string(), arrival.seq(), status))
        });
        let object = self.index.object(&self.subject.id);
        let statements = object.into_iter().flat_map(|object| &object.statements);
        let answered = statements.filter_map(|said| match (said.source, said.message) {
            (Source::Call(call, ended), Message::Status(status)) => {
                let is_in_time = self.index.history.within_steps(ended.seq);
                is_in_time.then(|| (call.request().method().to_owned(), ended.seq, status))
            }
            _ => None,
        });
        let ended =
            |(_, _, status): &(_, _, &ContainerStatus)| status.state == ContainerState::Exited;
        in_events.chain(answered).filter(ended)
    }

    /// Whether a status call failed with `NOT_FOUND`, or a list of its sandbox lacks the container.
    fn is_gone(&self) -> bool {
        let object = self.index.object(&self.subject.id);
        let mut absences = object.into_iter().flat_map(|object| &object.absences);
        let is_other_list = |source: &Source<'_>| match source {
            Source::Call(call, _) => matches!(
                call.request(),
                Request::ListContainers { sandbox: None, .. } | Request::FindContainers(_)
            ),
            Source::Event(_) => false,
        };
        absences.any(|(source, code)| code.is_none() && !is_other_list(source))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const EXPLAINED: &str = "explained: {of: c}";

    const FAILED: &str = "pod run; c create; c CREATED; c start fails";

    #[test]
    fn an_event_has_a_message_for_an_end() {
        check(
            EXPLAINED,
            &format!("{FAILED}; c STOPPED exit=128 message=why; end"),
            expect!["holds"],
        );
        check(
            EXPLAINED,
            &format!("{FAILED}; c STOPPED exit=128; end"),
            expect![[r#"
            ORD-01 at #8: c (c.0.beef): expected a message in the status of STOPPED: none, reason `Error`
        "#]],
        );
    }

    #[test]
    fn a_status_has_a_message_for_an_end() {
        check(
            EXPLAINED,
            &format!("{FAILED}; pod inspect c=exited:128:why d=exited:1; end"),
            expect!["holds"],
        );
        check(
            EXPLAINED,
            &format!("{FAILED}; pod inspect c=exited:128; end"),
            expect![[r#"
            ORD-01 at #15: c (c.0.beef): expected a message in the status of ContainerStatus: none, reason `Error`
        "#]],
        );
        check(
            EXPLAINED,
            &format!("{FAILED}; c STOPPED message=why; pod inspect c=exited:128; end"),
            expect![[r#"
            ORD-01 at #16: c (c.0.beef): expected a message in the status of ContainerStatus: none, reason `Error`
        "#]],
        );
    }

    #[test]
    fn a_container_that_has_not_ended_needs_no_message() {
        check(
            EXPLAINED,
            &format!("{FAILED}; pod inspect c=created; end"),
            expect![[r#"
            waits for a status that shows it EXITED of c
            ORD-01 at: c (c.0.beef): expected a status that shows it EXITED: it has not come
        "#]],
        );
        check(
            EXPLAINED,
            "pod run; c create; c CREATED; c STARTED; c STOPPED message=why; end",
            expect!["holds"],
        );
    }

    #[test]
    fn a_removed_container_needs_no_message() {
        check(
            EXPLAINED,
            &format!("{FAILED}; pod inspect c=gone; end"),
            expect!["holds"],
        );
        check(
            EXPLAINED,
            &format!("{FAILED}; pod inspect; end"),
            expect![[r#"
                waits for a status that shows it EXITED of c
                ORD-01 at: c (c.0.beef): expected a status that shows it EXITED: it has not come
            "#]],
        );
        check(
            EXPLAINED,
            &format!("{FAILED}; run inspect c=gone; end"),
            expect!["holds"],
        );
        for other in ["d=gone", "c=created unanswered"] {
            check(
                EXPLAINED,
                &format!("{FAILED}; run inspect {other}; end"),
                expect![[r#"
                    waits for a status that shows it EXITED of c
                    ORD-01 at: c (c.0.beef): expected a status that shows it EXITED: it has not come
                "#]],
            );
        }
    }
}
