//! `last-state`: the state in the last list or status that shows it, or must.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answers::{Answer, ShownState};
use super::scope::{Kind as NameKind, Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds, Pending};
use super::word::{Finding, Word};
use crate::history::{ContainerState, SandboxState};
use crate::oracle::{Message, Object};
use crate::outcome::{Fact, Kind, Mismatch};

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
    fn state(self) -> ShownState {
        match self {
            Self::Created => ShownState::Container(ContainerState::Created),
            Self::Running => ShownState::Container(ContainerState::Running),
            Self::Exited => ShownState::Container(ContainerState::Exited),
            Self::Ready => ShownState::Sandbox(SandboxState::Ready),
            Self::NotReady => ShownState::Sandbox(SandboxState::NotReady),
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
        let is_kept =
            |answer: &Answer<'_>| object.is_some_and(|object| object.is_kept_at(answer.ended.seq));
        let shows_it = |answer: &Answer<'_>| match answer.shown {
            ShownState::Absent => is_kept(answer),
            ShownState::Failed(_) => false,
            ShownState::Container(_) | ShownState::Sandbox(_) => true,
        };
        let Some(last) = events.answers().filter(shows_it).last() else {
            return Pending {
                missing: Mismatch::unobserved("a list or status that shows it"),
                evidence: Vec::new(),
            };
        };
        if last.shown != self.is.state() {
            let actual = [
                Fact::Method(last.by.to_owned()),
                Fact::Text(last.shown.words()),
            ];
            let expected = [Fact::Text(self.is.state().words())];
            return Broken {
                mismatch: Mismatch::new(Kind::WrongLastState, expected, actual),
                evidence: vec![last.began.seq, last.ended.seq],
            };
        }
        self.exit_code.map_or(Holds, |code| exits(events, code))
    }
}

fn exits(events: &SubjectEvents<'_, '_>, code: i32) -> Finding {
    let object = events.index.object(&events.subject.id);
    let answers = object.map(Object::answers).unwrap_or_default().into_iter();
    let mut statuses = answers.rev().filter_map(|(call, ended, said)| match said {
        Ok(Some(Message::Status(status))) if events.index.history.within_steps(ended.seq) => {
            Some((call, ended, status))
        }
        _ => None,
    });
    let Some((call, ended, status)) = statuses.next() else {
        return Pending {
            missing: Mismatch::unobserved("a status"),
            evidence: Vec::new(),
        };
    };
    if status.exit_code == code {
        return Holds;
    }
    let exited = Fact::Text(StateWord::Exited.state().words());
    let actual = [
        Fact::Method(call.request().method().to_owned()),
        exited.clone(),
        Fact::ExitCode(status.exit_code.into()),
        Fact::Reason(status.reason.to_string()),
    ];
    let expected = [exited, Fact::ExitCode(code.into())];
    Broken {
        mismatch: Mismatch::new(Kind::WrongLastState, expected, actual),
        evidence: vec![call.began().seq, ended.seq],
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
}
