//! `create`: create a container.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CallExpectation, CallOutcome, StepRules};
use crate::case::validate::{Surroundings, Walk};
use crate::case::{Need, Span, StopSignal, WorkloadSpec, limits};
use crate::history::Flaw;

/// Create a container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container such as `{as: c, in: pod, workload: until-term}`"
)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a key of its own in a case file"
)]
pub struct CreateStep {
    /// The name by which later steps and checks refer to it.
    #[serde(rename = "as")]
    pub binding: String,
    /// The sandbox to create it in.
    #[serde(rename = "in")]
    pub sandbox: String,
    /// What it does.
    pub workload: WorkloadSpec,
    /// The container that it is the next attempt of; it has the same name in the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_of: Option<String>,
    /// It has a terminal.
    #[serde(default)]
    pub tty: bool,
    /// A file of the host is mounted into it, read-only: `/dev/null`.
    #[serde(default)]
    pub mounted: bool,
    /// Memory limit in MiB, without swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u32>,
    /// An OOM kill ends all its processes, as a kubelet asks for on cgroup v2.
    #[serde(default)]
    pub oom_group: bool,
    /// A runtime may refuse the container already when it is created. The case is skipped then.
    #[serde(default)]
    pub may_be_refused: bool,
    /// Labels in addition to the kubelet's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// It does not have the labels that a kubelet sets.
    #[serde(default)]
    pub unlabelled: bool,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The size in KiB of one more annotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation_kib: Option<u32>,
    /// The image; the suite's own if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageName>,
    /// The container from whose checkpoint it is restored; its workload must be the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_of: Option<String>,
    /// The container whose name and attempt it has, so that the two conflict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    /// Why it cannot be created, started, stopped or removed as usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<Flaw>,
    /// The signal that stops it; the runtime's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<StopSignal>,
    /// The container whose PID namespace it joins, as a kubelet's ephemeral containers do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_target: Option<String>,
    /// How the call ends: `success`, `failure` or `either`, where something else may make it fail.
    /// If a call succeeds that must fail, the case is skipped.
    #[serde(default)]
    pub expect: CallOutcome,
    /// When the client gives up on the call, which may have succeeded or failed by then.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub abandon_after: Option<Duration>,
}

/// An image that is not the suite's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", expecting = "an image: `missing`")]
pub enum ImageName {
    /// One that the runtime does not have.
    Missing,
}

impl CreateStep {
    pub fn expectation(&self) -> CallExpectation {
        CallExpectation::from_keys(self.expect, self.abandon_after)
    }
}

impl StepRules for CreateStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>, around: Surroundings) {
        let limit = walk.bind_container(self);
        if let Some(earlier) = &self.attempt_of {
            walk.container("attempt-of", earlier);
        }
        let most = limits::ANNOTATION_KIB;
        if self.annotation_kib.is_some_and(|kib| kib > most) {
            let message = format!("an annotation has at most {most} KiB");
            walk.object_to("annotation-kib", message);
        }
        if let Some(twin) = &self.same_as {
            walk.container("same-as", twin);
        }
        if let Some(target) = &self.pid_target {
            walk.container("pid-target", target);
        }
        if let Some(original) = &self.checkpoint_of {
            walk.container("checkpoint-of", original);
            if !walk.has_checkpoint(original) {
                walk.object_to("checkpoint-of", "no checkpoint of it has been made")
                    .advise("make one with the step `checkpoint` before");
            }
        } else if self.flaw == Some(Flaw::Checkpoint) {
            walk.object_to("flaw", "it is not restored from a checkpoint")
                .advise("name a container under `checkpoint-of`");
        }
        walk.expectation(self.expect, self.abandon_after);
        walk.is_made(&self.binding, self.expectation());
        if let Some(mib) = self.memory_mib {
            walk.memory_limit(mib);
        }
        if self.oom_group && self.memory_mib.is_none() {
            walk.object_to("oom-group", "nothing limits the memory");
        }
        walk.workload(&self.workload, limit, around);
    }

    fn needs(&self) -> Vec<Need> {
        let mut needs = self.workload.needs();
        if self.memory_mib.is_some() {
            needs.push(Need::MemoryLimit);
        }
        if self.oom_group {
            needs.push(Need::CgroupV2);
        }
        if self.stop_signal.is_some() {
            needs.push(Need::StopSignal);
        }
        if self.flaw.and_then(Flaw::crashes_at).is_some() {
            needs.push(Need::FaultyHandler);
        }
        if self.checkpoint_of.is_some() {
            needs.push(Need::Restore);
        }
        needs
    }
}
