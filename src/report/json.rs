//! The report for machines: one JSON object, a [`Document`].
//!
//! `format` is 1. Within it, fields are only ever added; a reader ignores unknown fields.
//! [`schema`] is the JSON Schema of this version's output. Texts of the runtime are unchanged,
//! except in the timeline, where they are escaped and truncated.

mod documents;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use documents::{BrokenInput, Documents, Found};

use super::evidence::Evidence;
use super::printable::rfc3339;
use crate::escape::{printable, printable_json};
use crate::history::CgroupDriver;
use crate::outcome::{
    Capabilities, Guarantee, Largest, Level, Levels, Limit, Outcome, RunReport, Standing, Verdict,
    Violation, WatchTotals, Worst,
};

pub const FORMAT: u32 = 1;

/// A report of cri-event-conformance on one run. Within a format, fields are only ever added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "an object of a JSON report")]
#[schemars(title = "report", rename = "report")]
pub struct Document {
    /// The version of this format.
    pub format: u32,
    /// The run's UUID, the label of everything that it created.
    pub run: String,
    /// Version and commit of the suite.
    pub suite: String,
    /// The runtime's endpoint.
    pub endpoint: String,
    /// The tested runtime.
    pub runtime: RuntimeInfo,
    /// The host when the run began; null where the runtime was a model.
    pub environment: Option<Environment>,
    /// The image that containers ran.
    pub image: String,
    /// When the run began, in UTC, as RFC 3339.
    pub began: String,
    /// How long the run took, in seconds.
    pub duration_s: f64,
    /// The number of pods on the node that the run did not create.
    pub foreign_pods: usize,
    /// The tier of the run, such as `extended`; null if all cases were selected.
    pub tier: Option<String>,
    /// Whether cases of that tier were left out.
    pub partial: bool,
    /// The observations of a watch; null for a run.
    #[serde(default)]
    pub watch: Option<WatchTotals>,
    /// The verdict for each kind of consumer for which the runtime was judged.
    pub profiles: Vec<Standing>,
    /// Capabilities of the runtime as observed by the run.
    pub capabilities: Capabilities,
    /// The latencies for each limit. An event that never came is a failure and has no latency.
    pub latencies: Vec<WorstLatency>,
    /// The largest message of an event; null without events.
    pub largest_event: Option<Largest>,
    /// The number of outcomes with each verdict.
    pub totals: Totals,
    /// The cases and invariants, in the order of the plan.
    pub outcomes: Vec<CaseOutcome>,
    /// The ids of which an entry of the expectation file has expired; empty in older reports.
    #[serde(default)]
    pub expired: Vec<String>,
    /// Remarks on the run that are no failures, one sentence each: an expired entry of an
    /// expectation file.
    pub notes: Vec<String>,
    /// Faults outside the cases, one sentence each.
    pub faults: Vec<String>,
    /// The reason for exit code 3, such as leftovers that could not be removed; null for another
    /// exit code.
    #[serde(default)]
    pub undecided: Option<String>,
}

/// The runtime, by its own reply to `Version`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "an object of a JSON report")]
pub struct RuntimeInfo {
    /// The runtime's name.
    pub name: String,
    /// The runtime's version.
    pub version: String,
    /// The version of the CRI.
    pub api_version: String,
    /// The OCI runtime that ran the pods; null if the runtime does not report it.
    pub oci: Option<OciRuntime>,
    /// `systemd` or `cgroupfs`; null if the runtime does not report it.
    pub cgroup_driver: Option<String>,
}

/// The OCI runtime that ran the pods, as reported by the runtime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OciRuntime {
    /// The name of the runtime handler.
    pub handler: String,
    /// The name of its program.
    pub name: Option<String>,
    /// The version of its program.
    pub version: Option<String>,
}

