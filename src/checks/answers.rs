//! The lists and statuses of a sandbox or container. `last-state`: the state in the last one that
//! shows it, or must; `answered`: calls for its status succeed, or fail with `NOT_FOUND`;
//! `explained`: each status that shows its end has a message.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::name_refs::{NameRef, check_on};
use super::scope::{Kind as NameKind, Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds, Pending};
use super::word::{Finding, Word};
use crate::history::{Call, ContainerState, ContainerStatus, Entry, Request, Seq, StatusCode};
use crate::oracle::{Message, Object, Shown, Source, is_about};
use crate::outcome::{Fact, Facts, Kind, Mismatch};

/// The state in the last list or status that shows the sandbox or container, whether an event
/// reported it or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a state such as `{of: c, is: exited}`"
)]
pub struct LastStateCheck {
    /// The sandbox or container.
    pub of: String,
    /// Its state.
    pub is: StateWord,
    /// The exit code in the last `ContainerStatus` of a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// A state of a container or sandbox, as the CRI names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "lowercase",
    expecting = "a state: `created`, `running` or `exited` of a container, `ready` or `notready` \
                 of a sandbox"
)]
pub enum StateWord {
    /// `CONTAINER_CREATED`.
    Created,
    /// `CONTAINER_RUNNING`.
    Running,
    /// `CONTAINER_EXITED`.
    Exited,
    /// `SANDBOX_READY`.
    Ready,
    /// `SANDBOX_NOTREADY`.
    NotReady,
}

impl StateWord {
    fn state(self) -> Shown {
        match self {
            Self::Created => Shown::Created,
            Self::Running => Shown::Running,
            Self::Exited => Shown::Exited,
            Self::Ready => Shown::Ready,
            Self::NotReady => Shown::NotReady,
        }
    }

    fn wanted(self) -> Wanted {
        match self {
            Self::Created | Self::Running | Self::Exited => Wanted::Container,
            Self::Ready | Self::NotReady => Wanted::Sandbox,
        }
    }
}

impl Word for LastStateCheck {
    fn of(&self) -> &str {
        &self.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        let kind = scope.resolve("of", &self.of, self.is.wanted());
        if self.exit_code.is_some() && self.is != StateWord::Exited {
            scope.error_at("exit-code", "only a container that is `exited` has one");
        }
        if let Some(NameKind::Container { sandbox, .. }) = kind
            && !scope.is_relisted(sandbox)
        {
            scope
                .error("no step asks for its state")
                .help(format!("add a step `- relist: {{sandbox: {sandbox}}}`"));
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::NothingObserved, Kind::WrongLastState]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let object = events.index.object(&events.subject.id);
        let mut answers = object.map(Object::answers).unwrap_or_default();
        answers.retain(|(_, ended, _)| events.index.history.within_steps(ended.seq));
        // Where it is kept, one that lacks it does not show it.
        let is_kept = |at| object.is_some_and(|object| object.is_kept_at(at));
        let mut all = answers.iter().rev();
        let last = all.find_map(|(call, ended, said)| match said {
            Ok(None) => is_kept(ended.seq).then_some((*call, *ended, Shown::Absent)),
            Ok(Some(message)) => Some((*call, *ended, Shown::in_message(*message))),
            Err(_) => None,
        });
        let Some((call, ended, shown)) = last else {
            return unobserved("a list or status that shows it");
        };
        let broken = |call: &Call, ended: &Entry, expected: Facts, actual: Facts| {
            let by = [Fact::Method(call.request().method().to_owned())];
            let actual: Facts = by.iter().chain(actual.iter()).cloned().collect();
            Broken {
                mismatch: Mismatch::new(Kind::WrongLastState, expected, actual),
                evidence: vec![call.began().seq, ended.seq],
            }
        };
        let expected = words(self.is.state());
        if shown != self.is.state() {
            return broken(call, ended, [expected].into(), [words(shown)].into());
        }
        let Some(code) = self.exit_code else {
            return Holds;
        };
        let status = answers
            .iter()
            .rev()
            .find_map(|(call, ended, said)| match said {
                Ok(Some(Message::Status(status))) => Some((*call, *ended, *status)),
                _ => None,
            });
        let Some((call, ended, status)) = status else {
            return unobserved("a status");
        };
        if status.exit_code == code {
            return Holds;
        }
        let actual = [
            expected.clone(),
            Fact::ExitCode(status.exit_code.into()),
            Fact::Reason(status.reason.to_string()),
        ];
        let expected = [expected, Fact::ExitCode(code.into())];
        broken(call, ended, expected.into(), actual.into())
    }
}

