//! Runtimes with an unusable event stream: the error contains the fix, and nothing is left.

use std::time::Duration;

use rustix::process::Signal;

use crate::fake_cri::{FakeCri, Flaw};
use crate::suite::{Suite, suite};

/// A run of one case at a fake, with short limits.
fn run_at(fake: &FakeCri, more: &[&str]) -> Suite {
    run_with_bounds(fake, "0.1", more)
}

fn run_with_bounds(fake: &FakeCri, scale: &str, more: &[&str]) -> Suite {
    let socket = fake.socket();
    let socket = socket.to_str().unwrap();
    let folder = fake.folder().to_str().unwrap();
    let args = [
        "ORD-01",
        "--timeout-scale",
        scale,
        "-r",
        socket,
        "--log-dir",
        folder,
    ];
    suite(args.iter().chain(more))
}

#[track_caller]
fn is_reported(flaw: Flaw, message: &[&str]) {
    let fake = FakeCri::start(flaw);
    for format in ["pretty", "terse", "json"] {
        let ended = run_at(&fake, &["--format", format]).run().fails(3, message);
        assert_eq!(ended.out, "", "no case is said to have run");
        assert_eq!(fake.sandboxes(), 0, "{ended:#?}");
    }
}

/// Without a case that judges a runtime without events.
#[test]
fn a_runtime_without_events_is_reported_once_and_in_the_reports() {
    for (flaw, message) in [
        (Flaw::EventsOff, "switched off: the runtime ended"),
        (
            Flaw::EventsOff,
            "set `enable_pod_events = true` under [crio.runtime]",
        ),
        (Flaw::NoEvents, "UNIMPLEMENTED"),
        (
            Flaw::NoEvents,
            "containerd has it since 1.7, CRI-O since 1.26",
        ),
    ] {
        let fake = FakeCri::start(flaw);
        let place = |name: &str| fake.folder().join(name).to_str().unwrap().to_owned();
        let (junit, json) = (place("j.xml"), place("r.json"));
        let args = ["ORD", "--tier", "core", "--junit", &junit, "--json", &json];
        let ended = run_with_bounds(&fake, "3", &args)
            .run()
            .fails(3, &[message]);
        // At the first case, and in the closing lines with the ids of all.
        let lines = |start: &str| {
            ended
                .out
                .lines()
                .filter(|line| line.starts_with(start))
                .count()
        };
        assert_eq!(
            (lines("test "), lines("  skipped: ")),
            (1, 1),
            "{}",
            ended.out
        );
        assert!(
            ended.out.contains("\ncache     not judged "),
            "{}",
            ended.out
        );
        for report in [junit, json] {
            assert!(std::fs::read_to_string(report).unwrap().contains("ORD-01"));
        }
        assert_eq!(fake.sandboxes(), 0, "{ended:#?}");
    }
}

#[test]
fn a_runtime_without_events_is_judged_by_how_it_says_so_and_by_nothing_else() {
    for (flaw, message) in [
        (Flaw::EventsOff, "but the runtime ended it with OK"),
        (
            Flaw::NoEvents,
            "2 cases up to tier extended: 1 passed, 0 failed, 1 skipped; ",
        ),
    ] {
        let fake = FakeCri::start(flaw);
        let running = run_with_bounds(&fake, "3", &["FEA-02", "--exact", "-v"]);
        let ended = running.run().fails(3, &["only cases for runtimes without"]);
        let out = &ended.out;
        assert!(out.contains(message), "{out}");
        assert_eq!(out.contains("advice: FEA-02"), flaw == Flaw::EventsOff);
        let other = out.lines().find(|line| line.starts_with("test ORD-01 "));
        assert!(other.unwrap().contains(" ... skipped: "), "{out}");
        assert_eq!(fake.sandboxes(), 0, "{ended:#?}");
    }
}

#[test]
fn a_silent_stream_is_reported_within_its_bound() {
    is_reported(Flaw::Silent, &["open and silent", "within 1s"]);
}

