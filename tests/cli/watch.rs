//! `watch` without a working runtime: permanent errors are reported at once, others are retried.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::fake_cri::{FakeCri, Flaw};
use crate::kubelet::{StandInKubelet, own_user};
use crate::suite::{Suite, in_own_pid_namespace, suite};

const AT_ONCE: Duration = Duration::from_secs(5);
const ASKED: &str = "the event stream is requested";

fn watch(fake: &FakeCri, args: &[&str]) -> Suite {
    let socket = fake.socket();
    suite([&["watch", "-r", socket.to_str().unwrap()], args].concat())
}

#[test]
fn wrong_usage_is_reported() {
    for (args, message) in [
        (["--within", "0"], "it must be more than zero"),
        (["--output", "xml"], "[possible values: text, json]"),
        (["--metrics-address", "9101"], "invalid socket address"),
        (["--rotate", "64"], "write it as 512KiB, 64MiB or 1GiB"),
        (["--fail-on", "all"], "[possible values: must, should"),
        (["--for", "0"], "it must be more than zero"),
    ] {
        suite([&["watch"], &args[..]].concat())
            .run()
            .fails(2, &[message]);
    }
}

#[test]
fn what_cannot_be_served_or_judged_is_reported() {
    let fake = FakeCri::start(Flaw::Silent);
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = watch(&fake, &["--metrics-address", &address]).run();
    ended.fails(2, &["error: serve metrics at", &address]);
    // A verdict on nothing would be a false pass.
    let ended = watch(&fake, &["--for", "1s", "--profile", "observer"]).run();
    ended.fails(2, &["no rule of a watch binds the chosen profiles"]);
}

#[test]
fn an_address_that_others_reach_is_warned_of() {
    let fake = FakeCri::start(Flaw::Silent);
    let running = watch(&fake, &["--metrics-address", "0.0.0.0:0"]).start();
    running.wait_for("warning: anyone who can reach this address can read the metrics");
}

#[test]
fn a_runtime_without_events_cannot_be_watched() {
    let fake = FakeCri::start(Flaw::NoEvents);
    let ended = watch(&fake, &[]).run();
    ended.fails(
        3,
        &["error: the runtime has no event stream", "UNIMPLEMENTED"],
    );
}

#[test]
fn events_that_are_switched_off_cannot_be_watched() {
    let fake = FakeCri::start(Flaw::EventsOff);
    let ended = watch(&fake, &[]).run();
    ended.fails(
        3,
        &[
            "error: container events are switched off",
            "enable_pod_events",
        ],
    );
}

#[test]
fn there_is_nobody_to_watch() {
    let ended = suite(["watch", "-r", "/no/such/socket"]).run();
    ended.fails(3, &["no socket", "is the runtime running"]);
}

#[test]
fn a_signal_ends_it_with_a_summary() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let fake = FakeCri::start(Flaw::Silent);
        let running = watch(&fake, &[]).start();
        running.wait_for(ASKED);
        running.send(signal);
        let ended = running.end_within(AT_ONCE).fails(0, &["watching fake 1"]);
        assert!(ended.out.contains(": 0 events\n"), "{ended:#?}");
        assert!(ended.out.contains("missed events: 0\n"), "{ended:#?}");
        assert!(!ended.out.contains('\u{1b}'), "{ended:#?}");
        assert_eq!(fake.sandboxes(), 0, "it only reads");
    }
}

#[test]
fn a_failing_relist_is_reported_once() {
    // The fake runtime does not know how to list containers.
    let fake = FakeCri::start(Flaw::Silent);
    let running = watch(&fake, &["-o", "json"]).start();
    running.wait_for("the relist fails: ListContainers: UNIMPLEMENTED");
    running.wait_for_output("relist-failed");
    fake.wait_for("list_pod_sandbox");
    fake.wait_for("list_pod_sandbox");
    running.send(Signal::INT);
    let ended = running.end_within(AT_ONCE).fails(0, &[]);
    let lines = ended.out.lines().map(serde_json::from_str::<Value>);
    let lines: Vec<_> = lines.map(Result::unwrap).collect();
    let failed = lines.iter().filter(|line| line["what"] == "relist-failed");
    assert_eq!(failed.count(), 1, "{ended:#?}");
    assert_eq!(lines.last().unwrap()["type"], "summary");
}

#[test]
fn a_runtime_that_is_lost_is_tried_again() {
    let mut fake = FakeCri::start(Flaw::Silent);
    let running = watch(&fake, &[]).start();
    running.wait_for(ASKED);
    fake.crash();
    running.wait_for("retrying at once");
    running.wait_for_times("there is no event stream", 2);
    running.send(Signal::INT);
    running.end_within(AT_ONCE).fails(0, &["no server listens"]);
}

