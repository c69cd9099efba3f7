//! The model runtime: within a run, and served at a socket.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cri_event_conformance::testing::drive::{PANIC_IN, PANIC_JUDGING};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::logs::every_container_has_a_log;
use crate::suite::{Running, suite, unprivileged};

const LISTENS: &str = "the model runtime listens on";

/// A model, served in its own directory.
pub(crate) struct Served {
    folder: TempDir,
    running: Running,
}

impl Served {
    #[track_caller]
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Serves a model with these options.
    #[track_caller]
    pub(crate) fn start_with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = endpoint(folder.path());
        let running = suite([options, &["model", "--listen", &endpoint]].concat()).start();
        running.wait_for(LISTENS);
        Self { folder, running }
    }

    pub(crate) fn endpoint(&self) -> String {
        endpoint(self.folder.path())
    }
}

fn endpoint(folder: &Path) -> String {
    format!("unix://{}/cri.sock", folder.display())
}

#[test]
fn a_run_on_the_model_needs_no_root_and_passes() {
    let ended = unprivileged(["-r", "model"]).run();
    assert_eq!(ended.code, 0, "{ended:#?}");
    assert!(ended.err.contains("in simulated time"), "{ended:#?}");
    assert!(ended.out.contains(" 0 failed"), "{ended:#?}");
    assert!(!ended.out.contains("inconclusive:"), "{ended:#?}");
    for row in ["\ncache     conformant ", "\nhint      conformant "] {
        assert!(ended.out.contains(row), "{ended:#?}");
    }
}

#[test]
fn a_run_on_the_model_writes_what_any_run_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (junit, json, history) = (path("junit.xml"), path("report.json"), path("history"));
    let outputs = ["--junit", &junit, "--json", &json, "--history", &history];
    let ended = suite([&["ORD-01", "-r", "model", "--format", "json"], &outputs[..]].concat());
    let ended = ended.run();
    assert_eq!(ended.code, 0, "{ended:#?}");
    let events = ended.out.lines();
    let events = events.map(serde_json::from_str::<serde_json::Value>);
    assert!(events.into_iter().all(|event| event.is_ok()), "{ended:#?}");
    roxmltree::Document::parse(&fs::read_to_string(junit).unwrap()).unwrap();
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert!(report.is_object(), "{report}");
    let shown = suite(["show", &history]).run().succeeds();
    assert!(shown.contains("STOPPED c"), "{shown}");
}

#[test]
fn a_case_that_the_model_does_not_pass_is_shown_with_its_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let area = folder.path().join("order");
    fs::create_dir(&area).unwrap();
    let case = "id: ORD-99\ntitle: A container stops by itself.\nwhy: It does not.\nsources: [none]\n\
                levels: {cache: must, hint: must}\nsteps:\n  - sandbox: {as: pod}\n  - create: {as: \
                c, in: pod, workload: until-term}\n  - start: {container: c}\nexpect:\n  - includes: {of: \
                c, in-order: [stopped]}\n";
    fs::write(area.join("stops.yaml"), case).unwrap();
    let cases = folder.path().display().to_string();
    let ended = suite(["-r", "model", "--cases", &cases]).run();
    assert_eq!(ended.code, 1, "{ended:#?}");
    assert!(ended.out.contains("STARTED c"), "{ended:#?}");
}

#[test]
fn the_model_is_served_to_any_client_and_leaves_nothing() {
    let served = Served::start();
    let socket = served.folder.path().join("cri.sock");
    let mode = fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let ended = suite(["STP-02", "SBX", "-r", &served.endpoint()]).run();
    assert_eq!(ended.code, 0, "{ended:#?}");
    // Other runs on this host have logs at the usual place.
    let logs = served.folder.path().to_str().unwrap();
    let swept = suite(["cleanup", "-r", &served.endpoint(), "--log-dir", logs]).run();
    assert_eq!(swept.succeeds(), "nothing to remove\n");
    served.running.send(Signal::INT);
    assert_eq!(served.running.end().code, 0);
    assert_eq!(fs::read_dir(served.folder.path()).unwrap().count(), 0);
}

#[test]
fn a_watch_of_the_model_sees_what_others_do() {
    let served = Served::start();
    let watch = suite(["watch", "-r", &served.endpoint()]).start();
    watch.wait_for("watching model");
    let ended = suite(["ORD-01", "-r", &served.endpoint()]).run();
    assert_eq!(ended.code, 0, "{ended:#?}");
    watch.wait_for_output("STOPPED");
    watch.send(Signal::INT);
    let ended = watch.end();
    assert_eq!(ended.code, 0, "{ended:#?}");
    assert!(!ended.out.contains("MISSED"), "{ended:#?}");
}

#[test]
fn a_place_that_is_taken_is_left_alone_and_reported() {
    let served = Served::start();
    let second = suite(["model", "--listen", &served.endpoint()]).run();
    second.fails(2, &["error: a server already listens on", "cri.sock"]);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cri.sock"), "mine").unwrap();
    let in_the_way = suite(["model", "--listen", &endpoint(folder.path())]).run();
    in_the_way.fails(2, &["exists and is no socket", "remove it yourself"]);
    let nowhere = suite(["model", "--listen", "unix:///missing/cri.sock"]).run();
    nowhere.fails(2, &["error: listen on /missing/cri.sock", "No such file"]);
    let wrong = suite(["model", "--listen", "tcp://127.0.0.1:1"]).run();
    wrong.fails(2, &["error: the scheme of"]);
}

