//! The tables of the cases and invariants of a run, each once with all its repetitions, and of the
//! requirements that they check; a verdict as a badge: a sign, a word and a colour.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::failure::linked;
use crate::case::Requirement;
use crate::outcome::{Conformance, Level, Outcome, Profile, Verdict};
use crate::report::printable::{cut, span};
use crate::report::rate::{self, Rate, badness};

/// The maximum length of a name and of a title, in characters.
const NAME: usize = 200;
const TITLE: usize = 600;

/// A case or an invariant of a run.
pub(super) type Tested<'a> = rate::Tested<'a, Outcome>;

impl Tested<'_> {
    /// Whether it has details besides its verdict.
    pub(super) fn has_details(&self) -> bool {
        let outcome = self.worst;
        let broken = !outcome.violations.is_empty() || !outcome.advice.is_empty();
        broken || outcome.verdict == Verdict::Error
    }

    /// The end of the links to it; unique, and made of letters, digits and hyphens.
    pub(super) fn anchor(&self) -> String {
        anchor(&self.worst.id, self.place)
    }

    /// The link to its details, or else to its row.
    pub(super) fn link(&self) -> String {
        let start = if self.has_details() { "#" } else { "#case-" };
        format!("{start}{}", self.anchor())
    }
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
        let (_, count) = counts.entry(badness(verdict)).or_insert((verdict, 0_usize));
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
    let Tested { worst, rate, .. } = tested;
    html! {
        tr id={ "case-" (tested.anchor()) } data-verdict=(worst.verdict.key()) {
            th scope="row" {
                @if tested.has_details() {
                    a href=(tested.link()) { (cut(&worst.id, NAME)) }
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
                td { (worst.levels.of(*profile).map_or("", Level::keyword)) }
            }
            td .number { (span(worst.duration)) }
        }
    }
}

/// A row for each requirement, with the cases and invariants that check it.
pub(super) fn covered(tested: &[Tested<'_>], requirements: &[Requirement]) -> Markup {
    let rows: Vec<_> = requirements
        .iter()
        .map(|requirement| (requirement, checkers(tested, &requirement.id)))
        .collect();
    let is_decided = |it: &&Tested<'_>| Rate::of([it.worst.verdict]).decided > 0;
    let judged = rows.iter();
    let judged = judged.filter(|(_, checkers)| checkers.iter().any(is_decided));
    html! {
        p {
            (judged.count()) " of " (rows.len())
            " requirements were judged by a case or an invariant that passed or failed."
        }
        div .scroll tabindex="0" role="region" aria-label="Requirements" {
            table {
                thead {
                    tr {
                        th scope="col" { "Id" }
                        th scope="col" { "Requirement" }
                        th scope="col" { "Checked by" }
                    }
                }
                tbody {
                    @for (requirement, checkers) in &rows { (covered_row(requirement, checkers)) }
                }
            }
        }
    }
}

fn covered_row(requirement: &Requirement, checkers: &[&Tested<'_>]) -> Markup {
    html! {
        tr id={ "requirement-" (requirement.id) } {
            th scope="row" { (requirement.id) }
            td {
                (cut(&requirement.sentence, TITLE))
                details {
                    summary { "Otherwise, and sources" }
                    p { (cut(&requirement.breaks, TITLE)) }
                    ul {
                        @for source in &requirement.sources { li { (linked(source)) } }
                    }
                }
            }
            td {
                @for tested in checkers { (link(tested)) " " }
                @if checkers.is_empty() { "nothing in this run" }
            }
        }
    }
}

/// A link to a case, with the sign of its verdict.
fn link(tested: &Tested<'_>) -> Markup {
    let outcome = tested.worst;
    html! {
        a .checker href=(tested.link()) {
            span .(class(outcome.verdict)) title=(outcome.verdict) { (sign(outcome.verdict)) }
            " "
            (cut(&outcome.id, 40))
        }
    }
}

fn checkers<'t>(tested: &'t [Tested<'t>], requirement: &str) -> Vec<&'t Tested<'t>> {
    let names = |outcome: &&Tested<'_>| {
        let mut named = outcome.worst.requirements.iter();
        named.any(|id| id == requirement)
    };
    tested.iter().filter(names).collect()
}

pub(super) fn badge(verdict: Verdict) -> Markup {
    html! { span .badge .(class(verdict)) { (sign(verdict)) " " (verdict) } }
}

/// The badge of a profile's verdict, with this text.
pub(super) fn conformance(verdict: Conformance, words: &str) -> Markup {
    let like = match verdict {
        Conformance::Conformant => Verdict::Pass,
        Conformance::NonConformant => Verdict::Fail,
        Conformance::KnownFailures => Verdict::Known,
        Conformance::Error => Verdict::Error,
        Conformance::Partial => Verdict::Inconclusive,
        Conformance::NotJudged => Verdict::Skip,
    };
    html! { span .badge .(class(like)) { (sign(like)) " " (words) } }
}

/// The CSS class for its colour.
pub(super) fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Known => "known",
        Verdict::UnexpectedPass | Verdict::Error => "error",
        Verdict::Skip => "skip",
        Verdict::Inconclusive => "open",
    }
}

/// A sign that distinguishes it without colour.
pub(super) fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "✓",
        Verdict::Fail => "✗",
        Verdict::Known => "≈",
        Verdict::UnexpectedPass => "★",
        Verdict::Error => "!",
        Verdict::Skip => "–",
        Verdict::Inconclusive => "?",
    }
}
