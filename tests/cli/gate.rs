//! The command `gate`.

use std::fs;

use tempfile::TempDir;

use crate::suite::{Ended, suite};

fn inside(folder: &TempDir, args: &[&str]) -> Ended {
    suite(args).inside(folder.path()).run()
}

/// A directory with reports of a good and of a broken runtime.
fn reports() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let run = [
        "-r", "model", "--format", "terse", "ORD-01", "INV", "--json",
    ];
    let dropping = ["--defect", "drop-stopped"];
    inside(&folder, &[&run[..], &["good.json"]].concat()).fails(0, &[]);
    inside(&folder, &[&run[..], &["bad.json"], &dropping].concat()).fails(1, &[]);
    folder
}

fn write(folder: &TempDir, name: &str, text: &str) {
    fs::write(folder.path().join(name), text).unwrap();
}

#[test]
fn a_gate_has_one_verdict_and_one_exit_code() {
    let folder = reports();
    write(
        &folder,
        "p.yaml",
        "{profiles: {cache: partial}, latencies: [{limit: call, worst: 30s}]}",
    );
    let outputs = [
        "--markdown",
        "gate.md",
        "--json",
        "gate.json",
        "--junit",
        "gate.xml",
    ];
    let gate = [&["gate", "--policy", "p.yaml"][..], &outputs].concat();
    let gate = |reports: &[&str]| inside(&folder, &[&gate[..], reports].concat());
    let passed = gate(&["good.json"]).succeeds();
    assert!(
        passed.contains("pass         profile cache  partial"),
        "{passed}"
    );
    assert!(passed.ends_with("gate: pass\n"), "{passed}");
    let failed = gate(&["good.json", "bad.json"]).fails(1, &[]);
    assert!(
        failed.out.contains("bad.json: non-conformant, ORD-01"),
        "{failed:#?}"
    );
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let page = text("gate.md");
    assert!(page.starts_with("### Gate: fail\n"), "{page}");
    let json: serde_json::Value = serde_json::from_str(&text("gate.json")).unwrap();
    assert_eq!(json["verdict"], "fail");
    let verdicts = json["rules"].as_array().unwrap().iter();
    let verdicts: Vec<_> = verdicts
        .map(|rule| rule["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(verdicts, ["pass", "fail", "pass"], "{json}");
    let junit = text("gate.xml");
    let counts = r#"tests="3" errors="0" failures="1""#;
    assert!(junit.contains(counts), "{junit}");
    write(
        &folder,
        "p.yaml",
        "latencies: [{limit: headers, worst: 1s}]",
    );
    let open = gate(&["good.json"]).fails(3, &[]);
    assert!(open.out.contains("cannot tell  headers worst"), "{open:#?}");
    assert!(
        text("gate.xml").contains(r#"errors="1""#),
        "{}",
        text("gate.xml")
    );
}

#[test]
fn a_series_is_compared_with_its_baseline() {
    let folder = reports();
    write(&folder, "p.yaml", "baseline: {alpha: 0.05}");
    let gate = [
        "gate",
        "--policy",
        "p.yaml",
        "bad.json",
        "--baseline",
        "good.json",
    ];
    let open = inside(&folder, &gate).fails(3, &[]);
    assert!(open.out.contains("too few repetitions"), "{open:#?}");
    let run = |defects: &[&str], report| {
        let run = [
            "-r", "model", "--format", "terse", "ORD-01", "--repeat", "5",
        ];
        inside(&folder, &[&run[..], &["--json", report], defects].concat())
    };
    run(&[], "good.json").fails(0, &[]);
    run(&["--defect", "drop-stopped"], "bad.json").fails(1, &[]);
    let worse = inside(&folder, &gate).fails(1, &[]);
    assert!(
        worse.out.contains("ORD-01 5 of 5, was 0 of 5"),
        "{worse:#?}"
    );
    write(&folder, "p.yaml", "max-known: 0");
    inside(&folder, &gate).fails(2, &["--baseline needs `baseline: {alpha: 0.05}`"]);
}

#[test]
fn what_cannot_be_judged_is_wrong_usage() {
    let folder = reports();
    let gate = |policy: &str, report: &str| inside(&folder, &["gate", "--policy", policy, report]);
    write(&folder, "p.yaml", "max-known: 0\nskip: 1\n");
    let message = "error: read the policy p.yaml: unknown key `skip`";
    gate("p.yaml", "good.json").fails(2, &[message, "did you mean `skips`?", "p.yaml:2:1"]);
    gate("none.yaml", "good.json").fails(2, &["error: read the policy none.yaml: No such file"]);
    write(&folder, "p.yaml", "max-known: 0");
    gate("p.yaml", "none.json").fails(2, &["error: read the report none.json: No such file"]);
    gate("p.yaml", "p.yaml").fails(2, &["error: read the report p.yaml: it is no JSON report"]);
    suite(["gate", "good.json"])
        .run()
        .fails(2, &["--policy <FILE>"]);
    let twice = ["gate", "--policy", "p.yaml", "good.json", "good.json"];
    inside(&folder, &twice).fails(2, &["reports on the same run; give each once"]);
    let beyond = [
        "gate",
        "--policy",
        "p.yaml",
        "good.json",
        "--markdown",
        "no/such/g.md",
    ];
    inside(&folder, &beyond).fails(2, &["write the Markdown table to no/such/g.md"]);
}

#[test]
fn a_policy_has_at_most_1_mib() {
    let folder = reports();
    let gate = |bytes| {
        let policy = format!("max-known: 0 {}", "#".repeat(bytes));
        write(&folder, "p.yaml", &policy[..bytes]);
        inside(&folder, &["gate", "--policy", "p.yaml", "good.json"])
    };
    gate(1 << 20).succeeds();
    let message = "error: read the policy p.yaml: it is larger than 1 MiB";
    gate((1 << 20) + 1).fails(2, &[message]);
}

#[test]
fn reports_stand_side_by_side() {
    let folder = reports();
    let page = inside(
        &folder,
        &["matrix-report", "node-1=good.json", "./bad.json"],
    )
    .succeeds();
    let header = page.lines().find(|line| line.starts_with("|  |")).unwrap();
    let columns: Vec<_> = header.split(" | ").collect();
    assert!(columns[2].starts_with("node-1<br>model 0.1.0"), "{page}");
    assert!(
        columns[3].starts_with("./bad.json<br>model 0.1.0"),
        "{page}"
    );
    let row =
        "| ORD-01 order::created-started-stopped-deleted | 1 of 2, at most 97.47% | pass | fail |";
    assert!(page.contains(row), "{page}");
    let missing = inside(&folder, &["matrix-report", "node-1=none.json"]);
    missing.fails(2, &["error: read the report none.json: No such file"]);
    let nameless = inside(&folder, &["matrix-report", "=good.json"]);
    nameless.fails(2, &["`=good.json` has no name before `=`"]);
    suite(["matrix-report"])
        .run()
        .fails(2, &["<[NAME=]REPORT>..."]);
}

/// A report of this folder as the lines of a pod's log.
fn logged(folder: &TempDir, report: &str, pod: &str) -> String {
    let text = fs::read_to_string(folder.path().join(report)).unwrap();
    let lines = ["watching"].into_iter().chain(text.lines());
    let lines = lines.chain(["JSON report: -"]);
    let lines = lines.map(|line| format!("[pod/{pod}/watch] {line}"));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn the_reports_of_many_pods_come_in_one_log() {
    let folder = reports();
    let [good, bad] = [("good.json", "w-a"), ("bad.json", "w-b")]
        .map(|(report, pod)| logged(&folder, report, pod));
    let doctor = r#"{"format": 1, "suite": "s", "node": "node-3", "endpoint": "e", "runtime": null,
        "verdict": "not-ready", "kubelet_version": "v1.36.1", "profile": null, "findings": []}"#;
    let log = good.clone() + &bad + doctor;
    write(&folder, "all.log", &log);
    let piped = fs::File::open(folder.path().join("all.log")).unwrap();
    let page = suite(["matrix-report", "-"]).input(piped).run().succeeds();
    for shown in [
        "events of 3 reports",
        "| doctor | 1: not ready (node-3) |",
        "| kubelet | 1: v1.36.1 (node-3) |",
        "| w-a<br>model 0.1.0 | w-b<br>",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let json = ["matrix-report", "all.log", "--format", "json"];
    let json: serde_json::Value = serde_json::from_str(&inside(&folder, &json).succeeds()).unwrap();
    assert_eq!(json["groups"][1]["names"], serde_json::json!(["w-b"]));
    assert_eq!(json["groups"][1]["profiles"]["cache"], "non-conformant");
    assert_eq!(json["cases"][0]["nodes"]["decided"], 2);
    write(&folder, "p.yaml", "profiles: {cache: partial}");
    write(&folder, "runs.log", &(good.clone() + &bad));
    let gate = inside(&folder, &["gate", "--policy", "p.yaml", "runs.log"]).fails(1, &[]);
    assert!(gate.out.contains("w-b: non-conformant"), "{gate:#?}");
    for command in [&["matrix-report"][..], &["gate", "--policy", "p.yaml"]] {
        let cut: Vec<&str> = good.lines().take(9).collect();
        let cut = good.clone() + &cut.join("\n") + "\n" + &good;
        write(&folder, "cut.log", &cut);
        let begins = good.lines().count() + 2;
        let place = format!("the document that begins in line {begins} breaks off before line ");
        let args = [command, &["cut.log"]].concat();
        let message = "fetch that log or report again, or remove these lines";
        inside(&folder, &args).fails(2, &["read the report cut.log: ", &place, message]);
        write(&folder, "odd.log", &(good.clone() + "{\"format\": 1}\n"));
        let place = format!("odd.log: the document in line {}: ", begins - 1);
        let args = [command, &["odd.log"]].concat();
        inside(&folder, &args).fails(2, &[&place, "it is no JSON report"]);
        write(&folder, "none.log", "begun\nended\n");
        let args = [command, &["none.log"]].concat();
        inside(&folder, &args).fails(2, &["read the report none.log: it is no JSON report"]);
    }
}
