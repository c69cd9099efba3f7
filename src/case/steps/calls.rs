//! Steps that make a call on an object of the case, from `sandbox` and `create` on.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::StepRules;
use crate::case::validate::Walk;
use crate::case::{CallEdge, Need, Span, StopSignal, WorkloadSpec, limits};
use crate::checks::Kind;
use crate::history::Flaw;

/// The expected outcome of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    rename_all = "kebab-case",
    expecting = "how a call ends: `success`, `failure` or `either`"
)]
pub enum CallOutcome {
    /// It must succeed.
    #[default]
    Success,
    /// It must fail: where it succeeds, the case fails.
    Failure,
    /// It may succeed or fail: its result is judged.
    Either,
}

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
    /// If a call succeeds that must fail, the case fails.
    #[serde(default)]
    pub expect: CallOutcome,
    /// When the client gives up on the call, which may have succeeded or failed by then.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub abandon_after: Option<Duration>,
}

impl StepRules for SandboxStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs(self.own_network.then_some(Need::Network));
        walk.needs(self.faulty.then_some(Need::FaultyHandler));
        if let Some(mib) = self.memory_mib {
            walk.needs([Need::MemoryLimit, Need::PodCgroup]);
            walk.memory_limit(mib);
        }
        let memory_mib = self.memory_mib;
        walk.bind(&self.binding, Kind::Sandbox { memory_mib });
        walk.names
            .called(&self.binding, &[CallEdge::SandboxReturned]);
        if let Some(earlier) = &self.attempt_of {
            walk.sandbox("attempt-of", earlier);
            if self.without_uid {
                walk.error_at("without-uid", "the pod is that of the other sandbox");
            }
        }
        if self.faulty && self.runtime_handler.is_some() {
            walk.error_at("runtime-handler", "the faulty one is another");
        }
        walk.created_by(&self.binding, self.expect, self.abandon_after);
    }
}

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
    /// The workload.
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
    /// If a call succeeds that must fail, the case fails.
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

impl StepRules for CreateStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        let crashes = self.flaw.and_then(Flaw::crashes_at).is_some();
        walk.needs(self.workload.needs());
        walk.needs(self.memory_mib.map(|_| Need::MemoryLimit));
        walk.needs(self.oom_group.then_some(Need::CgroupV2));
        walk.needs(self.stop_signal.map(|_| Need::StopSignal));
        walk.needs(crashes.then_some(Need::FaultyHandler));
        walk.needs(self.checkpoint_of.as_ref().map(|_| Need::Restore));
        let limit = walk.bind_container(self);
        if let Some(earlier) = &self.attempt_of {
            walk.container("attempt-of", earlier);
        }
        let most = limits::ANNOTATION_KIB;
        if self.annotation_kib.is_some_and(|kib| kib > most) {
            let message = format!("an annotation has at most {most} KiB");
            walk.error_at("annotation-kib", message);
        }
        if let Some(twin) = &self.same_as {
            walk.container("same-as", twin);
        }
        if let Some(target) = &self.pid_target {
            walk.container("pid-target", target);
        }
        if let Some(original) = &self.checkpoint_of {
            walk.container("checkpoint-of", original);
            if !walk.checkpoints.contains(original.as_str()) {
                walk.error_at("checkpoint-of", "no checkpoint of it has been made")
                    .help("make one with the step `checkpoint` before");
            }
        } else if self.flaw == Some(Flaw::Checkpoint) {
            walk.error_at("flaw", "it is not restored from a checkpoint")
                .help("name a container under `checkpoint-of`");
        }
        walk.created_by(&self.binding, self.expect, self.abandon_after);
        if let Some(mib) = self.memory_mib {
            walk.memory_limit(mib);
        }
        if self.oom_group && self.memory_mib.is_none() {
            walk.error_at("oom-group", "nothing limits the memory");
        }
        walk.inside("workload", |walk| self.workload.check(limit, walk));
    }
}

/// Start a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container such as `{container: c}`"
)]
pub struct StartStep {
    /// The container.
    pub container: String,
    /// Call it by a prefix of its id, as people do. If the runtime refuses that, the case is
    /// inconclusive.
    #[serde(default)]
    pub by_prefix: bool,
    /// How the call ends: `success`, `failure` or `either`, where something else may make it fail.
    /// If a call succeeds that must fail, the case fails.
    #[serde(default)]
    pub expect: CallOutcome,
    /// When the client gives up on the call, which may have succeeded or failed by then.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub abandon_after: Option<Duration>,
}

impl StepRules for StartStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.container("container", &self.container);
        walk.names
            .called(&self.container, &[CallEdge::StartReturned]);
        walk.expectation(self.expect, self.abandon_after);
    }
}

