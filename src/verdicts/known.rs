//! Expectation files: known failures of a runtime, each with its reason and evidence.

mod entry;
#[cfg(test)]
mod tests;
mod texts;
mod when;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;

use super::plan;
use crate::case::{wrong_value, wrong_yaml};
use crate::history::{ExpectationFile, HostInstant};
use crate::outcome::{Kind, Outcome, Seen, Verdict};
use crate::yaml;

pub use entry::{KnownFailure, Rate};
pub(super) use texts::stable;
pub use texts::{Signatures, Texts};
use when::Version;
pub use when::{RuntimeFacts, Versions, When};

/// The name of a watch in `in` of an entry, in place of case ids: entries that name only cases do
/// not apply to foreign pods.
pub(super) const WATCH: &str = "watch";

/// A placeholder in a written file, for a person to replace.
pub(super) const TODO: &str = "TODO";

/// The known failures of one runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a file with `runtime:` and `known:`")]
pub struct Known {
    /// The runtime's name for itself, or `any`; a written file also has its version.
    pub runtime: String,
    /// The measured versions and their configuration, in a built-in file.
    #[serde(default)]
    pub measured: Option<String>,
    /// The number of runs in a draft of the file; `None` once it is finished.
    #[serde(default)]
    pub runs: Option<u32>,
    pub known: Vec<KnownFailure>,
    #[serde(skip)]
    path: String,
    #[serde(skip)]
    run: JudgedRun,
}

/// The run that a file is applied to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgedRun {
    /// The facts about its runtime.
    pub facts: RuntimeFacts,
    pub began: HostInstant,
}

/// The decided cases, for which a passed invariant is proven.
#[derive(Clone, Debug, Default)]
pub struct Decided<'a> {
    pub cases: BTreeSet<&'a str>,
    /// Whether these are all cases.
    pub all: bool,
}

/// The number of lost races, and of containers in which they could occur.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    pub findings: usize,
    pub containers: usize,
}

impl Known {
    /// Whether it is a file of this runtime. A written file also has its version.
    pub fn is_for(&self, runtime_name: &str) -> bool {
        let listed = self.runtime.split_whitespace().next().unwrap_or_default();
        listed == "any" || listed.eq_ignore_ascii_case(runtime_name)
    }

    /// Whether a version of the runtime is newer, by its first two numbers, than each that was
    /// measured. A built-in file names these before what they ran with.
    pub fn is_outdated_by(&self, version: &str) -> bool {
        let measured = self.measured.as_deref().unwrap_or_default();
        let of_runtime = measured.split(" with ").next().unwrap_or_default();
        let newest = of_runtime
            .split([' ', ','])
            .filter_map(Version::parse)
            .max();
        match (Version::parse(version), newest) {
            (Some(version), Some(newest)) => version.minor() > newest.minor(),
            _ => false,
        }
    }

