//! `status`: an event's status of its own container.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind_words;
use super::scope::{self, Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds};
use super::word::{Finding, Word};
use crate::history::{EventKind, Subject, SubjectKind};
use crate::outcome::{Fact, Kind, Mismatch};

/// The status of its own container in an event's snapshot. At least one field must be expected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a status such as `{of: c, event: stopped, exit-code: {is: 0}}`"
)]
pub struct StatusCheck {
    /// The container.
    pub of: String,
    /// The event whose snapshot is read.
    #[serde(deserialize_with = "kind_words::one")]
    #[schemars(with = "kind_words::Word")]
    pub event: EventKind,
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<ExitCode>,
    /// The permitted reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reason: Vec<String>,
    /// The forbidden reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_reason: Vec<String>,
}

/// An exit code to expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "an exit code: `{is: 0}`, `{not: 137}` or `declared`"
)]
pub enum ExitCode {
    /// This exit code.
    Is(i32),
    /// Any exit code but this one.
    Not(i32),
    /// The exit code that the container's workload declares.
    Declared,
}

impl Word for StatusCheck {
    fn of(&self) -> &str {
        &self.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        let kind = scope.resolve("of", &self.of, Wanted::Container);
        if self.exit_code.is_none() && self.reason.is_empty() && self.not_reason.is_empty() {
            scope
                .error("this expects nothing of the status")
                .help("add `exit-code`, `reason` or `not-reason`");
        }
        if self.event == EventKind::Deleted {
            scope.error_at("event", "DELETED carries no status of its container");
        } else if self.event != EventKind::Stopped && self.exit_code.is_some() {
            scope.error_at(
                "exit-code",
                "a container has no exit code before it has stopped",
            );
        }
        let declares_exit = |kind| {
            matches!(
                kind,
                scope::Kind::Container {
                    declares_exit: true,
                    ..
                }
            )
        };
        if self.exit_code == Some(ExitCode::Declared)
            && kind.is_some_and(|kind| !declares_exit(kind))
        {
            scope
                .error_at(
                    "exit-code",
                    "the container's workload declares no exit code",
                )
                .help("expect a number: `exit-code: {is: 137}`");
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![
            Kind::missing(self.event),
            Kind::MissingOwnStatus,
            Kind::WrongExitCode,
            Kind::UnwantedExitCode,
            Kind::WrongReason,
            Kind::UnwantedReason,
        ]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let kind = self.event;
        let Some(arrival) = events.first(kind) else {
            return events.awaited(kind);
        };
        let evidence = vec![arrival.seq()];
        let Some(status) = arrival.event().own_status() else {
            let mismatch = Mismatch::new(Kind::MissingOwnStatus, [], [Fact::Event(kind)]);
            return Broken { mismatch, evidence };
        };
        let code = status.exit_code;
        let wanted = match self.exit_code {
            None => None,
            Some(ExitCode::Is(wanted)) => (code != wanted).then_some((Kind::WrongExitCode, wanted)),
            Some(ExitCode::Not(other)) => {
                (code == other).then_some((Kind::UnwantedExitCode, other))
            }
            Some(ExitCode::Declared) => {
                let declared = declared_exit(events.subject);
                declared
                    .filter(|declared| *declared != code)
                    .map(|declared| (Kind::WrongExitCode, declared))
            }
        };
        let expected = Fact::Event(kind);
        let actual = [
            Fact::ExitCode(code.into()),
            Fact::Reason(status.reason.to_string()),
        ];
        if let Some((kind, wanted)) = wanted {
            let expected = [Fact::ExitCode(wanted.into()), expected];
            let mismatch = Mismatch::new(kind, expected, actual);
            return Broken { mismatch, evidence };
        }
        let has_one_of =
            |reasons: &[String]| reasons.iter().any(|reason| **reason == *status.reason);
        let wanted = self.reason.is_empty() || has_one_of(&self.reason);
        let unwanted = has_one_of(&self.not_reason);
        let mismatch = match (wanted, unwanted) {
            (true, false) => return Holds,
            (false, _) => {
                let reasons = Fact::Reasons(self.reason.join("` or `"));
                Mismatch::new(Kind::WrongReason, [reasons, expected], actual)
            }
            (true, true) => Mismatch::new(Kind::UnwantedReason, [expected], actual),
        };
        Broken { mismatch, evidence }
    }
}

fn declared_exit(subject: &Subject) -> Option<i32> {
    match &subject.kind {
        SubjectKind::Container(spec) => spec.declared_exit,
        SubjectKind::Sandbox(_) | SubjectKind::Stray => None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn a_status_with_this_exit_code() {
        let is = "status: {of: c, event: stopped, exit-code: {is: 137}}";
        check(
            is,
            "pod run; c create; c STOPPED exit=137; end",
            expect!["holds"],
        );
        check(
            is,
            "pod run; c create; c STOPPED exit=0; end",
            expect![[r#"
        ORD-01 at #5: c (c.0.beef): expected exit code 137 in STOPPED: exit code 0, reason `Completed`
    "#]],
        );
        check(
            is,
            "pod run; c create; c STARTED; end",
            expect![[r#"
                waits for STOPPED of c
                ORD-01 at #3 #4 #5: c (c.0.beef): expected STOPPED: STOPPED has not come
            "#]],
        );
        check(
            is,
            "pod run; c create; c STOPPED missing; end",
            expect![[r#"
        ORD-01 at #5: c (c.0.beef): expected the container's own status in STOPPED: it is not there
    "#]],
        );
    }

    #[test]
    fn a_status_with_any_other_exit_code() {
        let not = "status: {of: c, event: stopped, exit-code: {not: 137}}";
        check(
            not,
            "pod run; c create; c STOPPED exit=128; end",
            expect!["holds"],
        );
        check(
            not,
            "pod run; c create; c STOPPED exit=137; end",
            expect![[r#"
        ORD-01 at #5: c (c.0.beef): expected exit code any but 137 in STOPPED: exit code 137, reason `Error`
    "#]],
        );
    }

    #[test]
    fn a_status_with_the_declared_exit_code() {
        let declared = "status: {of: c, event: stopped, exit-code: declared}";
        check(
            declared,
            "pod run; c create exit=42; c STOPPED exit=42; end",
            expect!["holds"],
        );
        check(
            declared,
            "pod run; c create exit=42; c STOPPED exit=255; end",
            expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected exit code 42 in STOPPED: exit code 255, reason `Error`
        "#]],
        );
    }

    #[test]
    fn a_status_with_one_of_these_reasons() {
        let reason = "status: {of: c, event: stopped, reason: [OOMKilled, Killed]}";
        check(
            reason,
            "pod run; c create; c STOPPED exit=137 reason=Killed; end",
            expect!["holds"],
        );
        check(
            reason,
            "pod run; c create; c STOPPED exit=137; end",
            expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected reason `OOMKilled` or `Killed` in STOPPED: reason `Error`, exit code 137
        "#]],
        );
    }

    #[test]
    fn a_reason_is_case_sensitive() {
        check(
            "status: {of: c, event: stopped, reason: [OOMKilled]}",
            "pod run; c create; c STOPPED exit=137 reason=OomKilled; end",
            expect![[r#"
            ORD-01 at #5: c (c.0.beef): expected reason `OOMKilled` in STOPPED: reason `OomKilled`, exit code 137
        "#]],
        );
    }
}
