//! `sandbox`: run a sandbox.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallExpectation, StepRules};
use crate::case::validate::{Surroundings, Walk};
use crate::case::{CallEdge, Need, duration};

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
    /// The name for it.
    #[serde(rename = "as")]
    pub binding: String,
    /// Labels beside the kubelet's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The sandbox whose pod it is made for, anew: the next attempt of the same pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// The pod has no UID.
    #[serde(default)]
    pub without_uid: bool,
    /// The runtime handler; the run's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_handler: Option<String>,
    /// The runtime handler is the one whose low-level runtime dies on demand.
    #[serde(default)]
    pub faulty: bool,
    /// Kernel parameters to set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, String>,
    /// It has a network of its own, and not the host's.
    #[serde(default)]
    pub own_network: bool,
    /// Its containers share a PID namespace.
    #[serde(default)]
    pub shared_pid: bool,
    /// Memory limit in MiB, without swap, of the pod's own cgroup, for all that is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// The call must fail. If it succeeds, the case is inconclusive.
    #[serde(default)]
    pub fails: bool,
    /// Something else may make it fail: whatever the call returns is right.
    #[serde(default)]
    pub races: bool,
    /// When we give up on the call. Whatever it has come to by then is right.
    #[serde(
        default,
        with = "duration::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<duration::Text>")]
    pub deadline: Option<Duration>,
}

impl SandboxStep {
    /// How the call may end.
    #[must_use]
    pub fn expectation(&self) -> CallExpectation {
        CallExpectation::from_keys(self.fails, self.races, self.deadline)
    }
}

impl StepRules for SandboxStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, _: Surroundings) {
        walk.bind_sandbox(&self.binding, self.memory_mib);
        walk.called(&self.binding, &[CallEdge::SandboxReturned]);
        if let Some(earlier) = &self.again {
            walk.sandbox("again", earlier);
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
        walk.call_keys(self.fails, self.races || self.deadline.is_some());
        walk.expectation(self.expectation());
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