    /// The same file under another name.
    pub(super) fn named(self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..self
        }
    }

    /// The same file, applied to a run. Otherwise no entry with a condition counts.
    pub fn for_a_run(self, run: JudgedRun) -> Self {
        Self { run, ..self }
    }

    /// Notes on expired and on unfinished entries, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let is_unfinished = |it: &&KnownFailure| it.link.contains(TODO) || it.reason.contains(TODO);
        let unfinished = self.known.iter().filter(is_unfinished);
        let unfinished: BTreeSet<&str> = unfinished.map(|it| &*it.case).collect();
        let unfinished = (!unfinished.is_empty()).then(|| {
            let ids: Vec<_> = unfinished.into_iter().collect();
            let (path, ids) = (&self.path, ids.join(", "));
            format!(
                "{path}: {TODO} in the entries of {ids}: say why they fail, and where to read more"
            )
        });
        let expired = self.expired().filter_map(|entry| {
            let (path, case, day) = (&self.path, &entry.case, entry.expires.as_ref()?);
            Some(format!(
                "{path}: the entry of {case} has expired on {day} and counts no more; see whether \
                 {case} is mended, and remove it or give it another day"
            ))
        });
        expired.chain(unfinished).collect()
    }

    /// The expired entries for the run's runtime.
    pub fn expired(&self) -> impl Iterator<Item = &KnownFailure> {
        let here = self.known.iter().filter(|entry| self.concerns(entry));
        here.filter(|entry| entry.is_over(self.run.began))
    }

    /// A note on a failure of which the user's file lists another finding.
    pub fn near_miss(&self, outcome: &Outcome) -> Option<String> {
        let listed = self.of(&outcome.id).next();
        listed.filter(|_| outcome.verdict == Verdict::Fail && self.path != plan::NAME)?;
        let mut seen = outcome.seen.keys();
        let found = seen.find(|seen| !self.lists(&outcome.id, seen))?;
        let (path, id, kind) = (&self.path, &outcome.id, found.signature.kind.key());
        let case = found.case.as_ref().map(|case| format!(" in {case}"));
        let case = case.unwrap_or_default();
        Some(format!(
            "{path} lists {id}, but not with `finding: {kind}`{case}, which is new"
        ))
    }

    /// The ids of all named cases and invariants.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let of_entries = self.known.iter();
        let of_entries = of_entries.flat_map(|entry| {
            let cases = entry.cases.iter().flat_map(Texts::iter);
            cases.chain([&*entry.case])
        });
        of_entries.filter(|id| *id != WATCH)
    }

    /// Whether an entry applies to the run's runtime.
    pub fn concerns(&self, entry: &KnownFailure) -> bool {
        let when = entry.when.as_ref();
        when.is_none_or(|when| when.holds(&self.run.facts))
    }

    /// The entries of a case or an invariant that apply to the run.
    pub fn of<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a KnownFailure> {
        let entries = self.known.iter().filter(move |entry| entry.case == id);
        entries.filter(|entry| self.concerns(entry) && !entry.is_over(self.run.began))
    }

    /// Whether a failure of this case or invariant is listed.
    pub fn lists(&self, id: &str, seen: &Seen) -> bool {
        self.of(id).any(|entry| entry.covers(seen))
    }

    /// Marks a listed failure as known, and a listed case that passed as unexpected.
    pub fn apply(&self, outcome: &mut Outcome, decided: &Decided<'_>) {
        match outcome.verdict {
            Verdict::Fail => {
                let known = self.explaining(outcome).map(|entries| {
                    let race = entries.iter().all(|entry| entry.is_race());
                    (race, explanations(&entries), self.pages(&entries))
                });
                if let Some((race, reason, pages)) = known {
                    (outcome.verdict, outcome.race) = (Verdict::Known, race);
                    (outcome.reason, outcome.pages) = (Some(reason), pages);
                }
            }
            Verdict::Pass => {
                if let Some(entry) = self.unmet(outcome, decided) {
                    outcome.verdict = Verdict::UnexpectedPass;
                    outcome.reason = Some(format!(
                        "{} lists it as failing: {}; if it is mended, remove the entry",
                        self.path,
                        entry.reason.trim(),
                    ));
                }
            }
            Verdict::Known
            | Verdict::UnexpectedPass
            | Verdict::Skip
            | Verdict::Inconclusive
            | Verdict::Error => {}
        }
    }

    /// The reason for a failure and the names of the pages about it, if all findings are listed.
    pub fn explanation(&self, outcome: &Outcome) -> Option<(String, BTreeSet<String>)> {
        let entries = self.explaining(outcome)?;
        Some((explanations(&entries), self.pages(&entries)))
    }

    /// The pages of these entries, each with its folder: `containerd/oom-reason-lost`.
    fn pages(&self, entries: &[&KnownFailure]) -> BTreeSet<String> {
        let runtime = self.runtime.split_whitespace().next().unwrap_or_default();
        let pages = entries.iter().filter_map(|entry| entry.page.as_ref());
        pages.map(|page| format!("{runtime}/{page}")).collect()
    }

    /// The entries that list all findings, at least one.
    fn explaining<'a>(&'a self, outcome: &'a Outcome) -> Option<Vec<&'a KnownFailure>> {
        let seen = outcome.seen.keys();
        let covering = |seen| self.of(&outcome.id).find(|entry| entry.covers(seen));
        let entries: Option<Vec<_>> = seen.map(covering).collect();
        entries.filter(|entries| !entries.is_empty())
    }

    /// The message that a race was lost more often than its bound permits, if one was. `losses`
    /// returns the count for an entry.
    pub fn broken_bound(
        &self,
        outcome: &Outcome,
        losses: impl Fn(&KnownFailure) -> Losses,
    ) -> Option<String> {
        let seen = |entry: &&KnownFailure| outcome.seen.keys().any(|seen| entry.covers(seen));
        self.of(&outcome.id).filter(seen).find_map(|entry| {
            let bound = entry.at_most?;
            let Losses {
                findings,
                containers,
            } = losses(entry);
            bound.is_broken_by(findings, containers).then(|| {
                format!(
                    "the race is lost {findings} times in {containers} containers, more often than \
                     chance explains: at most {bound} are known to. {}",
                    entry.explanation()
                )
            })
        })
    }

    /// An entry that a passed outcome proves to be fixed.
    fn unmet(&self, outcome: &Outcome, decided: &Decided<'_>) -> Option<&KnownFailure> {
        let proved = |entry: &&KnownFailure| match &entry.cases {
            _ if !outcome.is_invariant() => true,
            Some(cases) => cases.iter().all(|case| decided.cases.contains(case)),
            None => decided.all,
        };
        // That of `outcome` lives shorter than the entry.
        let id = &*outcome.id;
        let entries = self.known.iter().filter(|entry| entry.case == id);
        let entries = entries.filter(|entry| self.concerns(entry));
        let mut certain =
            entries.filter(|entry| !entry.is_race() && !entry.is_over(self.run.began));
        certain.find(proved)
    }

    /// Reads the text of an expectation file.
    pub fn parse(file: &ExpectationFile) -> Result<Self, String> {
        let known: Self = yaml::read(&file.text)
            .map_err(|fault| wrong_yaml(Path::new(&file.path), &file.text, &fault))?;
        match known.fault() {
            Some((case, fault)) => {
                let path = Path::new(&file.path);
                Err(wrong_value(path, &file.text, case, fault))
            }
            None => Ok(Self {
                path: file.path.clone(),
                ..known
            }),
        }
    }

    /// The error for a `finding` of a kind that its case or invariant cannot have, with the id, if
    /// any; `kinds` has the kinds by id.
    pub fn impossible_finding(
        &self,
        kinds: &BTreeMap<&str, BTreeSet<Kind>>,
    ) -> Option<(&str, String)> {
        self.known.iter().enumerate().find_map(|(place, entry)| {
            let possible = kinds.get(&*entry.case)?;
            let findings = entry.finding.iter().flat_map(Signatures::iter);
            let mut wanted = findings.map(|finding| finding.kind);
            let kind = wanted.find(|kind| !possible.contains(kind))?;
            let possible: Vec<String> = possible.iter().map(|kind| format!("`{kind}`")).collect();
            let fault = format!(
                "entry {} of `known:`: {} cannot have the finding `{kind}`, so the entry would \
                 accept nothing; it can have {}",
                place + 1,
                entry.case,
                possible.join(", ")
            );
            Some((&*entry.case, fault))
        })
    }

    /// The first entry that is certainly a mistake, if any: its case, and the error.
    fn fault(&self) -> Option<(&str, String)> {
        if let Some(entry) = self.known.iter().find(|entry| {
            let is_invariant = entry.case.starts_with("INV-");
            entry.cases.is_some() && !is_invariant
        }) {
            let case = &entry.case;
            let fault = format!(
                "the entry of `{case}` has `in`, which names the cases that break an invariant; \
                 {case} is a case itself"
            );
            return Some((case, fault));
        }
        let mut entries = self.known.iter();
        let condition = |entry: &KnownFailure| entry.when.as_ref().and_then(When::fault);
        entries
            .find_map(|entry| Some((&*entry.case, condition(entry)?)))
            .or_else(|| self.ambiguous())
    }

    /// Two entries that can both apply, if any.
    fn ambiguous(&self) -> Option<(&str, String)> {
        let entries = self.known.iter().enumerate();
        entries.clone().find_map(|(place, entry)| {
            let mut earlier = entries.clone().take(place);
            let (first, _) = earlier.find(|(_, earlier)| earlier.meets(entry))?;
            let fault = format!(
                "`{}` is listed twice, by the entries {} and {}, for the same failures: make them \
                 one, or give them `when`, `in` or `finding` that exclude each other",
                entry.case,
                first + 1,
                place + 1
            );
            Some((&*entry.case, fault))
        })
    }
}

/// The JSON Schema of an expectation file.
pub fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12();
    settings.into_generator().into_root_schema_for::<Known>()
}

/// The reasons in these entries, each once.
fn explanations(entries: &[&KnownFailure]) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for entry in entries {
        let reason = entry.explanation();
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons.join("; ")
}
