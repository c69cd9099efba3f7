//! Steps that make a call on an object of the case, from `sandbox` and `create` on.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::keys;
use crate::case::validate::Walk;
use crate::case::{CallEdge, Need, Span, StopSignal, WorkloadSpec, limits};
use crate::checks::Kind;
use crate::history::Flaw;

keys! {
    /// Run a sandbox.
    SandboxStep: "a name such as `{as: pod}`" {
        /// The name by which later steps and checks refer to it.
        #[serde(rename = "as")]
        binding: String,
        /// Labels in addition to the kubelet's.
        labels: BTreeMap<String, String>,
        /// Annotations.
        annotations: BTreeMap<String, String>,
        /// The sandbox that it is the next attempt of, in the same pod.
        attempt_of: Option<String>,
        /// The pod has no UID.
        without_uid: bool,
        /// The runtime handler; that of the run if absent.
        runtime_handler: Option<String>,
        /// Its runtime handler is the user's, whose low-level runtime dies on demand.
        faulty: bool,
        /// Kernel parameters to set.
        sysctls: BTreeMap<String, String>,
        /// It has its own network, and not the host's.
        own_network: bool,
        /// Its containers share a PID namespace.
        shared_pid: bool,
        /// Memory limit in MiB, without swap, of the cgroup of the whole pod.
        memory_mib: Option<u32>,
        /// How the call ends: `success`, `failure` or `either`, where something else may make it
        /// fail. If a call succeeds that must fail, the case fails.
        expect: CallOutcome,
        /// When the client gives up on the call, which may have succeeded or failed by then.
        abandon_after: Option<Duration>,
    }

    /// Create a container.
    CreateStep: "a container such as `{as: c, in: pod, workload: until-term}`" {
        /// The name by which later steps and checks refer to it.
        #[serde(rename = "as")]
        binding: String,
        /// The sandbox to create it in.
        #[serde(rename = "in")]
        sandbox: String,
        /// The workload.
        workload: WorkloadSpec,
        /// The container that it is the next attempt of; it has the same name in the pod.
        attempt_of: Option<String>,
        /// It has a terminal.
        tty: bool,
        /// A file of the host is mounted into it, read-only: `/dev/null`.
        mounted: bool,
        /// Memory limit in MiB, without swap.
        memory_mib: Option<u32>,
        /// An OOM kill ends all its processes, as a kubelet asks for on cgroup v2.
        oom_group: bool,
        /// A runtime may refuse the container already when it is created. The case is skipped then.
        may_be_refused: bool,
        /// Labels in addition to the kubelet's.
        labels: BTreeMap<String, String>,
        /// It does not have the labels that a kubelet sets.
        unlabelled: bool,
        /// Annotations.
        annotations: BTreeMap<String, String>,
        /// The size in KiB of one more annotation.
        annotation_kib: Option<u32>,
        /// The image; the suite's own if absent.
        image: Option<ImageName>,
        /// The container from whose checkpoint it is restored; its workload must be the same.
        checkpoint_of: Option<String>,
        /// The container whose name and attempt it has, so that the two conflict; or whose
        /// creation failed, and is tried again.
        same_as: Option<String>,
        /// Why it cannot be created, started, stopped or removed as usual.
        flaw: Option<Flaw>,
        /// The signal that stops it; the runtime's default if absent.
        stop_signal: Option<StopSignal>,
        /// The container whose PID namespace it joins, as a kubelet's ephemeral containers do.
        pid_target: Option<String>,
        /// How the call ends: `success`, `failure` or `either`, where something else may make it
        /// fail. If a call succeeds that must fail, the case fails.
        expect: CallOutcome,
        /// When the client gives up on the call, which may have succeeded or failed by then.
        abandon_after: Option<Duration>,
    }

    /// Start a container.
    StartStep: "a container such as `{container: c}`" {
        /// The container.
        container: String,
        /// Call it by a prefix of its id, as people do. If the runtime refuses that, the case is
        /// inconclusive.
        by_prefix: bool,
        /// How the call ends: `success`, `failure` or `either`, where something else may make it
        /// fail. If a call succeeds that must fail, the case fails.
        expect: CallOutcome,
        /// When the client gives up on the call, which may have succeeded or failed by then.
        abandon_after: Option<Duration>,
    }

    /// Stop a container.
    StopStep: "a container and a grace period such as `{container: c, grace: 2s}`" {
        /// The container.
        container: String,
        /// Call it by a prefix of its id, as people do. If the runtime refuses that, the case is
        /// inconclusive.
        by_prefix: bool,
        /// Time between the stop signal and the kill; whole seconds.
        grace: Duration,
        /// How the call ends: `success`, `failure` or `either`, where something else may make it
        /// fail. If a call succeeds that must fail, the case fails.
        expect: CallOutcome,
        /// When the client gives up on the call, which may have succeeded or failed by then.
        abandon_after: Option<Duration>,
    }

    /// Remove a container.
    RemoveStep: "a container such as `{container: c}`" {
        /// The container.
        container: String,
        /// Call it by a prefix of its id, as people do. If the runtime refuses that, the case is
        /// inconclusive.
        by_prefix: bool,
        /// How the call ends: `success`, `failure` or `either`, where something else may make it
        /// fail. If a call succeeds that must fail, the case fails.
        expect: CallOutcome,
        /// The longest time until the container is removed. A runtime may refuse until then: the
        /// call is repeated. If it still refuses after that time, the case fails.
        within: Option<Duration>,
    }

    /// Stop a sandbox.
    StopSandboxStep: "a sandbox such as `{sandbox: pod}`" {
        /// The sandbox.
        sandbox: String,
    }

    /// Remove a sandbox.
    RemoveSandboxStep: "a sandbox such as `{sandbox: pod}`" {
        /// The sandbox.
        sandbox: String,
    }

    /// Run a command in a container, and wait for its end.
    ExecStep: "a command such as `{container: c, runs: {exit: {code: 1}}, timeout: 5s}`" {
        /// The container.
        container: String,
        /// The command, as a workload.
        runs: WorkloadSpec,
        /// The timeout of the call, in whole seconds; `0s` for none, as a hook of a pod has.
        timeout: Duration,
        /// How the call ends: `success`, `failure` or `either`, where something else may make it
        /// fail. If a call succeeds that must fail, the case fails.
        expect: CallOutcome,
    }

    /// Set resources of a container as a kubelet does when it resizes the pod:
    /// `UpdateContainerResources`.
    UpdateStep: "resources such as `{container: c, memory-mib: 64}`" {
        /// The container.
        container: String,
        /// Memory limit in MiB, without swap; unchanged if absent.
        memory_mib: Option<u32>,
        /// CPU shares, of which a CPU has 1,024; unchanged if absent.
        cpu_shares: Option<u32>,
        /// How the call ends: `success`, `failure` or `either`, where something else may make it
        /// fail. If a call succeeds that must fail, the case fails.
        expect: CallOutcome,
    }

    /// Make a checkpoint of a container, which runs on: `CheckpointContainer`. The runtime writes
    /// it into the run's folder of logs.
    CheckpointStep: "a container such as `{container: c}`" {
        /// The container.
        container: String,
    }
}

