//! INV-23: the events of a pod arrive in the order of their `created_at`.

use std::collections::BTreeMap;

use crate::history::{Body, CaseHistory, SubscriptionId};
use crate::oracle::index::{Index, SandboxEvent};
use crate::oracle::invariants::{Invariant, SHOULD_MAY};
use crate::oracle::name_of;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-23",
    name: "invariant::pod-events-in-time-order",
    sentence: "No event of a sandbox or its containers is older than an earlier one about another \
                   of them.",
    source: "kubelet 1.26 to 1.36, pod cache: one time for each pod, and an older one is dropped",
    requirements: &["R20"],
    kinds: &[Kind::CreatedAtBeforeSibling],
    compares_clocks: true,
    of_foreign_pods: true,
    levels: SHOULD_MAY,
    check,
};

/// Finds each sandbox for which a stream delivers an event that is older than an earlier one about
/// another of the sandbox and its containers. A kubelet's cache has one time for each pod, the
/// newest.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let mut found: Vec<Violation> = Vec::new();
    let opened = opened(history);
    for (&(sandbox, stream), events) in index.sandbox_events() {
        let mut events = events.clone();
        let since = opened.get(&stream).copied();
        events.retain(|(_, arrival)| since.is_none_or(|ns| arrival.event().created_at.0 >= ns));
        let mut subjects = history.subjects().iter();
        let subject = subjects.find(|subject| subject.id.as_str() == sandbox);
        let name = subject.map_or_else(|| sandbox.to_owned(), name_of);
        let Some([newest, later]) = first_inversion(&events) else {
            continue;
        };
        if found.iter().all(|earlier| earlier.subject != name) {
            found.push(violation(rule, name, newest, later));
        }
    }
    found
}

/// The request times of the streams that the case opened. Events created before that are replayed,
/// if at all, and may arrive at any time.
fn opened(history: &CaseHistory) -> BTreeMap<SubscriptionId, i64> {
    let entries = history.entries().iter();
    let opened = entries.filter_map(|entry| match entry.body {
        Body::SubscriptionOpened { subscription, .. } => Some((subscription, entry.at.realtime_ns)),
        _ => None,
    });
    opened.collect()
}

/// The first event that is older than an earlier one about another subject, after the newest of
/// those.
fn first_inversion<'a>(events: &[SandboxEvent<'a>]) -> Option<[SandboxEvent<'a>; 2]> {
    let made = |event: &SandboxEvent<'_>| event.1.event().created_at;
    let same = |one: &SandboxEvent<'_>, other: &SandboxEvent<'_>| one.0.id == other.0.id;
    let mut newest = *events.first()?;
    // The newest that is not about the same subject.
    let mut other_newest: Option<SandboxEvent<'a>> = None;
    for later in events {
        let is_same = same(&newest, later);
        let other = if is_same { other_newest } else { Some(newest) };
        if let Some(other) = other.filter(|other| made(later) < made(other)) {
            return Some([other, *later]);
        }
        if !is_same {
            other_newest = Some(newest);
        }
        if !is_same || made(later) > made(&newest) {
            newest = *later;
        }
    }
    None
}

