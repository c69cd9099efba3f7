//! A page of figures: charts for an overview, each followed by the table with every value.

use maud::{Markup, html};

use super::super::printable::cut;
use super::chart::{Chart, chart};
use super::shell;

/// The maximum length of a text, in characters.
const TEXT: usize = 400;

/// The content of a page of figures.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub title: String,
    /// The subject of the measurement: a name and a value each.
    pub facts: Vec<(&'static str, String)>,
    pub sections: Vec<FiguresSection>,
    /// The explanations of the figures.
    pub notes: Vec<String>,
    pub faults: Vec<String>,
    pub suite: String,
}

#[derive(Clone, Debug, Default)]
pub struct FiguresSection {
    pub title: &'static str,
    pub charts: Vec<Chart>,
    pub columns: Vec<&'static str>,
    /// The rows, with one value per column.
    pub rows: Vec<Vec<String>>,
}

pub fn figures(figures: &Figures) -> String {
    let title = cut(&figures.title, TEXT);
    let body = html! {
        header {
            h1 { (title) }
            dl .facts {
                @for (name, value) in &figures.facts {
                    div { dt { (name) } dd { (cut(value, TEXT)) } }
                }
            }
        }
        main {
            (remarks("Faults", &figures.faults))
            @for shown in &figures.sections { (section(shown)) }
            (remarks("Notes", &figures.notes))
        }
        footer { p { "Made by cri-event-conformance " (cut(&figures.suite, TEXT)) "." } }
    };
    shell::document(&title, &body)
}

fn remarks(title: &str, remarks: &[String]) -> Markup {
    html! {
        @if !remarks.is_empty() {
            section {
                h2 { (title) }
                ul { @for remark in remarks { li { (cut(remark, TEXT)) } } }
            }
        }
    }
}

fn section(shown: &FiguresSection) -> Markup {
    html! {
        section {
            h2 { (shown.title) }
            @for drawn in shown.charts.iter().filter(|drawn| !drawn.is_empty()) {
                h3 { (drawn.title) }
                p { (drawn.caption) }
                div .scroll tabindex="0" role="region" aria-label=(drawn.title) { (chart(drawn)) }
            }
            h3 { "All figures" }
            div .scroll tabindex="0" role="region" aria-label={ "All figures: " (shown.title) } {
                table {
                    thead {
                        tr { @for name in &shown.columns { th scope="col" .number { (name) } } }
                    }
                    tbody {
                        @for row in &shown.rows {
                            tr { @for value in row { td .number { (cut(value, TEXT)) } } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chart::{Chart, ChartRow, Scale};
    use super::*;

    #[test]
    fn a_page_has_charts_with_values_and_the_whole_table() {
        let row = |name: &str, values: Vec<Option<f64>>| ChartRow {
            name: name.to_owned(),
            texts: values.iter().map(|value| format!("<{value:?}>")).collect(),
            values,
        };
        let drawn = |title, rows| Chart {
            title,
            caption: "",
            scale: Scale::Linear,
            series: vec!["relists"],
            rows,
        };
        let page = figures(&Figures {
            title: "Costs of <b>runtime</b>".to_owned(),
            sections: vec![FiguresSection {
                title: "Calls",
                charts: vec![
                    drawn("What was measured", vec![row("10 pods", vec![Some(2.0)])]),
                    drawn("What was not", vec![row("10 pods", vec![None])]),
                ],
                columns: vec!["PODS", "CALLS"],
                rows: vec![vec!["10".to_owned(), "2".to_owned()]],
            }],
            faults: vec!["interrupted by SIGINT".to_owned()],
            ..Figures::default()
        });
        for part in [
            "Costs of &lt;b&gt;runtime&lt;/b&gt;",
            "What was measured",
            "&lt;Some(2.0)&gt;",
            "<th class=\"number\" scope=\"col\">CALLS</th>",
            "<td class=\"number\">2</td>",
            "interrupted by SIGINT",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("What was not"), "{page}");
    }
}
