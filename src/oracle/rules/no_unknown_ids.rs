//! INV-10: every id is known from a call or a list.

use crate::history::{
    CaseHistory, ContainerId, EventArrival, Reply, Request, Seq, Subject, SubjectKind,
};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, SHOULD_SHOULD};
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-10",
    name: "invariant::no-unknown-ids",
    sentence: "Every id of an event of the run's pods is one that a call has returned or may \
                   have made, or that a list shows.",
    source: "kubelet generic.go: events are looked up in lists; R11 of the kubelet",
    requirements: &["R11"],
    kinds: &[Kind::UnknownId],
    compares_clocks: false,
    of_foreign_pods: false,
    levels: SHOULD_SHOULD,
    check,
};

/// Finds each id in an event of the case's pods that no call has returned and no list has shown.
/// Events of other pods are not judged, since their containers are unknown.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let strays = history.subjects().iter();
    let strays = strays.filter(|subject| matches!(subject.kind, SubjectKind::Stray));
    let unknown = strays.filter_map(|stray| {
        let first = stray.arrivals.first()?;
        let known = is_shortened(&stray.id, history)
            || may_be_made(first.seq(), history)
            || is_shown(&stray.id, history);
        (!known).then(|| unknown(rule, stray, first))
    });
    unknown.collect()
}

fn unknown(rule: &Invariant, stray: &Subject, first: &EventArrival) -> Violation {
    rule.violation_by(
        stray,
        Mismatch::new(Kind::UnknownId, [], [Fact::Event(first.event().kind)]),
        [first],
    )
}

/// Whether an id is the beginning of a known one, which breaks INV-03.
fn is_shortened(id: &ContainerId, history: &CaseHistory) -> bool {
    let known = history.subjects().iter();
    let mut known = known.filter(|subject| !matches!(subject.kind, SubjectKind::Stray));
    id.as_str().is_empty() || known.any(|whole| whole.id.as_str().starts_with(id.as_str()))
}

/// Whether a call that began before the event may have created the container without returning its
/// id: one that failed, or has not returned.
fn may_be_made(arrived: Seq, history: &CaseHistory) -> bool {
    let mut calls = history.calls();
    calls.any(|call| {
        let makes = matches!(
            call.request(),
            Request::RunSandbox(_) | Request::CreateContainer(_)
        );
        makes && call.began().seq < arrived && !matches!(call.result(), Some(Ok(_)))
    })
}

fn is_shown(id: &ContainerId, history: &CaseHistory) -> bool {
    let mut calls = history.calls();
    calls.any(|call| match call.result() {
        Some(Ok(Reply::Containers(listed))) => listed.iter().any(|one| one.id == *id),
        Some(Ok(Reply::Sandboxes(listed))) => {
            let mut listed = listed.iter();
            listed.any(|one| ContainerId::from(&one.id) == *id)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::RULE;
    use crate::oracle::rules::testing::check;

    #[test]
    fn an_id_that_a_call_returns_is_known_before_that_too() {
        check(
            &RULE,
            "pod run; c create begins; c CREATED; c create returns; c DELETED; end",
            expect![""],
        );
    }

    #[test]
    fn an_id_that_no_call_or_list_shows() {
        check(
            &RULE,
            "pod run; c create; c CREATED; c STARTED id=other; end",
            expect![[r#"
                INV-10 at #6: other: expected the id of something that a call has made or a list has shown: STARTED of an id that no call has returned and no list shows
            "#]],
        );
    }

    #[test]
    fn an_id_that_a_list_of_others_does_not_show() {
        check(
            &RULE,
            "pod run; c create; c CREATED; c STARTED id=other; pod relist c=running; \
         pod find-sandbox pod=ready; end",
            expect![[r#"
                INV-10 at #6: other: expected the id of something that a call has made or a list has shown: STARTED of an id that no call has returned and no list shows
            "#]],
        );
    }

    #[test]
    fn an_id_that_a_list_shows() {
        check(
            &RULE,
            "pod run; c create; c CREATED; c STARTED id=d.0.beef; pod relist c=running d=running; end",
            expect![""],
        );
    }

    #[test]
    fn a_failed_call_may_have_made_an_id_that_it_did_not_return() {
        check(
            &RULE,
            "pod run; c create fails; c CREATED id=made; c DELETED id=made; end",
            expect![""],
        );
    }

    #[test]
    fn a_call_that_fails_later_has_not_made_it() {
        check(
            &RULE,
            "pod run; c create; c CREATED id=other; d create fails; end",
            expect![[r#"
                INV-10 at #5: other: expected the id of something that a call has made or a list has shown: CREATED of an id that no call has returned and no list shows
            "#]],
        );
    }

    #[test]
    fn a_shortened_id_is_reported_by_another_rule() {
        check(
            &RULE,
            "pod run; c create; c CREATED id=c.0; end",
            expect![""],
        );
    }

    #[test]
    fn other_pods_are_not_judged() {
        check(
            &RULE,
            "pod run; c create; podx CREATED id=other uid=x; end",
            expect![""],
        );
    }
}