/// Stop a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container and a grace period such as `{container: c, grace: 2s}`"
)]
pub struct StopStep {
    /// The container.
    pub container: String,
    /// Call it by a prefix of its id, as people do. If the runtime refuses that, the case is
    /// inconclusive.
    #[serde(default)]
    pub by_prefix: bool,
    /// Time between the stop signal and the kill; whole seconds.
    #[serde(with = "Span")]
    pub grace: Duration,
    /// How the call ends: `success`, `failure` or `either`, where something else may make it fail.
    /// If a call succeeds that must fail, the case fails.
    #[serde(default)]
    pub expect: CallOutcome,
    /// When the client gives up on the call, which may have succeeded or failed by then.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub abandon_after: Option<Duration>,
}

impl StepRules for StopStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.container("container", &self.container);
        let edges = [CallEdge::StopCalled, CallEdge::StopReturned];
        walk.names.called(&self.container, &edges);
        if self.grace.subsec_nanos() != 0 || self.grace > limits::GRACE {
            let most = limits::GRACE.as_secs();
            let message = format!("a grace period is from 0 to {most} whole seconds");
            walk.error_at("grace", message)
                .help("the CRI counts it in seconds");
        }
        walk.expectation(self.expect, self.abandon_after);
    }
}

/// Remove a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a container such as `{container: c}`"
)]
pub struct RemoveStep {
    /// The container.
    pub container: String,
    /// Call it by a prefix of its id, as people do. If the runtime refuses that, the case is
    /// inconclusive.
    #[serde(default)]
    pub by_prefix: bool,
    /// How the call ends: `success`, `failure` or `either`, where something else may make it fail.
    /// If a call succeeds that must fail, the case fails.
    #[serde(default)]
    pub expect: CallOutcome,
    /// The longest time until the container is removed. A runtime may refuse until then: the call
    /// is repeated. If it still refuses after that time, the case fails.
    #[serde(default, with = "Span", skip_serializing_if = "Option::is_none")]
    pub within: Option<Duration>,
}

impl StepRules for RemoveStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.container("container", &self.container);
        walk.expectation(self.expect, None);
        if self.within.is_some() && (self.expect != CallOutcome::Success || self.by_prefix) {
            walk.error_at("within", "`within` repeats the call until it succeeds")
                .help("leave out either `within` or the rest");
        }
        walk.span("within", self.within);
    }
}

/// Stop a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a sandbox such as `{sandbox: pod}`")]
pub struct StopSandboxStep {
    /// The sandbox.
    pub sandbox: String,
}

impl StepRules for StopSandboxStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.sandbox("sandbox", &self.sandbox);
        walk.names
            .called(&self.sandbox, &[CallEdge::StopSandboxCalled]);
    }
}

/// Remove a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a sandbox such as `{sandbox: pod}`")]
pub struct RemoveSandboxStep {
    /// The sandbox.
    pub sandbox: String,
}

impl StepRules for RemoveSandboxStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.sandbox("sandbox", &self.sandbox);
    }
}

/// Run a command in a container, and wait for its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a command such as `{container: c, runs: {exit: {code: 1}}, timeout: 5s}`"
)]
pub struct ExecStep {
    /// The container.
    pub container: String,
    /// The command, as a workload. If it ends with another exit code than it declares, the case is
    /// inconclusive.
    pub runs: WorkloadSpec,
    /// The timeout of the call, in whole seconds.
    #[serde(with = "Span")]
    pub timeout: Duration,
    /// How the call ends: `success`, `failure` or `either`, where something else may make it fail.
    /// If a call succeeds that must fail, the case fails.
    #[serde(default)]
    pub expect: CallOutcome,
}

impl StepRules for ExecStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs(self.runs.needs());
        let limit = walk.container("container", &self.container);
        walk.inside("runs", |walk| self.runs.check_command(limit, walk));
        if self.timeout.subsec_nanos() != 0 || self.timeout.is_zero() {
            let message = "a command's time is in whole seconds, one or more";
            walk.error_at("timeout", message)
                .help("the CRI counts it in seconds");
        }
        walk.span("timeout", Some(self.timeout));
        walk.expectation(self.expect, None);
    }
}

/// Make a checkpoint of a container, which runs on: `CheckpointContainer`. The runtime writes it
/// into the run's folder of logs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a container such as `{container: c}`"
)]
pub struct CheckpointStep {
    /// The container.
    pub container: String,
}

impl StepRules for CheckpointStep {
    fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::Checkpoint]);
        walk.container("container", &self.container);
        walk.checkpoints.insert(&self.container);
    }
}
