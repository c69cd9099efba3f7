//! The findings of `doctor`, as text and as JSON.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::escape::printable;
use crate::outcome::Profile;
use crate::report::headline;
use crate::run::Exit;

/// The version of the JSON format.
pub(super) const FORMAT: u32 = 1;

/// The output of `doctor --format json`. Within a format, fields are only ever added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "doctor", rename = "doctor")]
pub struct Diagnosis {
    /// The version of this format.
    pub format: u32,
    /// Version and commit of the suite.
    pub suite: String,
    /// The node's host name; empty if unknown.
    #[serde(default)]
    pub node: String,
    /// The runtime's endpoint.
    pub endpoint: String,
    /// Whether the node is ready for Evented PLEG.
    pub verdict: Readiness,
    /// The runtime; null if it cannot be reached.
    pub runtime: Option<RuntimeName>,
    /// The kubelet's version, such as `v1.36.1`; null if unknown.
    pub kubelet_version: Option<String>,
    /// The profile of a run, for `--profile`, that judges the runtime for this kubelet; null if the
    /// kubelet's version is unknown.
    pub profile: Option<Profile>,
    /// The findings, the worst ones first.
    pub findings: Vec<Finding>,
}

/// The runtime's name for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeName {
    /// Such as `containerd`.
    pub name: String,
    /// Such as `2.1.9`.
    pub version: String,
    /// The version of the CRI, such as `v1`.
    pub api_version: String,
}

/// Whether a node is ready for Evented PLEG.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Readiness {
    /// The runtime is fit, and events are switched on at both ends.
    Ready,
    /// Something is wrong.
    NotReady,
    /// Nothing is known to be wrong, but something could not be determined.
    CannotTell,
}

/// The effect of a finding on the verdict. The order is that of the output.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The node is not ready.
    Wrong,
    /// It could not be determined whether the node is ready.
    Unknown,
    /// Worth knowing; it does not change the verdict.
    Note,
    /// As it should be.
    Ok,
}

/// The part of the node that a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// The runtime, as it answers calls.
    Runtime,
    /// The configuration of CRI-O.
    Crio,
    /// The kubelet.
    Kubelet,
    /// The kernel and the operating system.
    Host,
    /// Leftovers of earlier runs of this suite.
    Leftovers,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "the field of the JSON format")]
pub struct Finding {
    /// Its name, such as `gate-on-events-off`. Names do not change.
    pub id: String,
    /// The part of the node.
    pub area: Area,
    /// Its effect on the verdict.
    pub status: Status,
    /// The finding as a sentence.
    pub finding: String,
    /// The evidence, and where it was read.
    pub read: String,
    /// Why it matters; null where all is well.
    pub why: Option<String>,
    /// How to fix it; null if nothing has to be done.
    pub fix: Option<String>,
    /// The reference; null for facts read on the node alone.
    pub source: Option<String>,
}

impl Finding {
    pub(super) fn new(
        (area, status): (Area, Status),
        id: &str,
        finding: impl Into<String>,
        read: impl Into<String>,
    ) -> Self {
        Self {
            id: id.to_owned(),
            area,
            status,
            finding: finding.into(),
            read: read.into(),
            why: None,
            fix: None,
            source: None,
        }
    }

    pub(super) fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub(super) fn source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl Readiness {
    pub(super) fn of(findings: &[Finding]) -> Self {
        let any = |status| findings.iter().any(|finding| finding.status == status);
        if any(Status::Wrong) {
            Self::NotReady
        } else if any(Status::Unknown) {
            Self::CannotTell
        } else {
            Self::Ready
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::NotReady => "not ready",
            Self::CannotTell => "cannot tell",
        }
    }
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Self::Wrong => "wrong",
            Self::Unknown => "unknown",
            Self::Note => "note",
            Self::Ok => "ok",
        }
    }
}

impl Diagnosis {
    /// The exit code: 0 ready, 1 not ready, 3 cannot tell.
    pub fn exit(&self) -> Exit {
        match self.verdict {
            Readiness::Ready => Exit::Conformant,
            Readiness::NotReady => Exit::NonConformant,
            Readiness::CannotTell => Exit::Undecided,
        }
    }

