//! `final`: the exit status of a container stays as STOPPED reported it.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds, Pending};
use super::word::{Finding, Word};
use crate::history::EventKind;
use crate::oracle::{exit_status_changed, statuses_after_stopped};
use crate::outcome::{Kind, Mismatch};

check_on! {
    FinalCheck(NameRef)
}

impl Word for FinalCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.0.of, Wanted::Container);
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![
            Kind::MissingStopped,
            Kind::NothingObserved,
            Kind::ExitStatusChanged,
        ]
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        if events.first(EventKind::Stopped).is_none() {
            return events.awaited(EventKind::Stopped);
        }
        if let Some((mismatch, evidence)) = exit_status_changed(events.index, events.subject) {
            return Broken { mismatch, evidence };
        }
        if statuses_after_stopped(events.index, events.subject) > 0 {
            return Holds;
        }
        Pending {
            missing: Mismatch::unobserved("a status that was asked for after STOPPED"),
            evidence: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const LIFE: &str = "pod run; c create; c CREATED; c start; c STARTED";

    #[test]
    fn an_exit_status_stays() {
        let script = format!("{LIFE}; c STOPPED exit=1; pod inspect c=exited:1; end");
        check("final: {of: c}", &script, expect!["holds"]);
    }

    #[test]
    fn an_exit_status_changes() {
        let script = format!("{LIFE}; c STOPPED exit=255; pod inspect c=exited:1; end");
        check(
            "final: {of: c}",
            &script,
            expect![[r#"
        ORD-01 at #9 #16 #17: c (c.0.beef): expected exit code 255, as STOPPED reported: exit code 1
    "#]],
        );
    }

    #[test]
    fn without_a_later_status_the_check_waits() {
        let script = format!("{LIFE}; pod inspect c=running; c STOPPED; end");
        check(
            "final: {of: c}",
            &script,
            expect![[r#"
        waits for a status that was asked for after STOPPED of c
        ORD-01 at: c (c.0.beef): expected a status that was asked for after STOPPED: it has not come
    "#]],
        );
    }
}
