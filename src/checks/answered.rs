//! `answered`: calls for the status of a sandbox or container succeed, or fail with `NOT_FOUND`.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds, Pending};
use super::word::{Finding, Word};
use crate::history::{Request, StatusCode};
use crate::oracle::is_about;
use crate::outcome::{Fact, Kind, Mismatch};

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

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const LIFE: &str = "pod run; c create; c CREATED; c start; c STARTED";

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
}
