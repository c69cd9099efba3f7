//! Selects cases and invariants, before anything runs; and lists them: `--list`, as JSON also with
//! the requirements.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Format, RunError};
use crate::case::{Case, Need, Requirement, Tier, successor};
use crate::escape::{printable, printable_json};
use crate::files;
use crate::oracle::{INVARIANTS, Invariant};
use crate::outcome::Levels;
use crate::plan::{Facts, Planned, Selection, label, names_an_invariant};
use crate::report::Failed;
use crate::verdicts::invariant_facts;

/// The minimum similarity of a suggestion.
const MIN_SIMILARITY: f64 = 0.85;

/// The reason why the failed cases of a report cannot be run again.
#[derive(Debug, thiserror::Error)]
pub enum RerunError {
    #[error("read the failed cases of {}: {fault}", path.display())]
    Read { path: PathBuf, fault: String },
    #[error(
        "read the failed cases of {}: there is no case `{id}`; name those of that run with --cases",
        path.display()
    )]
    Unknown { path: PathBuf, id: String },
}

/// The content of the list; in JSON an object with these keys.
#[derive(Serialize)]
struct Listing<'a> {
    cases: Vec<CaseLine<'a>>,
    invariants: Vec<InvariantLine<'a>>,
    requirements: Vec<RequirementLine<'a>>,
}

#[derive(Serialize)]
struct CaseLine<'a> {
    id: &'a str,
    name: &'a str,
    title: &'a str,
    requirements: &'a [String],
    tier: Tier,
    tags: &'a [String],
    levels: Levels,
    needs: &'a [Need],
    exclusive: bool,
    sources: &'a [String],
}

#[derive(Serialize)]
struct InvariantLine<'a> {
    id: &'a str,
    name: &'a str,
    title: &'a str,
    requirements: &'a [&'a str],
    levels: Levels,
    sources: [&'a str; 1],
}

#[derive(Serialize)]
struct RequirementLine<'a> {
    #[serde(flatten)]
    requirement: &'a Requirement,
    /// The listed cases and invariants that check it.
    checked_by: Vec<&'a str>,
}

