//! An expectation file made of what failed in a run, for a person to finish.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::known::{Actual, Known, KnownFailure, KnownFault, Rate};
use crate::outcome::{Outcome, RunReport, Verdict};

/// What stands at the head of the file.
const HEAD: &str = "\
# Known failures, as a run has found them. Before this is used: of each entry that says TODO, say
# under `reason` why it fails, and under `link` where that is told, an issue or the runtime's source.
# `actual` is what was seen, word for word: any other failure of the case is no known one. Where it
# holds a time or an id, which the next run will not repeat, take `actual` away. A race that is lost
# in some runs only has `rate: 2/20`, seen in 2 of 20 runs. With `expires: 2026-12-31` an entry counts
# no more after that day, and is told.
";

/// Something that is still to be filled in.
const TODO: &str = "TODO";

/// The most texts that an entry lists. What fails in more ways is any failure of its case.
const MOST_ACTUAL: usize = 20;

/// The longest of them, in bytes.
const LONGEST_ACTUAL: usize = 500;

/// What a run says of one case or invariant.
#[derive(Default)]
struct Told<'a> {
    /// How many executions were decided.
    ran: u32,
    /// Those that failed and are not known to.
    failed: Vec<&'a Outcome>,
    /// It passed, though it is listed.
    is_mended: bool,
}

#[derive(Serialize)]
struct File<'a> {
    runtime: String,
    known: &'a [KnownFailure],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    faults: &'a [KnownFault],
}

/// The text of an expectation file with which the run would have had no failure: an entry for each
/// case and invariant that failed, in the order of the plan, after those of `known` that the run
/// has not shown to be mended.
///
/// Of an entry of `known` whose case failed otherwise than it says, `actual` is added to; of one
/// that has expired and still fails, the day is taken away. With repetitions, what failed in some
/// of them alone gets its rate.
///
/// # Panics
///
/// Never: there is nothing in it that YAML cannot hold.
#[must_use]
pub fn expectations(report: &RunReport, known: &Known) -> String {
    let mut told = BTreeMap::<&str, Told<'_>>::new();
    for outcome in &report.outcomes {
        let told = told.entry(&*outcome.id).or_default();
        let decided = [
            Verdict::Pass,
            Verdict::UnexpectedPass,
            Verdict::Fail,
            Verdict::Known,
        ];
        told.ran += u32::from(decided.contains(&outcome.verdict));
        told.is_mended |= outcome.verdict == Verdict::UnexpectedPass;
        if outcome.verdict == Verdict::Fail {
            told.failed.push(outcome);
        }
    }
    let kept = known.known.iter().filter_map(|entry| {
        let told = told.get(entry.case.as_str());
        told.map_or_else(|| unseen(entry, report), |told| kept(entry, told, report))
    });
    let mut entries: Vec<KnownFailure> = kept.collect();
    for outcome in &report.outcomes {
        let is_there = entries.iter().any(|entry| *entry.case == *outcome.id);
        if !is_there && let Some(told) = told.get(&*outcome.id) {
            entries.extend(new(told));
        }
    }
    let runtime = &report.info.runtime;
    let file = File {
        runtime: format!("{} {}", runtime.runtime_name, runtime.runtime_version),
        known: &entries,
        faults: &known.faults,
    };
    let text = serde_yaml::to_string(&file).expect("texts and lists can be written as YAML");
    format!("{HEAD}{text}")
}

/// An entry whose case did not run.
fn unseen(entry: &KnownFailure, report: &RunReport) -> Option<KnownFailure> {
    (!entry.is_over(report.began)).then(|| entry.clone())
}

/// An entry after its case has run, if it still holds.
fn kept(entry: &KnownFailure, told: &Told<'_>, report: &RunReport) -> Option<KnownFailure> {
    if told.failed.is_empty() {
        return unseen(entry, report).filter(|_| !told.is_mended);
    }
    let mut kept = entry.clone();
    kept.expires = kept.expires.filter(|day| !day.is_over(report.began));
    if let Some(actual) = &entry.actual {
        let before = actual.texts().map(str::to_owned);
        kept.actual = all_of(before.chain(seen(told)).collect());
    }
    if told.is_mended && kept.rate.is_none() {
        kept.rate = rate(told);
    }
    Some(kept)
}

/// An entry for what has failed and is in no file.
fn new(told: &Told<'_>) -> Option<KnownFailure> {
    let first = told.failed.first()?;
    let sentence = first.violations.first().map(|broken| &*broken.sentence);
    let sentence = sentence.unwrap_or(&first.title);
    Some(KnownFailure {
        case: first.id.to_string(),
        reason: format!("{TODO}: {sentence}"),
        link: TODO.to_owned(),
        sometimes: false,
        rate: rate(told),
        expires: None,
        actual: all_of(seen(told).collect()),
    })
}

fn rate(told: &Told<'_>) -> Option<Rate> {
    Rate::of(u32::try_from(told.failed.len()).ok()?, told.ran)
}

fn seen<'a>(told: &'a Told<'_>) -> impl Iterator<Item = String> + 'a {
    told.failed
        .iter()
        .flat_map(|outcome| outcome.seen.iter().cloned())
}

/// All these texts, in order; none if they are too many or too long to stand in a file.
fn all_of(texts: BTreeSet<String>) -> Option<Actual> {
    let fit = texts.len() <= MOST_ACTUAL && texts.iter().all(|text| text.len() <= LONGEST_ACTUAL);
    let texts: Vec<String> = texts.into_iter().filter(|_| fit).collect();
    match &texts[..] {
        [] => None,
        [one] => Some(Actual::One(one.clone())),
        _ => Some(Actual::AnyOf(texts)),
    }
}
