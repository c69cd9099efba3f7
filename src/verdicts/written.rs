//! An expectation file written from the failures of one run or several, for a person to finish.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::known::{Known, KnownFailure, Rate, Signatures, TODO, Texts, stable};
use crate::outcome::{Outcome, RunReport, Seen, Signature, Verdict};

/// The head of the file.
const HEAD: &str = "\
# Known failures, as runs have found them. Before this is used: of each entry that says TODO, say
# under `reason` why it fails, and under `link` where more is said of it, an issue or the runtime's
# source. `finding` is the kind of what was found, with values that were seen: any other failure of
# the case is no known one; in a text `…` stands for what changes. A race that is lost in some runs only has `rate: 2/20`, seen in 2 of 20 runs;
# `at-most: 5/1000` fails a run that loses it more often. `when: {version: '<2.3'}` is for some
# runtimes alone. With `expires: 2026-12-31` an entry counts no more after that day.
# `runs` is of how many runs this is made: another one adds to their rates. Remove it in the end.
";

/// The maximum number of findings in an entry. With more, the entry matches any failure of its
/// case.
const MOST_FINDINGS: usize = 20;

/// The maximum length of a text, in bytes; a longer one is truncated.
const LONGEST_TEXT: usize = 500;

/// The maximum number of entries of one invariant; more are combined into one.
const MOST_ENTRIES: usize = 8;

/// The results of the runs for one case or invariant.
#[derive(Default)]
struct Judged<'a> {
    /// The number of decided executions.
    ran: u32,
    /// The failed ones, known or not.
    failed: Vec<&'a Outcome>,
    /// It passed, although it is listed.
    is_mended: bool,
}

/// The kinds of failures without an entry, each with the cases that break an invariant in this way.
type New = BTreeMap<Signature, BTreeSet<Arc<str>>>;

#[derive(Serialize)]
struct File<'a> {
    runtime: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<u32>,
    known: &'a [KnownFailure],
}

/// The input for a file.
struct Writing<'a> {
    reports: &'a [RunReport],
    known: &'a Known,
    judged: BTreeMap<&'a str, Judged<'a>>,
    /// The number of runs in the earlier draft; `None` if it is finished.
    runs: Option<u32>,
}

/// The text of an expectation file with which no run would have had a failure: those entries of
/// `known` that no run has shown to be fixed, and then one for each case that failed, in the order
/// of the plan, and for each kind of failure of an invariant.
///
/// If the case of an entry failed in another way, its `finding` is extended; an expired entry that
/// still fails loses its day. A failure in only some executions gets its rate, also if `known` is
/// an unfinished draft of other runs.
pub fn expectations(reports: &[RunReport], known: &Known) -> String {
    let is_begun = known.known.is_empty();
    let writing = Writing {
        reports,
        known,
        judged: judged(reports),
        runs: known.runs.or(is_begun.then_some(0)),
    };
    let kept = known.known.iter().filter_map(|entry| writing.kept(entry));
    let mut entries: Vec<KnownFailure> = kept.collect();
    let mut seen = BTreeSet::new();
    for outcome in reports.iter().flat_map(|report| &report.outcomes) {
        if seen.insert(&*outcome.id) {
            entries.extend(writing.new_entries(outcome));
        }
    }
    let runtime = reports.first().map(|report| &report.info.runtime);
    let runtime = runtime.map(|it| format!("{} {}", it.runtime_name, it.runtime_version));
    let more = u32::try_from(reports.len()).unwrap_or(u32::MAX);
    let file = File {
        runtime: runtime.unwrap_or_default(),
        runs: writing.runs.map(|before| before.saturating_add(more)),
        known: &entries,
    };
    let text = serde_yaml::to_string(&file).expect("texts and lists can be written as YAML");
    format!("{HEAD}{text}")
}

fn judged(reports: &[RunReport]) -> BTreeMap<&str, Judged<'_>> {
    let mut all = BTreeMap::<&str, Judged<'_>>::new();
    for outcome in reports.iter().flat_map(|report| &report.outcomes) {
        let judged = all.entry(&*outcome.id).or_default();
        let passed = outcome.verdict.has_passed();
        let failed = outcome.verdict.has_failed();
        judged.ran += u32::from(passed || failed);
        judged.is_mended |= outcome.verdict == Verdict::UnexpectedPass;
        if failed {
            judged.failed.push(outcome);
        }
    }
    all
}

