//! A diagram as SVG.
//!
//! Each row has one entry, so that a horizontal line crosses only the text of its own row; vertical
//! lines run in the gutter before a lane.

use maud::{Markup, html};

use super::Lane;
use super::{Arrow, CallBar, Diagram, Mark, Row};
use crate::report::printable::cut;
use crate::report::summary::counted;

const TIME: usize = 112;
const HEAD: usize = 30;
const ROW: usize = 34;
const GAP: usize = 22;
/// The distance between the border of a lane and its dots.
const GUTTER: usize = 30;
/// The distance between a dot and its text.
const BESIDE: usize = 12;
/// Width of a letter of a label and of a detail, in tenths of a pixel.
const LETTER: usize = 73;
const SMALL_LETTER: usize = 64;

/// The positions of all elements.
struct Layout<'a> {
    lanes: Vec<(Lane, usize)>,
    tops: Vec<usize>,
    width: usize,
    height: usize,
    diagram: &'a Diagram,
}

pub(in crate::report::html) fn draw(diagram: &Diagram, description: &str) -> Markup {
    let layout = Layout::new(diagram);
    let (width, height) = (layout.width, layout.height);
    let view = format!("0 0 {width} {height}");
    html! {
        svg .diagram viewBox=(view) width=(width) height=(height) role="img"
            aria-label=(description) {
            @for (nth, (lane, left)) in layout.lanes.iter().enumerate() {
                @if nth % 2 == 0 {
                    rect .lane x=(left) y="0" width=(lane.width()) height=(height) {}
                }
                (layout.heading(*lane, *left))
            }
            @for (row, top) in diagram.rows.iter().zip(&layout.tops) {
                (layout.row(row, *top))
            }
            @for bar in &diagram.calls { (layout.bar(bar)) }
            @for (nth, arrow) in diagram.arrows.iter().enumerate() { (layout.arrow(nth, arrow)) }
        }
    }
}

impl<'a> Layout<'a> {
    fn new(diagram: &'a Diagram) -> Self {
        let mut left = TIME;
        let lanes = diagram.lanes.iter().map(|lane| {
            let place = (*lane, left);
            left += lane.width();
            place
        });
        let lanes = lanes.collect();
        let mut top = HEAD;
        let tops = diagram.rows.iter().map(|row| {
            let place = top;
            top += row.height();
            place
        });
        let tops = tops.collect();
        Self {
            lanes,
            tops,
            width: left,
            height: top + 4,
            diagram,
        }
    }

    fn heading(&self, lane: Lane, left: usize) -> Markup {
        let streams = self.lanes.iter();
        let streams = streams.filter(|(lane, _)| matches!(lane, Lane::Events(_)));
        let heading = lane.heading(streams.count() > 1);
        let axis = axis(lane, left);
        html! {
            text .head x=(left + 8) y="19" { (heading) }
            line .axis x1=(axis) x2=(axis) y1=(HEAD) y2=(self.height) {}
        }
    }

    fn left(&self, lane: Lane) -> usize {
        let found = self.lanes.iter().find(|(it, _)| *it == lane);
        found.map_or(TIME, |(_, left)| *left)
    }

    fn row(&self, row: &Row, top: usize) -> Markup {
        match row {
            Row::Entry(mark) => self.entry(mark, top),
            Row::Missing(gap) => self.missing(gap.lane, &gap.label, top),
            Row::Skipped(count) => {
                let entries = counted(*count, "entry", "entries");
                html! { text .more x=(TIME + 8) y=(top + 15) { "… " (entries) } }
            }
        }
    }

