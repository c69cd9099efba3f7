//! INV-31: lists and statuses show the state that calls have made and events have reported.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::history::{Call, EventKind, Request, Seq, StatusCode, SubjectKind};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MUST};
use crate::oracle::life::{Contradiction, Judged, Life, Order, Read, Shown};
use crate::oracle::name_of;
use crate::oracle::objects::{Object, Source};
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-31",
    name: "invariant::answers-current",
    sentence: "Each list and status shows each object that it is asked for once, and no other one, in a \
               state in which it was between the call and the answer: not before an earlier call, event \
               or answer. A start and a command succeed only in what was ready or running then.",
    source: "CRI api.proto, ListContainers, ListPodSandbox, ContainerStatus and PodSandboxStatus, \
             ContainerFilter and PodSandboxFilter (all fields are combined with AND); \
             kubelet generic.go: a relist is the state of the node",
    requirements: &["R22", "R25", "R27", "R28", "R29"],
    kinds: &[
        Kind::AnswerStale,
        Kind::AnswerPremature,
        Kind::MissingInAnswer,
        Kind::RepeatedInAnswer,
        Kind::WrongList,
    ],
    compares_clocks: false,
    of_foreign_pods: true,
    levels: MUST_MUST,
    check: |rule, index| violations(rule, index, false),
};

/// Finds the first wrong answer about each object: of the containers in `PodSandboxStatus`, which
/// not every kubelet reads, or of all others.
pub(super) fn violations(rule: &Invariant, index: &Index<'_>, of_reports: bool) -> Vec<Violation> {
    let wrong = |object: &Object<'_>| {
        let mut order = Order::default();
        let life = Life::new(object, index.objects(), Judged::Answers, &mut order)?;
        // Where a state was shown too early, the bounds contradict each other.
        let _ = order.settle();
        let is_judged = |source: &Source<'_>| is_report(object, source) == Some(of_reports);
        let shown = object.statements.iter();
        let shown = shown.map(|statement| (statement.source, Shown::of(statement), None));
        let absent = object.absences.iter();
        let absent = absent.map(|(source, code)| (*source, Shown::Absent, *code));
        let needed = match object.subject.kind {
            SubjectKind::Container(_) => Shown::Running,
            SubjectKind::Sandbox(_) | SubjectKind::Stray => Shown::Ready,
        };
        let uses = object.uses.iter().map(|source| (*source, needed, None));
        let all = shown.chain(absent).chain(uses);
        let mut judged = all.filter(|(source, ..)| is_judged(source));
        let wrong = judged.find_map(|answer| judge(index, &life, &mut order, answer));
        let wrong = wrong.or_else(|| repeated(object, is_judged));
        let (mismatch, evidence) = wrong.or_else(|| unasked(object, is_judged))?;
        Some(rule.violation(name_of(object.subject), mismatch, evidence))
    };
    index.objects().iter().filter_map(wrong).collect()
}

/// Whether the source of a statement about an object is the report of its sandbox; `None` of an
/// event.
fn is_report(object: &Object<'_>, source: &Source<'_>) -> Option<bool> {
    let Source::Call(call, _) = source else {
        return None;
    };
    let is_container = matches!(object.subject.kind, SubjectKind::Container(_));
    Some(is_container && matches!(call.request(), Request::SandboxStatus(_)))
}

type Found = (Mismatch, Vec<Seq>);

