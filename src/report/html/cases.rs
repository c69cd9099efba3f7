//! The cases and invariants of a run, each once with all its repetitions, and their table.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::super::calendar::span;
pub(super) use super::super::compare::badness as rank;
use super::super::printable::cut;
use super::super::rate::Rate;
use super::verdict::{badge, level};
use crate::outcome::{Outcome, Profile, RunReport, Verdict};

/// The maximum length of a name and of a title, in characters.
const NAME: usize = 200;
const TITLE: usize = 600;

/// A case or an invariant, with all its repetitions.
#[derive(Debug)]
pub(super) struct Tested<'a> {
    /// The first of its outcomes with the worst of its verdicts.
    pub(super) worst: &'a Outcome,
    pub(super) rate: Rate,
    /// The end of the links to it; unique, and made of letters, digits and hyphens.
    pub(super) anchor: String,
}

impl Tested<'_> {
    /// Whether it has details besides its verdict.
    pub(super) fn has_details(&self) -> bool {
        let outcome = self.worst;
        let broken = !outcome.violations.is_empty() || !outcome.advice.is_empty();
        broken || outcome.verdict == Verdict::Error
    }
}

/// The tested cases and invariants, in the order of the plan.
pub(super) fn tested(report: &RunReport) -> Vec<Tested<'_>> {
    let mut all: BTreeMap<&str, (usize, &Outcome, Rate)> = BTreeMap::new();
    for outcome in &report.outcomes {
        let count = all.len();
        let (_, worst, rate) = all
            .entry(&outcome.id)
            .or_insert((count, outcome, Rate::default()));
        rate.add(outcome.verdict);
        if rank(outcome.verdict) > rank(worst.verdict) {
            *worst = outcome;
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by_key(|(place, ..)| *place);
    let tested = all.into_iter().map(|(place, worst, rate)| Tested {
        worst,
        rate,
        anchor: anchor(&worst.id, place),
    });
    tested.collect()
}

/// The id if it has the suite's format, otherwise a number.
pub(super) fn anchor(id: &str, place: usize) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !id.is_empty() && id.len() < 32 && id.bytes().all(is_plain) {
        id.to_owned()
    } else {
        format!("number.{place}")
    }
}

/// The table, and its filter if scripts are enabled.
pub(super) fn table(tested: &[Tested<'_>], profiles: &[Profile]) -> Markup {
    html! {
        (filter(tested.iter().map(|it| it.worst.verdict), tested.len()))
        div .scroll tabindex="0" role="region" aria-label="Cases" {
            table #all-cases {
                thead {
                    tr {
                        th scope="col" { "Case" }
                        th scope="col" { "What it checks" }
                        th scope="col" { "Verdict" }
                        @for profile in profiles { th scope="col" { (profile) } }
                        th scope="col" .number { "Time" }
                    }
                }
                tbody {
                    @for tested in tested { (row(tested, profiles)) }
                }
            }
        }
    }
}

/// The search field and the choice of a verdict; the script shows them.
pub(super) fn filter(verdicts: impl Iterator<Item = Verdict>, count: usize) -> Markup {
    let mut counts = BTreeMap::new();
    for verdict in verdicts {
        let (_, count) = counts.entry(rank(verdict)).or_insert((verdict, 0_usize));
        *count += 1;
    }
    html! {
        form #filter hidden role="search" aria-label="Cases" {
            label {
                "Search "
                input #search type="search" autocomplete="off" spellcheck="false"
                    placeholder="id, name, words";
            }
            label {
                "Verdict "
                select #verdict {
                    option value="" { "all (" (count) ")" }
                    @for (verdict, count) in counts.values().rev() {
                        option value=(verdict.key()) { (verdict) " (" (count) ")" }
                    }
                }
            }
            output #shown aria-live="polite" { (count) " shown" }
        }
    }
}

fn row(tested: &Tested<'_>, profiles: &[Profile]) -> Markup {
    let Tested {
        worst,
        rate,
        anchor,
    } = tested;
    html! {
        tr id={ "case-" (anchor) } data-verdict=(worst.verdict.key()) {
            th scope="row" {
                @if tested.has_details() {
                    a href={ "#" (anchor) } { (cut(&worst.id, NAME)) }
                } @else {
                    (cut(&worst.id, NAME))
                }
            }
            td {
                code { (cut(&worst.name, NAME)) }
                br;
                (cut(&worst.title, TITLE))
                @if let Some(reason) = &worst.reason {
                    br;
                    small { (cut(reason, TITLE)) }
                }
            }
            td {
                (badge(worst.verdict))
                @if rate.is_of_several() { br; small { (rate) " failed" } }
                @if worst.verdict == Verdict::Pass && !worst.advice.is_empty() {
                    br;
                    small { "with advice" }
                }
            }
            @for profile in profiles {
                td { (worst.levels.of(*profile).map_or("", level)) }
            }
            td .number { (span(worst.duration)) }
        }
    }
}
