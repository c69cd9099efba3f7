//! INV-11: each transition that a relist or a call proves has its event.

use crate::history::{CaseHistory, Entry, EventKind, Subject};
use crate::limits;
use crate::oracle::deadlines::had_its_time;
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MUST};
use crate::oracle::relist::{Relist, relists_of};
use crate::oracle::subjects::how_it_ended;
use crate::oracle::subscribers::is_on_other_stream;
use crate::oracle::transition::Transition;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

/// The rule and where it comes from.
pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-11",
    name: "invariant::no-missed-events",
    sentence: "Each transition of a container that a relist shows or a call makes has its event, \
                   before or soon after.",
    source: "KEP-3386, Monitoring: missed events are ideally zero; R6 and R23 of the kubelet",
    requirements: &["R6", "R23"],
    kinds: &[
        Kind::MissingCreated,
        Kind::MissingStarted,
        Kind::MissingStopped,
        Kind::MissingDeleted,
        Kind::LateEvent,
    ],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_MUST,
    check,
};

/// A proof of a transition of a container.
struct Proof<'a> {
    needed: EventKind,
    /// The call or relist that proves it, as a phrase in two parts.
    by: (&'static str, &'static str),
    began: &'a Entry,
    ended: &'a Entry,
}

impl<'a> Proof<'a> {
    fn of_relist(relist: Relist<'a>) -> Option<Self> {
        let (shown, needed) = relist.announcement()?;
        Some(Self {
            needed,
            by: ("a relist that ", shown),
            began: relist.began,
            ended: relist.ended,
        })
    }

    fn of_call(transition: &Transition<'a>) -> Self {
        Self {
            needed: transition.needed,
            by: ("", transition.method),
            began: transition.began,
            ended: transition.ended,
        }
    }
}

/// An evented kubelet does not learn of such a transition before its next relist, which may be five
/// minutes away.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let missed = |subject| {
        let proofs = proofs(index, subject);
        proofs
            .iter()
            .find_map(|proof| missed(rule, history, subject, proof))
    };
    history.subjects().iter().filter_map(missed).collect()
}

/// The proofs of a container's transitions that a stream could report.
fn proofs<'a>(index: &Index<'a>, subject: &'a Subject) -> Vec<Proof<'a>> {
    if index.history.is_of_foreign_pod() {
        return changes(index, subject);
    }
    let relists = relists_of(index, subject).filter(|relist| listened(index, subject, relist));
    let relists = relists.filter_map(Proof::of_relist);
    let calls = index.transitions(&subject.id).iter();
    relists.chain(calls.map(Proof::of_call)).collect()
}

/// The changes of a container of others from one relist to the next. Its first state is no change.
fn changes<'a>(index: &Index<'a>, subject: &'a Subject) -> Vec<Proof<'a>> {
    let bound = index.history.stretched(limits::EVENT_WAIT);
    let relists: Vec<Relist<'_>> = relists_of(index, subject).collect();
    let proofs = relists.windows(2).flat_map(|pair| {
        let [before, after] = [pair[0], pair[1]];
        let (shown, needed) = after.announced_since(&before);
        let in_time = |entry: &Entry| entry.at.since(after.ended.at) <= bound;
        let was_live = index.streams().live(before.began.seq, in_time);
        let proof = move |needed: &EventKind| Proof {
            needed: *needed,
            by: ("a relist that ", shown),
            began: after.began,
            ended: after.ended,
        };
        needed.iter().filter(move |_| was_live).map(proof)
    });
    proofs.collect()
}

fn missed(
    rule: &Invariant,
    history: &CaseHistory,
    subject: &Subject,
    proof: &Proof<'_>,
) -> Option<Violation> {
    let bound = history.stretched(limits::EVENT_WAIT);
    let (needed, arrival) = (proof.needed, subject.first(proof.needed));
    if arrival.is_none() && is_on_other_stream(history, subject, needed) {
        // An event that not all subscribers get breaks INV-12.
        return None;
    }
    let late = arrival.map(|arrival| history.not_held_up(proof.ended.at, arrival.at()));
    let cause = proof.by.0.to_owned() + proof.by.1;
    let due = [Fact::Within(bound), Fact::Cause(cause)];
    let mismatch = match late {
        None if had_its_time(history, proof.ended.at) => {
            Mismatch::missing(needed, due).with(how_it_ended(history, subject, needed))
        }
        Some(late) if late > bound => Mismatch::new(
            Kind::LateEvent,
            due,
            [Fact::Event(needed), Fact::Pause(late)],
        ),
        None | Some(_) => return None,
    };
    let mut violation = rule.violation_by(subject, mismatch, arrival);
    violation
        .evidence
        .extend([proof.began.seq, proof.ended.seq]);
    violation.evidence.sort_unstable();
    Some(violation)
}

