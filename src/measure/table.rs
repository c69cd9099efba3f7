//! The figures for people: as tables, and as a page of charts and tables.

use std::time::Duration;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

use super::measurement::{EventsCell, Measurement, PlegCell, Times, Watching};
use crate::report::html::{Chart, ChartRow, Figures, FiguresSection, Scale, figures};
use crate::report::{counted, span};

/// The text of a figure that was not measured.
const ABSENT: &str = "-";

const EVENTS: [&str; 10] = [
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

const PLEG: [&str; 13] = [
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

pub(super) fn page(measurement: &Measurement) -> String {
    let (runtime, version) = (&measurement.runtime, &measurement.runtime_version);
    let mut sections = Vec::new();
    if !measurement.events.is_empty() {
        sections.push(events_section(&measurement.events));
    }
    if !measurement.pleg.is_empty() {
        sections.push(pleg_section(&measurement.pleg));
    }
    figures(&Figures {
        title: format!("What container events of {runtime} {version} cost"),
        facts: facts(measurement),
        sections,
        notes: notes(measurement),
        faults: measurement.faults.clone(),
        suite: measurement.suite.clone(),
    })
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

fn events_row(cell: &EventsCell) -> [String; EVENTS.len()] {
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

fn pleg_row(cell: &PlegCell) -> [String; PLEG.len()] {
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
fn times(times: Option<Times>) -> [String; 3] {
    let Some(times) = times else {
        return [ABSENT; 3].map(str::to_owned);
    };
    [times.median_ns, times.p99_ns, times.worst_ns].map(|ns| span(Duration::from_nanos(ns)))
}

fn rate(rate: Option<f64>) -> String {
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
fn share(used_ns: Option<u64>, window_ns: u64) -> String {
    used_ns.map_or(ABSENT.to_owned(), |used| {
        format!("{:.2} %", 100.0 * as_seconds(used) / as_seconds(window_ns))
    })
}

/// The explanations of the figures.
fn notes(measurement: &Measurement) -> Vec<String> {
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

fn facts(measurement: &Measurement) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Endpoint", measurement.endpoint.clone()),
        ("Begun", measurement.began.clone()),
    ];
    if let Some(host) = &measurement.host {
        facts.push(("Kernel", host.kernel.clone()));
        facts.push(("Machine", format!("{} CPUs", host.cpus)));
    }
    facts
}

fn events_section(cells: &[EventsCell]) -> FiguresSection {
    let row = |cell: &EventsCell, values, texts| ChartRow {
        name: format!(
            "{}, {}",
            pods(cell.pods),
            counted(cell.subscribers, "stream", "streams")
        ),
        values,
        texts,
    };
    let latency = |cell: &EventsCell| {
        let [median, p99, worst] = times(cell.latency);
        let values = seconds(
            cell.latency,
            [|it| it.median_ns, |it| it.p99_ns, |it| it.worst_ns],
        );
        row(cell, values, vec![median, p99, worst])
    };
    let rates = |cell: &EventsCell| {
        let rates = [cell.rate_without_lag, cell.rate_with_lag];
        row(cell, rates.to_vec(), rates.map(rate).to_vec())
    };
    FiguresSection {
        title: "Events",
        charts: vec![
            Chart {
                title: "How late STOPPED is",
                caption: "From the end of a process to the arrival of its event, while containers are \
                          killed one after the other.",
                scale: Scale::Logarithmic,
                series: vec!["median", "99 %", "worst"],
                rows: cells.iter().map(latency).collect(),
            },
            Chart {
                title: "Changes per second",
                caption: "The highest rate at which events did not lag, and the one at which they did.",
                scale: Scale::Linear,
                series: vec!["without a lag", "with a lag"],
                rows: cells.iter().map(rates).collect(),
            },
        ],
        columns: EVENTS.to_vec(),
        rows: cells.iter().map(|cell| events_row(cell).to_vec()).collect(),
    }
}

fn pleg_section(cells: &[PlegCell]) -> FiguresSection {
    let delay = |cell: &PlegCell| {
        let [median, _, worst] = times(cell.delay);
        ChartRow {
            name: format!("{}: {}", node(cell), cell.watching.name()),
            values: seconds(cell.delay, [|it| it.median_ns, |it| it.worst_ns]),
            texts: vec![median, worst],
        }
    };
    let cpu = |used: fn(&PlegCell) -> Option<u64>| {
        move |cell: &PlegCell| {
            let part = used(cell).map(|used| as_seconds(used) / as_seconds(cell.window_ns));
            (part, share(used(cell), cell.window_ns))
        }
    };
    FiguresSection {
        title: "Relists and events",
        charts: vec![
            Chart {
                title: "CPU time of the runtime",
                caption: "As a share of one processor.",
                ..by_watching(cells, cpu(|cell| cell.runtime_cpu_ns))
            },
            Chart {
                title: "CPU time of the watcher",
                caption: "As a share of one processor; on a busy node with that of making the changes.",
                ..by_watching(cells, cpu(|cell| cell.own_cpu_ns))
            },
            Chart {
                title: "Bytes per second",
                caption: "Of lists, statuses and events.",
                ..by_watching(cells, bytes_per_second)
            },
            Chart {
                title: "How late the watcher knows that a container has ended",
                caption: "From the end of its process.",
                scale: Scale::Logarithmic,
                series: vec!["median", "worst"],
                rows: cells
                    .iter()
                    .filter(|cell| cell.changes > 0)
                    .map(delay)
                    .collect(),
            },
        ],
        columns: PLEG.to_vec(),
        rows: cells.iter().map(|cell| pleg_row(cell).to_vec()).collect(),
    }
}

/// A value for each way of watching, in a row for each node and load.
fn by_watching(cells: &[PlegCell], value: impl Fn(&PlegCell) -> (Option<f64>, String)) -> Chart {
    let row_name = |cell: &PlegCell| format!("{}, {}", node(cell), cell.load.name());
    let same_row = |a: &PlegCell, b: &PlegCell| row_name(a) == row_name(b);
    let row = |cells: &[PlegCell]| {
        let values = Watching::ALL.map(|watching| {
            let cell = cells.iter().find(|cell| cell.watching == watching);
            cell.map_or_else(Default::default, &value)
        });
        let (values, texts) = values.into_iter().unzip();
        ChartRow {
            name: row_name(&cells[0]),
            values,
            texts,
        }
    };
    Chart {
        title: "",
        caption: "",
        scale: Scale::Linear,
        series: Watching::ALL.map(Watching::name).to_vec(),
        rows: cells.chunk_by(same_row).map(row).collect(),
    }
}

fn bytes_per_second(cell: &PlegCell) -> (Option<f64>, String) {
    let bytes = cell.call_bytes + cell.event_bytes;
    let rate = f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / as_seconds(cell.window_ns);
    (Some(rate), format!("{rate:.0}"))
}

/// The pods and their containers.
fn node(cell: &PlegCell) -> String {
    let containers = counted(cell.containers, "container", "containers");
    format!("{} of {containers}", pods(cell.pods))
}

fn pods(pods: usize) -> String {
    counted(pods, "pod", "pods")
}

fn seconds<const N: usize>(times: Option<Times>, each: [fn(&Times) -> u64; N]) -> Vec<Option<f64>> {
    let value = |figure: fn(&Times) -> u64| times.as_ref().map(|times| as_seconds(figure(times)));
    each.map(value).to_vec()
}

fn as_seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}