impl Writing<'_> {
    /// An entry after the runs, if it still applies.
    fn kept(&self, entry: &KnownFailure) -> Option<KnownFailure> {
        let judged = self
            .judged
            .get(&*entry.case)
            .filter(|judged| judged.ran > 0);
        let Some(judged) = judged.filter(|_| self.known.concerns(entry)) else {
            let is_over = self.known.concerns(entry) && self.is_over(entry);
            return (!is_over).then(|| entry.clone());
        };
        let new = self.new_in(entry, judged);
        let failed = judged.failed.iter().filter(|outcome| {
            let mut seen = outcome.seen.keys();
            outcome.seen.is_empty()
                || seen.any(|seen| entry.covers(seen) || new.contains_key(&kind(seen)))
        });
        let failed = u32::try_from(failed.count()).unwrap_or(u32::MAX);
        let is_gone =
            failed == 0 && (self.is_over(entry) || judged.is_mended && self.runs.is_none());
        if is_gone {
            return None;
        }
        let mut kept = entry.clone();
        if failed > 0 && self.is_over(entry) {
            kept.expires = None;
        }
        if let Some(finding) = entry.finding.as_ref().filter(|_| !new.is_empty()) {
            let before = finding.iter().cloned();
            kept.finding = all_of(before.chain(new.into_keys()).collect());
        }
        let (before_failed, before) = match (self.runs, entry.rate) {
            (Some(_), Some(rate)) => (rate.seen, rate.runs),
            (Some(before), None) => (before, before),
            (None, _) => (0, 0),
        };
        let is_counted = self.runs.is_some() && entry.rate.is_some() || !entry.is_race();
        if is_counted {
            kept.rate = Rate::of(before_failed + failed, before + judged.ran);
        }
        Some(kept)
    }

    fn is_over(&self, entry: &KnownFailure) -> bool {
        let mut reports = self.reports.iter();
        reports.any(|report| entry.is_over(report.began))
    }

    /// Entries for failures without an entry.
    fn new_entries(&self, outcome: &Outcome) -> Vec<KnownFailure> {
        let Some(judged) = self.judged.get(&*outcome.id) else {
            return Vec::new();
        };
        let new = self.unlisted(&outcome.id, judged);
        let mut kinds = BTreeMap::<BTreeSet<Arc<str>>, BTreeSet<Signature>>::new();
        for (kind, cases) in new {
            kinds.entry(cases).or_default().insert(kind);
        }
        if kinds.len() > MOST_ENTRIES && self.entries(&outcome.id).next().is_none() {
            let cases = kinds.keys().flatten().cloned().collect();
            kinds = [(cases, kinds.into_values().flatten().collect())].into();
        }
        let is_added_to = !outcome.is_invariant() && self.entries(&outcome.id).next().is_some();
        let kinds = kinds.into_iter().filter(|_| !is_added_to);
        kinds
            .filter_map(|(cases, kinds)| self.new_entry(judged, &cases, kinds))
            .collect()
    }

    fn new_entry(
        &self,
        judged: &Judged<'_>,
        cases: &BTreeSet<Arc<str>>,
        kinds: BTreeSet<Signature>,
    ) -> Option<KnownFailure> {
        let of_kind = |outcome: &&&Outcome| {
            let mut seen = outcome.seen.keys();
            seen.any(|seen| kinds.contains(&kind(seen)))
        };
        let failed: Vec<_> = judged.failed.iter().filter(of_kind).collect();
        let first = failed.first()?;
        let mut violations = first.violations.iter();
        let sentence =
            violations.find(|broken| kinds.contains(&general(&broken.mismatch.signature())));
        let sentence = sentence.map_or(&*first.title, |broken| &*broken.sentence);
        let count = u32::try_from(failed.len()).unwrap_or(u32::MAX);
        Some(KnownFailure {
            case: first.id.to_string(),
            reason: format!("{TODO}: {sentence}"),
            link: TODO.to_owned(),
            cases: Texts::new(cases.iter().map(ToString::to_string)),
            rate: Rate::of(count, judged.ran + self.runs.unwrap_or_default()),
            finding: all_of(kinds),
            ..KnownFailure::default()
        })
    }

    /// The kinds of failures of a case or an invariant without an entry.
    fn unlisted(&self, id: &str, judged: &Judged<'_>) -> New {
        let failed = judged.failed.iter();
        let failed = failed.filter(|outcome| outcome.verdict == Verdict::Fail);
        let mut new = New::new();
        for seen in failed.flat_map(|outcome| outcome.seen.keys()) {
            if !self.entries(id).any(|entry| entry.covers(seen)) {
                new.entry(kind(seen)).or_default().extend(seen.case.clone());
            }
        }
        new
    }

    /// The failures to add to an entry.
    fn new_in(&self, entry: &KnownFailure, judged: &Judged<'_>) -> New {
        let first = self.entries(&entry.case).next();
        let is_first = first.is_some_and(|first| std::ptr::eq(first, entry));
        let is_invariant = judged
            .failed
            .first()
            .is_some_and(|outcome| outcome.is_invariant());
        if is_first && !is_invariant {
            self.unlisted(&entry.case, judged)
        } else {
            New::new()
        }
    }

    /// The entries of a case or an invariant on this runtime, including expired ones.
    fn entries<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a KnownFailure> {
        let entries = self.known.known.iter();
        entries.filter(move |entry| entry.case == id && self.known.concerns(entry))
    }
}

/// A finding in the form that another run can repeat.
fn kind(seen: &Seen) -> Signature {
    general(&seen.signature)
}

/// A finding with `…` for the parts of its texts that change from run to run.
fn general(signature: &Signature) -> Signature {
    let facts = signature.facts.iter();
    Signature {
        kind: signature.kind,
        facts: facts.map(|fact| fact.map_text(shortened)).collect(),
    }
}

fn shortened(actual: &str) -> String {
    let kind = stable(actual);
    let Some((end, _)) = kind.char_indices().find(|(at, _)| *at > LONGEST_TEXT) else {
        return kind;
    };
    format!("{}…", kind[..end].trim_end_matches('…'))
}

/// All these findings, in order; `None` if they are too many for a file.
fn all_of(findings: BTreeSet<Signature>) -> Option<Signatures> {
    Signatures::new(findings).filter(|findings| findings.iter().count() <= MOST_FINDINGS)
}
