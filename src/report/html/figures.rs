//! A page of figures: charts for an overview, each followed by the table with every value.
//!
//! A chart is SVG: bars from zero, or marks on a logarithmic axis. Each value is also text beside
//! its bar or mark, and each series has its own shape or position, so that colours are not needed.

use maud::{Markup, html};

use super::document;
use crate::report::printable::cut;

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

#[derive(Clone, Debug)]
pub struct Chart {
    pub title: &'static str,
    /// Its subject, and how to read it.
    pub caption: &'static str,
    pub scale: Scale,
    pub series: Vec<&'static str>,
    /// The rows, from the top.
    pub rows: Vec<ChartRow>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// One bar each, from zero.
    Linear,
    /// One mark each, all of a row on one line; the unit is seconds.
    Logarithmic,
}

#[derive(Clone, Debug)]
pub struct ChartRow {
    pub name: String,
    /// The values of the series, `None` if not measured; none is negative.
    pub values: Vec<Option<f64>>,
    /// The same values as text.
    pub texts: Vec<String>,
}

/// Widths and heights in pixels.
const NAME_WIDTH: usize = 290;

const PLOT_WIDTH: usize = 340;

const VALUE_WIDTH: usize = 260;

const LINE: usize = 20;

const HEAD: usize = 28;

/// The maximum length of a name and of a value, in characters.
const NAME: usize = 44;

const VALUE: usize = 40;

/// A logarithmic axis of seconds, of whole powers of ten.
struct Decades {
    first: i32,
    last: i32,
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
    document(&title, &body)
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

impl Chart {
    pub(super) fn is_empty(&self) -> bool {
        self.values().next().is_none()
    }

    fn values(&self) -> impl Iterator<Item = f64> + Clone {
        self.rows
            .iter()
            .flat_map(|row| &row.values)
            .flatten()
            .copied()
    }
}

pub(super) fn chart(chart: &Chart) -> Markup {
    match chart.scale {
        Scale::Linear => bars(chart),
        Scale::Logarithmic => marks(chart),
    }
}

fn picture(chart: &Chart, height: usize, content: &Markup) -> Markup {
    let width = NAME_WIDTH + PLOT_WIDTH + VALUE_WIDTH;
    html! {
        svg .chart viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img"
            aria-label={ (chart.title) ": the values are in the table below" } {
            (content)
        }
    }
}

/// Draws for each row its name and below it a bar for each series.
fn bars(chart: &Chart) -> Markup {
    let longest = chart.values().fold(0.0, f64::max);
    let row_height = LINE * (chart.series.len() + 1) + LINE / 2;
    let content = html! {
        @for (nth, row) in chart.rows.iter().enumerate() {
            @let top = nth * row_height;
            text .name x="0" y=(top + 14) { (cut(&row.name, NAME)) }
            @for (series, (value, text)) in row.values.iter().zip(&row.texts).enumerate() {
                @let top = top + LINE * (series + 1);
                @let length = value.map_or(0, |value| along(share(value, longest)));
                text x="12" y=(top + 14) { (chart.series[series]) }
                rect class={ "bar s" (series % 3) } x=(NAME_WIDTH) y=(top + 2) width=(length)
                    height=(LINE - 5) {}
                text x=(NAME_WIDTH + length + 6) y=(top + 14) { (cut(text, VALUE)) }
            }
        }
        line .base x1=(NAME_WIDTH) x2=(NAME_WIDTH) y1="0" y2=(chart.rows.len() * row_height) {}
    };
    picture(chart, chart.rows.len() * row_height, &content)
}

/// Draws for each row a line from its least value to its greatest, with a mark for each series.
fn marks(chart: &Chart) -> Markup {
    let axis = Decades::around(chart.values());
    let bottom = HEAD + chart.rows.len() * LINE * 3 / 2;
    let content = html! {
        @for (nth, name) in chart.series.iter().enumerate() {
            @let left = NAME_WIDTH + nth * 110;
            (mark(nth, left, 9))
            text x=(left + 10) y="13" { (name) }
        }
        @for (position, name) in axis.ticks() {
            line .tick x1=(position) x2=(position) y1=(HEAD) y2=(bottom) {}
            text .tick x=(position) y=(bottom + 14) { (name) }
        }
        @for (nth, row) in chart.rows.iter().enumerate() {
            @let middle = HEAD + nth * LINE * 3 / 2 + LINE / 2 + 4;
            @let values = row.values.iter();
            @let positions: Vec<_> = values.map(|it| it.map(|it| axis.position(it))).collect();
            @let measured = positions.iter().flatten();
            text .name x="0" y=(middle + 5) { (cut(&row.name, NAME)) }
            @if let (Some(first), Some(last)) = (measured.clone().min(), measured.max()) {
                line .range x1=(first) x2=(last) y1=(middle) y2=(middle) {}
            }
            @for (series, position) in positions.iter().enumerate() {
                @if let Some(position) = position { (mark(series, *position, middle)) }
            }
            text x=(NAME_WIDTH + PLOT_WIDTH + 12) y=(middle + 5) {
                (cut(&row.texts.join(", "), VALUE))
            }
        }
    };
    picture(chart, bottom + LINE, &content)
}

/// The mark of a series: a circle, a square or a triangle.
fn mark(series: usize, x: usize, y: usize) -> Markup {
    html! {
        @match series % 3 {
            0 => circle .s0 cx=(x) cy=(y) r="5" {},
            1 => rect .s1 x=(x - 4) y=(y - 4) width="9" height="9" {},
            _ => path .s2 d={ "M" (x) " " (y - 6) "l6 11h-12z" } {},
        }
    }
}

fn share(value: f64, whole: f64) -> f64 {
    if whole > 0.0 { value / whole } else { 0.0 }
}

/// This fraction of the plot's width, in pixels.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "from 0 to the width"
)]
fn along(part: f64) -> usize {
    (part.clamp(0.0, 1.0) * PLOT_WIDTH as f64).round() as usize
}

