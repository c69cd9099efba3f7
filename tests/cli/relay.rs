//! A relay at a socket, between the model runtime and a client.

use std::fs;

use rustix::process::Signal;

use crate::model::Served;
use crate::suite::{Ended, Running, suite};

/// A relay to a model, served in the model's own directory.
pub(crate) struct Relayed {
    pub(crate) model: Served,
    relay: Running,
}

impl Relayed {
    #[track_caller]
    pub(crate) fn start(options: &[&str]) -> Self {
        let model = Served::start();
        let (real, listen) = (model.endpoint(), endpoint(&model));
        let relay = [&["-r", &real, "relay", "--listen", &listen], options].concat();
        let relay = suite(relay).start();
        relay.wait_for(&format!("the relay to {real} listens on {listen}"));
        Self { model, relay }
    }

    pub(crate) fn endpoint(&self) -> String {
        endpoint(&self.model)
    }

    fn run(&self, args: &[&str]) -> Ended {
        suite([&["-r", &endpoint(&self.model)], args].concat()).run()
    }
}

fn endpoint(model: &Served) -> String {
    model.endpoint().replace("cri.sock", "relay.sock")
}

#[test]
fn a_run_through_a_relay_passes_and_nothing_is_left() {
    let relayed = Relayed::start(&[]);
    let ended = relayed.run(&["STP-02", "SBX-01", "ORD-01"]);
    assert_eq!(ended.code, 0, "{ended:#?}");
    relayed.relay.send(Signal::TERM);
    assert_eq!(relayed.relay.end().code, 0);
    let socket = endpoint(&relayed.model).replace("unix://", "");
    assert!(!fs::exists(socket).unwrap());
}

#[test]
fn a_defect_of_a_relay_is_found_by_a_run() {
    let relayed = Relayed::start(&["--defect", "drop-stopped"]);
    let ended = relayed.run(&["STP-01"]);
    assert_eq!(ended.code, 1, "{ended:#?}");
    assert!(ended.out.contains("missing-stopped"), "{ended:#?}");
}

#[test]
fn a_fault_of_calls_names_its_origin() {
    let relayed = Relayed::start(&["--call", "Version,Status", "--fail", "ABORTED"]);
    let ended = relayed.run(&["STP-01"]);
    assert_eq!(ended.code, 3, "{ended:#?}");
    assert!(ended.err.contains("a fault of the relay"), "{ended:#?}");
}

#[test]
fn wrong_arguments_of_a_relay_are_refused() {
    let relay = |more: &[&str]| {
        let usual = [
            "-r",
            "/run/real.sock",
            "relay",
            "--listen",
            "/tmp/relay.sock",
        ];
        suite([&usual, more].concat()).run()
    };
    let call = |more: &[&str]| relay(&[&["--call", "ContainerStatus"], more].concat());
    for (ended, message) in [
        (call(&[]), "required arguments were not provided"),
        (
            call(&["--hang", "--fail", "ABORTED"]),
            "cannot be used with",
        ),
        (
            call(&["--fail", "OK"]),
            "it is no code of a failure in gRPC",
        ),
        (call(&["--hang", "--rate", "1/0"]), "write it as 1/20"),
        (relay(&["--hang"]), "--call <METHOD>"),
        (relay(&["--rate", "1/2"]), "--call <METHOD>"),
        (
            relay(&["--call", "ContainerStats2", "--hang"]),
            "did you mean `ContainerStats`?",
        ),
        (
            relay(&["--call", "Nothing", "--hang"]),
            "it is no method of the CRI",
        ),
        (
            relay(&["--defect", "zombie-subscribers"]),
            "it changes the behaviour of the runtime",
        ),
        (
            relay(&["-r", "/tmp/relay.sock"]),
            "unix:///tmp/relay.sock is the runtime's own",
        ),
        (
            suite(["-r", "model", "relay", "--listen", "/tmp/s"]).run(),
            "exists only during a run",
        ),
    ] {
        ended.fails(2, &[message]);
    }
    let model = Served::start();
    let taken = suite([
        "-r",
        "/run/real.sock",
        "relay",
        "--listen",
        &model.endpoint(),
    ])
    .run();
    taken.fails(2, &["error: a server already listens on", "cri.sock"]);
}
