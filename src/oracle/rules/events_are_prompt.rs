//! INV-32: an event comes no later than the relist that it saves.

use std::time::Duration;

use super::no_missed_events::proofs;
use crate::history::{Body, CONTINUED, CaseHistory, EventArrival, EventKind};
use crate::limits;
use crate::oracle::clocks::span;
use crate::oracle::fields::Made;
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MUST};
use crate::oracle::objects::Object;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-32",
    name: "invariant::events-are-prompt",
    sentence: "Of 100 events of a case, 99 come within two seconds after the return of the call that \
               causes them, and of a list that shows their cause, by the clock of the suite; and of \
               the `finished_at` that they show.",
    source: "KEP-3386, service level objectives; kubelet pleg/generic.go, a relist each second",
    requirements: &["R33"],
    kinds: &[Kind::LateEvent],
    compares_clocks: false,
    of_foreign_pods: false,
    levels: MUST_MUST,
    check,
};

/// Finds the first late event of each container, unless they are few. What comes so late that it
/// counts as missed breaks INV-11.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let [bound, missed] = [limits::SAVED_RELIST, limits::EVENT_WAIT].map(|it| history.scaled(it));
    let (mut came, mut late) = (0, Vec::new());
    for subject in history.subjects() {
        let mut proofs = proofs(index, subject);
        proofs.sort_by_key(|proof| proof.ended.seq);
        let mut kinds = Vec::new();
        // Each event by its first proof.
        for proof in proofs {
            let Some(pause) = proof.pause(history, subject) else {
                continue;
            };
            if kinds.contains(&proof.needed) {
                continue;
            }
            kinds.push(proof.needed);
            if pause > bound && pause <= missed {
                late.push(proof.late(rule, subject, bound, pause));
            }
        }
        came += kinds.len();
        let object = index.object(&subject.id);
        // A monitor may try again what its faulty OCI runtime could not do.
        let made = object.and_then(Object::made);
        let is_flawed = matches!(made, Some(Made::Container(spec)) if spec.flaw.is_some());
        let stopped = subject.first(EventKind::Stopped).filter(|_| !is_flawed);
        let Some((stopped, pause)) = stopped.and_then(|it| Some((it, since_exit(history, it)?)))
        else {
            continue;
        };
        came += usize::from(!kinds.contains(&EventKind::Stopped));
        if pause > bound && pause <= missed {
            let actual = [Fact::Event(EventKind::Stopped), Fact::Pause(pause)];
            let due = [
                Fact::Within(bound),
                Fact::Cause("its finished_at".to_owned()),
            ];
            let mismatch = Mismatch::new(Kind::LateEvent, due, actual);
            late.push(rule.violation_by(subject, mismatch, [stopped]));
        }
    }
    if late.len() * 100 <= came {
        late.clear();
    }
    late.dedup_by(|later, first| later.subject == first.subject);
    late
}

