//! INV-05: `created_at` never decreases for one container.

use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_SHOULD};
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-05",
    name: "invariant::created-at-never-decreases",
    sentence: "created_at never decreases from one event of a container to the next.",
    source: "kubelet 1.26 to 1.36, pod cache: an older time is dropped",
    requirements: &["R20"],
    kinds: &[Kind::CreatedAtDecreased],
    compares_clocks: true,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check,
};

fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    rule.on_each_pair(
        history,
        |_| true,
        |earlier, later| {
            let (before, after) = (earlier.event().created_at.0, later.event().created_at.0);
            (after < before).then(|| {
                Mismatch::new(
                    Kind::CreatedAtDecreased,
                    [Fact::Earliest(before)],
                    [Fact::Time(after), Fact::ApartNs(before.abs_diff(after))],
                )
            })
        },
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::oracle::rules::testing::after_create;

    #[test]
    fn created_at_that_decreases_is_reported() {
        after_create(
            "c STARTED at=-2ms",
            expect![[r#"
        INV-05 at #5 #6: c (c.0.beef): expected created_at of 1700000000006000000 or later: 1700000000005000000, which is 1000000 ns earlier
    "#]],
        );
    }

    #[test]
    fn created_at_that_stays_is_accepted() {
        after_create("c STARTED at=-1ms", expect![]);
    }

    #[test]
    fn created_at_of_two_containers_is_for_another_rule() {
        after_create(
            "d create; d CREATED at=-10ms",
            expect![[r#"
            INV-23 at #5 #8: pod (pod.0.beef): expected CREATED of d, which came after CREATED of c, to be made after it, too, and not 7000000 ns before: its created_at is earlier
        "#]],
        );
    }

    #[test]
    fn created_at_may_decrease_in_a_replay() {
        after_create(
            "c STARTED; resubscribe; c CREATED at=-4ms; c STARTED at=-3ms",
            expect![],
        );
    }
}
