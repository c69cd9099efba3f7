//! The changes between two JSON reports: of cases and invariants, and of the profiles.
//!
//! Outcomes are compared by their ids; for a repeated case the worst of its verdicts counts, and
//! its failure rate is shown. A gate decides whether that exceeds chance. The tested runtimes and
//! suites are shown and not compared, so the reports may be of different runtimes.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use serde::Serialize;

use super::json::{Broken, CaseOutcome, Document};
use super::printable::{cut, printable};
use super::rate::{Rate, Tested, by_id, in_order};
use crate::outcome::{Conformance, Level, Profile, Standing, Verdict};

/// The maximum length of a name, in characters.
const NAME: usize = 200;

/// The changes from one report to a later one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    pub before: About,
    pub after: About,
    /// Ids that now fail, that fail in an unknown way, or that passed and cannot be decided. A
    /// known failure counts if it passed before and is no race.
    pub worse: Vec<Change>,
    /// Ids that now pass, and failed or could not be decided before.
    pub better: Vec<Change>,
    pub other: Vec<Change>,
    /// Ids only in the later report.
    pub new: Vec<Change>,
    /// Ids only in the earlier report.
    pub gone: Vec<Change>,
    /// Ids that now break a SHOULD. That is advice, and no regression.
    pub should_broken: Vec<Should>,
    /// Ids that no longer break a SHOULD.
    pub should_mended: Vec<Should>,
    pub profiles: Vec<ProfileChange>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct About {
    /// The runtime's name and version, and the injected defects.
    pub runtime: String,
    /// Version and commit of the suite.
    pub suite: String,
    pub began: String,
    /// The tier of the run; `None` if all cases were selected, or of a watch.
    pub tier: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub id: String,
    pub name: String,
    /// The verdict in the earlier report, if any.
    pub before: Option<Verdict>,
    /// The verdict in the later report, if any.
    pub after: Option<Verdict>,
    /// The failure rate in the earlier report.
    pub before_rate: Rate,
    /// The failure rate in the later report.
    pub after_rate: Rate,
}

/// A case or an invariant with a SHOULD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Should {
    pub id: String,
    pub name: String,
    /// The expected state, from the report in which it is broken.
    pub expected: String,
    pub actual: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProfileChange {
    pub profile: Profile,
    /// The verdict in the earlier report; `None` if not judged.
    pub before: Option<Conformance>,
    /// The verdict in the later report; `None` if not judged.
    pub after: Option<Conformance>,
    /// Whether the later verdict is weaker.
    pub worse: bool,
}

impl Comparison {
    /// Compares an earlier report with a later one.
    pub fn of(before: &Document, after: &Document) -> Self {
        let mut compared = Self {
            profiles: Vec::new(),
            should_broken: after.should_unlike(before),
            should_mended: before.should_unlike(after),
            worse: Vec::new(),
            better: Vec::new(),
            other: Vec::new(),
            new: Vec::new(),
            gone: Vec::new(),
            before: before.about(),
            after: after.about(),
        };
        let (earlier, later) = (by_id(&before.outcomes), by_id(&after.outcomes));
        let certain = after.certainly_known();
        for Tested { first, .. } in in_order(after.outcomes.iter().chain(&before.outcomes)) {
            let id = first.id.as_str();
            let (was, is) = (earlier.get(id), later.get(id));
            let change = Change {
                id: first.id.clone(),
                name: first.name.clone(),
                before: was.map(|it| it.worst.verdict),
                after: is.map(|it| it.worst.verdict),
                before_rate: was.map(|it| it.rate).unwrap_or_default(),
                after_rate: is.map(|it| it.rate).unwrap_or_default(),
            };
            compared.sort_in(change, certain.contains(id));
        }
        compared.profiles = profiles(before, after, &compared.worse);
        compared
    }

