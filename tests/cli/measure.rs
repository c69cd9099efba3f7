//! `measure` on the model: its options, its table, its file, and its simulated time.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::fake_cri::{FakeCri, Flaw};
use crate::suite::suite;

/// The figures of a measurement on the model with these arguments, and what it printed.
#[track_caller]
fn measured(args: &[&str]) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figures.json");
    let line = ["measure", args[0], "-r", "model", "--json"];
    let line = line.iter().copied().chain([path(&file)]);
    let ended = suite(line.chain(args[1..].iter().copied())).run();
    let out = ended
        .fails(0, &["measuring model", "in simulated time"])
        .out;
    let text = std::fs::read_to_string(&file).unwrap();
    (serde_json::from_str(&text).unwrap(), out)
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn wrong_usage_is_reported() {
    for (args, message) in [
        (&["measure"][..], "measure [OPTIONS] <COMMAND>"),
        (&["measure", "events", "--pods", "0"], "0 is not in 1..=500"),
        (
            &["measure", "pleg", "--write-every", "1ms"],
            "at least 10ms",
        ),
        (
            &["measure", "events", "--subscribers", "65"],
            "65 is not in 1..=64",
        ),
        (
            &["measure", "events", "--changes", "none"],
            "invalid value 'none'",
        ),
        (
            &["measure", "pleg", "--for", "0"],
            "it must be more than zero",
        ),
        (
            &["measure", "pleg", "--containers", "21"],
            "21 is not in 1..=20",
        ),
        (
            &[
                "measure",
                "pleg",
                "-r",
                "model",
                "--pods",
                "500",
                "--containers",
                "3",
            ],
            "500 pods of 3 containers are too many: measure makes at most 1000 containers",
        ),
        (
            &[
                "measure",
                "events",
                "-r",
                "model",
                "--json",
                "/no/such/file",
            ],
            "write the measurements to /no/such/file",
        ),
        (
            &[
                "measure",
                "events",
                "-r",
                "model",
                "--json",
                "/tmp/figures",
                "--html",
                "/tmp/figures",
            ],
            "the measurements has the same path",
        ),
        (
            &["--keep", "measure", "events"],
            "`measure` does not accept",
        ),
    ] {
        suite(args).run().fails(2, &[message]);
    }
}

#[test]
fn there_is_nothing_to_measure_without_a_runtime_or_its_events() {
    let nowhere = ["measure", "events", "-r", "/no/such/socket"];
    suite(nowhere)
        .run()
        .fails(3, &["no socket", "is the runtime running"]);
    for (flaw, message) in [
        (
            Flaw::NoEvents,
            "error: there are no events to measure: the runtime has no event stream",
        ),
        (
            Flaw::EventsOff,
            "error: there are no events to measure: container events are switched",
        ),
    ] {
        let fake = FakeCri::start(flaw);
        let socket = fake.socket();
        let args = ["measure", "pleg", "-r", path(&socket), "--timeout", "3s"];
        let logs = ["--log-dir", path(fake.folder())];
        suite(args.iter().chain(&logs)).run().fails(3, &[message]);
        assert_eq!(fake.sandboxes(), 0, "what it has made is removed");
    }
}

#[test]
fn an_interruption_ends_it_with_the_figures_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("figures.json");
    let args = ["measure", "pleg", "-r", "model", "--json", path(&file)];
    let long = ["--pods", "50", "--containers", "9", "--for", "1h"];
    let running = suite(args.iter().chain(&long)).start();
    running.wait_for("in simulated time");
    running.send(Signal::INT);
    let ended = running.end();
    ended.fails(3, &["SIGINT: stopping", "error: interrupted by SIGINT"]);
    let figures = std::fs::read_to_string(&file).unwrap();
    let figures: Value = serde_json::from_str(&figures).unwrap();
    assert_eq!(figures["faults"][0], "interrupted by SIGINT", "{figures:#}");
}

#[test]
fn each_number_of_pods_and_streams_has_a_line() {
    let args = [
        "events",
        "--pods",
        "3,2,3",
        "--subscribers",
        "1,2",
        "--changes",
        "8",
    ];
    let (figures, out) = measured(&args);
    assert_eq!(
        (&figures["version"], &figures["simulated"]),
        (&1.into(), &true.into())
    );
    let cells = figures["events"].as_array().unwrap();
    let of = |cell: &Value| [&cell["pods"], &cell["subscribers"]].map(|it| it.as_u64().unwrap());
    let found: Vec<_> = cells.iter().map(of).collect();
    assert_eq!(found, [[2, 1], [2, 2], [3, 1], [3, 2]]);
    for cell in cells {
        let samples = 8 * cell["subscribers"].as_u64().unwrap();
        assert_eq!(cell["latency"]["samples"], samples, "{cell:#}");
        assert_eq!(cell["missing"], 0, "{cell:#}");
        // Simulated calls have no rate.
        assert!(cell["rate_without_lag"].is_null(), "{cell:#}");
    }
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.len(), 6, "{out}");
    assert!(lines[0].starts_with(" PODS"), "{out}");
    assert!(lines[5].starts_with("note: in simulated time"), "{out}");
}