    /// The kubelet, and the verdict with the ids of what is wrong or unknown.
    pub fn properties(&self) -> [(String, String); 2] {
        let version = self.kubelet_version.as_deref().unwrap_or("unknown");
        let bad = self.findings.iter();
        let bad = bad.filter(|it| matches!(it.status, Status::Wrong | Status::Unknown));
        let ids = [self.verdict.name()]
            .into_iter()
            .chain(bad.map(|it| &*it.id));
        let ids: Vec<&str> = ids.collect();
        let [kubelet, doctor] = ["kubelet", "doctor"].map(str::to_owned);
        [(kubelet, version.to_owned()), (doctor, ids.join(" "))]
    }

    /// As text, with the verdict in the first line, which has at most 80 characters.
    pub fn text(&self) -> String {
        let mut text = self.headline();
        let _ = writeln!(text, "\nruntime: {}", printable(&self.endpoint));
        for finding in &self.findings {
            let status = finding.status.name();
            // Writing to a string does not fail.
            let what = printable(&finding.finding);
            let _ = writeln!(text, "\n{status:8} {}: {what}", finding.id);
            let parts = [
                ("read", Some(&finding.read)),
                ("why", finding.why.as_ref()),
                ("fix", finding.fix.as_ref()),
                ("source", finding.source.as_ref()),
            ];
            for (name, part) in parts {
                let Some(part) = part else { continue };
                // The fix may have several lines, and contains no foreign text.
                let mut lines = part.split(|letter| letter == '\n' && name == "fix");
                let first = printable(lines.next().unwrap_or_default());
                let _ = writeln!(text, "         {:7} {first}", format!("{name}:"));
                for line in lines {
                    let _ = writeln!(text, "{:17}{}", "", printable(line));
                }
            }
        }
        if let Some(profile) = self.profile {
            let name = profile.name();
            let _ = writeln!(
                text,
                "\nto judge the runtime for this kubelet: --profile {name}"
            );
        }
        let (exit, verdict) = (self.exit() as u8, self.verdict.name());
        let count = |status| {
            let findings = self.findings.iter();
            findings.filter(|it| it.status == status).count()
        };
        let _ = writeln!(
            text,
            "\nexit code {exit}: {verdict}: {} wrong, {} unknown, {} to note",
            count(Status::Wrong),
            count(Status::Unknown),
            count(Status::Note)
        );
        text
    }

    /// The node, the verdict, and its first reason; of a ready node the versions.
    fn headline(&self) -> String {
        let first = self.findings.first().map(|first| first.finding.clone());
        let versions = self.runtime.as_ref().map(|runtime| {
            let RuntimeName { name, version, .. } = runtime;
            let kubelet = self.kubelet_version.as_deref().unwrap_or("unknown");
            format!("{name} {version}, kubelet {kubelet}")
        });
        let is_ready = self.verdict == Readiness::Ready;
        let reason = versions.filter(|_| is_ready).or(first).unwrap_or_default();
        headline(&self.node, &format!("{}: {reason}", self.verdict.name()))
    }
}

/// The JSON Schema of a [`Diagnosis`].
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Diagnosis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_others_stays_in_its_line() {
        let evil = "evil\u{1b}[2J\u{202e}\r\n::error::end";
        let new = Finding::new((Area::Runtime, Status::Wrong), "id", evil, evil);
        let of_two_lines = "Write this:\nkey = true";
        let found = new.why(evil).fix(of_two_lines).source(evil);
        let text = Diagnosis {
            format: FORMAT,
            suite: String::new(),
            node: String::new(),
            endpoint: String::new(),
            verdict: Readiness::NotReady,
            runtime: None,
            kubelet_version: None,
            profile: None,
            findings: vec![found],
        };
        let text = text.text();
        assert!(
            text.contains("fix:    Write this:\n                 key = true\n"),
            "{text}"
        );
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']), "{text}");
        let mut lines = text.lines();
        assert!(
            lines.all(|line| !line.trim_start().starts_with("::")),
            "{text}"
        );
    }
}
