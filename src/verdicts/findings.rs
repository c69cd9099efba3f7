//! Violations of invariants in the histories of all cases, with their evidence.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::known::{Known, WATCH};
use crate::case::Case;
use crate::history::{CaseHistory, CaseRun, Entry, Observed, Seq, cut};
use crate::limits;
use crate::oracle::{self, INVARIANTS, Index, WholeRun};
use crate::outcome::{Level, Levels, Mismatch, Outcome, Profile, Seen, Verdict, Violation};

/// The maximum number of displayed violations of one invariant.
const SHOWN_VIOLATIONS: usize = 5;
/// The maximum number of different findings that are counted by what they see; others are counted
/// without that.
const COUNTED: usize = 1_000;
/// The maximum number of displayed history entries of one outcome.
const EVIDENCE_ENTRIES: usize = 60;

/// The violations of all invariants, in the order in which their cases ended, regardless of the
/// order of judging.
#[derive(Debug, Default)]
pub(super) struct Findings {
    found: BTreeMap<Seq, (Option<CaseRun>, Vec<Found>)>,
    /// Findings about the pods of a watch that are only counted, since a watch may run forever.
    counted: BTreeMap<(Sort, Seen), usize>,
    /// The number of those beyond [`COUNTED`].
    others: BTreeMap<Sort, usize>,
    /// The latest of these, so that none counts again at the end.
    latest: VecDeque<Violation>,
    /// Sorts that reached [`SHOWN_VIOLATIONS`]: later violations of them are only counted.
    filled: Arc<BTreeSet<Sort>>,
}

/// Violations of one invariant by its id, either known or new ones, of one level.
pub(super) type Sort = (String, bool, Level);

#[derive(Debug)]
pub(super) struct Found {
    violation: Violation,
    evidence: Vec<Arc<Entry>>,
    /// The id of the case that broke it, [`WATCH`] for a foreign pod; `None` if it broke after the
    /// case had been judged.
    case: Option<Arc<str>>,
    listed: bool,
    levels: Levels,
}

impl Found {
    /// A violation without evidence so far.
    fn new(violation: Violation, case: Option<Arc<str>>, known: &Known) -> Self {
        let mut found = Self {
            levels: levels_of(&violation.rule),
            violation,
            evidence: Vec::new(),
            case,
            listed: false,
        };
        found.listed = known.lists(found.rule(), &found.seen());
        found
    }

    pub(super) fn rule(&self) -> &str {
        &self.violation.rule
    }

    pub(super) fn violation(&self) -> &Violation {
        &self.violation
    }

    pub(super) fn is_listed(&self) -> bool {
        self.listed
    }

    /// The estimated memory of the evidence, in bytes.
    fn bytes(&self) -> usize {
        let entries = self.evidence.iter();
        entries.map(|entry| entry.approximate_bytes()).sum()
    }

    /// Whether it is a failure in one of these profiles.
    pub(super) fn binds(&self, profiles: &[Profile]) -> bool {
        let binds = self.levels.highest_of(profiles);
        binds == Some(Level::Must) && self.violation.level == Level::Must
    }

    fn seen(&self) -> Seen {
        Seen {
            signature: self.violation.mismatch.signature(),
            case: self.case.clone(),
        }
    }

    fn sort(&self) -> Sort {
        let Violation { rule, level, .. } = &self.violation;
        (rule.clone(), self.listed, *level)
    }
}

impl Findings {
    /// Adds the findings of a case that ended at `ended`.
    pub(super) fn add(&mut self, case: CaseRun, ended: Seq, mut found: Vec<Found>) {
        for found in &mut found {
            let before = self.found.range(..ended).flat_map(|(_, (_, found))| found);
            let sort = found.sort();
            let same = before.filter(|before| before.sort() == sort);
            if same.take(SHOWN_VIOLATIONS).count() == SHOWN_VIOLATIONS {
                found.evidence = Vec::new();
                if !self.filled.contains(&sort) {
                    Arc::make_mut(&mut self.filled).insert(sort);
                }
            }
        }
        if !found.is_empty() {
            self.found.insert(ended, (Some(case), found));
        }
    }