/// The host when the run began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// The kernel's release.
    pub kernel: String,
    /// The version of cgroups: `1`, `2` or `hybrid`.
    pub cgroup: Option<String>,
    /// The number of CPUs.
    pub cpus: u32,
    /// The load average of the last minute.
    pub load_1min: Option<f64>,
    /// The host's name, hashed by `watch --redact`; null if unknown, and in older reports.
    #[serde(default)]
    pub node: Option<String>,
}

/// The latencies for one limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorstLatency {
    /// The kind of limit.
    pub limit: Limit,
    /// The limit, multiplied by `--timeout-scale`, in milliseconds.
    pub limit_ms: f64,
    /// The maximum latency, in milliseconds.
    pub worst_ms: f64,
    /// The median latency, in milliseconds, rounded up by at most 1.6%; null in
    /// older reports.
    #[serde(default)]
    pub p50_ms: Option<f64>,
    /// The 99th percentile, likewise.
    #[serde(default)]
    pub p99_ms: Option<f64>,
    /// The number of measured latencies; 0 in older reports.
    #[serde(default)]
    pub count: usize,
    /// The id of the case with the maximum latency.
    pub case: String,
}

/// The number of outcomes with each verdict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Every expectation held.
    pub pass: usize,
    /// The runtime broke a rule.
    pub fail: usize,
    /// The runtime broke a rule, and an expectation file lists this failure.
    pub known: usize,
    /// An expectation file lists it as failing, and it passed.
    pub unexpected_pass: usize,
    /// It could not be decided.
    pub error: usize,
    /// It was not run.
    pub skip: usize,
    /// The situation under test did not arise.
    pub inconclusive: usize,
}

/// The outcome of one case or invariant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "an object of a JSON report")]
pub struct CaseOutcome {
    /// The catalogue's id, such as `ORD-01` or `INV-02`.
    pub id: String,
    /// The name by which it is listed, such as `order::four-events-in-order`.
    pub name: String,
    /// The number of the repetition, from 1; null unless cases are repeated.
    pub repetition: Option<u32>,
    /// The claim that it checks, as a sentence.
    pub title: String,
    /// The consequences for consumers if the claim does not hold.
    pub why: String,
    /// The sources of the requirement.
    pub sources: Vec<String>,
    /// The ids of the requirements that it checks; empty in older reports.
    #[serde(default)]
    pub requirements: Vec<String>,
    /// The requirement level in each profile.
    pub levels: Levels,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether a known failure is a race, which may not show in another run. Omitted if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub race: bool,
    /// The reason for a verdict other than pass or fail; null for those.
    pub reason: Option<String>,
    /// An explanation of an unexpected failure that is known for the runtime.
    pub hint: Option<String>,
    /// When it began, in UTC, as RFC 3339.
    pub began: String,
    /// Its duration, in seconds.
    pub duration_s: f64,
    /// Broken rules that make it fail.
    pub violations: Vec<Broken>,
    /// Broken rules that do not make it fail.
    pub advice: Vec<Broken>,
    /// The ids of the cases whose histories break an invariant.
    pub broken_in: Vec<String>,
    /// Resources that it could not clean up, one sentence each.
    pub leftovers: Vec<String>,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Broken {
    /// The broken guarantee; null in older reports.
    #[serde(default)]
    pub guarantee: Option<Guarantee>,
    /// The rule's id: an invariant such as `INV-02`, or the case's own id.
    pub rule: String,
    /// The kind of violation, such as `missing-stopped`.
    pub kind: String,
    /// The observed values, by their names.
    pub facts: BTreeMap<String, Value>,
    /// The requirement level.
    pub level: Level,
    /// The claim, as a sentence.
    pub sentence: String,
    /// The sandbox or container concerned, by its name in the case and its id.
    pub subject: String,
    /// The expected state.
    pub expected: String,
    /// The actual state.
    pub actual: String,
    /// The places in the recorded history that prove it, in order.
    pub evidence: Vec<u64>,
    /// The displayed lines, where `>` marks the evidence.
    pub timeline: Vec<String>,
}

/// A report, and the user's name for it: that of a node or of a file.
#[derive(Clone, Debug)]
pub struct NamedReport {
    pub name: String,
    pub report: Document,
}

/// The reason why a text is not a JSON report that this version can read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{}", printable(&.0.to_string()))]
    Malformed(#[from] serde_json::Error),
    #[error("it is of format {0}, not {FORMAT}")]
    OtherFormat(u32),
}

/// Writes the report as one JSON object, indented.
pub fn write(report: &RunReport, mut out: impl Write) -> io::Result<()> {
    let text = serde_json::to_string_pretty(&Document::new(report))?;
    writeln!(out, "{}", printable_json(&text))
}

/// The name of the node in a document of a run, a watch or `doctor`, if it has one.
pub fn node(text: &str) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Host {
        node: Option<String>,
        environment: Option<Box<Host>>,
    }
    let Host { node, environment } = serde_json::from_str(text).ok()?;
    let name = node.or_else(|| environment?.node)?;
    (!name.is_empty()).then_some(name)
}