/// Whether one stream was live from the creation of the subject until the event's deadline after a
/// relist, or the end of the steps: no event reports a transition that happened without a stream,
/// and one that is late can fall into the gap between two.
fn listened(index: &Index<'_>, subject: &Subject, relist: &Relist<'_>) -> bool {
    let history = index.history;
    let bound = history.stretched(limits::EVENT_WAIT);
    let creation = index.container(&subject.id).and_then(|life| life.creation);
    let listening = |entry: &Entry| {
        let in_time = entry.at.since(relist.ended.at) <= bound;
        entry.seq < relist.ended.seq || in_time && history.within_steps(entry.seq)
    };
    creation.is_none_or(|made| index.streams().live(made.began().seq, listening))
}

/// The first event that is due by a relist or a call and has not arrived, as a phrase: `STOPPED of
/// c`.
#[must_use]
pub fn unannounced(index: &Index<'_>) -> Option<String> {
    let history = index.history;
    history.subjects().iter().find_map(|subject| {
        let is_missing = |needed: &EventKind| {
            let has_arrived = subject.first(*needed).is_some();
            !has_arrived && !is_on_other_stream(history, subject, *needed)
        };
        let mut shown = proofs(index, subject).into_iter().map(|proof| proof.needed);
        let needed = shown.find(is_missing)?;
        Some(format!("{needed} of {}", subject.label()))
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{RULE, unannounced};
    use crate::oracle::index::Index;
    use crate::oracle::invariants::invariants;
    use crate::oracle::script::{history, render};

    /// Checks the missed events of a history, and the event that a driver would still await.
    #[track_caller]
    fn check(script: &str, expect: Expect) {
        let history = history(script);
        let index = Index::new(&history);
        let found = invariants(&index);
        let missed = found.iter().filter(|found| found.rule == RULE.id);
        let waits = unannounced(&index).map(|awaited| format!("waits for {awaited}\n"));
        expect.assert_eq(&(waits.unwrap_or_default() + &render(missed)));
    }

    /// As [`check`], after a container has been made in #1 to #5.
    #[track_caller]
    fn then(script: &str, expect: Expect) {
        check(&format!("pod run; c create; c CREATED; {script}"), expect);
    }

    // Relists

    #[test]
    fn a_relist_of_a_state_that_an_event_reports_before_or_soon_after_is_no_miss() {
        then("c start; c STARTED; pod relist c=running; end", expect![]);
        then("pod relist c=exited; c STOPPED; end", expect![]);
        then("c remove; pod relist; c DELETED; end", expect![]);
        then("pod relist c=created; end", expect![]);
    }

    #[test]
    fn a_list_by_labels_need_not_show_a_container_without_them() {
        then("pod inspect c=created unlisted; end", expect![]);
        then(
            "run inspect c=created unlisted; end",
            expect![[r#"
        waits for DELETED of c
        INV-11 at #8 #9: c (c.0.beef): expected DELETED within 10s of a relist that does not show it: DELETED has not come
    "#]],
        );
    }

    #[test]
    fn a_state_that_no_event_reports_is_a_miss() {
        then(
            "pod relist c=running; end",
            expect![[r#"
            waits for STARTED of c
            INV-11 at #6 #7: c (c.0.beef): expected STARTED within 10s of a relist that shows it RUNNING: STARTED has not come
        "#]],
        );
        then(
            "pod relist c=exited; end",
            expect![[r#"
            waits for STOPPED of c
            INV-11 at #6 #7: c (c.0.beef): expected STOPPED within 10s of a relist that shows it EXITED: STOPPED has not come
        "#]],
        );
        then(
            "pod relist; end",
            expect![[r#"
            waits for DELETED of c
            INV-11 at #6 #7: c (c.0.beef): expected DELETED within 10s of a relist that does not show it: DELETED has not come
        "#]],
        );
    }

    #[test]
    fn an_event_long_after_the_relist_is_a_miss() {
        then(
            "pod relist c=exited; pass 10s; c STOPPED; end",
            expect![[r#"
            INV-11 at #6 #7 #8: c (c.0.beef): expected STOPPED within 10s of a relist that shows it EXITED: STOPPED came 10.001s later
        "#]],
        );
        then(
            "pod relist c=exited; pass 9s999ms; c STOPPED; end",
            expect![],
        );
    }

    #[test]
    fn a_relist_of_the_teardown_shows_nothing_of_the_case() {
        then("end; pod relist c=exited", expect![]);
    }

    #[test]
    fn a_transition_while_no_stream_was_live_is_no_miss() {
        then("resubscribe; proven; pod relist c=exited; end", expect![]);
        then("pod relist c=exited; resubscribe; end", expect![]);
        then(
            "unsubscribe; pod relist c=exited; subscribe; end",
            expect![],
        );
        then(
            "pod relist c=exited; pass 11s; resubscribe; end",
            expect![[r#"
            waits for STOPPED of c
            INV-11 at #6 #7: c (c.0.beef): expected STOPPED within 10s of a relist that shows it EXITED: STOPPED has not come
        "#]],
        );
    }

    #[test]
    fn a_list_that_fails_shows_nothing() {
        then("pod relist fails; end", expect![]);
    }

    // Calls

    #[test]
    fn each_call_that_succeeds_has_its_event() {
        check(
            "pod run; c create; end",
            expect![[r#"
        waits for CREATED of c
        INV-11 at #3 #4: c (c.0.beef): expected CREATED within 10s of CreateContainer: CREATED has not come
    "#]],
        );
        then(
            "c start; end",
            expect![[r#"
        waits for STARTED of c
        INV-11 at #6 #7: c (c.0.beef): expected STARTED within 10s of StartContainer: STARTED has not come
    "#]],
        );
        then(
            "c start; c STARTED; c stop; end",
            expect![[r#"
        waits for STOPPED of c
        INV-11 at #9 #10: c (c.0.beef): expected STOPPED within 10s of StopContainer: STOPPED has not come
    "#]],
        );
        then(
            "c remove; end",
            expect![[r#"
        waits for DELETED of c
        INV-11 at #6 #7: c (c.0.beef): expected DELETED within 10s of RemoveContainer: DELETED has not come
    "#]],
        );
        then(
            "c start; c STARTED; c stop; c STOPPED; c remove; c DELETED; end",
            expect![],
        );
    }

    #[test]
    fn a_removal_stops_a_running_container() {
        then(
            "c start; c STARTED; c remove; c DELETED; end",
            expect![[r#"
        waits for STOPPED of c
        INV-11 at #9 #10: c (c.0.beef): expected STOPPED within 10s of RemoveContainer: STOPPED has not come
    "#]],
        );
        then("c remove; c DELETED; end", expect![]);
    }

    #[test]
    fn a_sandbox_takes_its_containers_with_it() {
        let two = "c start; c STARTED; d create; d CREATED";
        then(
            &format!("{two}; pod stop; end"),
            expect![[r#"
        waits for STOPPED of c
        INV-11 at #12 #13: c (c.0.beef): expected STOPPED within 10s of StopPodSandbox: STOPPED has not come
    "#]],
        );
        then(&format!("{two}; pod stop; c STOPPED; end"), expect![]);
        then(
            &format!("{two}; pod stop; c STOPPED; pod remove; c DELETED; end"),
            expect![[r#"
            waits for DELETED of d
            INV-11 at #15 #16: d (d.0.beef): expected DELETED within 10s of RemovePodSandbox: DELETED has not come
        "#]],
        );
        then(
            &format!("{two}; pod remove; c STOPPED; c DELETED; d DELETED; end"),
            expect![],
        );
        then(
            "pod2 run; d create in=pod2; d CREATED; pod2 remove; d DELETED; end",
            expect![],
        );
    }

    #[test]
    fn a_container_that_never_ran_need_not_stop() {
        then("c stop; end", expect![]);
        then("pod stop; end", expect![]);
        then("c start fails; c stop; c remove; c DELETED; end", expect![]);
        then(
            "c start begins; c stop; c start returns; c STARTED; end",
            expect![],
        );
    }

    #[test]
    fn a_call_that_fails_proves_nothing() {
        then("c start fails; end", expect![]);
        then(
            "c start; c STARTED; c stop fails; c remove fails; end",
            expect![],
        );
        check("pod run; c create fails; end", expect![]);
    }

    #[test]
    fn an_event_long_after_its_call_is_a_miss() {
        then(
            "c start; pass 10s; c STARTED; end",
            expect![[r#"
        INV-11 at #6 #7 #8: c (c.0.beef): expected STARTED within 10s of StartContainer: STARTED came 10.001s later
    "#]],
        );
        then("c start; pass 9s999ms; c STARTED; end", expect![]);
        then(
            "c start begins; c STARTED; pass 20s; c start returns; end",
            expect![],
        );
    }

    #[test]
    fn a_repeated_call_needs_no_other_event() {
        then("c remove; c DELETED; pass 20s; c remove; end", expect![]);
    }

    #[test]
    fn no_event_is_due_on_a_stream_that_ended() {
        then("resubscribe; proven; c start; end", expect![]);
        then("c start; resubscribe; end", expect![]);
        then(
            "c start; end; resubscribe",
            expect![[r#"
        waits for STARTED of c
        INV-11 at #6 #7: c (c.0.beef): expected STARTED within 10s of StartContainer: STARTED has not come
    "#]],
        );
        then(
            "c start; pass 11s; resubscribe; end",
            expect![[r#"
        waits for STARTED of c
        INV-11 at #6 #7: c (c.0.beef): expected STARTED within 10s of StartContainer: STARTED has not come
    "#]],
        );
        check("pod run; resubscribe; c create; end", expect![]);
        check(
            "pod run; resubscribe; proven; c create; end",
            expect![[r#"
        waits for CREATED of c
        INV-11 at #6 #7: c (c.0.beef): expected CREATED within 10s of CreateContainer: CREATED has not come
    "#]],
        );
    }

    #[test]
    fn steps_that_broke_off_give_an_event_the_time_it_may_take() {
        then(
            "c start; end error",
            expect![[r#"
        waits for STARTED of c
    "#]],
        );
        then(
            "c start; pass 9s999ms; end error",
            expect![[r#"
        waits for STARTED of c
    "#]],
        );
        then(
            "c start; pass 11s; end error",
            expect![[r#"
        waits for STARTED of c
        INV-11 at #6 #7: c (c.0.beef): expected STARTED within 10s of StartContainer: STARTED has not come
    "#]],
        );
        then(
            "pod relist c=exited; end error",
            expect![[r#"
        waits for STOPPED of c
    "#]],
        );
        then(
            "c start",
            expect![[r#"
        waits for STARTED of c
    "#]],
        );
    }

    #[test]
    fn calls_of_the_teardown_and_of_others_need_no_event() {
        then("end; c start", expect![]);
        then("c start foreign; end", expect![]);
    }

    // While the suite itself was held up

    #[test]
    fn an_event_that_the_suite_has_not_read_in_time_is_no_miss() {
        then("c start; pass 12s; held-up 3s; c STARTED; end", expect![""]);
        then(
            "c start; pass 12s; held-up 1s; c STARTED; end",
            expect![[r#"
            INV-11 at #6 #7 #9: c (c.0.beef): expected STARTED within 10s of StartContainer: STARTED came 11.002s later
        "#]],
        );
        then(
            "c start; pass 11s; held-up 2s; end",
            expect![[r#"
        waits for STARTED of c
    "#]],
        );
        then(
            "c start; held-up 2s; pass 11s; end",
            expect![[r#"
        waits for STARTED of c
        INV-11 at #6 #7: c (c.0.beef): expected STARTED within 10s of StartContainer: STARTED has not come
    "#]],
        );
    }
}
