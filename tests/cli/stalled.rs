//! Outputs that are not read for a while, such as a pager, a stopped terminal, or a pipe with a
//! hanging reader: they block nothing, and an interrupt ends the program.

use std::io::Read;
use std::time::Duration;

use rustix::process::Signal;

use crate::model::Served;
use crate::suite::{full_pipe, suite};

/// A case that waits for some seconds.
const SLOW: &str = "STP-02";

#[test]
fn a_run_ends_though_its_output_is_not_read_and_all_is_printed_once_it_is() {
    let model = ["-r", "model", "ORD-", "--json", "/dev/stderr"];
    let (running, mut reader) = suite(model).start_stalled();
    running.wait_for("\"outcomes\"");
    let mut printed = String::new();
    let reading = std::thread::spawn(move || {
        reader.read_to_string(&mut printed).unwrap();
        printed
    });
    assert_eq!(running.end().code, 0);
    let printed = reading.join().unwrap();
    assert!(
        printed.ends_with("exit code 0: no MUST is broken\n"),
        "{printed}"
    );
}

#[test]
fn an_interrupt_ends_a_program_whose_output_is_not_read() {
    let model = Served::start();
    let (running, _reader) = suite(["-r", &model.endpoint(), SLOW]).start_stalled();
    running.wait_for("testing ");
    running.send(Signal::INT);
    running.wait_for("SIGINT: stopping and cleaning up");
    let ended = running.end().fails(3, &[]);
    assert!(!ended.err.contains("exiting at once"), "{ended:#?}");
    let watch = ["watch", "-r", &model.endpoint()];
    let (running, _reader) = suite(watch).start_stalled();
    running.wait_for("watching ");
    running.send(Signal::INT);
    running.end().fails(0, &[]);
}

#[test]
fn a_second_interrupt_ends_a_run_whose_outputs_are_all_full() {
    let model = Served::start();
    let run = suite(["-r", &model.endpoint(), SLOW, "--history", "/dev/stdout"]);
    let (running, _reader) = run.start_stalled();
    running.wait_for("testing ");
    running.send(Signal::INT);
    running.wait_for("repeat to exit at once");
    running
        .end_by(Signal::INT, Duration::from_secs(5))
        .fails(3, &["exiting at once"]);
}

#[test]
fn a_history_that_is_not_read_stops_no_case() {
    let (_reader, writer) = full_pipe();
    let run = suite(["-r", "model", "ORD-", "--history", "/dev/stdin"]);
    let running = run.input(writer).start();
    running.wait_for_output("invariants ok");
    running.send(Signal::INT);
    let ended = running.end().fails(3, &[]);
    assert!(ended.out.contains("7 passed"), "{ended:#?}");
    assert!(ended.out.contains("nothing was read for 2 s"), "{ended:#?}");
}
