//! INV-16: a container's exit status stays as STOPPED reported it.

use std::collections::BTreeMap;

use crate::history::{
    CaseHistory, ContainerId, ContainerState, ContainerStatus, EventArrival, EventKind, Reply,
    RuntimeNanos, Seq, Subject,
};
use crate::oracle::invariants::{Invariant, MUST_SHOULD};
use crate::oracle::name_of;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

/// The rule and where it comes from.
pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-16",
    name: "invariant::what-stopped-tells-stays",
    sentence: "How a container ended never changes once STOPPED has told it, neither in its \
                   status nor in later snapshots.",
    source: "CRI api.proto, ContainerStatus; containerd#12260 (OOMKilled came after STOPPED)",
    requirements: &["R17"],
    kinds: &[Kind::ExitStatusChanged],
    compares_clocks: true,
    levels: MUST_SHOULD,
    check,
};

/// What is told of a container after its STOPPED.
struct Told<'a> {
    status: &'a ContainerStatus,
    /// When the event was made that shows it.
    made: Option<RuntimeNanos>,
    /// Where that was asked for, and where it came. An event is both.
    evidence: [Seq; 2],
}

impl Told<'_> {
    fn is_after(&self, stopped: &EventArrival) -> bool {
        let made = self.made;
        let made_after = made.is_none_or(|made| made >= stopped.event().created_at);
        made_after && self.evidence[0] > stopped.seq()
    }
}

fn check(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let later = told_of_each(history);
    let changed = |subject: &Subject| {
        let (mismatch, evidence) = changed(subject, later.get(&subject.id)?)?;
        Some(rule.violation(name_of(subject), mismatch, evidence))
    };
    history.subjects().iter().filter_map(changed).collect()
}

/// What was told of a container's end that STOPPED told otherwise: expected, actual, and the proof.
pub(crate) fn exit_status_changed(
    history: &CaseHistory,
    subject: &Subject,
) -> Option<(Mismatch, Vec<Seq>)> {
    changed(subject, told_of_each(history).get(&subject.id)?)
}

/// How many calls have told of a container's end after its STOPPED.
pub(crate) fn statuses_after_stopped(history: &CaseHistory, subject: &Subject) -> usize {
    let all = told_of_each(history);
    let told = all.get(&subject.id).map_or(&[][..], Vec::as_slice);
    let stopped = subject.first(EventKind::Stopped);
    let told = told.iter().filter(|told| told.made.is_none());
    stopped.map_or(0, |stopped| {
        told.filter(|told| told.is_after(stopped)).count()
    })
}

fn changed(subject: &Subject, later: &[Told<'_>]) -> Option<(Mismatch, Vec<Seq>)> {
    let stopped = subject.first(EventKind::Stopped)?;
    let end = stopped.event().own_status()?;
    if end.state != ContainerState::Exited {
        return None;
    }
    let mut later = later.iter().filter(|told| told.is_after(stopped));
    later.find_map(|told| {
        let mismatch = difference(end, told.status)?;
        let mut evidence = vec![stopped.seq()];
        evidence.extend(told.evidence);
        evidence.dedup();
        Some((mismatch, evidence))
    })
}

/// All that statuses and siblings' events tell of each container.
fn told_of_each(history: &CaseHistory) -> BTreeMap<&ContainerId, Vec<Told<'_>>> {
    let mut told = BTreeMap::<_, Vec<_>>::new();
    for call in history.calls() {
        if let (Some(ended), Some(Ok(Reply::ContainerStatus(report)))) =
            (call.ended(), call.result())
        {
            let evidence = [call.began().seq, ended.seq];
            let status: &ContainerStatus = &report.status;
            told.entry(&status.id).or_default().push(Told {
                status,
                made: None,
                evidence,
            });
        }
    }
    let subjects = history.subjects().iter();
    for arrival in subjects.flat_map(|subject| &subject.arrivals) {
        let event = arrival.event();
        let others = event.containers.iter();
        // That a snapshot goes back to an earlier state is told by another rule.
        let others = others.filter(|status| {
            status.id != event.container && status.state == ContainerState::Exited
        });
        for status in others {
            told.entry(&status.id).or_default().push(Told {
                status,
                made: Some(event.created_at),
                evidence: [arrival.seq(); 2],
            });
        }
    }
    told
}