fn words(shown: Shown) -> Fact {
    Fact::Text(match shown {
        Shown::Absent => "does not show it".to_owned(),
        shown => format!("shows it {shown}"),
    })
}

fn unobserved(text: &str) -> Finding {
    Pending {
        missing: Mismatch::unobserved(text),
        evidence: Vec::new(),
    }
}

check_on! {
    AnsweredCheck(NameRef)
}

impl Word for AnsweredCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Either);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::NothingObserved, Kind::FailedCall]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let mut answered = 0;
        for call in events.index.history.calls() {
            let asks = matches!(
                call.request(),
                Request::ContainerStatus(_) | Request::SandboxStatus(_)
            );
            let Some(ended) = call
                .ended()
                .filter(|_| asks && is_about(call, events.subject))
            else {
                continue;
            };
            answered += 1;
            if let Some(Err(fault)) = call.result()
                && fault.code != StatusCode::NOT_FOUND
                && events.index.history.within_steps(ended.seq)
            {
                let method = call.request().method();
                return Broken {
                    mismatch: Mismatch::new(
                        Kind::FailedCall,
                        [],
                        [
                            Fact::Method(method.to_owned()),
                            Fact::Text(fault.code.to_string()),
                        ],
                    ),
                    evidence: vec![call.began().seq, ended.seq],
                };
            }
        }
        if answered > 0 {
            return Holds;
        }
        Pending {
            missing: Mismatch::unobserved("the answer to a call that asks for its status"),
            evidence: Vec::new(),
        }
    }
}

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

    const LIFE: &str = "pod run; c create; c CREATED; c start; c STARTED";

    #[test]
    fn the_last_answer_counts() {
        let exited = "last-state: {of: c, is: exited}";
        let script = format!("{LIFE}; pod relist c=running; pod relist c=exited; end");
        check(exited, &script, expect!["holds"]);
        let script = format!("{LIFE}; pod relist c=exited; pod relist c=running; end");
        check(
            exited,
            &script,
            expect![[r#"
            ORD-01 at #11 #12: c (c.0.beef): expected that the last list or status shows it EXITED: ListContainers shows it RUNNING
        "#]],
        );
        check(
            exited,
            &format!("{LIFE}; end"),
            expect![[r#"
            waits for a list or status that shows it of c
            ORD-01 at: c (c.0.beef): expected a list or status that shows it: it has not come
        "#]],
        );
    }

    #[test]
    fn the_exit_code_is_that_of_the_last_status() {
        let exited = "last-state: {of: c, is: exited, exit-code: 42}";
        let script = format!("{LIFE}; pod inspect c=exited:42; end");
        check(exited, &script, expect!["holds"]);
        let script = format!("{LIFE}; pod inspect c=exited:255; end");
        check(
            exited,
            &script,
            expect![[r#"
            ORD-01 at #15 #16: c (c.0.beef): expected that the last list or status shows it EXITED, with exit code 42: ContainerStatus shows it EXITED, with exit code 255, reason `Error`
        "#]],
        );
    }

    #[test]
    fn a_sandbox_has_a_state_of_its_own() {
        let not_ready = "last-state: {of: pod, is: notready}";
        check(
            not_ready,
            "pod run; pod STARTED; end",
            expect![[r#"
            waits for a list or status that shows it of pod
            ORD-01 at: pod (pod.0.beef): expected a list or status that shows it: it has not come
        "#]],
        );
    }

    #[test]
    fn a_status_or_not_found_is_an_answer() {
        let script = format!("{LIFE}; pod inspect c=gone; end");
        check("answered: {of: c}", &script, expect!["holds"]);
    }

    #[test]
    fn another_fault_is_no_answer() {
        let script = format!("{LIFE}; pod inspect c=running unanswered; end");
        check(
            "answered: {of: c}",
            &script,
            expect![[r#"
        ORD-01 at #15 #16: c (c.0.beef): expected a status of ContainerStatus, or NOT_FOUND: UNAVAILABLE
    "#]],
        );
    }

    #[test]
    fn without_a_call_there_is_no_answer() {
        check(
            "answered: {of: c}",
            &format!("{LIFE}; end"),
            expect![[r#"
        waits for the answer to a call that asks for its status of c
        ORD-01 at: c (c.0.beef): expected the answer to a call that asks for its status: it has not come
    "#]],
        );
    }

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
