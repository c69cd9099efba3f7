//! The report for machines: one JSON object.
//!
//! `format` is 1. Within it, fields are only ever added; a reader ignores those it does not know.
//!
//! | field          | what it holds                                                           |
//! |----------------|-------------------------------------------------------------------------|
//! | `format`       | the version of this format                                              |
//! | `run`          | the run's UUID, with which everything that it made was labelled         |
//! | `suite`        | version and commit of the suite                                         |
//! | `endpoint`     | the runtime's endpoint                                                  |
//! | `runtime`      | `name`, `version` and `api_version`, as the runtime tells them; `oci`   |
//! | `environment`  | the host: `kernel`, `cgroup`, `cpus`, `load_1min`; null of a model      |
//! | `image`        | the image that containers ran                                           |
//! | `began`        | when, in UTC, as RFC 3339 has it                                        |
//! | `duration_s`   | how long the run took, in seconds                                       |
//! | `foreign_pods` | how many pods the node had that the run did not make                    |
//! | `tier`         | how large the run was to be, such as `extended`; null if all were meant  |
//! | `partial`      | whether cases were left out that belong to that                          |
//! | `profiles`     | the verdict for each kind of consumer for which the runtime was judged  |
//! | `capabilities` | what the runtime can do, as far as the run has seen it: true, false or  |
//! |                | null, see [`Capabilities`]                                              |
//! | `latencies`    | the longest that anything took for which there is a limit               |
//! | `largest_event`| the `bytes` of the largest message of an event, and the `case` that saw  |
//! |                | it first; null where none came                                          |
//! | `totals`       | how many outcomes there are of each verdict; every verdict is there     |
//! | `outcomes`     | the cases and invariants, in the order of the plan                      |
//! | `notes`        | what else is to be said of the run, one sentence each: an expired entry |
//! | `faults`       | what went wrong beside the cases, one sentence each                     |
//!
//! A profile has `profile`, `verdict` (`conformant`, `partial`, `known-failures`, `non-conformant`,
//! `error` or `not-judged`), `musts` and `shoulds`: how many outcomes of what binds it so came to
//! what; and the ids of MUSTs that are `broken`, known or not, that were `skipped`, and that are
//! `open`: undecided or inconclusive.
//!
//! `oci` is the OCI runtime that pods were run with: its `handler`, the `name` of its program and
//! its `version`; `cgroup_driver` is `systemd` or `cgroupfs`. Each is null where the runtime does
//! not show it; nothing is guessed. `cgroup` is `1`, `2` or `hybrid`, `load_1min` the load when the
//! run began.
//!
//! A latency has `limit`, which is named as [`Limit`] says, `limit_ms`, stretched as the run was
//! told to, `worst_ms`, and the `case` that saw it first. What never came is no latency, but fails.
//!
//! An outcome has `id`, `name`, `repetition` (from 1; null unless cases are repeated), `title`,
//! `levels` (how binding it is in each profile), `verdict`, `reason` (null for a plain pass or
//! fail), `hint` (why it failed, where it is known of the runtime and was not expected), `began`,
//! `duration_s`, `violations` (which convict), `advice` (which does not),
//! `broken_in` (of an invariant: the cases whose histories break it) and `leftovers`. Verdicts are
//! `pass`, `fail`, `known`, `unexpected-pass`, `error`, `skip` and `inconclusive`; as keys of
//! `totals` with an underscore.
//!
//! A violation has `rule`, `level` (`must`, `should` or `may`), `sentence`, `subject`, `expected`,
//! `actual`, `evidence` (places in the recorded history) and `timeline`: the lines that a person is
//! shown, where `>` marks the evidence. Texts of the runtime stand as it sent them, apart from the
//! timeline, where they are escaped and cut.

use std::io::{self, Write};
use std::time::Duration;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;

use crate::escape::printable_json;
use crate::history::CgroupDriver;
use crate::outcome::{
    Capabilities, Levels, Limit, Outcome, RunReport, Standing, Verdict, Violation, Worst,
};

use super::calendar::rfc3339;
use super::evidence::Evidence;

/// The version of the format.
pub const FORMAT: u32 = 1;

