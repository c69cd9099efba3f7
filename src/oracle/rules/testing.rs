//! Tests of a rule: the violations that it finds in the history of a script.

use expect_test::{Expect, expect};

use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, invariants};
use crate::oracle::script::{history, render};

/// Compares the violations of one rule in a script's history with the expected ones.
#[track_caller]
pub(super) fn check(rule: &Invariant, script: &str, expect: Expect) {
    let found = invariants(&Index::new(&history(script)));
    expect.assert_eq(&render(found.iter().filter(|found| found.rule == rule.id)));
}

/// Compares the violations of all rules in a script's history with the expected ones. Its events
/// need no cause.
#[track_caller]
pub(super) fn check_all(script: &str, expect: Expect) {
    let found = invariants(&Index::new(&history(script)));
    expect.assert_eq(&render(found.iter().filter(|found| found.rule != "INV-26")));
}

/// As [`check_all`], after a container has been created in #1 to #6.
#[track_caller]
pub(super) fn after_create(script: &str, expect: Expect) {
    check_all(
        &format!("pod run; pod STARTED; c create; c CREATED; {script}"),
        expect,
    );
}

#[test]
fn one_violation_of_each_rule_is_reported_for_a_subject() {
    after_create(
        "c TYPE=7; c TYPE=8; c STARTED no-sandbox; c STOPPED no-sandbox",
        expect![[r#"
            INV-03 at #7: c (c.0.beef): expected a type from 0 to 3: type 7
            INV-06 at #9: c (c.0.beef): expected pod_sandbox_status with the UID `uid-of-pod`: no pod_sandbox_status in STARTED
            INV-19 at #7: c (c.0.beef): expected a state from before a call that causes it in UNKNOWN(7): EXITED
        "#]],
    );
}