    /// Whether anything is worse: a case, an invariant or a profile.
    pub fn is_worse(&self) -> bool {
        !self.worse.is_empty() || self.profiles.iter().any(|profile| profile.worse)
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for (word, about) in [("before", &self.before), ("after", &self.after)] {
            let [runtime, suite, began] =
                [&about.runtime, &about.suite, &about.began].map(|it| cut(it, NAME));
            // Writing to a string cannot fail.
            let tier = about.tier.as_ref();
            let tier = tier.map_or_else(String::new, |it| format!(", tier {}", cut(it, NAME)));
            let _ = writeln!(text, "{word:<8} {runtime}, suite {suite}, {began}{tier}");
        }
        let kinds = [
            ("worse", &self.worse),
            ("better", &self.better),
            ("changed", &self.other),
            ("new", &self.new),
            ("gone", &self.gone),
        ];
        for (word, changes) in kinds {
            for change in changes {
                let (id, name) = (cut(&change.id, NAME), cut(&change.name, NAME));
                let verdicts = change.verdicts();
                let _ = writeln!(text, "{word:<8} {id} {name}: {verdicts}");
            }
        }
        let shoulds = [
            ("should", &self.should_broken),
            ("mended", &self.should_mended),
        ];
        for (word, shoulds) in shoulds {
            for should in shoulds {
                let Should {
                    expected, actual, ..
                } = should;
                let (id, name) = (cut(&should.id, NAME), cut(&should.name, NAME));
                let (expected, actual) = (cut(expected, NAME), cut(actual, NAME));
                let _ = writeln!(
                    text,
                    "{word:<8} {id} {name}: expected {expected}; actual {actual}"
                );
            }
        }
        for change in &self.profiles {
            let word = if change.worse { "worse" } else { "changed" };
            let verdicts = arrow(change.before, change.after);
            let _ = writeln!(text, "{word:<8} profile {}: {verdicts}", change.profile);
        }
        let counts = kinds.map(|(word, changes)| format!("{} {word}", changes.len()));
        let _ = write!(text, "{}", counts.join(", "));
        let [broken, mended] = shoulds.map(|(_, shoulds)| shoulds.len());
        if broken + mended > 0 {
            let _ = write!(text, "; SHOULDs: {broken} newly broken, {mended} mended");
        }
        text.push('\n');
        text
    }

    /// Adds a change to its list; `certain` if the failure is known and no race.
    fn sort_in(&mut self, change: Change, certain: bool) {
        let list = match (change.before, change.after) {
            (None, _) => &mut self.new,
            (_, None) => &mut self.gone,
            (Some(before), Some(after)) if before == after => {
                if change.before_rate.is_as_high_as(change.after_rate) {
                    return;
                }
                &mut self.other
            }
            (Some(before), Some(Verdict::Known)) if !(certain && before.has_passed()) => {
                &mut self.other
            }
            (Some(before), Some(after)) if is_worse(before, after) => &mut self.worse,
            (Some(before), Some(after)) if is_better(before, after) => &mut self.better,
            _ => &mut self.other,
        };
        list.push(change);
    }
}

impl Change {
    /// Whether it was repeated in one of the reports.
    fn is_of_several(&self) -> bool {
        self.before_rate.is_of_several() || self.after_rate.is_of_several()
    }

    /// Both verdicts; for a repeated case with its failure rates.
    fn verdicts(&self) -> String {
        let with_rate = |verdict: Option<Verdict>, rate: Rate| match verdict {
            Some(verdict) if self.is_of_several() => Some(format!("{verdict} ({rate} failed)")),
            verdict => verdict.map(|verdict| verdict.to_string()),
        };
        let before = with_rate(self.before, self.before_rate);
        arrow(before, with_rate(self.after, self.after_rate))
    }
}

impl Document {
    fn about(&self) -> About {
        About {
            runtime: self.subject(),
            suite: self.suite.clone(),
            began: self.began.clone(),
            tier: self.tier.clone(),
        }
    }

