//! `announced`: events have announced the states that relists show.

use super::name_refs::{NameRef, check_on};
use super::scope::{Scope, needs_relist};
use super::subject_events::SubjectEvents;
use super::word::Finding::{Holds, Pending};
use super::word::{Finding, Word};
use crate::oracle::{entries_about, relists_of};
use crate::outcome::{Fact, Kind, Mismatch};

check_on! {
    AnnouncedCheck(NameRef)
}

impl Word for AnnouncedCheck {
    fn of(&self) -> &str {
        &self.0.of
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        needs_relist(scope, &self.0.of);
    }

    fn kinds(&self) -> Vec<Kind> {
        Kind::MISSING.to_vec()
    }

    fn assess(&self, events: &SubjectEvents<'_, '_>) -> Finding {
        let missed = relists_of(events.index, events.subject).find_map(|relist| {
            let (shown, needed) = relist.announcement()?;
            events
                .first(needed)
                .is_none()
                .then_some((relist, shown, needed))
        });
        let Some((relist, shown, needed)) = missed else {
            return Holds;
        };
        let mut evidence = entries_about(events.index.history, events.subject);
        evidence.extend([relist.began.seq, relist.ended.seq]);
        evidence.sort_unstable();
        evidence.dedup();
        Pending {
            missing: Mismatch::missing(needed, [Fact::Because(format!("for the relist {shown}"))]),
            evidence,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    const ANNOUNCED: &str = "announced: {of: c}";

    #[test]
    fn an_exit_that_the_relist_shows_is_announced() {
        check(
            ANNOUNCED,
            "pod run; c create; pod relist c=exited; c STOPPED; end",
            expect!["holds"],
        );
        check(
            ANNOUNCED,
            "pod run; c create; c STARTED; pod relist c=exited; end",
            expect![[r#"
                waits for STOPPED, for the relist shows it EXITED of c
                ORD-01 at #3 #4 #5 #6 #7: c (c.0.beef): expected STOPPED, for the relist shows it EXITED: STOPPED has not come
            "#]],
        );
    }

    #[test]
    fn an_absence_that_the_relist_shows_is_announced() {
        check(
            ANNOUNCED,
            "pod run; c create; pod relist; c DELETED; end",
            expect!["holds"],
        );
        check(
            ANNOUNCED,
            "pod run; c create; pod relist d=exited; c STOPPED; end",
            expect![[r#"
                waits for DELETED, for the relist does not show it of c
                ORD-01 at #3 #4 #5 #6 #7: c (c.0.beef): expected DELETED, for the relist does not show it: DELETED has not come
            "#]],
        );
    }

    #[test]
    fn a_start_that_the_relist_shows_is_announced() {
        check(
            ANNOUNCED,
            "pod run; c create; pod relist c=running; c STARTED; end",
            expect!["holds"],
        );
        check(
            ANNOUNCED,
            "pod run; c create; pod relist c=running; c CREATED; end",
            expect![[r#"
                waits for STARTED, for the relist shows it RUNNING of c
                ORD-01 at #3 #4 #5 #6 #7: c (c.0.beef): expected STARTED, for the relist shows it RUNNING: STARTED has not come
            "#]],
        );
        check(
            ANNOUNCED,
            "pod run; c create; pod relist c=created; c STARTED; end",
            expect![[r#"
                waits for CREATED, for the relist shows it CREATED of c
                ORD-01 at #3 #4 #5 #6 #7: c (c.0.beef): expected CREATED, for the relist shows it CREATED: CREATED has not come
            "#]],
        );
    }

    #[test]
    fn every_relist_counts() {
        check(
            ANNOUNCED,
            "pod run; c create; pod relist c=running; pod relist c=exited; c STOPPED; end",
            expect![[r#"
                waits for STARTED, for the relist shows it RUNNING of c
                ORD-01 at #3 #4 #5 #6 #9: c (c.0.beef): expected STARTED, for the relist shows it RUNNING: STARTED has not come
            "#]],
        );
    }

    #[test]
    fn a_relist_that_fails_or_is_of_another_sandbox_or_in_the_teardown_does_not_count() {
        check(
            ANNOUNCED,
            "pod run; c create; pod relist c=exited; c STOPPED; pod relist fails; \
         pod2 run; pod2 relist; end; pod relist",
            expect!["holds"],
        );
    }

    #[test]
    fn a_relist_before_the_container_was_created_does_not_count() {
        check(
            ANNOUNCED,
            "pod run; pod relist; c create; c CREATED; end",
            expect!["holds"],
        );
    }
}