#[test]
fn the_report_of_a_run_that_did_not_begin_says_why() {
    let fake = FakeCri::start(Flaw::Silent);
    let report = fake.folder().join("report");
    let path = report.to_str().unwrap();
    run_at(&fake, &["--junit", path]).run().fails(3, &[]);
    let junit = std::fs::read_to_string(&report).unwrap();
    assert!(junit.contains("open and silent"), "{junit}");
    // This runtime cannot list containers: the records of those that may be left stay.
    assert_eq!(std::fs::read_dir(fake.folder()).unwrap().count(), 3);
}

#[test]
fn a_signal_ends_the_wait_for_a_silent_stream_and_what_was_made_is_removed() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let fake = FakeCri::start(Flaw::Silent);
        let running = run_with_bounds(&fake, "3", &[]).start();
        fake.wait_for("create_container");
        running.send(signal);
        let ended = running.end_within(Duration::from_secs(5));
        ended.fails(3, &["stopping and cleaning up", "interrupted"]);
        assert_eq!(fake.sandboxes(), 0);
    }
}

#[test]
fn a_terminal_that_is_closed_may_send_two_signals() {
    let fake = FakeCri::start(Flaw::Silent);
    let running = run_with_bounds(&fake, "3", &[]).start();
    fake.wait_for("create_container");
    running.send(Signal::HUP);
    running.wait_for("SIGHUP: stopping and cleaning up");
    running.send(Signal::HUP);
    running.end_within(Duration::from_secs(5)).fails(3, &[]);
    assert_eq!(fake.sandboxes(), 0);
}

#[test]
fn a_runtime_that_is_gone_for_good_is_waited_for_and_then_reported_with_the_way_to_clean_up() {
    let mut fake = FakeCri::start(Flaw::Silent);
    let running = run_at(&fake, &[]).start();
    fake.wait_for("create_container");
    fake.crash();
    let ended = running.end_within(Duration::from_secs(10));
    ended.fails(
        3,
        &[
            "not cleaned up",
            "cri-event-conformance cleanup --runtime-endpoint ",
        ],
    );
}

#[test]
fn signals_that_follow_at_once_are_one() {
    let fake = FakeCri::start(Flaw::Silent);
    let running = run_with_bounds(&fake, "3", &[]).start();
    fake.wait_for("create_container");
    running.send(Signal::INT);
    running.send(Signal::INT);
    let ended = running.end().fails(3, &["stopping and cleaning up"]);
    assert!(!ended.err.contains("exiting at once"), "{ended:#?}");
    assert_eq!(fake.sandboxes(), 0);
}

#[test]
fn a_second_signal_leaves_at_once_and_shows_how_to_clean_up() {
    let mut fake = FakeCri::start(Flaw::Silent);
    let running = run_with_bounds(&fake, "10", &[]).start();
    fake.wait_for("create_container");
    fake.crash();
    running.send(Signal::INT);
    running.wait_for("repeat to exit at once");
    let ended = running.end_by(Signal::INT, Duration::from_secs(5));
    ended.fails(3, &["exiting at once", " --run-id ", " --log-dir '/"]);
}

#[test]
fn a_kubelet_is_not_paused_for_more_than_the_core_tier_nor_for_pods_that_stay() {
    let fake = FakeCri::start(Flaw::EventsOff);
    let message = [
        "--pause-kubelet needs --tier smoke or core",
        "pods are evicted",
    ];
    for tier in [&[][..], &["--tier", "extended"], &["--tier", "full"]] {
        let args = [&["--pause-kubelet"], tier].concat();
        run_at(&fake, &args).run().fails(2, &message);
    }
    let keeps = ["--pause-kubelet", "--tier", "core", "--keep"];
    run_at(&fake, &keeps)
        .run()
        .fails(2, &["cannot be used with"]);
    // Without a kubelet there is nothing to pause.
    let core = ["--pause-kubelet", "--tier", "core"];
    run_at(&fake, &core).run().fails(3, &["switched off"]);
    assert!(fake.sandboxes() == 0);
}