#[test]
fn a_runtime_that_answers_again_is_listened_to_at_once() {
    let mut fake = FakeCri::start(Flaw::Evil("none"));
    let running = watch(&fake, &["-o", "json"]).start();
    running.wait_for(ASKED);
    fake.crash();
    // The next pause is one of 4 s to 8 s.
    running.wait_for_times("there is no event stream", 5);
    running.wait_for("the relist fails");
    fake.restart();
    running.wait_for_times(ASKED, 2);
    running.send(Signal::INT);
    let ended = running
        .end_within(AT_ONCE)
        .fails(0, &["relists work again"]);
    let lines = ended.out.lines().map(serde_json::from_str::<Value>);
    let lines: Vec<_> = lines.map(Result::unwrap).collect();
    let what = |what: &'static str| lines.iter().filter(move |line| line["what"] == what);
    let order = ["ended", "relist-works", "opened"];
    let last = order.map(|name| what(name).next_back().unwrap()["time"].to_string());
    assert!(last.is_sorted(), "{ended:#?}");
    let (ended_at, opened_at) = (seconds(&last[0]), seconds(&last[2]));
    assert!((opened_at - ended_at).rem_euclid(60.0) < 4.0, "{ended:#?}");
}

/// The seconds of the minute of a time.
fn seconds(time: &str) -> f64 {
    let seconds = time.trim_end_matches("Z\"").rsplit(':').next().unwrap();
    seconds.parse().unwrap()
}

#[test]
fn a_reader_that_goes_ends_it() {
    let fake = FakeCri::start(Flaw::Silent);
    let ended = watch(&fake, &["--output", "json"]).run_for_a_line();
    assert!(ended.out.contains("\"type\":\"stream\""), "{ended:#?}");
    assert_eq!(ended.code, 0, "{ended:#?}");
    let ended = watch(&fake, &["--output", "json"]).run_unread();
    ended.fails(0, &[]);
}

#[test]
fn it_sends_no_call_that_changes_state() {
    const READS: [&str; 8] = [
        "version",
        "status",
        "runtime_config",
        "list_pod_sandbox",
        "list_containers",
        "pod_sandbox_status",
        "container_status",
        "get_container_events",
    ];
    let fake = FakeCri::start(Flaw::NoStarts);
    fake.add_pod_of_a_kubelet();
    let json = fake.folder().join("report.json");
    let args = [
        "--for",
        "3s",
        "--json",
        json.to_str().unwrap(),
        "--metrics-address",
        "127.0.0.1:0",
    ];
    watch(&fake, &args).run().fails(4, &["watching fake 1"]);
    let asked = fake.asked();
    assert!(!asked.is_empty());
    for asked in asked {
        assert!(READS.contains(&asked.method), "{asked:?}");
    }
    assert_eq!(fake.sandboxes(), 1);
}

#[test]
fn events_are_not_taken_from_a_kubelet() {
    let fake = FakeCri::start(Flaw::SingleConsumer);
    let kubelet = StandInKubelet::start(&fake, own_user());
    let pid = format!("process {}", kubelet.pid());
    let ended = watch(&fake, &["--for", "3s"]).run();
    ended.fails(
        3,
        &[
            "containerd 1.7.99 sends each event to only one",
            &pid,
            "--allow event-theft",
        ],
    );
    let methods: Vec<_> = fake.asked().iter().map(|asked| asked.method).collect();
    assert!(!methods.contains(&"get_container_events"), "{methods:?}");
    let allowed = watch(&fake, &["--for", "3s", "--allow", "event-theft"]).run();
    // The fake runtime lists no containers, so that nothing can be decided.
    allowed.fails(3, &["warning: containerd 1.7 sends"]);
    drop(kubelet);
    watch(&fake, &["--for", "3s"])
        .run()
        .fails(3, &["warning: containerd 1.7 sends"]);
    // It is hidden, but its pods are not.
    fake.add_pod_of_a_kubelet();
    let sign = "1 ready pods here have a kubelet's labels";
    watch(&fake, &["--for", "3s"]).run().fails(3, &[sign]);
}

#[test]
fn events_are_not_taken_where_a_kubelet_would_be_hidden() {
    let fake = FakeCri::start(Flaw::SingleConsumer);
    let socket = fake.socket();
    let args = ["watch", "-r", socket.to_str().unwrap(), "--for", "3s"];
    let Some(watch) = in_own_pid_namespace(args) else {
        return;
    };
    let sign = "a kubelet may run on this node, whose processes are hidden (a pod needs hostPID)";
    watch.run().fails(3, &[sign, "--allow event-theft"]);
    let methods: Vec<_> = fake.asked().iter().map(|asked| asked.method).collect();
    assert!(!methods.contains(&"get_container_events"), "{methods:?}");
}
