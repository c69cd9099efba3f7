//! What a history says of its run as a whole: its beginning, its plan, its end.

use std::time::Duration;

use super::entry::nanos;
use super::{FORMAT_VERSION, wire};
use crate::history::{
    CgroupDriver, ExpectationFile, FanOut, Host, OciRuntime, PlannedCase, PlannedExecution,
    ProbedCapabilities, RunEnd, RunId, RunInfo, RunPlan, RuntimeVersion,
};

pub(super) fn began_to_wire(info: &RunInfo) -> wire::RunBegan {
    wire::RunBegan {
        format_version: FORMAT_VERSION,
        run: info.run.to_string(),
        suite: info.suite.clone(),
        endpoint: info.endpoint.clone(),
        runtime: Some(wire::RuntimeVersion {
            runtime_name: info.runtime.runtime_name.clone(),
            runtime_version: info.runtime.runtime_version.clone(),
            api_version: info.runtime.api_version.clone(),
        }),
        oci_runtime: info.oci.as_ref().map(|oci| wire::OciRuntime {
            handler: oci.handler.clone(),
            name: oci.name.clone(),
            version: oci.version.clone(),
        }),
        host: info.host.as_ref().map(|host| wire::Host {
            kernel: host.kernel.clone(),
            cgroup: host.cgroup.clone(),
            cpus: host.cpus,
            load_percent: host.load_percent,
        }),
        call_deadline_ns: info.call_deadline.map(nanos),
        cgroup_driver: info.cgroup_driver.map(|driver| driver.name().to_owned()),
    }
}

pub(super) fn began_from_wire(run: wire::RunBegan) -> RunInfo {
    let runtime = run.runtime.unwrap_or_default();
    RunInfo {
        run: RunId::from(run.run),
        suite: run.suite,
        endpoint: run.endpoint,
        runtime: RuntimeVersion {
            runtime_name: runtime.runtime_name,
            runtime_version: runtime.runtime_version,
            api_version: runtime.api_version,
        },
        oci: run.oci_runtime.map(|oci| OciRuntime {
            handler: oci.handler,
            name: oci.name,
            version: oci.version,
        }),
        host: run.host.map(|host| Host {
            kernel: host.kernel,
            cgroup: host.cgroup,
            cpus: host.cpus,
            load_percent: host.load_percent,
        }),
        call_deadline: run.call_deadline_ns.map(Duration::from_nanos),
        cgroup_driver: run.cgroup_driver.as_deref().and_then(CgroupDriver::parse),
    }
}

pub(super) fn planned_to_wire(plan: &RunPlan) -> wire::RunPlanned {
    let cases = plan.cases.iter().map(|case| wire::PlannedCase {
        name: case.name.clone(),
        definition: case.definition.clone(),
    });
    let executions = plan
        .executions
        .iter()
        .map(|execution| wire::PlannedExecution {
            case: execution.case,
            repetition: execution.repetition,
        });
    wire::RunPlanned {
        cases: cases.collect(),
        executions: executions.collect(),
        invariants: plan.invariants.clone(),
        image: plan.image.clone(),
        foreign_pods: plan.foreign_pods,
        expectations: plan
            .expectations
            .as_ref()
            .map(|file| wire::ExpectationFile {
                path: file.path.clone(),
                text: file.text.clone(),
            }),
        partial: plan.partial,
        profiles: plan.profiles.clone(),
        tier: plan.tier.clone(),
        events_are_shared: plan
            .fan_out
            .map(|fan_out| fan_out == FanOut::SingleConsumer),
        events: plan.probed.events,
        streamed_lists: plan.probed.streamed_lists,
        handlers: plan.probed.handlers,
        network: plan.probed.network,
        stop_signal: plan.probed.stop_signal,
        watch_within_ns: plan.watch_within.map(nanos),
    }
}

pub(super) fn planned_from_wire(plan: wire::RunPlanned) -> RunPlan {
    let cases = plan.cases.into_iter().map(|case| PlannedCase {
        name: case.name,
        definition: case.definition,
    });
    let executions = plan
        .executions
        .into_iter()
        .map(|execution| PlannedExecution {
            case: execution.case,
            repetition: execution.repetition,
        });
    RunPlan {
        cases: cases.collect(),
        executions: executions.collect(),
        invariants: plan.invariants,
        image: plan.image,
        foreign_pods: plan.foreign_pods,
        expectations: plan.expectations.map(|file| ExpectationFile {
            path: file.path,
            text: file.text,
        }),
        partial: plan.partial,
        profiles: plan.profiles,
        tier: plan.tier,
        watch_within: plan.watch_within_ns.map(Duration::from_nanos),
        fan_out: plan.events_are_shared.map(|shared| {
            if shared {
                FanOut::SingleConsumer
            } else {
                FanOut::Broadcast
            }
        }),
        probed: ProbedCapabilities {
            events: plan.events,
            streamed_lists: plan.streamed_lists,
            handlers: plan.handlers,
            network: plan.network,
            stop_signal: plan.stop_signal,
        },
    }
}

pub(super) fn ended_to_wire(end: &RunEnd) -> wire::RunEnded {
    wire::RunEnded {
        removed: end.removed,
        faults: end.faults.clone(),
    }
}

pub(super) fn ended_from_wire(end: wire::RunEnded) -> RunEnd {
    RunEnd {
        removed: end.removed,
        faults: end.faults,
    }
}
