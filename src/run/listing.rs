//! `--list`: the selected cases; as JSON also the invariants and requirements.

use std::io::{self, Write};

use serde::Serialize;

use super::Format;
use crate::case::{Need, Requirement, Tier};
use crate::escape::{printable, printable_json};
use crate::oracle::Invariant;
use crate::outcome::Levels;
use crate::plan::{Planned, label};

/// The content of the list; in JSON an object with these keys.
#[derive(Serialize)]
pub(super) struct Listing<'a> {
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
