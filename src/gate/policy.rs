//! The policy of a gate, a YAML file.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;

use crate::case::{Tier, did_you_mean, wrong_yaml};
use crate::checks::duration::Span;
use crate::outcome::{Conformance, Limit, Profile};
use crate::verdicts::{Versions, builtin};
use crate::yaml;

/// The requirements on each report. Independent of the policy, a report in which nothing was
/// decided passes no gate.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    default,
    rename_all = "kebab-case",
    expecting = "a policy: a mapping with `profiles`, `tier`, `max-known`, `skips`, `watch`, \
                 `latencies`, `flakes`, `forbidden-versions` or `baseline`"
)]
#[schemars(title = "policy", rename = "policy")]
pub struct Policy {
    /// The least verdict in a profile.
    #[schemars(extend("propertyNames" = {"enum": Profile::ALL}))]
    pub profiles: BTreeMap<Profile, Required>,
    /// The least tier of which each run must have all cases.
    pub tier: Option<Tier>,
    /// How many cases and invariants may be known to fail. No entry of the expectation file may
    /// have expired.
    pub max_known: Option<usize>,
    /// Cases that must not be skipped.
    pub skips: Option<Skips>,
    /// The minimum activity that a watch must have seen.
    pub watch: Option<Watched>,
    /// How long things may take.
    pub latencies: Vec<LatencyLimits>,
    /// How often a case that passes may fail, over all reports.
    pub flakes: Option<Flakes>,
    /// Versions of runtimes that are refused.
    pub forbidden_versions: Vec<Forbidden>,
    /// How the reports are compared with those of `--baseline`.
    pub baseline: Option<Baseline>,
}

/// The least verdict that is required in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[serde(expecting = "a verdict: `conformant`, `partial` or `known-failures`")]
pub enum Required {
    /// Every MUST was checked and holds.
    Conformant,
    /// No MUST is broken, but some may have been left out, skipped or inconclusive.
    Partial,
    /// No MUST is broken but those that are known.
    KnownFailures,
}

/// Cases that must not be skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "`max`, a number of cases, or `never`, a list of ids and areas"
)]
pub struct Skips {
    /// How many cases may be skipped in each report.
    pub max: Option<usize>,
    /// The ids such as `ORD-01` and areas such as `order` that each report must contain, and of
    /// which nothing may be skipped.
    pub never: Vec<String>,
    /// The ids of cases in these areas that may be skipped because not every runtime has their
    /// feature.
    pub except: Vec<String>,
}

/// What each report of a watch must show; a run cannot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
#[serde(expecting = "`min-containers`, `max-outages`, or both")]
pub struct Watched {
    /// Of how many containers the watch must have seen changes.
    pub min_containers: u64,
    /// How often the event stream may have ended.
    pub max_outages: Option<u64>,
}

/// Limits for one kind of latency in each report.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "a limit such as `{limit: event-lag, p99: 1s, worst: 5s}`")]
pub struct LatencyLimits {
    /// The kind of latency, as a report names it.
    pub limit: Limit,
    /// The limit of the median.
    #[serde(default, with = "Span")]
    pub p50: Option<Duration>,
    /// The limit of the 99th percentile.
    #[serde(default, with = "Span")]
    pub p99: Option<Duration>,
    /// The limit of the longest.
    #[serde(default, with = "Span")]
    pub worst: Option<Duration>,
}

/// How often a case may fail, counted over all reports. A known failure does not count.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[serde(expecting = "`min-repetitions`, `max-rate`, or both")]
pub struct Flakes {
    /// How often each case that was not skipped must have been decided.
    #[serde(default)]
    pub min_repetitions: usize,
    /// The highest rate of failures, such as 0.05. The gate passes only if the upper bound of the
    /// rate, at 95%, is not higher either: with no failure that takes 59 repetitions for 0.05.
    #[serde(default)]
    pub max_rate: Option<Share>,
}

/// Versions of a runtime that are refused.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[serde(expecting = "an entry with `runtime`, `version` and `reason`")]
pub struct Forbidden {
    /// The name by which the runtime calls itself, such as `containerd`.
    pub runtime: String,
    /// The versions, such as `>=2.0, <2.0.3`.
    #[schemars(with = "String")]
    pub version: Versions,
    /// Why they are refused.
    pub reason: String,
}

