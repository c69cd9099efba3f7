//! The recordings, judged as if the suite had only watched: without the case's own calls, its pods
//! are foreign.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use cri_event_conformance::testing::history::{Body, Entry, Labels, Request, RunPlan, Seq};
use cri_event_conformance::testing::oracle::INVARIANTS;
use cri_event_conformance::testing::outcome::Outcome;
use cri_event_conformance::testing::verdicts::{Scope, Verdicts};

use crate::golden::assert_file;
use crate::tables::INVARIANTS_BROKEN;
use crate::{clean, folder, mutate, read, recordings};

/// The maximum latency of an event, as in a run.
const WITHIN: Duration = Duration::from_secs(10);

/// The entries that a watch would have recorded: the relists and the events of the main stream,
/// until each event is overdue.
fn as_watch(entries: &[Entry]) -> Vec<Entry> {
    let mut calls = Vec::new();
    let mut observers = Vec::new();
    let is_seen = |entry: &&Entry| match &entry.body {
        Body::RunBegan(_) | Body::HeldUp { .. } => true,
        Body::SubscriptionOpened {
            subscription,
            observer,
        } => {
            if observer.is_some() {
                observers.push(*subscription);
            }
            observer.is_none()
        }
        Body::SubscriptionAnswered { subscription }
        | Body::SubscriptionProven { subscription }
        | Body::SubscriptionEnded { subscription, .. }
        | Body::Event { subscription, .. } => !observers.contains(subscription),
        Body::CallBegan {
            call, case: None, ..
        } => {
            calls.push(*call);
            true
        }
        Body::CallEnded { call, .. } => calls.contains(call),
        _ => false,
    };
    let mut seen: Vec<Entry> = entries.iter().filter(is_seen).cloned().collect();
    seen.iter_mut().for_each(list_all);
    let mut last = seen[seen.len() - 1].clone();
    last.at.monotonic_ns += 11_000_000_000;
    last.at.realtime_ns += 11_000_000_000;
    last.body = Body::HeldUp { by: Duration::ZERO };
    seen.push(last);
    let plan = RunPlan {
        invariants: INVARIANTS.iter().map(|it| it.id.to_owned()).collect(),
        watch_within: Some(WITHIN),
        ..RunPlan::default()
    };
    let last = seen[seen.len() - 1].at;
    for (place, body) in [
        (1, Body::RunPlanned(Arc::new(plan))),
        (seen.len() + 1, Body::CasesEnded),
    ] {
        let at = if place == 1 { seen[0].at } else { last };
        let seq = Seq(0);
        seen.insert(place, Entry { seq, at, body });
    }
    for (place, entry) in seen.iter_mut().enumerate() {
        entry.seq = Seq(place as u64);
    }
    seen
}

/// Drops the filter of a list: a watch lists all pods.
fn list_all(entry: &mut Entry) {
    if let Body::CallBegan { request, .. } = &mut entry.body
        && let Request::ListSandboxes { labels, .. } | Request::ListContainers { labels, .. } =
            request
    {
        *labels = Labels::new();
    }
}

/// The invariants that are broken in a watch.
fn broken(entries: &[Entry]) -> Vec<Outcome> {
    let mut verdicts = Verdicts::new(Scope::default());
    for entry in as_watch(entries) {
        verdicts.push(&Arc::new(entry));
    }
    let mut outcomes = verdicts.report(None).outcomes;
    outcomes.retain(|outcome| !outcome.violations.is_empty() || !outcome.advice.is_empty());
    outcomes
}

fn ids(outcomes: &[Outcome]) -> String {
    let ids: Vec<&str> = outcomes.iter().map(|outcome| &*outcome.id).collect();
    ids.join(" ")
}

/// The verdict of a watch on each recording, with the first finding of each invariant.
#[test]
fn recordings_are_judged_as_a_watch() {
    let mut golden = String::new();
    for (name, path) in recordings().expect("the recordings can be listed") {
        let found = broken(&read(&path));
        let _ = writeln!(golden, "{name}: {}", ids(&found));
        for outcome in &found {
            let all = outcome.violations.iter().chain(&outcome.advice);
            for violation in all.take(1) {
                let (expected, actual) = (violation.expected(), violation.actual());
                let _ = writeln!(golden, "    {expected}\n    {actual}");
            }
        }
    }
    assert_file(folder().join("watched.txt"), &golden);
}

/// The findings of a watch for each broken invariant.
#[test]
fn what_breaks_an_invariant_is_seen_by_a_watch() {
    let mut golden = String::new();
    for (id, mutations) in INVARIANTS_BROKEN {
        for (case, words) in *mutations {
            let mut entries = clean(case);
            mutate(&mut entries, words);
            let found = ids(&broken(&entries));
            let _ = writeln!(golden, "{id}  {case}  {words:<44}{found}");
        }
    }
    assert_file(folder().join("watched-mutations.txt"), &golden);
}