impl Decades {
    /// From a microsecond to a day and more: values outside are drawn at the axis's end.
    const ALL: std::ops::RangeInclusive<i32> = -6..=5;

    /// The powers that include all these values.
    fn around(values: impl Iterator<Item = f64> + Clone) -> Self {
        let power = |value: f64| Self::ALL.rev().find(|power| 10_f64.powi(*power) <= value);
        let powers = values.map(|value| power(value).unwrap_or(*Self::ALL.start()));
        let first = powers.clone().min().unwrap_or_default();
        Self {
            first,
            last: powers.max().unwrap_or(first) + 1,
        }
    }

    fn position(&self, value: f64) -> usize {
        let [first, last] = [self.first, self.last].map(f64::from);
        NAME_WIDTH + along((value.log10() - first) / (last - first))
    }

    fn ticks(&self) -> Vec<(usize, String)> {
        let tick = |power| (self.position(10_f64.powi(power)), name(power));
        (self.first..=self.last).map(tick).collect()
    }
}

/// `10 ms` of the power -2.
fn name(power: i32) -> String {
    let (below, unit) = match power {
        ..-3 => (-6, "µs"),
        -3..0 => (-3, "ms"),
        _ => (0, "s"),
    };
    format!("{} {unit}", 10_u64.pow((power - below).unsigned_abs()))
}

#[cfg(test)]
mod tests {
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

    fn row(values: &[Option<f64>]) -> ChartRow {
        ChartRow {
            name: "10 pods".to_owned(),
            values: values.to_vec(),
            texts: values.iter().map(|value| format!("{value:?}")).collect(),
        }
    }

    fn drawn(scale: Scale, rows: Vec<ChartRow>) -> String {
        let all = Chart {
            title: "delays",
            caption: "",
            scale,
            series: vec!["median", "worst"],
            rows,
        };
        chart(&all).into_string()
    }

    #[test]
    fn the_longest_bar_fills_the_plot_and_what_was_not_measured_has_none() {
        let svg = drawn(
            Scale::Linear,
            vec![row(&[Some(2.0), None]), row(&[Some(4.0), Some(0.0)])],
        );
        for width in ["width=\"170\"", "width=\"340\"", "width=\"0\""] {
            assert!(svg.contains(width), "{width}: {svg}");
        }
        assert!(svg.contains(">None</text>"), "{svg}");
    }

    #[test]
    fn marks_stand_between_the_powers_of_ten_around_them() {
        let svg = drawn(Scale::Logarithmic, vec![row(&[Some(0.01), Some(0.2)])]);
        for tick in [">10 ms<", ">100 ms<", ">1 s<"] {
            assert!(svg.contains(tick), "{tick}: {svg}");
        }
        assert!(!svg.contains(">1 ms<") && !svg.contains(">10 s<"), "{svg}");
        // A median of 10 ms stands at the beginning of the axis.
        assert!(svg.contains(&format!("cx=\"{NAME_WIDTH}\"")), "{svg}");
    }

    #[test]
    fn a_delay_of_nothing_stands_at_the_beginning() {
        let axis = Decades::around([0.0, 1e-3].into_iter());
        assert_eq!((axis.first, axis.last), (-6, -2));
        assert_eq!(axis.position(0.0), NAME_WIDTH);
        assert_eq!(axis.position(1e9), NAME_WIDTH + PLOT_WIDTH);
    }

    #[test]
    fn powers_of_ten_have_names() {
        let names: Vec<_> = [-6, -4, -3, -1, 0, 2].into_iter().map(name).collect();
        assert_eq!(names, ["1 µs", "100 µs", "1 ms", "100 ms", "1 s", "100 s"]);
    }
}
