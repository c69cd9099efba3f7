//! What an event's snapshot says of its own container.

use super::Events;
use super::Finding::{self, Broken, Holds};
use crate::case::{ExitCode, StatusCheck};
use crate::history::{Subject, SubjectKind};

impl Events<'_> {
    pub(super) fn have_status(&self, check: &StatusCheck) -> Finding {
        let kind = check.event;
        let Some(sighting) = self.first(kind) else {
            return self.awaited(kind);
        };
        let evidence = vec![sighting.seq()];
        let Some(status) = sighting.event().own_status() else {
            let expected = format!("the container's own status in {kind}");
            return Broken {
                expected,
                actual: "it is not there".to_owned(),
                evidence,
            };
        };
        let code = status.exit_code;
        let wanted = match check.exit_code {
            None => None,
            Some(ExitCode::Is(wanted)) => (code != wanted).then(|| wanted.to_string()),
            Some(ExitCode::Not(other)) => (code == other).then(|| format!("any but {other}")),
            Some(ExitCode::Declared) => {
                let declared = declared_exit(self.subject);
                declared
                    .filter(|declared| *declared != code)
                    .map(|code| code.to_string())
            }
        };
        if let Some(wanted) = wanted {
            let expected = format!("exit code {wanted} in {kind}");
            let actual = format!("exit code {code}, reason `{}`", status.reason);
            return Broken {
                expected,
                actual,
                evidence,
            };
        }
        let tells = |reasons: &[String]| reasons.iter().any(|reason| **reason == *status.reason);
        let wanted = check.reason.is_empty() || tells(&check.reason);
        let unwanted = tells(&check.not_reason);
        let expected = match (wanted, unwanted) {
            (true, false) => return Holds,
            (false, _) => format!("reason `{}` in {kind}", check.reason.join("` or `")),
            (true, true) => format!("any reason but `{}` in {kind}", status.reason),
        };
        let actual = format!("reason `{}`, exit code {code}", status.reason);
        Broken {
            expected,
            actual,
            evidence,
        }
    }
}

fn declared_exit(subject: &Subject) -> Option<i32> {
    match &subject.kind {
        SubjectKind::Container(spec) => spec.declared_exit,
        SubjectKind::Sandbox(_) | SubjectKind::Stray => None,
    }
}
