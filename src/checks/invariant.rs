//! `invariant`: an invariant whose situation the case provokes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scope::{Scope, Wanted};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Broken, Holds};
use super::word::{Finding, Word};
use crate::oracle::{NO_MISSED_EVENT, broken_by, invariant, name_of, unannounced_of};
use crate::outcome::{Fact, Kind, Mismatch, Violation};

/// An invariant that the events of a sandbox or container keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a rule by its id, as in `{of: c, rule: …}`"
)]
pub struct InvariantCheck {
    /// The sandbox or container.
    pub of: String,
    /// The id of the invariant.
    pub rule: String,
}

/// Whether there is an invariant of this id.
pub fn is_invariant(id: &str) -> bool {
    invariant(id).is_some()
}

impl Word for InvariantCheck {
    fn of(&self) -> &str {
        &self.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        scope.resolve("of", &self.of, Wanted::Either);
        let number = self.rule.strip_prefix("INV-");
        if !number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
            let message = format!("`{}` is no id of a rule", self.rule);
            scope
                .error_at("rule", message)
                .help("the invariants, which judge every case, have ids of `INV-` and two digits");
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        let rule = invariant(&self.rule);
        rule.map_or(vec![Kind::NoSuchRule], |rule| rule.kinds.to_vec())
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let Some(broken) = broken_by(&self.rule, events.index) else {
            return Broken {
                mismatch: Mismatch::new(Kind::NoSuchRule, [Fact::Of(self.rule.clone())], []),
                evidence: Vec::new(),
            };
        };
        let own = name_of(events.subject);
        // The teardown is no step of the case: the rule itself judges it.
        let history = events.index.history;
        let in_steps = |found: &Violation| {
            let mut evidence = found.evidence.iter();
            evidence.all(|seq| history.within_steps(*seq))
        };
        let mut broken = broken.iter();
        let found = broken.find(|found| found.subject == own && in_steps(found));
        if let Some(found) = found {
            return Broken {
                mismatch: found.mismatch.clone(),
                evidence: found.evidence.clone(),
            };
        }
        // Where the suite was held up, the event may be unread.
        let is_of_events = self.rule == NO_MISSED_EVENT;
        let missing = is_of_events.then(|| unannounced_of(events.index, events.subject));
        missing.flatten().map_or(Holds, |kind| events.awaited(kind))
    }

    fn is_awaited(&self) -> bool {
        self.rule == NO_MISSED_EVENT
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn only_the_named_container_is_judged() {
        let script = "pod run; c create; d create; c CREATED; c STARTED state=created; end";
        check(
            "invariant: {of: c, rule: INV-08}",
            script,
            expect![[r#"
        ORD-01 at #8: c (c.0.beef): expected RUNNING or EXITED in STARTED: CREATED in STARTED
    "#]],
        );
        check("invariant: {of: d, rule: INV-08}", script, expect!["holds"]);
        check(
            "invariant: {of: c, rule: INV-99}",
            script,
            expect![[r#"
        ORD-01 at: c (c.0.beef): expected a rule INV-99: there is none
    "#]],
        );
    }

    #[test]
    fn every_rule_that_a_case_names_exists() {
        use crate::case::load;
        use crate::checks::Check;
        use crate::oracle::INVARIANTS;
        for case in load::embedded().expect("the cases are valid") {
            for expectation in &case.expect {
                if let Check::Invariant(check) = &expectation.check {
                    let there = INVARIANTS
                        .iter()
                        .any(|invariant| invariant.id == check.rule);
                    assert!(there, "{}: {}", case.id, check.rule);
                }
            }
        }
    }
}