#[test]
fn a_socket_that_a_killed_server_left_is_replaced() {
    let served = Served::start();
    served.running.send(Signal::KILL);
    served.running.end();
    let again = suite(["model", "--listen", &endpoint(served.folder.path())]).start();
    again.wait_for(LISTENS);
}

#[test]
fn what_needs_a_runtime_that_is_there_says_how_to_have_the_model_there() {
    for command in ["watch", "cleanup"] {
        let ended = suite([command, "-r", "model"]).run();
        ended.fails(
            2,
            &[
                "error: the built-in model runtime exists only during a run",
                "--listen",
            ],
        );
    }
}

/// Only for tests: a release build ignores these variables, and help does not show them.
#[test]
fn a_panic_is_provoked_by_the_environment_of_a_build_for_tests_alone() {
    for variable in [PANIC_IN, PANIC_JUDGING] {
        let run = suite(["-r", "model", "ORD-01"]).env(variable, "ORD-01");
        let ended = run.run();
        let (code, panics) = if cfg!(debug_assertions) {
            (3, true)
        } else {
            (0, false)
        };
        assert_eq!(ended.code, code, "{ended:#?}");
        let says_so = ended.out.contains("the suite itself failed");
        assert_eq!(says_so, panics, "{ended:#?}");
    }
    for flag in ["--panic-in", "--panic-judging"] {
        let message = format!("unexpected argument '{flag}' found");
        suite([flag, "ORD-01"]).run().fails(2, &[&message]);
    }
}

#[test]
fn no_container_is_made_without_a_log_and_the_runtime_reports_it() {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("h");
    let whole = ["-r", "model", "--tier", "core", "--history"];
    suite(whole.iter().map(OsStr::new).chain([history.as_os_str()]))
        .run()
        .fails(0, &[]);
    let logs = every_container_has_a_log(&history);
    assert!(logs > 500, "{logs} reports of a log path");
}

#[test]
fn a_relay_needs_a_real_runtime() {
    let run = suite(["STP-01", "-r", "model", "--inject", "drop-stopped"]);
    run.run()
        .fails(2, &["--inject needs a real runtime", "--defect"]);
}

#[test]
fn the_example_of_a_case_works_as_it_stands() {
    let text = include_str!("../../cases/README.md");
    let example = text
        .split("```")
        .find_map(|block| block.strip_prefix("yaml\n"));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("my-case.yaml"), example.unwrap()).unwrap();
    let own = |args: &[&str]| {
        let args = [args, &["--cases", "my-case.yaml"]].concat();
        suite(args).inside(folder.path()).run()
    };
    let commands = text.lines().filter_map(|line| {
        let line = line.strip_prefix("$ cri-event-conformance --cases my-case.yaml ")?;
        line.split('#').next().map(|args| args.split_whitespace())
    });
    let commands: Vec<Vec<&str>> = commands.map(Iterator::collect).collect();
    let codes: Vec<_> = commands.iter().map(|args| own(args).code).collect();
    assert_eq!(codes, [0, 0, 1]);
    let passed = own(&commands[1]).out;
    assert!(!passed.contains("conformant "), "{passed}");
    own(&["explain", "MINE-01"]).succeeds();
    let tried = |name| own(&["matrix", name, "--clean-runs", "1"]);
    let noticed = tried("drop-stopped").fails(0, &[]);
    let line = "noticed      drop-stopped: failed: MINE-01 ";
    assert!(noticed.out.starts_with(line), "{noticed:#?}");
    assert!(
        noticed.out.ends_with("1 defect, 1 noticed\n"),
        "{noticed:#?}"
    );
    let ended = tried("drop-stopped-after").fails(1, &[]);
    let unnoticed = "UNNOTICED    drop-stopped-after-a-minute: nothing failed";
    assert!(ended.out.contains(unnoticed), "{ended:#?}");
    let whole = own(&["matrix", "--clean-runs", "1"]).fails(0, &[]);
    let summary = "; 1 case, 1 can fail; 0 false alarms in ";
    assert!(whole.out.contains(summary), "{whole:#?}");
    let message = "for this one alone: matrix drop-stopped";
    own(&["matrix", "--defect", "drop-stopped"]).fails(2, &[message]);
}

#[test]
fn a_runtime_that_starts_nothing_ends_the_run_early() {
    let run = ["-r", "model", "--format", "json", "--test-threads", "1"];
    for (defect, reason) in [
        (
            "start-is-never-answered",
            "never answered StartContainer, in ",
        ),
        ("start-has-no-effect", "after StartContainer has succeeded"),
        (
            "creations-hang-after-a-hundred-calls",
            "has stopped answering",
        ),
    ] {
        let ended = suite([&run[..], &["--defect", defect]].concat()).run();
        assert_eq!(ended.code, 1, "{ended:#?}");
        let lines = ended.out.lines().filter(|line| line.contains("not run: "));
        let not_run = lines.filter(|line| line.contains(reason)).count();
        assert!(not_run > 100, "{ended:#?}");
        assert!(!ended.err.contains("guarantees for"), "{ended:#?}");
        assert!(ended.err.contains("Most cases are open"), "{ended:#?}");
    }
}