/// Writes the report as one JSON object, indented.
///
/// # Errors
///
/// Only those of the writer.
pub fn write(report: &RunReport, mut out: impl Write) -> io::Result<()> {
    let text = serde_json::to_string_pretty(&Document::of(report))?;
    writeln!(out, "{}", printable_json(&text))
}

/// The JSON Schema of a report, which tells every field that this version writes.
#[must_use]
pub fn schema() -> schemars::Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings
        .into_generator()
        .into_root_schema_for::<Document<'_>>()
}

/// A report of cri-event-conformance on one run. Within a format, fields are only ever added.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "report", rename = "report")]
struct Document<'a> {
    format: u32,
    run: &'a str,
    suite: &'a str,
    endpoint: &'a str,
    runtime: Runtime<'a>,
    environment: Option<Environment<'a>>,
    image: &'a str,
    began: String,
    duration_s: f64,
    foreign_pods: usize,
    tier: Option<&'a str>,
    partial: bool,
    profiles: Vec<Standing>,
    capabilities: Capabilities,
    latencies: Vec<LongestOf<'a>>,
    largest_event: Option<LargestOf<'a>>,
    totals: Totals,
    outcomes: Vec<Judged<'a>>,
    notes: &'a [String],
    faults: &'a [String],
}

#[derive(Serialize, JsonSchema)]
struct Runtime<'a> {
    name: &'a str,
    version: &'a str,
    api_version: &'a str,
    oci: Option<Oci<'a>>,
    cgroup_driver: Option<&'static str>,
}

/// The OCI runtime that pods were run with, as far as the runtime tells.
#[derive(Serialize, JsonSchema)]
struct Oci<'a> {
    handler: &'a str,
    name: Option<&'a str>,
    version: Option<&'a str>,
}

/// The host when the run began.
#[derive(Serialize, JsonSchema)]
struct Environment<'a> {
    kernel: &'a str,
    cgroup: Option<&'a str>,
    cpus: u32,
    load_1min: Option<f64>,
}

/// The longest that something took for which there is a limit.
#[derive(Serialize, JsonSchema)]
struct LongestOf<'a> {
    limit: Limit,
    limit_ms: f64,
    worst_ms: f64,
    case: &'a str,
}

/// The largest message of an event.
#[derive(Serialize, JsonSchema)]
struct LargestOf<'a> {
    bytes: u32,
    case: &'a str,
}

#[derive(Serialize, JsonSchema)]
struct Totals {
    pass: usize,
    fail: usize,
    known: usize,
    unexpected_pass: usize,
    error: usize,
    skip: usize,
    inconclusive: usize,
}

#[derive(Serialize, JsonSchema)]
struct Judged<'a> {
    id: &'a str,
    name: &'a str,
    repetition: Option<u32>,
    title: &'a str,
    why: &'a str,
    sources: &'a [String],
    levels: Levels,
    verdict: Verdict,
    reason: Option<&'a str>,
    hint: Option<&'a str>,
    began: String,
    duration_s: f64,
    violations: Vec<Broken<'a>>,
    advice: Vec<Broken<'a>>,
    broken_in: Vec<&'a str>,
    leftovers: &'a [String],
}

#[derive(Serialize, JsonSchema)]
struct Broken<'a> {
    #[serde(flatten)]
    violation: &'a Violation,
    timeline: Vec<String>,
}