#[test]
fn events_that_do_not_come_are_missing() {
    let args = [
        "events",
        "--pods",
        "1",
        "--subscribers",
        "1",
        "--changes",
        "3",
    ];
    let args = [&args[..], &["--defect", "drop-stopped"]].concat();
    let (figures, _) = measured(&args);
    let cell = &figures["events"][0];
    assert_eq!(cell["missing"], 3, "{cell:#}");
    assert!(cell["latency"].is_null(), "{cell:#}");
}

#[test]
fn relists_cost_calls_and_time_where_events_cost_neither() {
    let (figures, out) = measured(&["pleg", "--pods", "4", "--containers", "2", "--for", "20s"]);
    let cells = figures["pleg"].as_array().unwrap();
    let cell = |load: &str, watching: &str| {
        let is = |cell: &&Value| cell["load"] == load && cell["watching"] == watching;
        cells.iter().find(is).unwrap()
    };
    assert_eq!(cells.len(), 6);
    let number = |cell: &Value, field: &str| cell[field].as_u64().unwrap();
    let idle = cell("idle", "relists");
    // At once, and after each second. Nothing has changed, and no status is asked for.
    assert!((19..=21).contains(&number(idle, "relists")), "{idle:#}");
    assert_eq!(
        number(idle, "calls"),
        2 * number(idle, "relists"),
        "{idle:#}"
    );
    assert_eq!(number(idle, "changes"), 0, "{idle:#}");
    assert!(
        idle["delay"].is_null() && idle["runtime_cpu_ns"].is_null(),
        "{idle:#}"
    );
    let rare = cell("idle", "events-and-relists");
    assert_eq!(
        (number(rare, "relists"), number(rare, "calls")),
        (1, 2),
        "{rare:#}"
    );
    assert_eq!(number(cell("idle", "events"), "calls"), 0);
    let busy = cell("busy", "relists");
    assert!(number(busy, "calls") > number(idle, "calls"), "{busy:#}");
    assert_eq!(number(busy, "events"), 0, "{busy:#}");
    let by_events = cell("busy", "events");
    assert!(number(by_events, "changes") >= 19, "{by_events:#}");
    assert!(number(by_events, "events") >= 4 * 19, "{by_events:#}");
    let median = |cell: &Value| cell["delay"]["median_ns"].as_u64().unwrap();
    assert!(median(by_events) < median(busy), "{busy:#} {by_events:#}");
    assert!(cells.iter().all(|cell| number(cell, "lost") == 0));
    assert!(
        out.contains("the model runs in the suite's own process"),
        "{out}"
    );
}

#[test]
fn what_no_event_reports_is_lost_without_relists() {
    let args = [
        "pleg",
        "--pods",
        "4",
        "--for",
        "5s",
        "--defect",
        "drop-stopped",
        "--write-every",
        "1s",
    ];
    let (figures, _) = measured(&args);
    let cells = figures["pleg"].as_array().unwrap();
    for cell in cells.iter().filter(|cell| cell["load"] == "busy") {
        assert_eq!(cell["write_every_ns"], 1_000_000_000, "{cell:#}");
        let lost = cell["lost"].as_u64().unwrap();
        assert_eq!(lost > 0, cell["watching"] != "relists", "{cell:#}");
    }
}

#[test]
fn a_page_shows_the_figures_as_charts_and_tables() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("figures.html");
    let html = ["--html", path(&page)];
    let events = ["events", "--pods", "2", "--subscribers", "1,2"];
    measured(&[&events[..], &["--changes", "3"], &html].concat());
    let events = std::fs::read_to_string(&page).unwrap();
    for part in [
        "How late STOPPED is",
        ">2 pods, 1 stream</text>",
        ">SUBSCRIBERS</th>",
        "in simulated time",
    ] {
        assert!(events.contains(part), "{part}: {events}");
    }
    // The model's calls have no rate.
    assert!(!events.contains("Changes per second"), "{events}");
    measured(&[&["pleg", "--pods", "2", "--for", "5s"], &html[..]].concat());
    let pleg = std::fs::read_to_string(&page).unwrap();
    for part in [
        "Bytes per second",
        "How late the watcher knows",
        ">2 pods of 1 container, busy</text>",
        ">events, relists</text>",
    ] {
        assert!(pleg.contains(part), "{part}: {pleg}");
    }
    assert!(!pleg.contains("CPU time of"), "{pleg}");
}
