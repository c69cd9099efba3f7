//! Malicious or badly broken runtimes: their texts cannot control the terminal, and the size of
//! their answers cannot exhaust the memory.

use std::collections::BTreeSet;
use std::fs;
use std::fs::File;

use cri_event_conformance::testing::history::codec::FrameWriter;
use cri_event_conformance::testing::history::{Body, Entry, HostInstant, RunInfo, Seq};
use rustix::process::Signal;

use crate::fake_cri::{FakeCri, Flaw};
use crate::suite::{Ended, Running, Suite, suite, suite_within};

/// The memory limit of the suite with any runtime.
const MEMORY: usize = 300 << 20;

/// Asserts that a text contains no control characters.
#[track_caller]
fn is_plain(text: &str) {
    let plain = |character: char| {
        let turns = matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}');
        character == '\n' || !(character.is_control() || turns)
    };
    assert!(text.chars().all(plain), "{text:?}");
}

#[track_caller]
fn says_plainly(ended: &Ended, message: &str) {
    assert!(
        format!("{}{}", ended.err, ended.out).contains(message),
        "{ended:#?}"
    );
    is_plain(&ended.err);
    is_plain(&ended.out);
}

#[test]
fn an_error_that_would_drive_a_terminal_is_escaped() {
    let message = r"evil\u{1b}]0;x\u{7}\u{1b}[2J\u{0}\r\u{9b}31m\u{202e}\u{2066}\u{200f}\nend";
    for method in [
        "version",
        "list_pod_sandbox",
        "run_pod_sandbox",
        "create_container",
    ] {
        let fake = FakeCri::start(Flaw::Evil(method));
        let socket = fake.socket();
        let run = ["ORD-01", "-r", socket.to_str().unwrap()];
        says_plainly(&suite(run).run().fails(3, &[]), message);
        if ["version", "list_pod_sandbox"].contains(&method) {
            let cleanup = ["cleanup", "-r", socket.to_str().unwrap()];
            says_plainly(&suite(cleanup).run().fails(3, &[]), message);
        }
    }
}

#[test]
fn what_walks_show_of_a_runtime_stays_in_its_line() {
    let fake = FakeCri::start(Flaw::Evil("run_pod_sandbox"));
    let socket = fake.socket();
    let explore = ["explore", "--walks", "2", "--no-shrink", "-r"];
    let ended = suite(explore.iter().chain([&socket.to_str().unwrap()])).run();
    assert_ne!(ended.code, 101, "{ended:#?}");
    says_plainly(&ended, "evil");
    for text in [&ended.out, &ended.err] {
        assert!(
            !text.lines().any(|line| line.starts_with("end")),
            "{ended:#?}"
        );
    }
}

#[test]
fn a_history_that_unpacks_to_more_than_can_be_shown_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("h");
    let mut frames = FrameWriter::new(File::create(&path).unwrap());
    let at = HostInstant::default();
    let began = Body::RunBegan(RunInfo::default().into());
    let bodies = std::iter::once(began).chain(std::iter::repeat(Body::CasesEnded));
    for (seq, body) in (0..).map(Seq).zip(bodies.take(1_000_000)) {
        frames.push(&Entry { seq, at, body }).unwrap();
    }
    frames.finish().unwrap();
    let show = suite_within(2 * MEMORY, ["show", path.to_str().unwrap()]);
    let ended = show
        .run()
        .fails(2, &["only the first 256 MiB of it can be shown"]);
    assert!(ended.out.lines().count() < 1_000_000);
}

#[test]
fn log_messages_have_no_colours_without_a_terminal() {
    let run = suite(["ORD-01", "-r", "model"]).env("RUST_LOG", "debug");
    let ended = run.run();
    assert!(ended.err.contains("DEBUG"), "{ended:#?}");
    is_plain(&ended.err);
}

fn watched(fake: &FakeCri, output: &str) -> Running {
    let socket = fake.socket();
    let socket = socket.to_str().unwrap();
    suite(["watch", "-r", socket, "--within", "1s", "-o", output]).start()
}

#[test]
fn what_is_watched_is_shown_plainly() {
    let fake = FakeCri::start(Flaw::Evil("none"));
    for output in ["text", "json"] {
        let running = watched(&fake, output);
        running.wait_for_output("STARTED");
        running.send(Signal::INT);
        says_plainly(&running.end().fails(0, &[]), "namespaceevil");
    }
    for method in ["version", "list_pod_sandbox", "list_containers"] {
        let fake = FakeCri::start(Flaw::Evil(method));
        let running = watched(&fake, "json");
        running.wait_for("evil");
        running.send(Signal::INT);
        says_plainly(&running.end(), "evil");
    }
}

#[test]
fn what_stands_in_others_files_is_shown_plainly() {
    let folder = tempfile::tempdir().unwrap();
    let inside = |args: &[&str]| suite(args).inside(folder.path()).run();
    let case = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/cases/order/created-started-stopped-deleted.yaml"
    );
    let case = fs::read_to_string(case).unwrap();
    let titled = |line: &str| match line.strip_prefix("title: ") {
        Some(title) => format!("title: \"evil\\e[31m\\u202e {title}\""),
        None => line.to_owned(),
    };
    let case: Vec<_> = case.lines().map(titled).collect();
    fs::create_dir_all(folder.path().join("cases/order")).unwrap();
    fs::write(folder.path().join("cases/order/case.yaml"), case.join("\n")).unwrap();
    for format in ["pretty", "json"] {
        let list = ["--list", "--cases", "cases", "--format", format];
        says_plainly(&inside(&list).fails(0, &[]), "evil");
    }
    let failing = ["ORD-01", "-r", "model", "--defect", "drop-stopped"];
    inside(&[&failing[..], &["--json", "r.json"]].concat()).fails(1, &[]);
    let report = fs::read_to_string(folder.path().join("r.json")).unwrap();
    let report = report.replace("ORD-01", r"evil\u001b[31m\u202e");
    fs::write(folder.path().join("r.json"), report).unwrap();
    let rerun = inside(&["-r", "model", "--rerun-failed", "r.json"]);
    assert_ne!(rerun.code, 0);
    says_plainly(&rerun, "evil");
}