/// How the reports are compared with an earlier series: each case by Fisher's exact test,
/// one-sided, corrected for the number of cases by the method of Tarone.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "`{alpha: 0.05}`")]
pub struct Baseline {
    /// How probable it may be that the gate fails although nothing has changed, such as 0.05.
    pub alpha: Share,
}

/// A number between 0 and 1, both excluded.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Deserialize, JsonSchema)]
#[serde(try_from = "f64")]
#[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
pub struct Share(f64);

impl Policy {
    /// Reads the text of a policy. The path names it in messages.
    pub fn parse(path: &Path, text: &str) -> Result<Self, String> {
        let policy: Self = yaml::read(text).map_err(|fault| wrong_yaml(path, text, &fault))?;
        policy.fault().map_or(Ok(policy), Err)
    }

    /// The first requirement that is certainly a mistake, if any.
    fn fault(&self) -> Option<String> {
        if *self == Self::default() {
            let fault = "it requires nothing; begin with `profiles: {hint: conformant}`";
            return Some(fault.to_owned());
        }
        let is_empty = |skips: &Skips| skips.max.is_none() && skips.never.is_empty();
        if self.skips.as_ref().is_some_and(is_empty) {
            let fault = "`skips` allows all: give it `max`, or `never` with ids or areas";
            return Some(fault.to_owned());
        }
        if self.watch == Some(Watched::default()) {
            let fault = "`watch` allows all: give it `min-containers` or `max-outages`";
            return Some(fault.to_owned());
        }
        let mut latencies = self.latencies.iter();
        let unlimited = latencies.find(|it| it.limits().all(|(_, limit)| limit.is_none()));
        if let Some(unlimited) = unlimited {
            return Some(format!(
                "`latencies`: `{}` has no limit: give it `p50`, `p99` or `worst`",
                unlimited.limit
            ));
        }
        if let Some(fault) = self.misspelt_runtime() {
            return Some(fault);
        }
        let is_empty = |flakes: &Flakes| flakes.min_repetitions == 0 && flakes.max_rate.is_none();
        self.flakes
            .as_ref()
            .is_some_and(is_empty)
            .then(|| "`flakes` allows all: give it `min-repetitions` or `max-rate`".to_owned())
    }
}

impl Policy {
    /// A forbidden version of a runtime whose name resembles a known one: it would forbid nothing.
    fn misspelt_runtime(&self) -> Option<String> {
        let known = builtin();
        let known = known.iter().map(|file| file.runtime.as_str());
        let mut names = self.forbidden_versions.iter().map(|it| it.runtime.as_str());
        names.find_map(|name| {
            let is_known = known.clone().any(|known| known == name);
            let hint = did_you_mean(name, known.clone()).filter(|_| !is_known)?;
            Some(format!(
                "`forbidden-versions`: no runtime is called `{name}`; {hint}"
            ))
        })
    }
}

impl Required {
    /// Whether a verdict satisfies this requirement; `None` without a verdict.
    pub(super) fn is_met_by(self, verdict: Conformance) -> Option<bool> {
        match verdict {
            Conformance::Conformant => Some(true),
            Conformance::Partial => Some(self != Self::Conformant),
            Conformance::KnownFailures => Some(self == Self::KnownFailures),
            Conformance::NonConformant => Some(false),
            Conformance::Error | Conformance::NotJudged => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Conformant => "conformant",
            Self::Partial => "partial",
            Self::KnownFailures => "known failures",
        }
    }
}

impl LatencyLimits {
    /// Each limit, with its name.
    pub(super) fn limits(&self) -> impl Iterator<Item = (&'static str, Option<Duration>)> {
        let limits = [("p50", self.p50), ("p99", self.p99), ("worst", self.worst)];
        limits.into_iter()
    }
}

impl Share {
    pub(super) fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Share {
    type Error = String;

    fn try_from(share: f64) -> Result<Self, String> {
        if 0.0 < share && share < 1.0 {
            Ok(Self(share))
        } else {
            Err(format!(
                "{share} is no share such as `0.05`, between 0 and 1"
            ))
        }
    }
}

pub fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12();
    settings.into_generator().into_root_schema_for::<Policy>()
}
