//! INV-04: `created_at` is a current time in nanoseconds.

use crate::oracle::clocks::{SLACK_NS, unit_hint};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_SHOULD};
use crate::outcome::{Fact, Facts, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-04",
    name: "invariant::created-at-is-current",
    sentence: "created_at is a time in nanoseconds, not before the case and not after the \
                   event's arrival.",
    source: "CRI api.proto, ContainerEventResponse.created_at; cri-o#8580",
    requirements: &["R18", "R19"],
    kinds: &[Kind::CreatedAtNotCurrent],
    compares_clocks: true,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check,
};

/// The maximum age of an event of a foreign pod: a runtime may keep events for its next subscriber.
const DAY_NS: i64 = 24 * 3_600 * 1_000_000_000;

fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let began = history.began().map(|at| at.realtime_ns - SLACK_NS);
    if began.is_none() && !history.is_of_foreign_pod() {
        return Vec::new();
    }
    rule.on_each_event(history, |_, arrival| {
        let at = arrival.event().created_at.0;
        let arrived = arrival.at().realtime_ns;
        let (earliest, latest) = (began.unwrap_or(arrived - DAY_NS), arrived + SLACK_NS);
        (at < earliest || at > latest).then(|| {
            let hint = unit_hint(at, latest).map(Fact::Hint);
            Mismatch::new(
                Kind::CreatedAtNotCurrent,
                [Fact::Earliest(earliest), Fact::Latest(latest)],
                [Fact::Time(at)].into_iter().chain(hint).collect::<Facts>(),
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::RULE;
    use crate::oracle::rules::testing::{after_create, check, check_all};

    #[test]
    fn a_time_in_seconds_is_recognized() {
        after_create(
            "c STARTED at=s",
            expect![[r#"
            INV-04 at #6: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001007000000: 1700000000, which looks like seconds
            INV-05 at #5 #6: c (c.0.beef): expected created_at of 1700000000006000000 or later: 1700000000, which is 1699999998306000000 ns earlier
        "#]],
        );
    }

    #[test]
    fn a_time_in_milliseconds_is_recognized() {
        after_create(
            "c STARTED at=ms",
            expect![[r#"
            INV-04 at #6: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001007000000: 1700000000007, which looks like milliseconds
            INV-05 at #5 #6: c (c.0.beef): expected created_at of 1700000000006000000 or later: 1700000000007, which is 1699998300005999993 ns earlier
        "#]],
        );
    }

    #[test]
    fn a_time_in_microseconds_is_recognized() {
        after_create(
            "c STARTED at=us",
            expect![[r#"
            INV-04 at #6: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001007000000: 1700000000007000, which looks like microseconds
            INV-05 at #5 #6: c (c.0.beef): expected created_at of 1700000000006000000 or later: 1700000000007000, which is 1698300000005993000 ns earlier
        "#]],
        );
    }

    #[test]
    fn an_unset_time_is_reported() {
        check_all(
            "pod run; c create; c CREATED at=0",
            expect![[r#"
        INV-04 at #5: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001006000000: 0, which means not set
    "#]],
        );
    }

    #[test]
    fn a_time_in_the_future_is_reported() {
        after_create(
            "c STARTED at=+1001ms",
            expect![[r#"
        INV-04 at #6: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001007000000: 1700000001008000000
    "#]],
        );
    }

    #[test]
    fn clocks_may_differ_by_a_second() {
        after_create("c STARTED at=+1s", expect![]);
    }

    #[test]
    fn a_time_long_before_the_case_is_reported() {
        check(
            &RULE,
            "pod run; c create; c CREATED at=-1100ms",
            expect![[r#"
        INV-04 at #5: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001006000000: 1699999998906000000
    "#]],
        );
    }

    #[test]
    fn a_time_a_second_before_the_case_is_accepted() {
        check(&RULE, "pod run; c create; c CREATED at=-1005ms", expect![]);
    }

    #[test]
    fn the_extreme_times_are_reported() {
        check_all(
            "pod run; c create; c CREATED at=last; c STARTED at=first",
            expect![[r#"
                INV-04 at #5: c (c.0.beef): expected created_at from 1699999999001000000 to 1700000001006000000: 9223372036854775807
                INV-05 at #5 #6: c (c.0.beef): expected created_at of 9223372036854775807 or later: -9223372036854775808, which is 18446744073709551615 ns earlier
            "#]],
        );
    }
}
