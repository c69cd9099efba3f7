//! `unchanged`: all relists of the sandbox show the same.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds};
use super::word::{Finding, Word};
use crate::history::{
    Call, CaseHistory, ContainerId, Reply, Request, SandboxId, Subject, SubjectKind,
};
use crate::outcome::{Fact, Kind, Mismatch};

check_on! {
    UnchangedCheck(NameRef)
}

impl Word for UnchangedCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        let sandbox = &self.0.of;
        scope.resolve("of", sandbox, Wanted::Sandbox);
        if !scope.is_relisted(sandbox) {
            scope
                .error("there is no relist to compare")
                .help(format!("add a step `- relist: {{sandbox: {sandbox}}}`"));
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::RelistsDiffer]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let (history, subject) = (events.index.history, events.subject);
        let calls = history.calls().filter(|call| {
            let began = call.began().seq;
            !call.is_of_run() && history.within_steps(began) && is_relist_of(history, subject, call)
        });
        let calls: Vec<&Call> = calls.collect();
        let differs = calls.iter().find_map(|call| {
            let mut earlier = calls
                .iter()
                .take_while(|other| other.began().seq < call.began().seq);
            let other = earlier
                .find(|other| other.request() == call.request() && shown(other) != shown(call))?;
            Some((*other, *call))
        });
        let Some((earlier, later)) = differs else {
            return Holds;
        };
        Broken {
            mismatch: Mismatch::new(
                Kind::RelistsDiffer,
                [],
                [Fact::Method(later.request().method().to_owned())],
            ),
            evidence: [earlier, later].map(|call| call.began().seq).to_vec(),
        }
    }
}

fn is_relist_of(history: &CaseHistory, subject: &Subject, call: &Call) -> bool {
    let own = |sandbox: &SandboxId| ContainerId::from(sandbox) == subject.id;
    match call.request() {
        Request::ListContainers { sandbox, .. } => sandbox.as_ref().is_some_and(own),
        Request::ContainerStatus(id) => {
            let mut subjects = history.subjects().iter();
            subjects.any(|subject| match &subject.kind {
                SubjectKind::Container(spec) => subject.id == *id && own(&spec.sandbox),
                SubjectKind::Sandbox(_) | SubjectKind::Stray => false,
            })
        }
        _ => false,
    }
}

/// The items in the reply of a call, sorted.
fn shown(call: &Call) -> Option<Reply> {
    let mut reply = call.result()?.as_ref().ok()?.clone();
    if let Reply::Containers(listed) = &mut reply {
        listed.sort_by(|one, other| one.id.cmp(&other.id));
    }
    Some(reply)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn relists_show_the_same() {
        let unchanged = "unchanged: {of: pod}";
        check(
            unchanged,
            "pod run; c create; pod relist c=running; pod relist c=running; end",
            expect!["holds"],
        );
        check(
            unchanged,
            "pod run; c create; pod relist c=running; pod relist c=exited; end",
            expect![[r#"
            ORD-01 at #5 #7: pod (pod.0.beef): expected the same as before: ListContainers shows something else
        "#]],
        );
        check(
            unchanged,
            "pod run; c create; pod inspect c=running unlisted; pod inspect c=exited unlisted; end",
            expect![[r#"
            ORD-01 at #11 #19: pod (pod.0.beef): expected the same as before: ContainerStatus shows something else
        "#]],
        );
    }

    #[test]
    fn relists_of_others_and_of_other_sandboxes_may_differ() {
        for changes in [
            "pod inspect c=running; run inspect c=exited; end",
            "pod inspect c=running; end; pod inspect c=exited",
            "pod2 run; d create; pod2 inspect d=running; pod2 inspect d=exited; end",
        ] {
            let script = format!("pod run; c create; {changes}");
            check("unchanged: {of: pod}", &script, expect!["holds"]);
        }
    }
}
