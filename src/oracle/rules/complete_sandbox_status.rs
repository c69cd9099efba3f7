//! INV-22: what `PodSandboxStatus` reports of the sandbox's containers. A runtime need not report
//! any of them there; where it does, a kubelet with the gate `EventedPLEG` asks no further.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::history::{
    CaseHistory, ContainerId, ContainerState, ContainerStatus, Entry, Reply, Request,
    SandboxReport, Seq, Subject, SubjectKind,
};
use crate::oracle::clocks::{SLACK_NS, unit_hint};
use crate::oracle::index::makes;
use crate::oracle::index::removals;
use crate::oracle::invariants::{Invariant, MUST_MAY};
use crate::oracle::lifecycle::progress;
use crate::oracle::name_of;
use crate::outcome::{Fact, Facts, Kind, Mismatch, Violation};

/// The rule and where it comes from.
pub(in crate::oracle) const RULE: Invariant = Invariant {
    id: "INV-22",
    name: "invariant::whole-sandbox-reports",
    sentence: "PodSandboxStatus tells nothing of containers, or the statuses of all containers of \
                   the sandbox as they are, and when it read them, in nanoseconds.",
    source: "kubelet 1.26 to 1.36, GetPodStatus: it asks no container then; kubernetes#129857, \
                 containerd#11312, cri-o#8580",
    requirements: &["R24", "R25"],
    kinds: &[
        Kind::MissingTimestamp,
        Kind::TimestampNotCurrent,
        Kind::TimestampBeforeEvent,
        Kind::ContainerMissing,
        Kind::ContainerOfOtherSandbox,
        Kind::RemovedContainer,
        Kind::ContradictedStatus,
    ],
    compares_clocks: true,
    levels: MUST_MAY,
    check,
};

/// An answer of `PodSandboxStatus` that tells of containers, or when it was read.
struct Told<'a> {
    report: &'a SandboxReport,
    began: &'a Entry,
    ended: &'a Entry,
}

/// What is wrong with an answer, and what else proves it.
struct Wrong {
    mismatch: Mismatch,
    proof: Vec<Seq>,
}

/// A container of the case, and between which places it is there for certain.
struct Life<'a> {
    label: String,
    sandbox: &'a str,
    made: Option<Seq>,
    removal_began: Option<Seq>,
    removed: Option<Seq>,
}

/// What a call or an event has shown of a container.
struct Shown<'a> {
    state: ContainerState,
    /// Its exit code and reason, if a call has read them.
    exit: Option<(i32, &'a str)>,
    by: &'static str,
    /// Where the call began; none of an event, which shows a time before its arrival.
    asked: Option<Seq>,
    /// Where it was known.
    known: Seq,
}

/// Each sandbox of which an answer tells half, or what is not so.
fn check(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
    let told = told(history);
    if told.is_empty() {
        return Vec::new();
    }
    let (lives, shown) = (lives(history), shown(history));
    let sandboxes = history.subjects().iter();
    let broken = sandboxes.filter_map(|sandbox| {
        let of_sandbox = told.get(sandbox.id.as_str())?;
        of_sandbox.iter().find_map(|told| {
            let wrong = half(told)
                .or_else(|| untimely(told))
                .or_else(|| outdated(told, sandbox, history))
                .or_else(|| incomplete(told, sandbox.id.as_str(), &lives))
                .or_else(|| contradicted(told, &lives, &shown))?;
            let mut evidence = wrong.proof;
            evidence.extend([told.began.seq, told.ended.seq]);
            evidence.sort_unstable();
            Some(rule.violation(name_of(sandbox), wrong.mismatch, evidence))
        })
    });
    broken.collect()
}

/// The time and the statuses belong together.
fn half(told: &Told<'_>) -> Option<Wrong> {
    let statuses = told.report.containers.len();
    (told.report.timestamp.0 == 0).then(|| Wrong {
        mismatch: Mismatch::new(Kind::MissingTimestamp, [], [count(statuses)]),
        proof: Vec::new(),
    })
}

fn count(count: usize) -> Fact {
    Fact::Count(i64::try_from(count).unwrap_or(i64::MAX))
}

