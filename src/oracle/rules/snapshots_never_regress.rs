//! INV-09: no snapshot shows an earlier state than a previous one.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{CaseHistory, ContainerId, EventArrival, EventKind, PodUid, SubscriptionId};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MAY};
use crate::oracle::life::{progress, rank};
use crate::oracle::name_of;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-09",
    name: "invariant::snapshots-never-regress",
    sentence: "No event shows a container in an earlier state than an event of its pod has shown \
                   before.",
    source: "KEP-3386, Timestamp of the Pod Status; kubelet 1.26 to 1.36 keeps the last one",
    requirements: &["R21"],
    kinds: &[Kind::SnapshotRegressed],
    compares_clocks: true,
    of_foreign_pods: true,
    levels: MUST_MAY,
    check,
};

/// The progress of a deleted container.
const DELETED: u8 = 3;

/// A regression of a container: the state in an earlier event, and the preceding state in a later
/// one.
type StepBack<'a> = [(u8, &'a EventArrival); 2];

/// Finds each container that a later event shows in an earlier state.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let steps = steps_back(history);
    let mut seen = BTreeSet::new();
    let steps = steps.filter(|(_, container, _)| seen.insert(*container));
    steps
        .map(|(_, container, step)| broken(rule, history, container, step))
        .collect()
}

/// The pods with an event that shows an earlier state than a previous one.
pub(in crate::oracle) fn pods_that_went_back(history: &CaseHistory) -> BTreeSet<&PodUid> {
    steps_back(history).map(|(pod, ..)| pod).collect()
}

fn steps_back(
    history: &CaseHistory,
) -> impl Iterator<Item = (&PodUid, &ContainerId, StepBack<'_>)> {
    let pods = by_pod(history).into_iter();
    pods.flat_map(|((pod, _), events)| {
        let steps = steps_back_of(&events).into_iter();
        steps.map(move |(container, step)| (pod, container, step))
    })
}

/// As in a kubelet up to 1.36, an event with an older `created_at` than a previous event of the pod
/// does not count.
fn steps_back_of<'a>(events: &[&'a EventArrival]) -> Vec<(&'a ContainerId, StepBack<'a>)> {
    let mut newest_ns = i64::MIN;
    let mut reported: BTreeMap<&ContainerId, u8> = BTreeMap::new();
    let mut shown: BTreeMap<&ContainerId, (u8, &EventArrival)> = BTreeMap::new();
    let mut steps = Vec::new();
    for &arrival in events {
        let event = arrival.event();
        // The least progress of a container that has such an event.
        let says = rank(event.kind).unwrap_or_default();
        let before = reported.get(&event.container).copied().unwrap_or(says);
        reported.insert(&event.container, before.max(says));
        // An event out of order breaks INV-01, and one that shows less than its type breaks INV-08.
        let explained = |progress: u8| says < before || progress < says;
        if event.created_at.0 < newest_ns {
            continue;
        }
        newest_ns = event.created_at.0;
        for (container, progress) in shows(arrival) {
            let earlier = shown.get(container).copied();
            match earlier.filter(|(before, _)| *before > progress) {
                None => {
                    shown.insert(container, (progress, arrival));
                }
                Some(_) if *container == event.container && explained(progress) => {}
                Some(earlier) => steps.push((container, [earlier, (progress, arrival)])),
            }
        }
    }
    steps
}

/// The events of each pod on each stream, in order of arrival.
fn by_pod(history: &CaseHistory) -> BTreeMap<(&PodUid, SubscriptionId), Vec<&EventArrival>> {
    let arrivals = history
        .subjects()
        .iter()
        .flat_map(|subject| &subject.arrivals);
    let mut pods = BTreeMap::<_, Vec<_>>::new();
    for arrival in arrivals {
        if let Some(uid) = arrival.event().pod_uid() {
            let of_pod = pods.entry((uid, arrival.subscription())).or_default();
            of_pod.push(arrival);
        }
    }
    for events in pods.values_mut() {
        events.sort_by_key(|arrival| arrival.seq());
    }
    pods
}

/// The progress of each container of the pod in an event. The deletion of its own follows from the
/// event's type.
fn shows(arrival: &EventArrival) -> impl Iterator<Item = (&ContainerId, u8)> {
    let event = arrival.event();
    let deleted = (event.kind == EventKind::Deleted).then_some(&event.container);
    let others = event.containers.iter();
    let others = others.filter(move |status| deleted != Some(&status.id));
    let others = others.filter_map(|status| Some((&status.id, progress(status.state)?)));
    let deleted = deleted.map(|id| (id, DELETED));
    deleted.into_iter().chain(others)
}

