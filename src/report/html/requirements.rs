//! The requirements that a run has covered, with their cases and invariants.

use maud::{Markup, html};

use super::super::printable::cut;
use super::cases::Tested;
use super::sources::linked;
use super::verdict::{class, sign};
use crate::case::Requirement;
use crate::outcome::Verdict;

/// The maximum length of a text, in characters.
const TEXT: usize = 600;

/// A row for each requirement, with the cases and invariants that check it.
pub(super) fn covered(tested: &[Tested<'_>], requirements: &[Requirement]) -> Markup {
    let rows: Vec<_> = requirements
        .iter()
        .map(|requirement| (requirement, checkers(tested, &requirement.id)))
        .collect();
    let judged = rows.iter();
    let judged = judged.filter(|(_, checkers)| checkers.iter().any(|it| is_decided(it)));
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
                    @for (requirement, checkers) in &rows { (row(requirement, checkers)) }
                }
            }
        }
    }
}

fn row(requirement: &Requirement, checkers: &[&Tested<'_>]) -> Markup {
    html! {
        tr id={ "requirement-" (requirement.id) } {
            th scope="row" { (requirement.id) }
            td {
                (cut(&requirement.sentence, TEXT))
                details {
                    summary { "Otherwise, and sources" }
                    p { (cut(&requirement.breaks, TEXT)) }
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
pub(super) fn link(tested: &Tested<'_>) -> Markup {
    let outcome = tested.worst;
    let target = if tested.has_details() { "#" } else { "#case-" };
    html! {
        a .checker href={ (target) (tested.anchor) } {
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

fn is_decided(tested: &Tested<'_>) -> bool {
    matches!(
        tested.worst.verdict,
        Verdict::Pass | Verdict::UnexpectedPass | Verdict::Fail | Verdict::Known
    )
}
