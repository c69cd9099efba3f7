//! INV-26: an event is created before the call that causes it returns.

use crate::history::{EventKind, Reply, Request};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_SHOULD};
use crate::oracle::name_of;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-26",
    name: "invariant::event-within-call",
    sentence: "CREATED, STARTED and DELETED of a container are made before the call that causes \
                   them returns.",
    source: "kubernetes#123087 (a late STARTED, a second container), kubernetes#137362",
    requirements: &["R29"],
    kinds: &[Kind::CreatedAtAfterCall],
    compares_clocks: true,
    of_foreign_pods: false,
    levels: MUST_SHOULD,
    check,
};

/// The wall clock may be slewed during a run, and some runtimes read it in ticks of the kernel.
const APART_NS: i64 = 10_000_000;

const FAR_NS: i64 = 24 * 3_600 * 1_000_000_000;

/// Finds each container with an event created after the return of the call that it reports.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let mut found: Vec<Violation> = Vec::new();
    for (call, ended) in history
        .calls()
        .filter_map(|call| Some((call, call.ended()?)))
    {
        let (id, kind) = match (call.request(), call.result()) {
            (Request::CreateContainer(_), Some(Ok(Reply::Container(id)))) => {
                (id, EventKind::Created)
            }
            (Request::StartContainer(id), Some(Ok(_))) => (id, EventKind::Started),
            (Request::RemoveContainer(id), Some(Ok(_))) => (id, EventKind::Deleted),
            _ => continue,
        };
        let mut subjects = history.subjects().iter();
        let Some(subject) = subjects.find(|subject| subject.id == *id) else {
            continue;
        };
        let Some(seen) = subject.first(kind) else {
            continue;
        };
        let late_ns = seen
            .event()
            .created_at
            .0
            .saturating_sub(ended.at.realtime_ns);
        let name = name_of(subject);
        // A time that is far from now breaks INV-04.
        let is_late = (APART_NS..FAR_NS).contains(&late_ns);
        if is_late && found.iter().all(|earlier| earlier.subject != name) {
            found.push(rule.violation(
                name,
                Mismatch::new(
                    Kind::CreatedAtAfterCall,
                    [Fact::Method(call.request().method().to_owned())],
                    [Fact::Event(kind)],
                ),
                vec![call.began().seq, ended.seq, seen.seq()],
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::oracle::index::Index;
    use crate::oracle::invariants::invariants;
    use crate::oracle::script::{history, render};

    /// Checks the rule on events that may have been created after the return of their call.
    #[track_caller]
    fn made_late(script: &str, expect: Expect) {
        let found = invariants(&Index::new(&history(script)));
        expect.assert_eq(&render(found.iter().filter(|found| found.rule == "INV-26")));
    }

    #[test]
    fn an_event_is_made_within_its_call() {
        made_late("pod run; c create; c CREATED at=-1ms", expect![]);
        made_late("pod run; c create; c CREATED", expect![]);
        made_late(
            "pod run; c create; pass 20ms; c CREATED",
            expect![[r#"
            INV-26 at #3 #4 #5: c (c.0.beef): expected CREATED to be made before CreateContainer returned: its created_at is later
        "#]],
        );
        made_late(
            "pod run; c create; c start; c STARTED at=+20ms; c remove; c DELETED at=+20ms",
            expect![[r#"
            INV-26 at #5 #6 #7: c (c.0.beef): expected STARTED to be made before StartContainer returned: its created_at is later
        "#]],
        );
    }

    #[test]
    fn an_event_that_arrives_late_was_made_in_time() {
        made_late(
            "pod run; c create; pass 20ms; c CREATED at=-21ms",
            expect![],
        );
    }

    #[test]
    fn the_end_of_a_process_may_be_noticed_after_the_stop() {
        made_late(
            "pod run; c create; c start; c stop; c STOPPED at=+20ms",
            expect![],
        );
        made_late(
            "pod run; c create; c start fails; c STARTED at=+20ms",
            expect![],
        );
    }
}