impl<'a> Listing<'a> {
    pub(super) fn new(
        planned: &'a [Planned],
        invariants: &[&'a Invariant],
        requirements: &'a [Requirement],
    ) -> Self {
        // Each case is listed once, however often it is repeated.
        let mut cases: Vec<_> = planned
            .iter()
            .filter(|planned| planned.repetition.unwrap_or(1) == 1)
            .map(CaseLine::from_case)
            .collect();
        cases.sort_by_key(|case| case.id);
        let invariants: Vec<_> = invariants
            .iter()
            .map(|rule| InvariantLine::from_invariant(rule))
            .collect();
        let requirements = requirements.iter().map(|requirement| {
            let id = requirement.id.as_str();
            let by_cases = cases
                .iter()
                .filter(|case| case.requirements.iter().any(|r| r == id));
            let by_invariants = invariants
                .iter()
                .filter(|rule| rule.requirements.contains(&id));
            let by_cases = by_cases.map(|case| case.id);
            RequirementLine {
                requirement,
                checked_by: by_cases.chain(by_invariants.map(|rule| rule.id)).collect(),
            }
        });
        Self {
            requirements: requirements.collect(),
            cases,
            invariants,
        }
    }

    /// Writes one line per case and, if requested, per invariant; `json` is one object.
    pub(super) fn write(
        &self,
        format: Format,
        with_invariants: bool,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let cases = self
            .cases
            .iter()
            .map(|case| (case.id, case.name, case.title));
        let invariants = self
            .invariants
            .iter()
            .filter(|_| with_invariants)
            .map(|rule| (rule.id, rule.name, rule.title));
        let lines: Vec<_> = cases.chain(invariants).collect();
        match format {
            Format::Pretty | Format::Github => {
                let widest =
                    |length: fn(&(&str, &str, &str)) -> usize| lines.iter().map(length).max();
                let ids = widest(|line| line.0.len()).unwrap_or(0);
                let names = widest(|line| line.1.len()).unwrap_or(0);
                for (id, name, title) in lines {
                    let title = printable(title);
                    writeln!(out, "{id:ids$}  {name:names$}  {title}")?;
                }
            }
            Format::Terse => {
                for (id, name, _) in lines {
                    writeln!(out, "{}: test", label(id, name))?;
                }
            }
            Format::Json => {
                let text = serde_json::to_string_pretty(self)?;
                writeln!(out, "{}", printable_json(&text))?;
            }
        }
        out.flush()
    }
}

impl<'a> CaseLine<'a> {
    fn from_case(planned: &'a Planned) -> Self {
        let case = &planned.case;
        Self {
            id: &case.id,
            name: &case.name,
            title: &case.title,
            requirements: &case.requirements,
            tier: case.tier,
            tags: &case.tags,
            levels: case.levels,
            needs: &case.needs,
            exclusive: case.exclusive,
            sources: &case.sources,
        }
    }
}

impl<'a> InvariantLine<'a> {
    fn from_invariant(invariant: &'a Invariant) -> Self {
        Self {
            id: invariant.id,
            name: invariant.name,
            title: invariant.sentence,
            requirements: invariant.requirements,
            levels: invariant.levels,
            sources: [invariant.source],
        }
    }
}

/// Prints the selected cases, without a runtime; as JSON also the invariants and requirements.
/// Fails if none is selected, or the output is closed.
pub fn list(
    cases: Vec<Case>,
    requirements: &[Requirement],
    selection: &Selection,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), RunError> {
    let mut planned = plan(cases, selection, 1)?;
    if selection.names_invariants() && selection.names_no_case() {
        planned.clear();
    }
    // A filter of cases does not select invariants.
    let is_of_cases = selection.only.is_some() || !selection.filters.is_empty();
    let shown = !is_of_cases || selection.names_invariants();
    let invariants = invariants(selection);
    let listing = Listing::new(&planned, &invariants, requirements);
    Ok(listing.write(format, shown, out)?)
}

/// The selected cases with their repetitions, in the order in which they run.
pub(super) fn plan(
    cases: Vec<Case>,
    selection: &Selection,
    repeat: u32,
) -> Result<Vec<Planned>, RunError> {
    if let Some(fault) = unmatched_filter(selection, &cases) {
        return Err(RunError::NothingSelected(fault));
    }
    // A mistyped one would run the cases that it is to leave out.
    let skipped = Selection {
        filters: selection.skip.clone(),
        ..selection.clone()
    };
    if let Some(fault) = unmatched_filter(&skipped, &cases) {
        return Err(RunError::NothingSkipped(fault));
    }
    if !cases
        .iter()
        .any(|case| selection.selects(&Facts::from_case(case)))
    {
        return Err(nothing_selected(selection, &cases));
    }
    Ok(selection.plan(cases, repeat))
}

/// A filter that matches nothing in any tier or profile, presumably a typing error, with a hint.
fn unmatched_filter(selection: &Selection, cases: &[Case]) -> Option<String> {
    let mut all: Vec<_> = cases.iter().map(Facts::from_case).collect();
    for invariant in INVARIANTS {
        all.push(invariant_facts(invariant));
    }
    let takes_any = |filter: &&String| {
        all.iter()
            .any(|facts| facts.matches_filter(filter, selection.exact))
    };
    let filter = selection.filters.iter().find(|filter| !takes_any(filter))?;
    let is_part = |facts: &Facts<'_>| facts.matches_filter(filter, false);
    let hint = match (successor(filter), suggest(filter, &all)) {
        (Some(ended), _) => ended,
        _ if [".yaml", ".yml"].iter().any(|end| filter.ends_with(end)) => {
            format!("name a file of your own cases as `--cases {filter}`")
        }
        _ if all.iter().any(is_part) => {
            "with `--exact` a filter is a whole id or name, not a part or a pattern".to_owned()
        }
        (_, Some(meant)) => format!("did you mean {meant}?"),
        _ => "`--list` shows all cases".to_owned(),
    };
    Some(format!("`{filter}`; {hint}"))
}

/// The error for a filter that names only unknown invariants.
pub(super) fn unmatched_invariant(selection: &Selection) -> Option<RunError> {
    let named = selection
        .filters
        .iter()
        .filter(|filter| names_an_invariant(filter));
    let of_invariants = Selection {
        filters: named.cloned().collect(),
        ..selection.clone()
    };
    unmatched_filter(&of_invariants, &[]).map(RunError::NothingSelected)
}

/// The error for a selection that matches none of the cases in a recorded history.
pub(super) fn nothing_recorded(selection: &Selection, history: &Path) -> RunError {
    RunError::NothingSelected(format!(
        "{} in {}; `check` without a filter lists all cases that it has",
        wanted(selection),
        history.display()
    ))
}

/// A selection as a phrase.
fn wanted(selection: &Selection) -> String {
    let quoted = |filters: &[String]| {
        let quoted = filters.iter().map(|filter| format!("`{filter}`"));
        quoted.collect::<Vec<_>>().join(" or ")
    };
    let wanted = match &selection.filters[..] {
        [] => "the selection".to_owned(),
        filters => quoted(filters),
    };
    if selection.skip.is_empty() {
        wanted
    } else {
        format!("{wanted} without {}", quoted(&selection.skip))
    }
}

/// The error for an empty selection, with a hint.
fn nothing_selected(selection: &Selection, cases: &[Case]) -> RunError {
    let mut wanted = wanted(selection);
    match &selection.only {
        Some(failed) if failed.is_empty() => {
            return RunError::NothingSelected(
                "the selection: nothing failed in that run".to_owned(),
            );
        }
        Some(_) => wanted.push_str(" of those that failed"),
        None => {}
    }
    let taken_by = |wider: &Selection| {
        let taken = cases
            .iter()
            .filter(|case| wider.selects(&Facts::from_case(case)));
        taken.count()
    };
    let of_all_tiers = Selection {
        tier: None,
        ..selection.clone()
    };
    let for_all = Selection {
        profiles: Vec::new(),
        ..of_all_tiers.clone()
    };
    let hint = match (taken_by(&of_all_tiers), taken_by(&for_all)) {
        (0, 0) => "`--list` shows all cases".to_owned(),
        (0, count) => format!("{count} match for other profiles, see `--profile`"),
        (count, _) => format!("{count} match in larger tiers, see `--tier`"),
    };
    RunError::NothingSelected(format!("{wanted}; {hint}"))
}

/// The ids of the cases that failed or were undecided in a run, or in which an invariant was
/// broken, according to its report.
pub fn failed_in(report: &Path, cases: &[Case]) -> Result<BTreeSet<String>, RerunError> {
    let path = report.to_owned();
    let read = read_report(report).map_err(|fault| fault.to_string());
    let failed = match read.and_then(|text| Failed::read(&text)) {
        Ok(failed) => failed,
        Err(fault) => return Err(RerunError::Read { path, fault }),
    };
    if failed.anywhere {
        return Ok(cases.iter().map(|case| case.id.clone()).collect());
    }
    let found = failed.cases.into_iter().map(|id| {
        let mut cases = cases.iter();
        let case = cases.find(|case| case.id == id || case.name == id);
        let path = path.clone();
        case.map(|case| case.id.clone())
            .ok_or(RerunError::Unknown { path, id })
    });
    found.collect()
}

pub(super) fn read_report(path: &Path) -> io::Result<String> {
    const LARGEST_BYTES: u64 = 256 << 20;
    files::read_text(path, LARGEST_BYTES)
}

pub(super) fn invariants(selection: &Selection) -> Vec<&'static Invariant> {
    let wanted = |invariant: &&Invariant| selection.selects_invariant(&invariant_facts(invariant));
    INVARIANTS.iter().filter(wanted).collect()
}