/// The time is one of the call.
fn untimely(told: &Told<'_>) -> Option<Wrong> {
    let at = told.report.timestamp.0;
    let earliest = told.began.at.realtime_ns - SLACK_NS;
    let latest = told.ended.at.realtime_ns + SLACK_NS;
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

/// The time is not before that of an event which has come already: a kubelet would refuse it.
fn outdated(told: &Told<'_>, sandbox: &Subject, history: &CaseHistory) -> Option<Wrong> {
    let at = told.report.timestamp;
    let of_sandbox = history
        .subjects()
        .iter()
        .filter(|subject| match &subject.kind {
            SubjectKind::Container(spec) => spec.sandbox.as_str() == sandbox.id.as_str(),
            SubjectKind::Sandbox(_) | SubjectKind::Stray => subject.id == sandbox.id,
        });
    let mut events = of_sandbox.flat_map(|subject| &subject.arrivals);
    let newer =
        events.find(|arrival| arrival.seq() < told.began.seq && arrival.event().created_at > at)?;
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

/// All containers of the sandbox are there, and no others.
fn incomplete(
    told: &Told<'_>,
    sandbox: &str,
    lives: &BTreeMap<&ContainerId, Life<'_>>,
) -> Option<Wrong> {
    let (began, ended) = (told.began.seq, told.ended.seq);
    let among = told.report.containers.len();
    lives.iter().find_map(|(id, life)| {
        let is_told = told
            .report
            .containers
            .iter()
            .any(|status| status.id == **id);
        let is_there = life.made.is_some_and(|made| made < began)
            && life.removal_began.is_none_or(|removal| ended < removal);
        let is_own = life.sandbox == sandbox;
        let is_gone = life.removed.is_some_and(|removed| removed < began);
        let label = &life.label;
        let (kind, proof) = if is_own && is_there && !is_told {
            (Kind::ContainerMissing, life.made)
        } else if !is_own && is_told {
            (Kind::ContainerOfOtherSandbox, life.made)
        } else if is_gone && is_told {
            (Kind::RemovedContainer, life.removed)
        } else {
            return None;
        };
        let among = Fact::Among(i64::try_from(among).unwrap_or(i64::MAX));
        Some(Wrong {
            mismatch: Mismatch::new(kind, [Fact::Of(label.clone()), among], []),
            proof: proof.into_iter().collect(),
        })
    })
}

/// No status is older than what was shown before, or newer than what was shown afterwards.
fn contradicted(
    told: &Told<'_>,
    lives: &BTreeMap<&ContainerId, Life<'_>>,
    shown: &BTreeMap<&ContainerId, Vec<Shown<'_>>>,
) -> Option<Wrong> {
    told.report.containers.iter().find_map(|status| {
        let label = &lives.get(&status.id)?.label;
        shown.get(&status.id)?.iter().find_map(|shown| {
            let (expected, actual) = shown.contradicts(told, status)?;
            Some(Wrong {
                mismatch: Mismatch::new(
                    Kind::ContradictedStatus,
                    [
                        Fact::FieldValue(expected),
                        Fact::Of(label.clone()),
                        Fact::Cause(shown.by.to_owned()),
                    ],
                    [Fact::FieldValue(actual)],
                ),
                proof: shown.asked.into_iter().chain([shown.known]).collect(),
            })
        })
    })
}

impl Shown<'_> {
    fn contradicts(&self, told: &Told<'_>, status: &ContainerStatus) -> Option<(String, String)> {
        let (own, other) = (progress(status.state)?, progress(self.state)?);
        let behind = own < other && self.known < told.began.seq;
        let is_later = self.asked.is_some_and(|asked| asked > told.ended.seq);
        let ahead = own > other && is_later;
        if behind || ahead {
            return Some((self.state.to_string(), status.state.to_string()));
        }
        let exited = status.state == ContainerState::Exited;
        let (code, reason) = self.exit.filter(|_| exited)?;
        let differs = (code, reason) != (status.exit_code, &*status.reason);
        let end = |code: i32, reason: &str| format!("EXITED {code} {reason}").trim_end().to_owned();
        differs.then(|| (end(code, reason), end(status.exit_code, &status.reason)))
    }
}

/// The answers that tell more than the sandbox, by the sandbox that was asked for.
fn told(history: &CaseHistory) -> BTreeMap<&str, Vec<Told<'_>>> {
    let mut told = BTreeMap::<_, Vec<_>>::new();
    for call in history.calls() {
        let (began, Some(ended)) = (call.began(), call.ended()) else {
            continue;
        };
        if let (Request::SandboxStatus(id), Some(Ok(Reply::SandboxStatus(report)))) =
            (call.request(), call.result())
            && (report.timestamp.0 != 0 || !report.containers.is_empty())
        {
            let of_sandbox = told.entry(id.as_str()).or_default();
            of_sandbox.push(Told {
                report,
                began,
                ended,
            });
        }
    }
    told
}

fn lives(history: &CaseHistory) -> BTreeMap<&ContainerId, Life<'_>> {
    let removals = removals(history);
    let removed = history.calls().filter_map(|call| match call.request() {
        Request::RemoveContainer(id) if matches!(call.result(), Some(Ok(_))) => {
            Some((id, call.ended()?.seq))
        }
        _ => None,
    });
    let removed: BTreeMap<&ContainerId, Seq> = removed.collect();
    let lives = history.subjects().iter().filter_map(|subject| {
        let SubjectKind::Container(spec) = &subject.kind else {
            return None;
        };
        let made = history.calls().find(|call| makes(call, subject));
        let life = Life {
            label: subject.label(),
            sandbox: spec.sandbox.as_str(),
            made: made.and_then(|call| call.ended()).map(|ended| ended.seq),
            removal_began: removals.get(&subject.id).copied(),
            removed: removed.get(&subject.id).copied(),
        };
        Some((&subject.id, life))
    });
    lives.collect()
}

fn shown(history: &CaseHistory) -> BTreeMap<&ContainerId, Vec<Shown<'_>>> {
    let mut all = BTreeMap::<_, Vec<_>>::new();
    for call in history.calls() {
        let (Some(ended), Some(Ok(reply))) = (call.ended(), call.result()) else {
            continue;
        };
        let (asked, known) = (Some(call.began().seq), ended.seq);
        let mut show = |id, state, exit, by| {
            let of_container = all.entry(id).or_default();
            of_container.push(Shown {
                state,
                exit,
                by,
                asked,
                known,
            });
        };
        if let Reply::ContainerStatus(report) = reply {
            let status = &report.status;
            let exited = status.state == ContainerState::Exited;
            let exit = exited.then_some((status.exit_code, &*status.reason));
            show(&status.id, status.state, exit, "ContainerStatus reports");
        } else if let Reply::Containers(listed) = reply {
            for listing in listed {
                show(&listing.id, listing.state, None, "ListContainers shows");
            }
        }
    }
    for subject in history.subjects() {
        for arrival in &subject.arrivals {
            if let Some(own) = arrival.event().own_status() {
                all.entry(&subject.id).or_default().push(Shown {
                    state: own.state,
                    exit: None,
                    by: "an event has shown",
                    asked: None,
                    known: arrival.seq(),
                });
            }
        }
    }
    all
}
