//! INV-22: the container statuses in the answer of `PodSandboxStatus`. A runtime need not report
//! any; if it does, a kubelet with the gate `EventedPLEG` does not ask for each container.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::history::{
    CaseHistory, Entry, Reply, Request, SandboxReport, Seq, Subject, SubjectKind,
};
use crate::oracle::clocks::{SLACK_NS, unit_hint};
use crate::oracle::index::Index;
use crate::oracle::invariants::{Invariant, MUST_MAY};
use crate::oracle::name_of;
use crate::oracle::rules::answers_current::violations;
use crate::outcome::{Fact, Facts, Kind, Mismatch, Violation};

pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-22",
    name: "invariant::complete-sandbox-status",
    sentence: "PodSandboxStatus reports no containers, or those of the sandbox, in states in which they \
               were, and the time at which it read them, in nanoseconds.",
    source: "kubelet 1.26 to 1.36, GetPodStatus: no ContainerStatus calls then; \
                 kubernetes#129857, containerd#11312, cri-o#8580",
    requirements: &["R24", "R25"],
    kinds: &[
        Kind::MissingTimestamp,
        Kind::TimestampNotCurrent,
        Kind::TimestampBeforeEvent,
        Kind::ContainerOfOtherSandbox,
        Kind::AnswerStale,
        Kind::AnswerPremature,
        Kind::MissingInAnswer,
        Kind::RepeatedInAnswer,
    ],
    compares_clocks: true,
    of_foreign_pods: true,
    levels: MUST_MAY,
    check,
};

/// An answer of `PodSandboxStatus` that reports containers, or the time at which it read them.
struct Report<'a> {
    content: &'a SandboxReport,
    began: &'a Entry,
    ended: &'a Entry,
}

/// A fault of an answer, and the other entries that prove it.
struct Wrong {
    mismatch: Mismatch,
    proof: Vec<Seq>,
}

/// Finds the sandboxes with an incomplete or wrong answer.
fn check(rule: &Invariant, index: &Index<'_>) -> Vec<Violation> {
    let history = index.history;
    let reports = reports(history);
    if reports.is_empty() {
        return Vec::new();
    }
    let sandboxes = history.subjects().iter();
    let wrong = sandboxes.filter_map(|sandbox| {
        let of_sandbox = reports.get(sandbox.id.as_str())?;
        of_sandbox.iter().find_map(|report| {
            let wrong = half(report)
                .or_else(|| untimely(report))
                .or_else(|| outdated(report, sandbox, history))
                .or_else(|| of_other_sandbox(report, sandbox.id.as_str(), index))?;
            let mut evidence = wrong.proof;
            evidence.extend([report.began.seq, report.ended.seq]);
            evidence.sort_unstable();
            Some(rule.violation(name_of(sandbox), wrong.mismatch, evidence))
        })
    });
    wrong.chain(violations(rule, index, true)).collect()
}

/// Checks that the answer has both the time and the statuses.
fn half(report: &Report<'_>) -> Option<Wrong> {
    let statuses = report.content.containers.len();
    (report.content.timestamp.0 == 0).then(|| Wrong {
        mismatch: Mismatch::new(Kind::MissingTimestamp, [], [count(statuses)]),
        proof: Vec::new(),
    })
}

fn count(count: usize) -> Fact {
    Fact::Count(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Checks that the time lies within the call.
fn untimely(report: &Report<'_>) -> Option<Wrong> {
    let at = report.content.timestamp.0;
    let earliest = report.began.at.realtime_ns - SLACK_NS;
    let latest = report.ended.at.realtime_ns + SLACK_NS;
    (at < earliest || at > latest).then(|| {
        let hint = unit_hint(at, latest).map(Fact::Hint);
        Wrong {
            mismatch: Mismatch::new(
                Kind::TimestampNotCurrent,
                [Fact::Earliest(earliest), Fact::Latest(latest)],
                [Fact::Time(at)].into_iter().chain(hint).collect::<Facts>(),
            ),
            proof: Vec::new(),
        }
    })
}

/// Checks that the time is not before `created_at` of an event that had arrived: a kubelet would
/// ignore the answer.
fn outdated(report: &Report<'_>, sandbox: &Subject, history: &CaseHistory) -> Option<Wrong> {
    let at = report.content.timestamp;
    let of_sandbox = history
        .subjects()
        .iter()
        .filter(|subject| match &subject.kind {
            SubjectKind::Container(spec) => spec.sandbox.as_str() == sandbox.id.as_str(),
            SubjectKind::Sandbox(_) | SubjectKind::Stray => subject.id == sandbox.id,
        });
    let mut events = of_sandbox.flat_map(|subject| &subject.arrivals);
    let newer = events
        .find(|arrival| arrival.seq() < report.began.seq && arrival.event().created_at > at)?;
    let (kind, created_at) = (newer.event().kind, newer.event().created_at.0);
    Some(Wrong {
        mismatch: Mismatch::new(
            Kind::TimestampBeforeEvent,
            [],
            [Fact::Event(kind), Fact::ApartNs(created_at.abs_diff(at.0))],
        ),
        proof: vec![newer.seq()],
    })
}

/// Checks that the answer has no container of another sandbox.
fn of_other_sandbox(report: &Report<'_>, sandbox: &str, index: &Index<'_>) -> Option<Wrong> {
    report.content.containers.iter().find_map(|status| {
        let subject = index.object(&status.id)?.subject;
        let SubjectKind::Container(spec) = &subject.kind else {
            return None;
        };
        (spec.sandbox.as_str() != sandbox).then(|| Wrong {
            mismatch: Mismatch::new(
                Kind::ContainerOfOtherSandbox,
                [Fact::Of(subject.label())],
                [],
            ),
            proof: Vec::new(),
        })
    })
}

/// The answers that report more than the sandbox itself, by sandbox.
fn reports(history: &CaseHistory) -> BTreeMap<&str, Vec<Report<'_>>> {
    let mut reports = BTreeMap::<_, Vec<_>>::new();
    for call in history.calls() {
        let (began, Some(ended)) = (call.began(), call.ended()) else {
            continue;
        };
        if let (Request::SandboxStatus(id), Some(Ok(Reply::SandboxStatus(content)))) =
            (call.request(), call.result())
            && (content.timestamp.0 != 0 || !content.containers.is_empty())
        {
            let of_sandbox = reports.entry(id.as_str()).or_default();
            of_sandbox.push(Report {
                content,
                began,
                ended,
            });
        }
    }
    reports
}