    fn entry(&self, mark: &Mark, top: usize) -> Markup {
        let left = self.left(mark.lane);
        let (dot, middle) = (axis(mark.lane, left), top + ROW / 2);
        let text = text_left(mark.lane, left);
        let label = cut(&mark.brief.label, letters(mark.lane, LETTER));
        let detail = cut(&mark.brief.detail, letters(mark.lane, SMALL_LETTER));
        let label_y = if detail.is_empty() {
            middle + 4
        } else {
            middle - 1
        };
        html! {
            g .hit[mark.convicts] {
                @if mark.convicts { rect y=(top + 1) width=(self.width) {} }
                text .time y=(middle + 4) {
                    (mark.time) " "
                    @if mark.convicts { "▶" }
                    (mark.seq)
                }
                @if mark.failed {
                    path .bad d={ "M" (dot - 5) " " (middle - 5) "l10 10m0-10l-10 10" } {}
                } @else {
                    circle cx=(dot) cy=(middle) {}
                }
                text x=(text) y=(label_y) { (label) }
                @if !detail.is_empty() {
                    text .more x=(text) y=(middle + 11) { (detail) }
                }
            }
        }
    }

    fn missing(&self, lane: Lane, label: &str, top: usize) -> Markup {
        let left = self.left(lane);
        let (text, middle) = (text_left(lane, left), top + ROW / 2);
        html! {
            g .gap {
                rect x=(left + GUTTER - 8) y=(top + 4) rx="5"
                    width=(lane.width() - GUTTER) height=(ROW - 8) {}
                text .time y=(middle + 4) { "missing" }
                text x=(text) y=(middle + 4) { "✗ no " (label) }
            }
        }
    }

    fn bar(&self, bar: &CallBar) -> Markup {
        let axis = axis(Lane::Calls, self.left(Lane::Calls));
        let top = self.tops[bar.from] + ROW / 2;
        let bottom = self.tops[bar.to] + ROW / 2;
        let left = axis - 3 + 5 * bar.depth.min(3);
        html! { rect .call x=(left) y=(top) width="6" height=(bottom - top) rx="3" {} }
    }

    fn arrow(&self, nth: usize, arrow: &Arrow) -> Markup {
        let (Some((from, start)), Some((to, _))) = (self.ends(arrow.from), self.ends(arrow.to))
        else {
            return html! {};
        };
        let is_gap = matches!(self.diagram.rows[arrow.to], Row::Missing(_));
        let (from_y, to_y) = (
            self.tops[arrow.from] + ROW / 2,
            self.tops[arrow.to] + ROW / 2,
        );
        let left = self.left(to);
        let end = if is_gap {
            left + GUTTER - 9
        } else {
            axis(to, left) - 7
        };
        let turn = left + 3 + 5 * (nth % 4);
        let bend = if from == to { start } else { start.min(turn) };
        html! {
            path .arrow.due[is_gap] d={
                "M" (bend) " " (from_y) "H" (turn) "V" (to_y) "H" (end) "m-5-4l5 4l-5 4"
            } {}
        }
    }

    /// The lane of a row, and the start of an arrow that leaves it.
    fn ends(&self, row: usize) -> Option<(Lane, usize)> {
        let lane = self.diagram.rows[row].lane()?;
        let left = self.left(lane);
        let start = match &self.diagram.rows[row] {
            Row::Entry(_) if lane == Lane::Calls => axis(lane, left) + 7,
            Row::Entry(mark) => {
                let label = cut(&mark.brief.label, letters(lane, LETTER));
                text_left(lane, left) + label.chars().count() * LETTER / 10 + 4
            }
            _ => axis(lane, left),
        };
        Some((lane, start))
    }
}

impl Row {
    fn height(&self) -> usize {
        match self {
            Self::Skipped(_) => GAP,
            Self::Entry(_) | Self::Missing(_) => ROW,
        }
    }
}

/// The dots of calls are at the right of their lane, so that arrows to events cross no text.
fn axis(lane: Lane, left: usize) -> usize {
    match lane {
        Lane::Calls => left + lane.width() - 24,
        _ => left + GUTTER,
    }
}

fn text_left(lane: Lane, left: usize) -> usize {
    match lane {
        Lane::Calls => left + 8,
        _ => left + GUTTER + BESIDE,
    }
}

/// The number of letters that fit beside a dot.
fn letters(lane: Lane, letter: usize) -> usize {
    (lane.width() - GUTTER - BESIDE - 4) * 10 / letter
}