    /// Adds the findings of a pod of a watch whose history ended at `ended`.
    pub(super) fn add_pod(&mut self, ended: Seq, found: Vec<Found>) {
        for mut found in found {
            let sort = found.sort();
            let shown = self.all().filter(|before| before.sort() == sort).count();
            if shown < SHOWN_VIOLATIONS {
                let kept: usize = self.all().map(Found::bytes).sum();
                if kept + found.bytes() > limits::WATCH_ASIDE_BYTES {
                    found.evidence = Vec::new();
                }
                let of_place = self.found.entry(ended).or_default();
                of_place.1.push(found);
                continue;
            }
            if !self.filled.contains(&sort) {
                Arc::make_mut(&mut self.filled).insert(sort.clone());
            }
            let place = (sort, found.seen());
            if self.counted.len() < COUNTED || self.counted.contains_key(&place) {
                *self.counted.entry(place).or_default() += 1;
            } else {
                *self.others.entry(place.0).or_default() += 1;
            }
            if self.latest.len() == limits::RUN_CONTAINERS {
                self.latest.pop_front();
            }
            // The end of a stream is recognized by its entry, which comes first.
            self.latest.push_back(Violation {
                mismatch: Mismatch::new(found.violation.mismatch.kind, [], []),
                evidence: found.violation.evidence.into_iter().take(2).collect(),
                ..found.violation
            });
        }
    }

    /// Drops the findings of a case that was not judged.
    pub(super) fn forget(&mut self, case: CaseRun) {
        self.found.retain(|_, (of, _)| *of != Some(case));
        self.filled = Arc::default();
    }

    /// The sorts for which a case that ends now needs no evidence.
    pub(super) fn filled(&self) -> Arc<BTreeSet<Sort>> {
        self.filled.clone()
    }

    /// Judges the entries after the end of the cases, or for a watch those of no single pod.
    pub(super) fn judge_late(
        &mut self,
        ended: Seq,
        (whole_run, case): (&WholeRun, Option<&str>),
        known: &Known,
    ) {
        let shown = self.all().map(|found| found.violation.clone());
        let earlier: Vec<Violation> = shown.chain(self.latest.iter().cloned()).collect();
        let late = whole_run.violations(&earlier).into_iter();
        let late = late.map(|violation| Found::new(violation, case.map(Into::into), known));
        let of_place = self.found.entry(ended).or_default();
        of_place.1.extend(late);
    }

    /// Adds the findings of an invariant to its outcome, new ones first. Violations of a lower
    /// level than MUST are added as advice.
    pub(super) fn add_to_outcome(&self, invariant: &str, outcome: &mut Outcome) {
        let all = || self.all().filter(|found| found.violation.rule == invariant);
        let advice = all().filter(|found| found.violation.level != Level::Must);
        for found in advice.take(SHOWN_VIOLATIONS) {
            outcome.advice.push(found.violation.clone());
            outcome.evidence.extend(found.evidence.iter().cloned());
        }
        let found = || all().filter(|found| found.violation.level == Level::Must);
        let is_of = |(rule, is_listed, level): &Sort, listed: Option<bool>| {
            let is_wanted = listed.is_none_or(|listed| listed == *is_listed);
            rule == invariant && *level == Level::Must && is_wanted
        };
        let counted = |listed: Option<bool>| {
            let counted = self.counted.iter();
            let counted = counted.filter(move |((sort, _), _)| is_of(sort, listed));
            counted.map(|((_, seen), count)| (seen, *count))
        };
        let sum = |listed| {
            let others = self.others.iter().filter(|(sort, _)| is_of(sort, listed));
            let counted = counted(listed).map(|(_, count)| count);
            counted.sum::<usize>() + others.map(|(_, count)| count).sum::<usize>()
        };
        let count = found().count() + sum(None);
        if count > 0 {
            outcome.verdict = Verdict::Fail;
        }
        let news = || found().filter(|found| !found.listed);
        let new = news().count() + sum(Some(false));
        if 0 < new && new < count {
            outcome.reason = Some(format!(
                "{count} times in all; {new} not listed as known, shown first"
            ));
        } else if count > SHOWN_VIOLATIONS {
            outcome.reason = Some(format!(
                "{count} times in all; the details show {SHOWN_VIOLATIONS}"
            ));
        }
        let cases: BTreeSet<&Arc<str>> = all().filter_map(|found| found.case.as_ref()).collect();
        let cases = cases.into_iter().filter(|case| ***case != *WATCH);
        outcome.broken_in = cases.cloned().collect();
        outcome.broken_levels = all().fold(Levels::default(), |levels, found| {
            levels.or_higher(&found.levels)
        });
        let listed = found().filter(|found| found.listed);
        for found in news().chain(listed).take(SHOWN_VIOLATIONS) {
            outcome.violations.push(found.violation.clone());
            outcome.evidence.extend(found.evidence.iter().cloned());
        }
        outcome.evidence.sort_by_key(|entry| entry.seq);
        outcome.evidence.dedup_by_key(|entry| entry.seq);
        for found in found() {
            *outcome.seen.entry(found.seen()).or_default() += 1;
        }
        for (seen, count) in counted(None) {
            *outcome.seen.entry(seen.clone()).or_default() += count;
        }
    }

