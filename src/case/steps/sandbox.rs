//! `sandbox`: run a sandbox.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallExpectation, CallOutcome, StepRules};
use crate::case::validate::{Surroundings, Walk};
use crate::case::{CallEdge, Need, Span};

/// Run a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a name such as `{as: pod}`"
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a key of its own in a case file"
)]
pub struct SandboxStep {
    /// The name by which later steps and checks refer to it.
    #[serde(rename = "as")]
    pub binding: String,
    /// Labels in addition to the kubelet's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The sandbox that it is the next attempt of, in the same pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_of: Option<String>,
    /// The pod has no UID.
    #[serde(default)]
    pub without_uid: bool,
    /// The runtime handler; that of the run if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_handler: Option<String>,
    /// Its runtime handler is the user's, whose low-level runtime dies on demand.
    #[serde(default)]
    pub faulty: bool,
    /// Kernel parameters to set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, String>,
    /// It has its own network, and not the host's.
    #[serde(default)]
    pub own_network: bool,
    /// Its containers share a PID namespace.
    #[serde(default)]
    pub shared_pid: bool,
    /// Memory limit in MiB, without swap, of the cgroup of the whole pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// How the call ends: `success`, `failure` or `either`, where something else may make it fail.
    /// If a call succeeds that must fail, the case is skipped.
    #[serde(default)]
    pub expect: CallOutcome,
    /// When the client gives up on the call, which may have succeeded or failed by then.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub abandon_after: Option<Duration>,
}

impl SandboxStep {
    pub fn expectation(&self) -> CallExpectation {
        CallExpectation::from_keys(self.expect, self.abandon_after)
    }
}

impl StepRules for SandboxStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.bind_sandbox(&self.binding, self.memory_mib);
        walk.called(&self.binding, &[CallEdge::SandboxReturned]);
        if let Some(earlier) = &self.attempt_of {
            walk.sandbox("attempt-of", earlier);
            if self.without_uid {
                walk.object_to("without-uid", "the pod is that of the other sandbox");
            }
        }
        if self.faulty && self.runtime_handler.is_some() {
            walk.object_to("runtime-handler", "the faulty one is another");
        }
        if let Some(mib) = self.memory_mib {
            walk.memory_limit(mib);
        }
        walk.expectation(self.expect, self.abandon_after);
        walk.is_made(&self.binding, self.expectation());
    }

    fn needs(&self) -> Vec<Need> {
        let mut needs = Vec::new();
        if self.own_network {
            needs.push(Need::Network);
        }
        if self.faulty {
            needs.push(Need::FaultyHandler);
        }
        if self.memory_mib.is_some() {
            needs.extend([Need::MemoryLimit, Need::PodCgroup]);
        }
        needs
    }
}
