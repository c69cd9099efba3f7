//! Many reports side by side: rows are cases, columns are reports, and a click opens the evidence.

use maud::{Markup, PreEscaped, html};

use super::cases::{anchor, badge, class, conformance, filter, sign};
use super::document;
use super::failure::{lines, linked, versus};
use crate::outcome::{Conformance, Verdict};
use crate::report::json::{Broken, CaseOutcome, NamedReport};
use crate::report::matrix::{Cell, Matrix, Row};
use crate::report::printable::{cut, printable, short_ids};
use crate::report::rate::badness;
use crate::report::standings::plain_words;
use crate::report::summary::counted;

/// The maximum length of a name and of a text, in characters.
const NAME: usize = 200;
const TEXT: usize = 1_000;

/// The maximum number of lines of a timeline.
const LINES: usize = 45;

/// The maximum size of all evidence in bytes; the rest is omitted with a note.
const EVIDENCE: usize = 700_000;

/// Reports side by side, with the evidence of all outcomes other than plain passes.
pub fn matrix(reports: &[NamedReport]) -> String {
    let (matrix, first) = Matrix::grouped(reports);
    let runs = counted(reports.len(), "run", "runs");
    let title = format!("Container events of {runs}");
    let (evidence, held) = evidence(&matrix, &first);
    let body = html! {
        a .jump href="#cases" { "To the cases" }
        header { h1 { (title) } }
        main {
            section #cases {
                h2 { "Cases by run" }
                (filter(matrix.rows.iter().filter_map(worst), matrix.rows.len()))
                (tables(&matrix, &held))
            }
            section #evidence {
                h2 { "Evidence" }
                (PreEscaped(evidence))
            }
        }
    };
    document(&title, &body)
}

fn worst(row: &Row) -> Option<Verdict> {
    let verdicts = row.cells.iter().flatten().map(|cell| cell.verdict);
    verdicts.max_by_key(|verdict| badness(*verdict))
}

/// The rows in which reports differ or fail, and the rest, folded.
fn tables(matrix: &Matrix, held: &[(usize, usize)]) -> Markup {
    let (first, title, alike) = matrix.parts();
    html! {
        div #all-cases {
            (table(matrix, &first, true, held))
            @if !alike.is_empty() {
                details {
                    summary { (title) }
                    (table(matrix, &alike, false, held))
                }
            }
        }
    }
}

fn table(matrix: &Matrix, rows: &[&Row], with_profiles: bool, held: &[(usize, usize)]) -> Markup {
    let profiles = matrix.profiles.iter().filter(|_| with_profiles);
    // Its place in the whole names it.
    let place = |row: &Row| matrix.rows.iter().position(|it| std::ptr::eq(it, row));
    html! {
        div .scroll tabindex="0" role="region" aria-label="Cases by run" {
            table .matrix {
                thead {
                    tr {
                        th scope="col" { "Case" }
                        @for column in &matrix.columns {
                            th scope="col" {
                                (cut(&column.name(), NAME))
                                @for line in column.known() { br; small { (cut(line, NAME)) } }
                            }
                        }
                    }
                }
                tbody {
                    @for (profile, verdicts) in profiles {
                        tr .profile {
                            th scope="row" { "Profile " (profile) }
                            @for verdict in verdicts {
                                @let verdict = verdict.unwrap_or(Conformance::NotJudged);
                                td { (conformance(verdict, &plain_words(verdict))) }
                            }
                        }
                    }
                    @for row in rows {
                        @let nth = place(row).unwrap_or_default();
                        tr id={ "case-" (anchor(&row.id, nth)) }
                            data-verdict=(worst(row).map_or("", Verdict::key)) {
                            th scope="row" {
                                (cut(&row.id, NAME)) br;
                                small { (cut(&row.name, NAME)) }
                            }
                            @for (column, cell) in row.cells.iter().enumerate() {
                                td { (shown(*cell, (nth, column), held)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A verdict, linked to its evidence if it has any.
fn shown(cell: Option<Cell>, place: (usize, usize), held: &[(usize, usize)]) -> Markup {
    let Some(Cell { verdict, rate }) = cell else {
        return html! { span .absent { "not in this report" } };
    };
    html! {
        @if held.contains(&place) {
            a .badge .(class(verdict)) href={ "#" (name(place)) } { (sign(verdict)) " " (verdict) }
        } @else {
            (badge(verdict))
        }
        @if rate.is_of_several() { br; small { (rate) " failed" } }
    }
}

fn name((row, column): (usize, usize)) -> String {
    format!("evidence-{row}-{column}")
}

/// The evidence of all cells that have any, and the indices of these cells.
fn evidence(matrix: &Matrix, reports: &[&NamedReport]) -> (String, Vec<(usize, usize)>) {
    let mut room = EVIDENCE;
    let (mut text, mut held) = (String::new(), Vec::new());
    for (row, about) in matrix.rows.iter().enumerate() {
        for (column, cell) in about.cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let report = &reports[column];
            let mut outcomes = report.report.outcomes.iter();
            let found = outcomes.find(|it| it.id == about.id && it.verdict == cell.verdict);
            let Some(outcome) = found.filter(|it| has_evidence(it)) else {
                continue;
            };
            let back = format!("#case-{}", anchor(&about.id, row));
            let article = article(&report.name, outcome, (row, column), &back).into_string();
            if article.len() <= room {
                room -= article.len();
                text.push_str(&article);
                held.push((row, column));
            }
        }
    }
    if held.is_empty() {
        text.push_str("<p>There is none: nothing failed.</p>");
    }
    (text, held)
}

fn has_evidence(outcome: &CaseOutcome) -> bool {
    let broken = !outcome.violations.is_empty() || !outcome.advice.is_empty();
    broken || outcome.reason.is_some()
}

fn article(run: &str, outcome: &CaseOutcome, place: (usize, usize), back: &str) -> Markup {
    let broken = outcome.violations.iter().chain(&outcome.advice);
    html! {
        article .failure id=(name(place)) {
            h3 {
                (badge(outcome.verdict)) " " (cut(&outcome.id, NAME)) " in " (cut(run, NAME)) " "
                a .back href=(back) { "back to the table" }
            }
            p .claim { (cut(&outcome.title, TEXT)) }
            @if let Some(reason) = &outcome.reason { p { (cut(reason, TEXT)) } }
            @if let Some(hint) = &outcome.hint {
                p .hint { "Known of this runtime: " (linked(hint)) }
            }
            @for broken in broken.take(2) { (broken_rule(broken)) }
        }
    }
}

fn broken_rule(broken: &Broken) -> Markup {
    let timeline = broken.timeline.iter().take(LINES);
    let timeline = timeline.map(|line| printable(line).into_owned());
    html! {
        section .violation {
            h4 {
                (cut(&broken.rule, NAME)) " " (broken.level.keyword()) " "
                code { (cut(&broken.kind, NAME)) }
            }
            p .subject { "Subject: " (cut(&short_ids(&broken.subject), TEXT)) }
            (versus(&cut(&broken.expected, TEXT), &cut(&broken.actual, TEXT)))
            (lines("Timeline", timeline))
        }
    }
}