/// The mismatch of an answer that cannot show its object so.
fn judge(
    index: &Index<'_>,
    life: &Life<'_, '_>,
    order: &mut Order,
    (source, shown, code): (Source<'_>, Shown, Option<StatusCode>),
) -> Option<Found> {
    let Source::Call(call, ended) = source else {
        return None;
    };
    let at = order.point(call.began().seq, Some(ended.seq));
    if let Some(wanted) = wanted_state(call.request()) {
        if shown != Shown::Absent && shown != wanted {
            return Some(not_asked_for(&source, shown));
        }
        if shown == Shown::Absent {
            let proof = life.certain_since(wanted, (at, ended.seq), order)?;
            let actual = Fact::Text("it is missing".to_owned());
            return Some(mismatch(
                index,
                &source,
                Kind::MissingInAnswer,
                (actual, proof),
            ));
        }
    }
    let wrong = life.contradicts(shown, Read { at, cause: None }, order);
    let wrong = wrong.map(|wrong| (wrong, life.proof(shown, wrong, order)));
    let certain = |state| life.certain_since(state, (at, ended.seq), order);
    let (wrong, proof) = match shown {
        Shown::Absent => wrong,
        Shown::Unknown => wrong.or_else(|| {
            let known = STATES.into_iter().find_map(certain);
            known.map(|since| (Contradiction::Stale, since))
        }),
        _ => wrong.or_else(|| {
            let deleted = deleted_before(index, life.object, call)?;
            Some((Contradiction::Stale, deleted))
        }),
    }?;
    let (kind, actual) = match (shown, wrong) {
        (Shown::Absent, _) => {
            let missing = || "it is missing".to_owned();
            let text = code.map_or_else(missing, |code| format!("the call fails with {code}"));
            (Kind::MissingInAnswer, Fact::Text(text))
        }
        (_, Contradiction::Stale) => (Kind::AnswerStale, Fact::State(shown.to_string())),
        (_, Contradiction::Premature) => (Kind::AnswerPremature, Fact::State(shown.to_string())),
    };
    Some(mismatch(index, &source, kind, (actual, proof)))
}

/// The states that UNKNOWN does not show, of a container or a sandbox.
const STATES: [Shown; 3] = [Shown::Created, Shown::Running, Shown::Exited];

/// The DELETED of an object that came long before an answer was asked for: it can be sent before
/// the object is removed from the lists.
fn deleted_before(index: &Index<'_>, object: &Object<'_>, call: &Call) -> Option<Seq> {
    let deleted = object.subject.first(EventKind::Deleted)?;
    let removed = index.history.scaled(Duration::from_millis(100));
    let is_late =
        deleted.seq() < call.began().seq && call.began().at.since(deleted.at()) >= removed;
    is_late.then(|| deleted.seq())
}

fn mismatch(
    index: &Index<'_>,
    source: &Source<'_>,
    kind: Kind,
    (actual, proof): (Fact, Seq),
) -> Found {
    let (cause, proof) = index.cause(proof);
    let mismatch = Mismatch::new(kind, [cause], [source.fact(), actual]);
    let mut evidence = source.evidence();
    evidence.extend(proof);
    evidence.sort_unstable();
    evidence.dedup();
    (mismatch, evidence)
}

/// The state that the filter of a list demands.
fn wanted_state(request: &Request) -> Option<Shown> {
    match request {
        Request::FindContainers(filter) => filter.state.map(Shown::of_container),
        Request::FindSandboxes(filter) => filter.state.map(Shown::of_sandbox),
        _ => None,
    }
}

/// The mismatch of an object in a list whose filter does not match it.
fn not_asked_for(source: &Source<'_>, shown: Shown) -> Found {
    let actual = [source.fact(), Fact::State(shown.to_string())];
    let expected = [Fact::State("nothing of it".to_owned())];
    let mismatch = Mismatch::new(Kind::WrongList, expected, actual);
    (mismatch, source.evidence())
}

/// The first answer with more than one statement about an object.
fn repeated(object: &Object<'_>, is_judged: impl Fn(&Source<'_>) -> bool) -> Option<Found> {
    let mut answers = BTreeMap::<Seq, (Source<'_>, i64)>::new();
    for statement in object
        .statements
        .iter()
        .filter(|one| is_judged(&one.source))
    {
        let (_, count) = answers
            .entry(statement.seq())
            .or_insert((statement.source, 0));
        *count += 1;
    }
    let (source, count) = answers.into_values().find(|(_, count)| *count > 1)?;
    let mismatch = Mismatch::new(
        Kind::RepeatedInAnswer,
        [],
        [source.fact(), Fact::Count(count)],
    );
    Some((mismatch, source.evidence()))
}

/// The first item that the filter of its list does not match.
fn unasked(object: &Object<'_>, is_judged: impl Fn(&Source<'_>) -> bool) -> Option<Found> {
    let mut items = object.statements.iter();
    let one = items.find(|one| is_judged(&one.source) && !one.is_asked_for())?;
    Some(not_asked_for(&one.source, Shown::of(one)))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::RULE;
    use crate::oracle::rules::testing::check;

    /// Checks the rule after a container has been created.
    #[track_caller]
    fn then(script: &str, expect: Expect) {
        check(
            &RULE,
            &format!("pod run; c create; c CREATED; {script}"),
            expect,
        );
    }

    #[test]
    fn an_answer_shows_the_effect_of_calls() {
        then("c start; pod relist c=running", expect![""]);
        then(
            "c start; pod relist c=created",
            expect![[r#"
            INV-31 at #7 #8 #9: c (c.0.beef): expected a state from after StartContainer in ListContainers: CREATED
        "#]],
        );
        then(
            "c start; c stop; pod relist c=running",
            expect![[r#"
            INV-31 at #9 #10 #11: c (c.0.beef): expected a state from after StopContainer in ListContainers: RUNNING
        "#]],
        );
        then(
            "c start; c stop; pod relist c=exited; c remove; pod relist c=exited",
            expect![[r#"
                INV-31 at #13 #14 #15: c (c.0.beef): expected a state from after RemoveContainer in ListContainers: EXITED
            "#]],
        );
        then(
            "c start begins; pod relist c=created; c start returns",
            expect![""],
        );
        then(
            "c start; c stop begins; pod relist c=running; c stop returns",
            expect![""],
        );
    }

    #[test]
    fn a_list_shows_what_its_filter_matches() {
        let runs = |list: &str, expect: Expect| {
            then(&format!("c start; c STARTED; d create; {list}"), expect);
        };
        runs("c find c=running", expect![""]);
        runs("c find state=running c=running", expect![""]);
        runs("pod find state=exited", expect![""]);
        runs(
            "c find",
            expect![[r#"
            INV-31 at #4 #11 #12: c (c.0.beef): expected it in ListContainers, after CreateContainer: it is missing
        "#]],
        );
        runs("pod find state=running", expect![""]);
        runs(
            "pod find state=running; c find c=running",
            expect![[r#"
            INV-31 at #7 #11 #12: c (c.0.beef): expected it in ListContainers, after StartContainer: it is missing
        "#]],
        );
        runs(
            "pod find state=exited c=running",
            expect![[r#"
            INV-31 at #11 #12: c (c.0.beef): expected nothing of it in ListContainers: RUNNING
        "#]],
        );
        runs(
            "d find d=created c=running",
            expect![[r#"
            INV-31 at #11 #12: c (c.0.beef): expected nothing of it in ListContainers: RUNNING
        "#]],
        );
        runs(
            "pod find streamed c=running c=running",
            expect![[r#"
            INV-31 at #11 #12: c (c.0.beef): expected it in StreamContainers once: there are 2
            INV-31 at #10 #11 #12: d (d.0.beef): expected it in StreamContainers, after CreateContainer: it is missing
        "#]],
        );
        // It may have exited by then.
        then(
            "c start; c stop begins; pod find state=running; c stop returns",
            expect![""],
        );
        then(
            "pod stop begins; pod find-sandbox state=ready; pod stop returns",
            expect![""],
        );
        then("pod find-sandbox state=ready pod=ready", expect![""]);
        then(
            "pod find-sandbox state=notready pod=ready",
            expect![[r#"
            INV-31 at #6 #7: pod (pod.0.beef): expected nothing of it in ListPodSandbox: READY
        "#]],
        );
    }

    #[test]
    fn an_answer_shows_what_events_have_reported() {
        then(
            "c start begins; c STARTED; pod relist c=created; c start returns",
            expect![[r#"
                INV-31 at #7 #8 #9: c (c.0.beef): expected a state from after STARTED in ListContainers: CREATED
            "#]],
        );
        then(
            "c start; c STARTED; c STOPPED; pod inspect c=running",
            expect![[r#"
                INV-31 at #9 #12 #13: c (c.0.beef): expected a state from after STOPPED in ListContainers: RUNNING
            "#]],
        );
        then(
            "c start; c STARTED; pod relist begins; c STOPPED; pod relist returns c=running",
            expect![""],
        );
    }

    #[test]
    fn a_state_that_is_known_is_not_unknown() {
        let runs = "c start; c STARTED";
        then(&format!("{runs}; pod relist c=unknown"), expect![""]);
        then(
            &format!("{runs}; pod relist c=unknown; pod relist c=running"),
            expect![[r#"
                INV-31 at #7 #9 #10: c (c.0.beef): expected a state from after StartContainer in ListContainers: UNKNOWN
            "#]],
        );
        then(
            &format!("{runs}; c STOPPED; pod relist c=unknown"),
            expect![[r#"
                INV-31 at #9 #10 #11: c (c.0.beef): expected a state from after STOPPED in ListContainers: UNKNOWN
            "#]],
        );
    }

    #[test]
    fn nothing_is_listed_long_after_its_deleted() {
        let listed = |pause: &str, expect: Expect| {
            let begins = "c remove begins; c DELETED";
            let ends = "pod relist c=created; c remove returns";
            then(&format!("{begins}; pass {pause}; {ends}"), expect);
        };
        listed("98ms", expect![""]);
        listed(
            "99ms",
            expect![[r#"
            INV-31 at #7 #8 #9: c (c.0.beef): expected a state from after DELETED in ListContainers: CREATED
        "#]],
        );
        then(
            "pod remove; pod DELETED; pod inspect",
            expect![[r#"
            INV-31 at #7 #9 #10: pod (pod.0.beef): expected a state from after RemovePodSandbox in ListPodSandbox: NOTREADY
        "#]],
        );
    }

    #[test]
    fn a_start_and_a_command_need_what_is_up() {
        then("pod stop begins; c start; pod stop returns", expect![""]);
        then("pod stop; c start refused", expect![""]);
        then(
            "pod stop; c start",
            expect![[r#"
            INV-31 at #7 #8 #9: pod (pod.0.beef): expected a state from after StopPodSandbox in StartContainer: READY
        "#]],
        );
        then(
            "c start; c stop begins; c exec; c stop returns",
            expect![""],
        );
        then("c start; c stop; c exec refused", expect![""]);
        then(
            "c start; c STARTED; c STOPPED; c exec",
            expect![[r#"
            INV-31 at #9 #10 #11: c (c.0.beef): expected a state from after STOPPED in ExecSync: RUNNING
        "#]],
        );
    }

    #[test]
    fn an_answer_never_goes_back() {
        then(
            "c start; pod relist c=exited; pod relist c=running",
            expect![[r#"
                INV-31 at #9 #10 #11: c (c.0.beef): expected a state from after ListContainers in ListContainers: RUNNING
            "#]],
        );
        then(
            "c start; pod relist c=running; pod relist c=exited",
            expect![""],
        );
    }

    #[test]
    fn an_answer_is_not_ahead() {
        then(
            "pod relist c=running; c start",
            expect![[r#"
            INV-31 at #6 #7 #8: c (c.0.beef): expected a state from before StartContainer in ListContainers: RUNNING
        "#]],
        );
        then(
            "c start begins; pod relist c=running; c start returns",
            expect![""],
        );
    }

    #[test]
    fn what_exists_is_shown() {
        then(
            "pod relist",
            expect![[r#"
                INV-31 at #4 #6 #7: c (c.0.beef): expected it in ListContainers, after CreateContainer: it is missing
            "#]],
        );
        then(
            "pod inspect c=gone",
            expect![[r#"
                INV-31 at #4 #12 #13: c (c.0.beef): expected it in ContainerStatus, after CreateContainer: it is missing
            "#]],
        );
        then("c remove begins; pod relist; c remove returns", expect![""]);
        then(
            "pod inspect c=created failing",
            expect![[r#"
                INV-31 at #2 #10 #11: pod (pod.0.beef): expected it in PodSandboxStatus, after RunPodSandbox: the call fails with UNKNOWN
                INV-31 at #4 #12 #13: c (c.0.beef): expected it in ContainerStatus, after CreateContainer: the call fails with UNKNOWN
            "#]],
        );
        then("pod inspect c=created unanswered", expect![""]);
    }

    #[test]
    fn a_sandbox_is_ready_until_it_is_stopped() {
        then("pod inspect", expect![""]);
        then(
            "pod stop; pod inspect",
            expect![[r#"
                INV-31 at #7 #8 #9: pod (pod.0.beef): expected a state from after StopPodSandbox in ListPodSandbox: READY
            "#]],
        );
        then(
            "pod remove; pod inspect",
            expect![[r#"
                INV-31 at #7 #8 #9: pod (pod.0.beef): expected a state from after RemovePodSandbox in ListPodSandbox: READY
            "#]],
        );
        then(
            "pod remove; run inspect",
            expect![[r#"
            INV-31 at #7 #8 #9: pod (pod.0.beef): expected a state from after RemovePodSandbox in ListPodSandbox: READY
        "#]],
        );
    }
}