/// How long after the `finished_at` in it an event has come, without the time for which the suite
/// was held up; `None` if it shows no such time, a stream was opened or ended or a frozen monitor
/// continued meanwhile, or the wall clock was set.
fn since_exit(history: &CaseHistory, stopped: &EventArrival) -> Option<Duration> {
    let exited_ns = stopped.event().own_status()?.finished_at.0;
    let arrived = stopped.at();
    let entries = history.entries().iter().rev();
    let mut since_exit = entries.take_while(|it| it.at.realtime_ns > exited_ns);
    let delays = |body: &Body| match body {
        Body::SubscriptionOpened { .. } | Body::SubscriptionEnded { .. } => true,
        Body::Waited { wanted, .. } => wanted.starts_with(CONTINUED),
        _ => false,
    };
    let is_excused = since_exit.any(|it| it.seq < stopped.seq() && delays(&it.body));
    if exited_ns <= 0 || is_excused || history.clock_set_by().is_some() {
        return None;
    }
    let pause = span(exited_ns, arrived.realtime_ns);
    let from_ns = arrived
        .monotonic_ns
        .saturating_sub(u64::try_from(pause.as_nanos()).ok()?);
    Some(pause.saturating_sub(history.held_up_within(from_ns, arrived.monotonic_ns)))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::RULE;
    use crate::oracle::rules::testing::check;

    #[test]
    fn an_event_comes_within_two_seconds_of_its_call() {
        check(
            &RULE,
            "pod run; c create; pass 1999ms; c CREATED; end",
            expect![],
        );
        check(
            &RULE,
            "pod run; c create; pass 2s; c CREATED; end",
            expect![[r#"
                INV-32 at #3 #4 #5: c (c.0.beef): expected CREATED within 2s of CreateContainer: CREATED came 2.001s later
            "#]],
        );
    }

    #[test]
    fn created_at_is_no_clock_of_a_latency() {
        check(
            &RULE,
            "pod run; c create; pass 2s; c CREATED at=-2s; end",
            expect![[r#"
                INV-32 at #3 #4 #5: c (c.0.beef): expected CREATED within 2s of CreateContainer: CREATED came 2.001s later
            "#]],
        );
        check(
            &RULE,
            "pod run; c create; c CREATED at=-900ms; end",
            expect![],
        );
    }

    #[test]
    fn an_event_comes_within_two_seconds_of_a_list_that_shows_its_cause() {
        check(
            &RULE,
            "pod run; c create; c CREATED; pod relist c=exited; pass 2s; pod relist c=exited; c STOPPED; end",
            expect![[r#"
                INV-32 at #6 #7 #10: c (c.0.beef): expected STOPPED within 2s of a relist that shows it EXITED: STOPPED came 2.003s later
            "#]],
        );
    }

    /// Checks a container that runs for five seconds, and exits `ago` before its STOPPED.
    fn check_exit(meanwhile: &str, ago: &str, expect: Expect) {
        let starts = "pod run; c create; c CREATED; c start; c STARTED; pass 5s";
        let script = format!("{starts}; {meanwhile}; c STOPPED finished=-{ago}; end");
        check(&RULE, &script, expect);
    }

    #[test]
    fn an_exit_comes_within_two_seconds_of_its_finished_at() {
        check_exit("pod relist c=running", "2s", expect![]);
        check_exit(
            "pod relist c=running",
            "2001ms",
            expect![[r#"
            INV-32 at #11: c (c.0.beef): expected STOPPED within 2s of its finished_at: STOPPED came 2.001s later
        "#]],
        );
    }

    #[test]
    fn an_exit_may_be_late_that_could_not_be_reported() {
        check_exit(
            "wait met SIGSTOP_to_be_sent_to_it",
            "3s",
            expect![[r#"
            INV-32 at #10: c (c.0.beef): expected STOPPED within 2s of its finished_at: STOPPED came 3s later
        "#]],
        );
        check_exit("wait met SIGCONT_to_be_sent_to_it", "3s", expect![]);
        check_exit("stream ends; resubscribe", "3s", expect![]);
        check_exit(
            "held-up 500ms",
            "3s",
            expect![[r#"
            INV-32 at #10: c (c.0.beef): expected STOPPED within 2s of its finished_at: STOPPED came 2.5s later
        "#]],
        );
        check_exit("held-up 2s", "3s", expect![]);
    }

    #[test]
    fn one_of_a_hundred_may_be_late() {
        let lives = |count| "c create; c CREATED; ".repeat(count);
        let late = "c create; pass 2s; c CREATED; end";
        check(&RULE, &format!("pod run; {}{late}", lives(99)), expect![]);
        check(
            &RULE,
            &format!("pod run; {}{late}", lives(98)),
            expect![[r#"
            INV-32 at #297 #298 #299: c#98 (c.98.beef): expected CREATED within 2s of CreateContainer: CREATED came 2.001s later
        "#]],
        );
    }

    #[test]
    fn an_event_that_counts_as_missed_is_left_to_the_rule_about_those() {
        check(
            &RULE,
            "pod run; c create; pass 11s; c CREATED; end",
            expect![],
        );
    }
}
