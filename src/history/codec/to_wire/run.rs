//! What a history says of its run.

use super::{nanos, runtime_version};
use crate::history::codec::FORMAT_VERSION;
use crate::history::wire;
use crate::history::{Audience, RunInfo, RunPlan};

pub(super) fn run_planned(plan: &RunPlan) -> wire::RunPlanned {
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
        events_are_shared: plan.audience.map(|audience| audience == Audience::One),
        events: plan.offers.events,
        streamed_lists: plan.offers.streamed_lists,
        handlers: plan.offers.handlers,
        network: plan.offers.network,
        stop_signal: plan.offers.stop_signal,
    }
}

pub(super) fn run_began(info: &RunInfo) -> wire::RunBegan {
    wire::RunBegan {
        format_version: FORMAT_VERSION,
        run: info.run.to_string(),
        suite: info.suite.clone(),
        endpoint: info.endpoint.clone(),
        runtime: Some(runtime_version(&info.runtime)),
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