    /// The broken SHOULDs of this report that were decided and kept in the other one.
    fn should_unlike(&self, there: &Self) -> Vec<Should> {
        let is_decided = |it: &&CaseOutcome| it.verdict.has_passed() || it.verdict.has_failed();
        let decided = there.outcomes.iter().filter(is_decided);
        let mut kept: BTreeSet<&str> = decided.map(|outcome| &*outcome.id).collect();
        for outcome in &there.outcomes {
            if outcome.should().is_some() {
                kept.remove(&*outcome.id);
            }
        }
        let broken = self.outcomes.iter().filter_map(|outcome| {
            let broken = outcome.should()?;
            // Each id once.
            kept.remove(&*outcome.id).then(|| Should {
                id: outcome.id.clone(),
                name: outcome.name.clone(),
                expected: broken.expected.clone(),
                actual: broken.actual.clone(),
            })
        });
        broken.collect()
    }

    /// The ids with a known failure that is no race.
    fn certainly_known(&self) -> BTreeSet<&str> {
        let known = |it: &&CaseOutcome| it.verdict == Verdict::Known && !it.race;
        let known = self.outcomes.iter().filter(known);
        known.map(|outcome| &*outcome.id).collect()
    }

    /// The verdict on the runtime for a kind of consumer, if it was judged for it.
    pub fn standing(&self, profile: Profile) -> Option<&Standing> {
        let mut standings = self.profiles.iter();
        standings.find(|standing| standing.profile == profile)
    }
}

impl CaseOutcome {
    /// The first SHOULD that it breaks.
    fn should(&self) -> Option<&Broken> {
        let mut broken = self.violations.iter().chain(&self.advice);
        broken.find(|broken| broken.level == Level::Should)
    }
}

/// The profiles whose verdict has changed. Known failures are weaker only if one of them is worse.
fn profiles(before: &Document, after: &Document, worse: &[Change]) -> Vec<ProfileChange> {
    let is_worse = |id: &Arc<str>| worse.iter().any(|change| *change.id == **id);
    let change = |profile: &Profile| {
        let (before, after) = (before.standing(*profile), after.standing(*profile));
        let promised = |standing: Option<&Standing>| promise(standing?.verdict);
        let excused = after.is_some_and(|after| {
            after.verdict == Conformance::KnownFailures && !after.broken.iter().any(is_worse)
        });
        let less = match (promised(before), promised(after)) {
            (Some(before), Some(after)) => after < before,
            _ => false,
        };
        let [before, after] = [before, after].map(|standing| Some(standing?.verdict));
        (before != after).then_some(ProfileChange {
            profile: *profile,
            before,
            after,
            worse: less && !excused,
        })
    };
    Profile::ALL.iter().filter_map(change).collect()
}

/// The strength of a verdict for a consumer; `None` if nothing was judged.
fn promise(verdict: Conformance) -> Option<u8> {
    match verdict {
        Conformance::Conformant => Some(4),
        Conformance::Partial => Some(3),
        Conformance::Error => Some(2),
        Conformance::KnownFailures => Some(1),
        Conformance::NonConformant => Some(0),
        Conformance::NotJudged => None,
    }
}

fn is_worse(before: Verdict, after: Verdict) -> bool {
    let other_failure = before == Verdict::Known && after == Verdict::Fail;
    let breaks = after.has_failed() && !before.has_failed();
    breaks || other_failure || before.has_passed() && after == Verdict::Error
}

fn is_better(before: Verdict, after: Verdict) -> bool {
    after.has_passed() && (before.has_failed() || before == Verdict::Error)
}

fn arrow(before: Option<impl ToString>, after: Option<impl ToString>) -> String {
    match (before, after) {
        (Some(before), Some(after)) => {
            let (before, after) = (before.to_string(), after.to_string());
            format!("{} → {}", printable(&before), printable(&after))
        }
        (Some(only), None) => only.to_string(),
        (None, only) => only.map_or_else(String::new, |only| only.to_string()),
    }
}
