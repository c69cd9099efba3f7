//! INV-16: a container's exit status stays as STOPPED reported it.

use crate::history::{ContainerState, ContainerStatus, EventArrival, EventKind, Seq, Subject};
use crate::oracle::index::{Index, Reading, Source};
use crate::oracle::invariants::{Invariant, MUST_SHOULD};
use crate::oracle::name_of;
use crate::outcome::{Fact, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-16",
    name: "invariant::exit-status-never-changes",
    sentence: "The exit status of a container never changes once STOPPED has reported it, neither in \
                   its status nor in later snapshots.",
    source: "CRI api.proto, ContainerStatus; containerd#12260 (OOMKilled came after STOPPED)",
    requirements: &["C8", "R17"],
    kinds: &[Kind::ExitStatusChanged],
    compares_clocks: true,
    of_foreign_pods: true,
    levels: MUST_SHOULD,
    check,
};

/// A status of a container that was read after its STOPPED.
struct Later<'a> {
    status: &'a ContainerStatus,
    evidence: Vec<Seq>,
}

fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let changed = |subject: &Subject| {
        let (mismatch, evidence) = exit_status_changed(index, subject)?;
        Some(rule.violation(name_of(subject), mismatch, evidence))
    };
    let subjects = index.history.subjects().iter();
    subjects.filter_map(changed).collect()
}

/// The first later status with another exit status than STOPPED, and the entries that prove it.
pub(crate) fn exit_status_changed(
    index: &Index<'_>,
    subject: &Subject,
) -> Option<(Mismatch, Vec<Seq>)> {
    let stopped = subject.first(EventKind::Stopped)?;
    let end = stopped.event().own_status()?;
    if end.state != ContainerState::Exited {
        return None;
    }
    let readings = index.readings(&subject.id).iter();
    let mut later = readings.filter_map(|reading| later(reading, stopped));
    later.find_map(|later| {
        let mismatch = difference(end, later.status)?;
        let proof = [stopped.seq()].into_iter().chain(later.evidence);
        Some((mismatch, proof.collect()))
    })
}

/// The number of calls that have read the container's status after its STOPPED.
pub(crate) fn statuses_after_stopped(index: &Index<'_>, subject: &Subject) -> usize {
    let Some(stopped) = subject.first(EventKind::Stopped) else {
        return 0;
    };
    let readings = index.readings(&subject.id).iter();
    let of_calls = readings.filter(|reading| matches!(reading.source, Source::Status(..)));
    of_calls
        .filter(|reading| later(reading, stopped).is_some())
        .count()
}

/// A reading as a later status: one that was requested after STOPPED, or one of an exited container
/// in the snapshot of a sibling's event that was created after it. An earlier state there breaks
/// INV-09.
fn later<'a>(reading: &Reading<'a>, stopped: &EventArrival) -> Option<Later<'a>> {
    match reading.source {
        Source::Status(call, status) if call.began.seq > stopped.seq() => Some(Later {
            status,
            evidence: call.evidence(),
        }),
        Source::Event(arrival, status) => {
            let event = arrival.event();
            let is_end = event.container != status.id && status.state == ContainerState::Exited;
            let is_later =
                arrival.seq() > stopped.seq() && event.created_at >= stopped.event().created_at;
            let evidence = vec![arrival.seq()];
            (is_end && is_later).then_some(Later { status, evidence })
        }
        Source::Status(..) | Source::List(_) | Source::Start(_) => None,
    }
}

/// The first field in which a later status differs from STOPPED.
fn difference(end: &ContainerStatus, later: &ContainerStatus) -> Option<Mismatch> {
    let compared = |status: &ContainerStatus| {
        let (started, finished) = (status.started_at, status.finished_at);
        (status.state, status.exit_code, started, finished)
    };
    if compared(end) == compared(later) && end.reason == later.reason {
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
    let mut differing = pairs.filter(|(stopped, later)| stopped != later);
    let ((field, stopped), (_, later)) = differing.next()?;
    Some(Mismatch::new(
        Kind::ExitStatusChanged,
        [Fact::FieldValue(stopped)],
        [Fact::Field(field.to_owned()), Fact::FieldValue(later)],
    ))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::RULE;
    use crate::oracle::rules::testing::check;

    /// Checks the rule after a container has been started.
    #[track_caller]
    fn then(script: &str, expect: Expect) {
        check(
            &RULE,
            &format!("pod run; c create; c CREATED; c start; c STARTED; {script}"),
            expect,
        );
    }

    #[test]
    fn a_later_status_has_the_exit_status_of_stopped() {
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
    fn a_later_snapshot_has_the_exit_status_of_stopped() {
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
