//! JSON reports, written, read and described.

use serde_json::{Value, json};

use std::time::Duration;

use super::{read, schema, write};
use crate::golden::assert_file;
use crate::outcome::{Outcome, RunReport, Verdict};
use crate::report::fixture::{AWKWARD, fixture, outcome, violation};
use crate::report::json::{Document, ms};

fn render(report: &RunReport) -> String {
    let mut bytes = Vec::new();
    write(report, &mut bytes).expect("a vector takes everything");
    String::from_utf8(bytes).expect("JSON is written as UTF-8")
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("valid JSON")
}

#[test]
fn the_report_is_as_it_was() {
    assert_file("fixtures/reports/report.json", &render(&fixture()));
}

/// `UPDATE_EXPECT=1 cargo test --lib schema` writes it.
#[test]
fn the_schema_is_that_of_the_types() {
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    assert_file("src/report/schema.json", &text);
}

#[test]
fn a_report_has_the_shape_and_what_lacks_something_has_not() {
    let schema = serde_json::to_value(schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let report = parse(&render(&fixture()));
    let faults: Vec<_> = validator.iter_errors(&report).collect();
    assert!(faults.is_empty(), "{faults:?}");
    for place in [
        "/totals/pass",
        "/capabilities/replay",
        "/latencies/0/limit",
        "/outcomes",
    ] {
        let mut wrong = report.clone();
        *wrong.pointer_mut(place).unwrap() = json!("other");
        assert!(!validator.is_valid(&wrong), "{place}");
    }
    for key in report.as_object().unwrap().keys() {
        let mut less = report.clone();
        less.as_object_mut().unwrap().remove(key);
        assert!(!validator.is_valid(&less), "{key}");
    }
    assert!(!validator.is_valid(&json!([])));
}

#[test]
fn measurements_are_reported() {
    let report = parse(&render(&fixture()));
    let oci = json!({"handler": "runc", "name": "runc", "version": null});
    assert_eq!(report["runtime"]["oci"], oci);
    assert_eq!(report["environment"]["load_1min"], 3.07);
    assert_eq!(report["capabilities"]["broadcast"], true);
    assert_eq!(report["capabilities"]["sandbox_events"], Value::Null);
    let longest = json!({
        "limit": "event-after-call", "limit_ms": 10_000.0, "worst_ms": 1_234.5, "case": "ORD-01",
        "p50_ms": 1.007, "p99_ms": 1_234.5, "count": 3,
    });
    assert_eq!(report["latencies"], json!([longest]));
    assert_eq!(report["capabilities"]["streamed_lists"], false);
    assert_eq!(report["capabilities"]["network"], Value::Null);
    let largest = json!({"bytes": 1_234, "case": "ORD-01"});
    assert_eq!(report["largest_event"], largest);
    assert_eq!(report["profiles"][0]["broken"], json!(["ORD-01", "SBX-04"]));
    assert_eq!(report["profiles"][0]["skipped"], json!(["OOM-01"]));
    assert_eq!(report["profiles"][0]["open"], json!(["STP-02", "OOM-02"]));
}

#[test]
fn milliseconds_have_three_places() {
    assert_eq!(
        ms(Duration::from_nanos(1_157_235_403)).to_string(),
        "1157.235"
    );
    assert_eq!(ms(Duration::from_secs(10)).to_string(), "10000");
    assert_eq!(ms(Duration::ZERO).to_string(), "0");
}

#[test]
fn every_verdict_is_counted() {
    let report = parse(&render(&fixture()));
    let totals = json!({
        "pass": 2, "fail": 1, "known": 1, "unexpected_pass": 1, "error": 1, "skip": 1,
        "inconclusive": 1,
    });
    assert_eq!(report["totals"], totals);
    assert_eq!(report["format"], 1);
    assert_eq!(report["outcomes"][6]["verdict"], "unexpected-pass");
}

#[test]
fn awkward_text_arrives_whole() {
    let report = parse(&render(&fixture()));
    assert_eq!(report["outcomes"][1]["violations"][1]["actual"], AWKWARD);
    assert_eq!(report["outcomes"][2]["reason"], AWKWARD);
}

#[test]
fn ten_thousand_cases_are_all_there() {
    let mut report = fixture();
    let many = Outcome {
        violations: vec![violation(AWKWARD)],
        ..outcome("ORD-01", "order::many", Verdict::Fail)
    };
    report.outcomes = vec![many; 10_000];
    let report = parse(&render(&report));
    assert_eq!(report["outcomes"].as_array().map(Vec::len), Some(10_000));
}

#[test]
fn what_is_written_is_read_again() {
    let report = fixture();
    let read = read(&render(&report)).expect("it is a report");
    assert_eq!(read, Document::new(&report));
}

#[test]
fn fields_may_be_null_or_new() {
    let mut report = parse(&render(&fixture()));
    let fields = report.as_object_mut().unwrap();
    fields.remove("largest_event");
    fields.insert("new".to_owned(), json!("field"));
    let read = read(&report.to_string()).expect("it is a report");
    assert_eq!(read.outcomes.len(), 8);
    assert_eq!(read.largest_event, None);
}

#[test]
fn an_empty_run_is_a_report_too() {
    let mut report = fixture();
    report.outcomes.clear();
    report.faults.clear();
    let report = parse(&render(&report));
    assert_eq!(report["outcomes"], json!([]));
    assert_eq!(report["faults"], json!([]));
}