/// Reads a JSON report. Fails if the text is no JSON report, or one of another format.
pub fn read(text: &str) -> Result<Document, ReadError> {
    /// The version of a report's format, which is read before anything else.
    #[derive(Deserialize)]
    #[serde(expecting = "an object of a JSON report")]
    struct Version {
        format: u32,
    }
    let Version { format } = serde_json::from_str(text)?;
    if format != FORMAT {
        return Err(ReadError::OtherFormat(format));
    }
    Ok(serde_json::from_str(text)?)
}

impl Document {
    /// Drops the evidence, and all that a policy does not judge by.
    pub fn without_evidence(mut self) -> Self {
        for outcome in &mut self.outcomes {
            for text in [&mut outcome.title, &mut outcome.why] {
                *text = String::new();
            }
            for texts in [
                &mut outcome.sources,
                &mut outcome.requirements,
                &mut outcome.leftovers,
            ] {
                *texts = Vec::new();
            }
            for broken in [&mut outcome.violations, &mut outcome.advice] {
                *broken = Vec::new();
            }
            outcome.reason = None;
        }
        self
    }

    /// Parses a report that a user has named. Fails if it is invalid or has another format; the
    /// error contains the reason and a fix.
    pub fn parse(text: &str) -> Result<Self, String> {
        read(text).map_err(|fault| match fault {
            ReadError::OtherFormat(format) => format!(
                "it is of format {format}, and this version of the suite reads {FORMAT}; use the \
                 version that wrote it, or write it anew with `check HISTORY --json FILE`"
            ),
            ReadError::Malformed(_) if text.trim().is_empty() => {
                "it is empty; was the run that writes it interrupted?".to_owned()
            }
            ReadError::Malformed(_) => {
                let is_xml = text.trim_start().starts_with('<');
                let hint = if is_xml {
                    "; `--json` writes one"
                } else {
                    "; a history is made into one by `check HISTORY --json FILE`"
                };
                format!("it is no JSON report of this suite: {fault}{hint}")
            }
        })
    }
}

pub fn schema() -> schemars::Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Document>()
}

impl Document {
    /// The end of the endpoint of a run whose relay injected defects, before their names.
    pub const INJECTS: &str = " through a relay that injects ";

    /// The defects that a relay injected, separated by commas.
    pub fn injected(&self) -> Option<&str> {
        let (_, defects) = self.endpoint.rsplit_once(Self::INJECTS)?;
        Some(defects)
    }

    /// The runtime's name and version, and the injected defects.
    pub(super) fn subject(&self) -> String {
        let RuntimeInfo { name, version, .. } = &self.runtime;
        let injected = self.injected().map(|it| Self::INJECTS.to_owned() + it);
        format!("{name} {version}{}", injected.unwrap_or_default())
    }