fn broken(
    rule: &Invariant,
    history: &CaseHistory,
    container: &ContainerId,
    [(before, earlier), (after, later)]: StepBack<'_>,
) -> Violation {
    let mut subjects = history.subjects().iter();
    let subject = subjects.find(|subject| subject.id == *container);
    let mut evidence = vec![earlier.seq(), later.seq()];
    evidence.sort_unstable();
    rule.violation(
        subject.map_or_else(|| container.to_string(), name_of),
        Mismatch::new(
            Kind::SnapshotRegressed,
            [Fact::State(word(before).to_owned())],
            [
                Fact::State(word(after).to_owned()),
                Fact::AfterState(word(before).to_owned()),
            ],
        ),
        evidence,
    )
}

fn word(progress: u8) -> &'static str {
    ["CREATED", "RUNNING", "EXITED", "deleted"][usize::from(progress)]
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::oracle::rules::testing::check_all;

    /// Checks the rule after a snapshot of `d` has shown its sibling `c` as exited in #10.
    #[track_caller]
    fn after_sibling_exit(script: &str, expect: Expect) {
        let two = "pod run; c create; c CREATED; d create; d CREATED; c STARTED; c STOPPED";
        check_all(&format!("{two}; {script}"), expect);
    }

    #[test]
    fn a_sibling_that_runs_again_went_back() {
        after_sibling_exit(
            "d STARTED stale=c:running",
            expect![[r#"
        INV-09 at #10 #11: c (c.0.beef): expected EXITED or later in the snapshots that follow: RUNNING after EXITED
    "#]],
        );
        after_sibling_exit("d STARTED", expect![]);
    }

    #[test]
    fn a_sibling_that_was_deleted_stays_away() {
        after_sibling_exit(
            "c DELETED; d STARTED stale=c:exited",
            expect![[r#"
        INV-09 at #11 #12: c (c.0.beef): expected deleted or later in the snapshots that follow: EXITED after deleted
    "#]],
        );
        after_sibling_exit("c DELETED; c create; c CREATED; d STARTED", expect![]);
    }

    #[test]
    fn the_snapshot_of_a_deletion_shows_siblings_too() {
        after_sibling_exit(
            "d STARTED; c DELETED stale=d:created",
            expect![[r#"
        INV-09 at #11 #12: d (d.0.beef): expected RUNNING or later in the snapshots that follow: CREATED after RUNNING
    "#]],
        );
        after_sibling_exit("d STARTED; c DELETED", expect![]);
    }

    #[test]
    fn an_event_that_a_kubelet_drops_for_its_age_may_show_an_earlier_state() {
        after_sibling_exit(
            "d STARTED stale=c:running at=-1500us",
            expect![[r#"
            INV-23 at #10 #11: pod (pod.0.beef): expected STARTED of d, which came after STOPPED of c, to be made after it, too, and not 500000 ns before: its created_at is earlier
        "#]],
        );
        after_sibling_exit(
            "d STARTED stale=c:running at=-1ms",
            expect![[r#"
        INV-09 at #10 #11: c (c.0.beef): expected EXITED or later in the snapshots that follow: RUNNING after EXITED
    "#]],
        );
    }

    #[test]
    fn a_repeated_event_that_goes_back_is_reported_as_both() {
        check_all(
            "pod run; c create; c CREATED; c STARTED state=exited; c STARTED",
            expect![[r#"
            INV-02 at #6 #7: c (c.0.beef): expected one STARTED event: STARTED again after 1ms
            INV-09 at #6 #7: c (c.0.beef): expected EXITED or later in the snapshots that follow: RUNNING after EXITED
        "#]],
        );
    }

    #[test]
    fn an_event_that_shows_less_than_its_type_is_reported_by_its_own_rule() {
        check_all(
            "pod run; c create; c CREATED; d create; d CREATED stale=c:running; \
         c STARTED state=created",
            expect![[r#"
                INV-08 at #9: c (c.0.beef): expected RUNNING or EXITED in STARTED: CREATED in STARTED
                INV-19 at #8: c (c.0.beef): expected a state from before a call that causes it in CREATED: RUNNING
            "#]],
        );
    }

    #[test]
    fn a_container_goes_back_in_its_own_event_too() {
        check_all(
            "pod run; c create; c CREATED state=exited; c STARTED",
            expect![[r#"
                INV-09 at #5 #6: c (c.0.beef): expected EXITED or later in the snapshots that follow: RUNNING after EXITED
                INV-19 at #5: c (c.0.beef): expected a state from before a call that causes it in CREATED: EXITED
            "#]],
        );
        check_all(
            "pod run; c create; c CREATED state=exited; c STARTED state=exited",
            expect![[r#"
                INV-19 at #5: c (c.0.beef): expected a state from before a call that causes it in CREATED: EXITED
            "#]],
        );
    }
}
