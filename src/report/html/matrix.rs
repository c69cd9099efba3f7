//! Many reports side by side: rows are cases, columns are reports, and a click opens the evidence.

use maud::{Markup, PreEscaped, html};

use super::cases::{anchor, badge, class, conformance, filter, sign};
use super::document;
use super::failure::{lines, linked, versus};
use crate::outcome::{Profile, Verdict};
use crate::report::json::{Broken, CaseOutcome};
use crate::report::matrix::{Cell, Column, Matrix, RATE_MEANS, Row};
use crate::report::printable::{cut, printable, short_ids};
use crate::report::rate::badness;
use crate::report::standings::plain_words;

/// The maximum length of a name and of a text, in characters.
const NAME: usize = 200;
const TEXT: usize = 1_000;

/// The maximum number of lines of a timeline.
const LINES: usize = 45;

/// The maximum size of all evidence in bytes; the rest is omitted with a note.
const EVIDENCE: usize = 700_000;

/// Reports side by side, with the evidence of all outcomes other than plain passes.
pub fn matrix(matrix: &Matrix) -> String {
    let title = matrix.title();
    let (evidence, held) = evidence(matrix);
    let body = html! {
        a .jump href="#cases" { "To the cases" }
        header {
            h1 { (title) }
            p { (cut(&matrix.headline(), TEXT)) }
        }
        main {
            (facts("nodes", "Nodes", &Matrix::DIFFERENCES, &matrix.differences()))
            section #cases {
                h2 { "Cases by report" }
                (filter(matrix.rows.iter().filter_map(worst), matrix.rows.len()))
                (tables(matrix, &held))
            }
            (facts("latencies", "Longest latencies", &Matrix::SLOWEST, &matrix.slowest()))
            section #evidence {
                h2 { "Evidence" }
                (PreEscaped(evidence))
            }
        }
    };
    document(&title, &body)
}

/// A section with a table of which the first column names the row; omitted without rows.
fn facts(id: &str, title: &str, header: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        @if !rows.is_empty() {
            section id=(id) {
                h2 { (title) }
                div .scroll tabindex="0" role="region" aria-label=(title) {
                    table {
                        thead { tr { @for name in header { th scope="col" { (name) } } } }
                        tbody {
                            @for row in rows {
                                tr { @for (place, cell) in row.iter().enumerate() {
                                    @if place == 0 {
                                        th scope="row" { (cut(cell, NAME)) }
                                    } @else {
                                        td { @for line in cell.lines() { (cut(line, TEXT)) br; } }
                                    }
                                } }
                            }
                        }
                    }
                }
            }
        }
    }
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
            @if matrix.reports > 1 { p { (RATE_MEANS) } }
        }
    }
}

fn table(matrix: &Matrix, rows: &[&Row], with_profiles: bool, held: &[(usize, usize)]) -> Markup {
    let profiles = Profile::ALL.into_iter().filter(|_| with_profiles);
    // Its place in the whole names it.
    let place = |row: &Row| matrix.rows.iter().position(|it| std::ptr::eq(it, row));
    html! {
        div .scroll tabindex="0" role="region" aria-label="Cases by report" {
            table .matrix {
                thead {
                    tr {
                        th scope="col" { "Case" }
                        @if matrix.reports > 1 { th scope="col" { "Failed" } }
                        @for column in matrix.shown() {
                            th scope="col" {
                                (cut(&column.name(), NAME))
                                @for line in &column.properties { br; small { (cut(line, NAME)) } }
                            }
                        }
                    }
                }
                tbody {
                    @for profile in profiles {
                        tr .profile {
                            th scope="row" { "Profile " (profile) }
                            @if matrix.reports > 1 { td {} }
                            @for column in matrix.shown() {
                                @let verdict = column.verdict(profile);
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
                            @if matrix.reports > 1 { td { (row.rate()) } }
                            @for (column, cell) in shown_cells(row) {
                                td { (shown(*cell, (nth, column), held)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn shown_cells(row: &Row) -> impl Iterator<Item = (usize, &Option<Cell>)> {
    row.cells.iter().take(Matrix::SHOWN).enumerate()
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
fn evidence(matrix: &Matrix) -> (String, Vec<(usize, usize)>) {
    let mut room = EVIDENCE;
    let (mut text, mut held) = (String::new(), Vec::new());
    for (row, about) in matrix.rows.iter().enumerate() {
        for (column, _) in shown_cells(about) {
            let Column {
                nodes, evidence, ..
            } = &matrix.columns[column];
            let Some(outcome) = evidence.iter().find(|it| it.id == about.id) else {
                continue;
            };
            let back = format!("#case-{}", anchor(&about.id, row));
            let article = article(&nodes.names[0], outcome, (row, column), &back).into_string();
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