    pub fn new(report: &RunReport) -> Self {
        let info = &report.info;
        Self {
            format: FORMAT,
            run: info.run.as_str().to_owned(),
            suite: info.suite.clone(),
            endpoint: info.endpoint.clone(),
            runtime: RuntimeInfo {
                name: info.runtime.runtime_name.clone(),
                version: info.runtime.runtime_version.clone(),
                api_version: info.runtime.api_version.clone(),
                oci: info.oci.as_ref().map(|oci| OciRuntime {
                    handler: oci.handler.clone(),
                    name: oci.name.clone(),
                    version: oci.version.clone(),
                }),
                cgroup_driver: info
                    .cgroup_driver
                    .map(CgroupDriver::name)
                    .map(str::to_owned),
            },
            environment: info.host.as_ref().map(|host| Environment {
                kernel: host.kernel.clone(),
                cgroup: host.cgroup.clone(),
                cpus: host.cpus,
                load_1min: host.load_percent.map(|load| f64::from(load) / 100.0),
                node: host.name.clone(),
            }),
            image: report.image.clone(),
            began: rfc3339(report.began),
            duration_s: report.duration.as_secs_f64(),
            foreign_pods: report.foreign_pods,
            tier: report.tier.clone(),
            partial: report.partial,
            watch: report.watch.clone(),
            profiles: report.standings(),
            capabilities: report.capabilities,
            latencies: report.latencies.iter().map(WorstLatency::new).collect(),
            largest_event: report.largest_event.clone(),
            totals: Totals::new(report),
            outcomes: report.outcomes.iter().map(CaseOutcome::new).collect(),
            expired: report.expired.clone(),
            notes: report.notes.clone(),
            faults: report.faults.clone(),
            undecided: report.undecided().map(str::to_owned),
        }
    }
}

impl WorstLatency {
    fn new(worst: &Worst) -> Self {
        let Worst { latency, .. } = worst;
        let percentile = |percent| worst.percentile(percent).map(ms);
        Self {
            limit: latency.limit,
            limit_ms: ms(latency.bound),
            worst_ms: ms(latency.took),
            p50_ms: percentile(50),
            p99_ms: percentile(99),
            count: worst.spread.count(),
            case: worst.case.to_string(),
        }
    }
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

impl Totals {
    fn new(report: &RunReport) -> Self {
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

impl CaseOutcome {
    fn new(outcome: &Outcome) -> Self {
        let evidence = Evidence::of(outcome);
        let broken = |violation: &Violation| Broken::new(outcome, violation, &evidence);
        Self {
            id: outcome.id.to_string(),
            name: outcome.name.to_string(),
            repetition: outcome.repetition,
            title: outcome.title.to_string(),
            why: outcome.why.to_string(),
            sources: outcome.sources.to_vec(),
            requirements: outcome.requirements.to_vec(),
            levels: outcome.levels,
            verdict: outcome.verdict,
            race: outcome.race,
            reason: outcome.reason.clone(),
            hint: outcome.hint.clone(),
            began: rfc3339(outcome.began),
            duration_s: outcome.duration.as_secs_f64(),
            violations: outcome.violations.iter().map(broken).collect(),
            advice: outcome.advice.iter().map(broken).collect(),
            broken_in: outcome.broken_in.iter().map(ToString::to_string).collect(),
            leftovers: outcome.leftovers.clone(),
        }
    }
}

impl CaseOutcome {
    /// Whether it has more to show than its verdict.
    pub(super) fn has_evidence(&self) -> bool {
        let broken = !self.violations.is_empty() || !self.advice.is_empty();
        broken || self.reason.is_some()
    }
}

impl Broken {
    fn new(outcome: &Outcome, violation: &Violation, evidence: &Evidence<'_>) -> Self {
        Self {
            guarantee: Some(outcome.breaks(violation)),
            rule: violation.rule.clone(),
            kind: violation.mismatch.kind.to_string(),
            facts: violation.mismatch.actual.to_map(),
            level: violation.level,
            sentence: violation.sentence.clone(),
            subject: violation.subject.clone(),
            expected: violation.expected(),
            actual: violation.actual(),
            evidence: violation.evidence.iter().map(|seq| seq.0).collect(),
            timeline: evidence.lines(violation),
        }
    }
}