    fn all(&self) -> impl Iterator<Item = &Found> {
        self.found.values().flat_map(|(_, found)| found)
    }
}

/// The subject of a judged history.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Case(&'a Case),
    /// A foreign pod, by its name.
    Pod(&'a str),
}

/// Judges an ended history by all invariants, without evidence for the sorts in `enough`.
pub(super) fn find(
    (place, profiles): (Place<'_>, &[Profile]),
    index: &Index<'_>,
    known: &Known,
    enough: &BTreeSet<Sort>,
) -> Vec<Found> {
    let mut counts = BTreeMap::<Sort, usize>::new();
    let (id, mut of_place): (Option<Arc<str>>, String) = match place {
        Place::Case(case) => (Some(case.id.as_str().into()), format!("in {}", case.id)),
        Place::Pod(pod) => (Some(WATCH.into()), format!("of pod {pod}")),
    };
    cut(&mut of_place);
    let of_history = |mut violation: Violation| {
        let own = levels_of(&violation.rule);
        let levels = match place {
            Place::Case(case) => case.levels_of(&violation.rule, own),
            Place::Pod(_) => own,
        };
        violation.level = levels.highest_of(profiles).unwrap_or(Level::May);
        let mut found = Found::new(violation, id.clone(), known);
        found.levels = levels;
        let sort = found.sort();
        let is_enough = enough.contains(&sort);
        let count = counts.entry(sort).or_default();
        *count += 1;
        if *count <= SHOWN_VIOLATIONS && !is_enough {
            found.evidence = slice(index.history, [&found.violation]);
        }
        found.violation.subject = format!("{} {of_place}", found.violation.subject);
        found
    };
    let violations = oracle::invariants(index).into_iter();
    violations.map(of_history).collect()
}

/// The requirement levels of an invariant.
fn levels_of(rule: &str) -> Levels {
    let invariant = INVARIANTS.iter().find(|invariant| invariant.id == rule);
    invariant.map(|found| found.levels).unwrap_or_default()
}

/// The entries that prove these violations, then their context, up to [`EVIDENCE_ENTRIES`].
pub(super) fn slice<'a>(
    history: &CaseHistory,
    violations: impl IntoIterator<Item = &'a Violation>,
) -> Vec<Arc<Entry>> {
    let violations: Vec<&Violation> = violations.into_iter().take(SHOWN_VIOLATIONS).collect();
    let mut seqs: Vec<Seq> = violations.iter().flat_map(|v| v.evidence.clone()).collect();
    for violation in violations {
        seqs.extend(oracle::context(history, violation));
    }
    let mut kept = BTreeSet::new();
    for seq in seqs {
        if kept.len() < EVIDENCE_ENTRIES {
            kept.insert(seq);
        }
    }
    let observed = history.observed().flat_map(Observed::entries);
    let all = history.entries().iter().chain(observed);
    let mut shown: Vec<_> = all
        .filter(|entry| kept.contains(&entry.seq))
        .cloned()
        .collect();
    shown.sort_by_key(|entry| entry.seq);
    shown
}
