//! The figures as tables for people.

use std::time::Duration;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use super::measurement::{EventsCell, Measurement, PlegCell, Times};
use crate::report::span;

/// The text of a figure that was not measured.
const ABSENT: &str = "-";

pub(super) const EVENTS: [&str; 10] = [
    "PODS",
    "SUBSCRIBERS",
    "KILLED",
    "MEDIAN",
    "P99",
    "WORST",
    "MISSING",
    "CHANGES/S",
    "AT ONCE",
    "LAG AT",
];

pub(super) const PLEG: [&str; 13] = [
    "PODS",
    "CONTAINERS",
    "LOAD",
    "WATCHED BY",
    "CALLS",
    "EVENTS",
    "BYTES",
    "RUNTIME CPU",
    "OWN CPU",
    "MEDIAN",
    "WORST",
    "CHANGES",
    "LOST",
];

/// All tables, and the notes below them.
pub(super) fn text(measurement: &Measurement) -> String {
    let mut text = String::new();
    if !measurement.events.is_empty() {
        text += &table(&EVENTS, measurement.events.iter().map(events_row));
    }
    if !measurement.pleg.is_empty() {
        text += &table(&PLEG, measurement.pleg.iter().map(pleg_row));
    }
    for note in notes(measurement) {
        text.extend(["note: ", &note, "\n"]);
    }
    text
}

fn table<const N: usize>(header: &[&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header.to_vec());
    table.add_rows(rows.map(Vec::from));
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
}

pub(super) fn events_row(cell: &EventsCell) -> [String; EVENTS.len()] {
    let [median, p99, worst] = times(cell.latency);
    let killed = cell.steps.first().map_or(0, |step| step.killed);
    let unlagged = cell.steps.iter().filter(|step| !step.lags);
    let fastest = unlagged.max_by(|a, b| {
        let rate = |rate: Option<f64>| rate.unwrap_or_default();
        rate(a.changes_per_second).total_cmp(&rate(b.changes_per_second))
    });
    let at_once = fastest.filter(|step| step.changes_per_second.is_some());
    [
        cell.pods.to_string(),
        cell.subscribers.to_string(),
        killed.to_string(),
        median,
        p99,
        worst,
        cell.missing.to_string(),
        rate(cell.rate_without_lag),
        at_once.map_or(ABSENT.to_owned(), |step| step.parallel.to_string()),
        lag(cell),
    ]
}

pub(super) fn pleg_row(cell: &PlegCell) -> [String; PLEG.len()] {
    let [median, _, worst] = times(cell.delay);
    [
        cell.pods.to_string(),
        (cell.pods * cell.containers).to_string(),
        cell.load.name().to_owned(),
        cell.watching.name().to_owned(),
        cell.calls.to_string(),
        cell.events.to_string(),
        (cell.call_bytes + cell.event_bytes).to_string(),
        share(cell.runtime_cpu_ns, cell.window_ns),
        share(cell.own_cpu_ns, cell.window_ns),
        median,
        worst,
        cell.changes.to_string(),
        cell.lost.to_string(),
    ]
}

/// The median, the 99th percentile, and the maximum.
pub(super) fn times(times: Option<Times>) -> [String; 3] {
    let Some(times) = times else {
        return [ABSENT; 3].map(str::to_owned);
    };
    [times.median_ns, times.p99_ns, times.worst_ns].map(|ns| span(Duration::from_nanos(ns)))
}

pub(super) fn rate(rate: Option<f64>) -> String {
    rate.map_or(ABSENT.to_owned(), |rate| format!("{rate:.1}"))
}

/// The rate at which events lagged, if any did.
fn lag(cell: &EventsCell) -> String {
    match cell.rate_without_lag {
        Some(_) if cell.rate_with_lag.is_none() => "none".to_owned(),
        _ => rate(cell.rate_with_lag),
    }
}

/// CPU time as a share of one processor.
pub(super) fn share(used_ns: Option<u64>, window_ns: u64) -> String {
    let seconds = |ns| Duration::from_nanos(ns).as_secs_f64();
    used_ns.map_or(ABSENT.to_owned(), |used| {
        format!("{:.2} %", 100.0 * seconds(used) / seconds(window_ns))
    })
}

/// The explanations of the figures.
pub(super) fn notes(measurement: &Measurement) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(cell) = measurement.pleg.first() {
        notes.push(format!(
            "each line is a time of {}; CPU is a share of one processor, that of the runtime \
             without shims and monitors; a busy node's own CPU is also that of making the changes",
            span(Duration::from_nanos(cell.window_ns))
        ));
    }
    if let Some(every) = measurement.pleg.iter().find_map(|cell| cell.write_every_ns) {
        let every = span(Duration::from_nanos(every));
        notes.push(format!("each container writes a line every {every}"));
    }
    if measurement.simulated {
        notes.push(
            "in simulated time: delays are those of the model; rates and CPU time are not \
             measurable on it"
                .to_owned(),
        );
    }
    if measurement.foreign_pods > 0 {
        notes.push(format!(
            "{} foreign pods were on the node",
            measurement.foreign_pods
        ));
    }
    notes.extend(measurement.notes.iter().cloned());
    notes
}