/// The expected outcome of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[serde(expecting = "how a call ends: `success`, `failure` or `either`")]
pub enum CallOutcome {
    /// It must succeed.
    #[default]
    Success,
    /// It must fail: where it succeeds, the case fails.
    Failure,
    /// It may succeed or fail: its result is judged.
    Either,
}

impl SandboxStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
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

/// An image that is not the suite's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", expecting = "an image: `missing`")]
pub enum ImageName {
    /// One that the runtime does not have.
    Missing,
}

impl CreateStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
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
            walk.requested("same-as", twin);
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

impl StartStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.container("container", &self.container);
        walk.names
            .called(&self.container, &[CallEdge::StartReturned]);
        walk.expectation(self.expect, self.abandon_after);
    }
}

impl StopStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
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

impl RemoveStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.container("container", &self.container);
        walk.expectation(self.expect, None);
        if self.within.is_some() && (self.expect != CallOutcome::Success || self.by_prefix) {
            walk.error_at("within", "`within` repeats the call until it succeeds")
                .help("leave out either `within` or the rest");
        }
        walk.span("within", self.within);
    }
}

impl StopSandboxStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.sandbox("sandbox", &self.sandbox);
        walk.names
            .called(&self.sandbox, &[CallEdge::StopSandboxCalled]);
    }
}

impl RemoveSandboxStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.sandbox("sandbox", &self.sandbox);
    }
}

impl ExecStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs(self.runs.needs());
        let limit = walk.container("container", &self.container);
        walk.inside("runs", |walk| self.runs.check_command(limit, walk));
        if self.timeout.subsec_nanos() != 0 {
            let message = "a command's time is in whole seconds";
            walk.error_at("timeout", message)
                .help("the CRI counts it in seconds");
        }
        walk.span("timeout", Some(self.timeout).filter(|time| !time.is_zero()));
        walk.expectation(self.expect, None);
    }
}

impl UpdateStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs(self.memory_mib.map(|_| Need::MemoryLimit));
        walk.container("container", &self.container);
    }
}

impl CheckpointStep {
    pub(super) fn check<'a>(&'a self, walk: &mut Walk<'a, '_>) {
        walk.needs([Need::Checkpoint]);
        walk.container("container", &self.container);
        walk.checkpoints.insert(&self.container);
    }
}