/// What is told otherwise of an end.
fn difference(end: &ContainerStatus, later: &ContainerStatus) -> Option<Mismatch> {
    let told = |status: &ContainerStatus| {
        let (started, finished) = (status.started_at, status.finished_at);
        (status.state, status.exit_code, started, finished)
    };
    if told(end) == told(later) && end.reason == later.reason {
        return None;
    }
    let fields = |status: &ContainerStatus| {
        [
            ("state", status.state.to_string()),
            ("exit code", status.exit_code.to_string()),
            ("reason", format!("`{}`", status.reason)),
            ("message", format!("`{}`", status.message)),
            ("started_at", status.started_at.0.to_string()),
            ("finished_at", status.finished_at.0.to_string()),
        ]
    };
    let pairs = fields(end).into_iter().zip(fields(later));
    let mut differing = pairs.filter(|(told, later)| told != later);
    let ((field, told), (_, later)) = differing.next()?;
    Some(Mismatch::new(
        Kind::ExitStatusChanged,
        [Fact::FieldValue(told)],
        [Fact::Field(field.to_owned()), Fact::FieldValue(later)],
    ))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::RULE;
    use crate::oracle::rules::testing::check;

    /// After a container has been started.
    #[track_caller]
    fn then(script: &str, expect: Expect) {
        check(
            &RULE,
            &format!("pod run; c create; c CREATED; c start; c STARTED; {script}"),
            expect,
        );
    }

    #[test]
    fn a_status_tells_what_stopped_told() {
        then("c STOPPED exit=1; pod inspect c=exited:1", expect![]);
        then(
            "c STOPPED exit=1; pod inspect c=exited:2",
            expect![[r#"
                INV-16 at #9 #16 #17: c (c.0.beef): expected exit code 1, as STOPPED reported: exit code 2
            "#]],
        );
        then(
            "c STOPPED exit=1 reason=Other; run inspect c=exited:1",
            expect![[r#"
                INV-16 at #9 #16 #17: c (c.0.beef): expected reason `Other`, as STOPPED reported: reason `Error`
            "#]],
        );
        then(
            "c STOPPED exit=1 finished=+1ms; pod inspect c=exited:1",
            expect![[r#"
                INV-16 at #9 #16 #17: c (c.0.beef): expected finished_at 1700000000001000002, as STOPPED reported: finished_at 1700000000000000002
            "#]],
        );
        then(
            "c STOPPED exit=1; pod inspect c=running",
            expect![[r#"
                INV-16 at #9 #16 #17: c (c.0.beef): expected state EXITED, as STOPPED reported: state RUNNING
            "#]],
        );
    }

    #[test]
    fn a_status_from_before_stopped_may_differ() {
        then("pod inspect c=exited:2; c STOPPED exit=1", expect![]);
        then(
            "c STOPPED exit=1; pod inspect c=exited:2 unanswered",
            expect![],
        );
    }

    #[test]
    fn a_later_snapshot_tells_what_stopped_told() {
        then("c STOPPED exit=1; d create; d CREATED", expect![]);
        then(
            "c STOPPED exit=1; d create; d CREATED stale=c:exited:2",
            expect![[r#"
                INV-16 at #9 #12: c (c.0.beef): expected exit code 1, as STOPPED reported: exit code 2
            "#]],
        );
        then(
            "c STOPPED exit=1; d create; d CREATED stale=c:running",
            expect![],
        );
        then(
            "d create; d CREATED stale=c:exited:2; c STOPPED exit=1",
            expect![],
        );
        then(
            "d create; c STOPPED exit=1; d CREATED stale=c:exited:2 at=-2ms",
            expect![],
        );
    }
}
