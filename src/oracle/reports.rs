//! What `PodSandboxStatus` tells of the sandbox's containers. A runtime need not tell anything of
//! them there; where it does, a kubelet with the gate `EventedPLEG` asks no further.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::ahead::progress;
use super::events::{SLACK_NS, unit_hint};
use super::expectations::makes;
use super::invariants::Invariant;
use super::name_of;
use super::siblings::removals;
use crate::history::{
    CaseHistory, ContainerId, ContainerState, ContainerStatus, Entry, Reply, Request,
    SandboxReport, Seq, Subject, SubjectKind,
};
use crate::outcome::Violation;

/// An answer of `PodSandboxStatus` that tells of containers, or when it was read.
struct Told<'a> {
    report: &'a SandboxReport,
    began: &'a Entry,
    ended: &'a Entry,
}

/// What is wrong with an answer, and what else proves it.
struct Wrong {
    expected: String,
    actual: String,
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
pub(super) fn sandbox_reports_are_whole(rule: &Invariant, history: &CaseHistory) -> Vec<Violation> {
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
            Some(rule.told(name_of(sandbox), wrong.expected, wrong.actual, evidence))
        })
    });
    broken.collect()
}

/// The time and the statuses belong together.
fn half(told: &Told<'_>) -> Option<Wrong> {
    let statuses = told.report.containers.len();
    (told.report.timestamp.0 == 0).then(|| Wrong {
        expected: "a timestamp beside the statuses of containers".to_owned(),
        actual: format!("none beside {statuses}"),
        proof: Vec::new(),
    })
}

/// The time is one of the call.
fn untimely(told: &Told<'_>) -> Option<Wrong> {
    let at = told.report.timestamp.0;
    let earliest = told.began.at.realtime_ns - SLACK_NS;
    let latest = told.ended.at.realtime_ns + SLACK_NS;
    (at < earliest || at > latest).then(|| Wrong {
        expected: format!("a timestamp from {earliest} to {latest}"),
        actual: format!("{at}{}", unit_hint(at, latest)),
        proof: Vec::new(),
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
    let mut events = of_sandbox.flat_map(|subject| &subject.sightings);
    let newer = events
        .find(|sighting| sighting.seq() < told.began.seq && sighting.event().created_at > at)?;
    let (kind, created_at) = (newer.event().kind, newer.event().created_at.0);
    Some(Wrong {
        expected: format!("a timestamp not before {kind}, which had come"),
        actual: format!("it is {} ns before it", created_at.abs_diff(at.0)),
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
        let (expected, actual, proof) = if is_own && is_there && !is_told {
            (
                format!("a status of {label} among the {among}"),
                "it is missing",
                life.made,
            )
        } else if !is_own && is_told {
            (
                format!("no status of {label}"),
                "it is told, of another sandbox",
                life.made,
            )
        } else if is_gone && is_told {
            (
                format!("no status of {label}"),
                "it is told, after its removal",
                life.removed,
            )
        } else {
            return None;
        };
        Some(Wrong {
            expected,
            actual: actual.to_owned(),
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
        let of_container = shown.get(&status.id)?.iter();
        let mut wrong = of_container.filter_map(|shown| {
            let (expected, actual) = shown.contradicts(told, status)?;
            let proof = shown.asked.into_iter().chain([shown.known]).collect();
            Some((
                format!("{expected} of {label}, as {}", shown.by),
                actual,
                proof,
            ))
        });
        let (expected, actual, proof) = wrong.next()?;
        Some(Wrong {
            expected,
            actual,
            proof,
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
            show(&status.id, status.state, exit, "ContainerStatus tells");
        } else if let Reply::Containers(listed) = reply {
            for listing in listed {
                show(&listing.id, listing.state, None, "ListContainers shows");
            }
        }
    }
    for subject in history.subjects() {
        for sighting in &subject.sightings {
            if let Some(own) = sighting.event().own_status() {
                all.entry(&subject.id).or_default().push(Shown {
                    state: own.state,
                    exit: None,
                    by: "an event has told",
                    asked: None,
                    known: sighting.seq(),
                });
            }
        }
    }
    all
}