/// The most similar valid filter, if any.
fn suggest(filter: &str, all: &[Facts<'_>]) -> Option<String> {
    let filter = filter.to_ascii_lowercase();
    let mut requirements: Vec<&str> = all
        .iter()
        .flat_map(|facts| facts.requirements.iter().copied())
        .collect();
    requirements.sort_unstable();
    let tags = all.iter().flat_map(|facts| facts.tags).map(String::as_str);
    if let Some(tag) = filter.strip_prefix("tag:") {
        return closest(tag, tags).map(|tag| format!("`tag:{tag}`"));
    }
    if let Some(requirement) = filter.strip_prefix("req:") {
        let known = closest(requirement, requirements.into_iter());
        return known.map(|requirement| format!("`req:{requirement}`"));
    }
    let is_meant = |known: &&str| known.eq_ignore_ascii_case(&filter);
    if let Some(requirement) = requirements.into_iter().find(is_meant) {
        return Some(format!("`req:{requirement}`"));
    }
    if let Some(tag) = tags.clone().find(is_meant) {
        return Some(format!("`tag:{tag}`"));
    }
    let ids = all.iter().map(|facts| facts.id);
    let names = all.iter().map(|facts| facts.name);
    let areas = names.clone().filter_map(|name| name.split("::").next());
    let meant = filter.trim_end_matches(':');
    closest(meant, ids.chain(areas).chain(names)).map(|word| format!("`{word}`"))
}

/// The word that is most similar to a lower-case one, if any; the first of several.
fn closest<'a>(meant: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let similarity = |word: &str| strsim::jaro_winkler(&word.to_ascii_lowercase(), meant);
    let words = words.map(|word| (similarity(word), word));
    let best = words.fold(None, |best: Option<(f64, &str)>, next| match best {
        Some(best) if best.0 >= next.0 => Some(best),
        _ => Some(next),
    });
    let best = best.filter(|(similarity, _)| *similarity > MIN_SIMILARITY);
    best.map(|(_, word)| word)
}
