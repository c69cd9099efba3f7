//! What an event's snapshot says of its own container, and whether it says why.

#[cfg(test)]
mod tests;

use super::Events;
use super::Finding::{self, Broken, Holds, Pending};
use crate::case::{ExitCode, StatusCheck};
use crate::history::{
    ContainerState, ContainerStatus, Reply, Request, Seq, StatusCode, Subject, SubjectKind,
};

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

    /// Whether each status that shows the container EXITED has a message. One that is gone needs
    /// none.
    pub(super) fn explain_the_end(&self) -> Finding {
        let ends: Vec<_> = self.ends_shown().collect();
        if let Some((by, seq, status)) = ends.iter().find(|(_, _, shown)| shown.message.is_empty())
        {
            return Broken {
                expected: format!("a message in the status of {by}"),
                actual: format!("none, reason `{}`", status.reason),
                evidence: vec![*seq],
            };
        }
        if !ends.is_empty() || self.is_gone() {
            return Holds;
        }
        Pending {
            awaited: "a status that shows it EXITED".to_owned(),
            evidence: Vec::new(),
        }
    }

    /// Each status that shows the end of the container: by what, where, and what it shows.
    fn ends_shown(&self) -> impl Iterator<Item = (String, Seq, &ContainerStatus)> {
        let told = self.all().filter_map(|sighting| {
            let event = sighting.event();
            let status: &ContainerStatus = event.own_status()?;
            Some((event.kind.to_string(), sighting.seq(), status))
        });
        let answered = self.history.calls().filter_map(|call| {
            let (by, seq) = (call.request().method().to_owned(), call.ended()?.seq);
            match call.result()? {
                Ok(Reply::ContainerStatus(report)) if report.status.id == self.subject.id => {
                    let status: &ContainerStatus = &report.status;
                    self.history.within_steps(seq).then_some((by, seq, status))
                }
                _ => None,
            }
        });
        let ended =
            |(_, _, status): &(_, _, &ContainerStatus)| status.state == ContainerState::Exited;
        told.chain(answered).filter(ended)
    }

    /// Whether a call has found that there is no such container, or a list that was to show it.
    fn is_gone(&self) -> bool {
        let id = &self.subject.id;
        self.history
            .calls()
            .any(|call| match (call.request(), call.result()) {
                (Request::ContainerStatus(of), Some(Err(fault))) => {
                    of == id && fault.code == StatusCode::NOT_FOUND
                }
                (Request::ListContainers { sandbox, .. }, Some(Ok(Reply::Containers(listed)))) => {
                    let inside = match &self.subject.kind {
                        SubjectKind::Container(spec) => *sandbox == Some(spec.sandbox.clone()),
                        SubjectKind::Sandbox(_) | SubjectKind::Stray => false,
                    };
                    inside && listed.iter().all(|listing| listing.id != *id)
                }
                _ => false,
            })
    }
}

fn declared_exit(subject: &Subject) -> Option<i32> {
    match &subject.kind {
        SubjectKind::Container(spec) => spec.declared_exit,
        SubjectKind::Sandbox(_) | SubjectKind::Stray => None,
    }
}