fn violation(
    rule: &Invariant,
    name: String,
    newest: SandboxEvent<'_>,
    later: SandboxEvent<'_>,
) -> Violation {
    let [before, after] = [newest, later].map(|(_, arrival)| arrival.event().created_at.0);
    let (first, then) = (newest.1.event().kind, later.1.event().kind);
    rule.violation(
        name,
        Mismatch::new(
            Kind::CreatedAtBeforeSibling,
            [
                Fact::Of(later.0.label()),
                Fact::Cause(format!("{first} of {}", newest.0.label())),
                Fact::ApartNs(before.abs_diff(after)),
            ],
            [Fact::Event(then)],
        ),
        vec![newest.1.seq(), later.1.seq()],
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::RULE;
    use crate::oracle::rules::testing::check;

    #[test]
    fn the_events_of_two_containers_come_in_order() {
        let script = "pod run; c create; d create; c CREATED; d CREATED";
        check(&RULE, script, expect![]);
        check(&RULE, &format!("{script} at=-1ms"), expect![]);
        check(
            &RULE,
            &format!("{script} at=-2ms"),
            expect![[r#"
            INV-23 at #7 #8: pod (pod.0.beef): expected CREATED of d, which came after CREATED of c, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        "#]],
        );
    }

    #[test]
    fn a_sandboxs_own_events_count() {
        let script = "pod run; pod STARTED; c create; c CREATED";
        check(&RULE, script, expect![]);
        check(
            &RULE,
            &format!("{script} at=-4ms"),
            expect![[r#"
            INV-23 at #3 #6: pod (pod.0.beef): expected CREATED of c, which came after STARTED of pod, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        "#]],
        );
        let script = "pod run; c create; c CREATED; pod STOPPED";
        check(&RULE, script, expect![]);
        check(
            &RULE,
            &format!("{script} at=-2ms"),
            expect![[r#"
            INV-23 at #5 #6: pod (pod.0.beef): expected STOPPED of pod, which came after CREATED of c, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        "#]],
        );
    }

    #[test]
    fn the_newest_of_all_before_counts() {
        check(
            &RULE,
            "pod run; c create; d create; e create; c CREATED; d CREATED at=-1ms; e CREATED at=-3ms",
            expect![[r#"
            INV-23 at #10 #11: pod (pod.0.beef): expected CREATED of e, which came after CREATED of d, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        "#]],
        );
    }

    #[test]
    fn a_pod_is_reported_once() {
        check(
            &RULE,
            "pod run; c create; c CREATED; pod STOPPED at=-2ms; pod DELETED at=-4ms",
            expect![[r#"
            INV-23 at #5 #6: pod (pod.0.beef): expected STOPPED of pod, which came after CREATED of c, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        "#]],
        );
    }

    #[test]
    fn each_pod_is_reported() {
        let turned = "pod run; c create; d create; c CREATED; d CREATED at=-2ms";
        let both = format!("{turned}; pod2 run; e create; f create; e CREATED; f CREATED at=-2ms");
        check(
            &RULE,
            &both,
            expect![[r#"
        INV-23 at #7 #8: pod (pod.0.beef): expected CREATED of d, which came after CREATED of c, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        INV-23 at #15 #16: pod2 (pod2.0.beef): expected CREATED of f, which came after CREATED of e, to be made after it, too, and not 1000000 ns before: its created_at is earlier
    "#]],
        );
    }

    #[test]
    fn the_events_of_one_container_are_for_another_rule() {
        let script = "pod run; pod STARTED; c create; c CREATED; c STARTED";
        check(&RULE, &format!("{script} at=-2ms"), expect![]);
        check(&RULE, &format!("{script} at=-3ms"), expect![]);
        check(
            &RULE,
            &format!("{script} at=-5ms"),
            expect![[r#"
            INV-23 at #3 #7: pod (pod.0.beef): expected STARTED of c, which came after STARTED of pod, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        "#]],
        );
    }

    #[test]
    fn a_replay_to_a_new_stream_may_come_late() {
        let script = "pod run; c create; c CREATED; d create; resubscribe; c STARTED; d CREATED";
        check(&RULE, script, expect![]);
        check(&RULE, &format!("{script} at=-3ms"), expect![]);
        check(
            &RULE,
            &format!("{script} at=-2ms"),
            expect![[r#"
            INV-23 at #10 #11: pod (pod.0.beef): expected CREATED of d, which came after STARTED of c, to be made after it, too, and not 1000000 ns before: its created_at is earlier
        "#]],
        );
    }

    #[test]
    fn pods_and_streams_are_not_compared() {
        check(
            &RULE,
            "pod run; c create; c CREATED; pod2 run; d create; d CREATED at=-21ms",
            expect![],
        );
        check(
            &RULE,
            "pod run; c create; d create; c CREATED; d CREATED at=-2ms on=7",
            expect![],
        );
    }
}