/// A parser's message quotes the text that it rejects, and a diagnostic has the file's name. A line
/// of either could be a command of a workflow.
#[test]
fn what_cannot_be_parsed_stays_in_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let inside = |args: &[&str]| suite(args).inside(folder.path()).run();
    fs::create_dir(folder.path().join("cases")).unwrap();
    for name in ["evil.yaml", "cases/evil\n::error::x.yaml"] {
        write(name, r#""evil\n::error::x": 1"#);
    }
    inside(&["-r", "model", "ORD-01", "--json", "r.json"]).fails(0, &[]);
    let report = fs::read_to_string(folder.path().join("r.json")).unwrap();
    write(
        "r.json",
        &report.replace(r#": "pass""#, r#": "evil\n::error::x""#),
    );
    for args in [
        &["gate", "--policy", "evil.yaml", "r.json"][..],
        &["compare", "r.json", "r.json"],
        &["-r", "model", "--rerun-failed", "r.json"],
        &["-r", "model", "--expectations", "evil.yaml"],
        &["--list", "--cases", "cases"],
    ] {
        let ended = inside(args).fails(2, &["evil"]);
        let is_command = |line: &str| line.trim_start().starts_with("::");
        assert!(!ended.err.lines().any(is_command), "{ended:#?}");
    }
}

fn without_output(suite: Suite) -> Running {
    suite.out(File::create("/dev/null").unwrap()).start()
}

#[test]
fn a_crowd_of_others_uses_up_no_memory() {
    let fake = FakeCri::start(Flaw::Crowded);
    let socket = fake.socket();
    let socket = socket.to_str().unwrap();
    let watching = without_output(suite_within(MEMORY, ["watch", "-r", socket]));
    watching
        .wait_for("the relist fails: ListContainers: RESOURCE_EXHAUSTED: the answer lists 100000");
    for _ in 0..2 {
        fake.wait_for("list_containers");
    }
    watching.send(Signal::INT);
    watching.end().fails(0, &[]);
    // The server's events break rules, but not the suite.
    let run = suite_within(MEMORY, ["ORD-01", "--exact", "-r", socket]).run();
    run.fails(1, &[]);
}

#[test]
fn a_flood_of_events_uses_up_no_memory_and_is_reported_once_a_second() {
    let fake = FakeCri::start(Flaw::Flood);
    let socket = fake.socket();
    let socket = socket.to_str().unwrap();
    let watching = without_output(suite_within(MEMORY, ["watch", "-r", socket]));
    for _ in 0..4 {
        fake.wait_for("flooded");
    }
    // It continues with a new stream after a loss.
    watching.wait_for_times("the event stream is requested", 2);
    watching.send(Signal::INT);
    let ended = watching.end().fails(0, &[]);
    let message = ended.err.lines();
    let message: Vec<_> = message
        .filter(|line| line.contains("events arrived faster"))
        .collect();
    // At most once a second, and printed a moment later.
    let seconds: BTreeSet<_> = message.iter().filter_map(|line| line.get(..19)).collect();
    assert!(!message.is_empty(), "{ended:#?}");
    assert!(message.len() <= 2 * seconds.len(), "{ended:#?}");
    let run = ["ORD-01", "-r", socket, "--history", "/dev/null"];
    let run = suite_within(MEMORY, run).run();
    run.fails(
        3,
        &["the event stream is open, and has brought", "other events"],
    );
}

#[test]
fn large_events_use_up_no_memory_and_decide_nothing() {
    let fake = FakeCri::start(Flaw::LargeEvents);
    let socket = fake.socket();
    let socket = socket.to_str().unwrap();
    let watch = [
        "watch",
        "-r",
        socket,
        "--for",
        "1h",
        "--history",
        "/dev/null",
    ];
    let watching = without_output(suite_within(MEMORY, watch));
    for _ in 0..6 {
        fake.wait_for("flooded");
    }
    watching.send(Signal::INT);
    let ended = watching.end();
    assert!([1, 3].contains(&ended.code), "{ended:#?}");
}

#[test]
fn events_that_prove_nothing_are_no_conformance() {
    let verdict = |flaw, seconds| {
        let fake = FakeCri::start(flaw);
        let socket = fake.socket();
        let socket = socket.to_str().unwrap();
        let watch = ["watch", "-r", socket, "--within", "1s", "--for", seconds];
        suite(watch).run()
    };
    let unlisted = verdict(Flaw::Unlisted, "4s").fails(4, &[]);
    let first = unlisted.out.lines().next().unwrap();
    assert!(
        first.ends_with(": no container was judged: 4 events"),
        "{first}"
    );
    let flooded = verdict(Flaw::Flood, "6s").fails(3, &[]);
    let reason = "events were not tracked, whose pods are unknown";
    assert!(flooded.out.contains(reason), "{}", flooded.out);
}
