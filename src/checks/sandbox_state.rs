//! `sandbox-state`: the state of the sandbox in an event's snapshot.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind_words;
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds};
use super::word::{Finding, Word};
use crate::history::{EventKind, SandboxState};
use crate::outcome::{Fact, Kind, Mismatch};

/// The state of the sandbox in an event's snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a state such as `{of: pod, event: stopped, is: notready}`"
)]
pub struct SandboxStateCheck {
    /// The sandbox or container.
    pub of: String,
    /// The event.
    #[serde(deserialize_with = "kind_words::one")]
    #[schemars(with = "kind_words::Word")]
    pub event: EventKind,
    /// The state of the sandbox.
    pub is: SandboxWord,
}

/// A state of a sandbox, as the CRI names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "lowercase",
    expecting = "a state of a sandbox: `ready` or `notready`"
)]
pub enum SandboxWord {
    /// `SANDBOX_READY`.
    Ready,
    /// `SANDBOX_NOTREADY`.
    NotReady,
}

impl From<SandboxWord> for SandboxState {
    fn from(word: SandboxWord) -> Self {
        match word {
            SandboxWord::Ready => Self::Ready,
            SandboxWord::NotReady => Self::NotReady,
        }
    }
}

impl Word for SandboxStateCheck {
    fn of(&self) -> &str {
        &self.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.of, Wanted::Either);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::missing(self.event), Kind::WrongSandboxState]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let Some(arrival) = events.first(self.event) else {
            return events.awaited(self.event);
        };
        let wanted = SandboxState::from(self.is);
        let shown = arrival
            .event()
            .sandbox
            .as_ref()
            .map(|sandbox| sandbox.state);
        if shown == Some(wanted) {
            return Holds;
        }
        let shown = shown.map_or_else(|| "no sandbox".to_owned(), |state| state.to_string());
        Broken {
            mismatch: Mismatch::new(
                Kind::WrongSandboxState,
                [Fact::State(wanted.to_string())],
                [Fact::State(shown), Fact::Event(self.event)],
            ),
            evidence: vec![arrival.seq()],
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const STATE: &str = "sandbox-state: {of: pod, event: stopped, is: notready}";

    #[test]
    fn a_sandbox_that_has_stopped_is_not_ready() {
        let script = "pod run; pod STARTED; pod stop; pod STOPPED; end";
        check(STATE, script, expect!["holds"]);
        check(
            STATE,
            &script.replace("STOPPED", "STOPPED ready"),
            expect![[r#"
        ORD-01 at #6: pod (pod.0.beef): expected the sandbox NOTREADY in STOPPED: READY
    "#]],
        );
        check(
            STATE,
            "pod run; pod STARTED; end",
            expect![[r#"
                waits for STOPPED of pod
                ORD-01 at #1 #2 #3: pod (pod.0.beef): expected STOPPED: STOPPED has not come
            "#]],
        );
    }
}