impl<'a> Document<'a> {
    fn of(report: &'a RunReport) -> Self {
        let runtime = &report.info.runtime;
        Self {
            format: FORMAT,
            run: report.info.run.as_str(),
            suite: &report.info.suite,
            endpoint: &report.info.endpoint,
            runtime: Runtime {
                name: &runtime.runtime_name,
                version: &runtime.runtime_version,
                api_version: &runtime.api_version,
                oci: report.info.oci.as_ref().map(|oci| Oci {
                    handler: &oci.handler,
                    name: oci.name.as_deref(),
                    version: oci.version.as_deref(),
                }),
                cgroup_driver: report.info.cgroup_driver.map(CgroupDriver::name),
            },
            environment: report.info.host.as_ref().map(|host| Environment {
                kernel: &host.kernel,
                cgroup: host.cgroup.as_deref(),
                cpus: host.cpus,
                load_1min: host.load_percent.map(|load| f64::from(load) / 100.0),
            }),
            image: &report.image,
            began: rfc3339(report.began),
            duration_s: report.duration.as_secs_f64(),
            foreign_pods: report.foreign_pods,
            tier: report.tier.as_deref(),
            partial: report.partial,
            profiles: report.standings(),
            capabilities: report.capabilities,
            latencies: report.latencies.iter().map(LongestOf::of).collect(),
            largest_event: report.largest_event.as_ref().map(|largest| LargestOf {
                bytes: largest.bytes,
                case: &largest.case,
            }),
            totals: Totals::of(report),
            outcomes: report.outcomes.iter().map(Judged::of).collect(),
            notes: &report.notes,
            faults: &report.faults,
        }
    }
}

impl<'a> LongestOf<'a> {
    fn of(worst: &'a Worst) -> Self {
        let Worst { latency, case } = worst;
        Self {
            limit: latency.limit,
            limit_ms: ms(latency.bound),
            worst_ms: ms(latency.took),
            case,
        }
    }
}

/// Milliseconds, to the microsecond.
fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

impl Totals {
    fn of(report: &RunReport) -> Self {
        Self {
            pass: report.count(Verdict::Pass),
            fail: report.count(Verdict::Fail),
            known: report.count(Verdict::Known),
            unexpected_pass: report.count(Verdict::UnexpectedPass),
            error: report.count(Verdict::Error),
            skip: report.count(Verdict::Skip),
            inconclusive: report.count(Verdict::Inconclusive),
        }
    }
}

impl<'a> Judged<'a> {
    fn of(outcome: &'a Outcome) -> Self {
        let evidence = Evidence::of(outcome);
        let broken = |violation: &'a Violation| Broken {
            violation,
            timeline: evidence.lines(violation),
        };
        Self {
            id: &outcome.id,
            name: &outcome.name,
            repetition: outcome.repetition,
            title: &outcome.title,
            why: &outcome.why,
            sources: &outcome.sources,
            levels: outcome.levels,
            verdict: outcome.verdict,
            reason: outcome.reason.as_deref(),
            hint: outcome.hint.as_deref(),
            began: rfc3339(outcome.began),
            duration_s: outcome.duration.as_secs_f64(),
            violations: outcome.violations.iter().map(broken).collect(),
            advice: outcome.advice.iter().map(broken).collect(),
            broken_in: outcome.broken_in.iter().map(|id| &**id).collect(),
            leftovers: &outcome.leftovers,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;
    use serde_json::{Value, json};

    use std::time::Duration;

    use super::{ms, schema, write};
    use crate::outcome::{Outcome, RunReport, Verdict};
    use crate::report::fixture::{AWKWARD, fixture, outcome, violation};

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
        expect_file!["../../fixtures/reports/report.json"].assert_eq(&render(&fixture()));
    }

    /// `UPDATE_EXPECT=1 cargo test --lib schema` writes it.
    #[test]
    fn the_schema_is_that_of_the_types() {
        let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
        expect_file!["schema.json"].assert_eq(&text);
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
    fn what_was_measured_is_told() {
        let report = parse(&render(&fixture()));
        let oci = json!({"handler": "runc", "name": "runc", "version": null});
        assert_eq!(report["runtime"]["oci"], oci);
        assert_eq!(report["environment"]["load_1min"], 3.07);
        assert_eq!(report["capabilities"]["broadcast"], true);
        assert_eq!(report["capabilities"]["sandbox_events"], Value::Null);
        let longest = json!({
            "limit": "event-after-call", "limit_ms": 10_000.0, "worst_ms": 1_234.5, "case": "ORD-01",
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
    fn an_empty_run_is_a_report_too() {
        let mut report = fixture();
        report.outcomes.clear();
        report.faults.clear();
        let report = parse(&render(&report));
        assert_eq!(report["outcomes"], json!([]));
        assert_eq!(report["faults"], json!([]));
    }
}
