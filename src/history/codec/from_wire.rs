//! From the types of the format to ours. It fails where a message lacks what its entry cannot do
//! without.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::details;
use crate::history::wire;
use crate::history::{
    Aside, Audience, Body, CallFault, CallId, CaseRun, CgroupDriver, ContainerFilter, ContainerId,
    ContainerListing, ContainerMetadata, ContainerReport, ContainerSpec, ContainerState,
    ContainerStatus, Entry, Event, EventKind, ExpectationFile, Flaw, Host, HostFact, HostInstant,
    ImageListing, Labels, Observer, OciRuntime, Offers, PlannedCase, PlannedExecution, PodUid,
    Reply, Request, RunEnd, RunId, RunInfo, RunPlan, RuntimeNanos, RuntimeStatus, RuntimeVersion,
    SandboxFilter, SandboxId, SandboxListing, SandboxMetadata, SandboxReport, SandboxSpec,
    SandboxState, SandboxStatus, Seq, Signal, StatusCode, StepsEnd, StreamEnd, SubscriptionId,
    Text, Took,
};

/// The field that a message lacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Absent(pub(super) &'static str);

pub(super) fn entry(entry: wire::Entry) -> Result<Entry, Absent> {
    Ok(Entry {
        seq: Seq(entry.seq),
        at: HostInstant {
            monotonic_ns: entry.monotonic_ns,
            realtime_ns: entry.realtime_ns,
        },
        body: body(entry.body.ok_or(Absent("body"))?)?,
    })
}

fn body(body: wire::entry::Body) -> Result<Body, Absent> {
    use wire::entry::Body as From;
    Ok(match body {
        From::RunBegan(run) => Body::RunBegan(Arc::new(run_info(run))),
        From::CaseBegan(began) => Body::CaseBegan {
            case: CaseRun(began.case_run),
            id: began.id,
            definition: began.definition,
            timeout_percent: began.timeout_percent,
        },
        From::StepsEnded(ended) => Body::StepsEnded {
            case: CaseRun(ended.case_run),
            end: steps_end(ended.end.ok_or(Absent("end of a case's steps"))?),
        },
        From::CaseEnded(mark) => Body::CaseEnded {
            case: CaseRun(mark.case_run),
        },
        From::CallBegan(began) => Body::CallBegan {
            call: CallId(began.call),
            case: began.case_run.map(CaseRun),
            request: request(began.request.ok_or(Absent("request"))?)?,
        },
        From::CallEnded(ended) => Body::CallEnded {
            call: CallId(ended.call),
            result: call_result(ended)?,
        },
        From::SubscriptionOpened(opened) => Body::SubscriptionOpened {
            subscription: SubscriptionId(opened.subscription),
            observer: opened.observer.map(observer),
        },
        From::SubscriptionAnswered(mark) => Body::SubscriptionAnswered {
            subscription: SubscriptionId(mark.subscription),
        },
        From::SubscriptionProven(mark) => Body::SubscriptionProven {
            subscription: SubscriptionId(mark.subscription),
        },
        From::SubscriptionEnded(ended) => Body::SubscriptionEnded {
            subscription: SubscriptionId(ended.subscription),
            end: stream_end(ended.end.ok_or(Absent("end of a stream"))?),
        },
        From::Event(arrived) => Body::Event {
            subscription: SubscriptionId(arrived.subscription),
            bytes: arrived.bytes,
            event: event(arrived),
        },
        From::Waited(told) => waited(told),
        From::Fact(fact) => Body::Fact {
            case: CaseRun(fact.case_run),
            fact: match fact.fact.ok_or(Absent("fact"))? {
                wire::fact::Fact::OomKills(count) => HostFact::OomKills(count),
            },
        },
        From::RunPlanned(plan) => Body::RunPlanned(Arc::new(run_plan(plan))),
        From::Unjudged(unjudged) => Body::Unjudged {
            case: CaseRun(unjudged.case_run),
            skipped: unjudged.skipped,
            reason: unjudged.reason,
        },
        From::CasesEnded(wire::Empty {}) => Body::CasesEnded,
        From::HeldUp(wire::HeldUp { by_ns }) => Body::HeldUp {
            by: Duration::from_nanos(by_ns),
        },
        From::RunEnded(ended) => Body::RunEnded(RunEnd {
            removed: ended.removed,
            faults: ended.faults,
        }),
    })
}

fn run_plan(plan: wire::RunPlanned) -> RunPlan {
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
        audience: plan.events_are_shared.map(|shared| {
            if shared {
                Audience::One
            } else {
                Audience::Everyone
            }
        }),
        offers: Offers {
            events: plan.events,
            streamed_lists: plan.streamed_lists,
            handlers: plan.handlers,
            network: plan.network,
            stop_signal: plan.stop_signal,
        },
    }
}

fn observer(observer: wire::Observer) -> Observer {
    Observer {
        case: observer.case_run.map(CaseRun),
        binding: observer.binding,
        stalls: observer.stalls,
        deadline: observer.deadline_ns.map(Duration::from_nanos),
        unknown_fields: observer.unknown_fields,
        authority: observer.authority,
    }
}

fn run_info(run: wire::RunBegan) -> RunInfo {
    RunInfo {
        run: RunId::from(run.run),
        suite: run.suite,
        endpoint: run.endpoint,
        runtime: runtime_version(run.runtime.unwrap_or_default()),
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

fn request(request: wire::call_began::Request) -> Result<Request, Absent> {
    use wire::call_began::Request as From;
    Ok(match request {
        From::Version(wire::Empty {}) => Request::Version,
        From::RunSandbox(spec) => Request::RunSandbox(Arc::new(sandbox_spec(spec))),
        From::StopSandbox(id) => Request::StopSandbox(SandboxId::from(id)),
        From::RemoveSandbox(id) => Request::RemoveSandbox(SandboxId::from(id)),
        From::SandboxStatus(id) => Request::SandboxStatus(SandboxId::from(id)),
        From::ListSandboxes(list) => Request::ListSandboxes(labels(list.labels)),
        From::CreateContainer(spec) => Request::CreateContainer(Arc::new(container_spec(spec))),
        From::StartContainer(id) => Request::StartContainer(ContainerId::from(id)),
        From::StopContainer(stop) => Request::StopContainer {
            container: ContainerId::from(stop.container),
            grace: Duration::from_nanos(stop.grace_ns),
        },
        From::RemoveContainer(id) => Request::RemoveContainer(ContainerId::from(id)),
        From::ContainerStatus(id) => Request::ContainerStatus(ContainerId::from(id)),
        From::ListContainers(list) => Request::ListContainers {
            sandbox: list.sandbox.map(SandboxId::from),
            labels: labels(list.labels),
        },
        From::RuntimeStatus(wire::Empty {}) => Request::RuntimeStatus,
        From::FindSandboxes(find) => Request::FindSandboxes(SandboxFilter {
            id: find.id.map(SandboxId::from),
            state: find.state.map(sandbox_state),
            labels: labels(find.labels),
            streamed: find.streamed,
        }),
        From::FindContainers(find) => Request::FindContainers(ContainerFilter {
            id: find.id.map(ContainerId::from),
            state: find.state.map(container_state),
            sandbox: find.sandbox.map(SandboxId::from),
            labels: labels(find.labels),
            streamed: find.streamed,
        }),
        From::ImageStatus(image) => Request::ImageStatus(image),
        From::PullImage(image) => Request::PullImage(image),
        From::RemoveImage(image) => Request::RemoveImage(image),
        From::ListImages(wire::Empty {}) => Request::ListImages,
        From::ExecSync(exec) => Request::ExecSync {
            container: ContainerId::from(exec.container),
            command: exec.command,
            timeout: Duration::from_nanos(exec.timeout_ns),
        },
        From::Aside(aside) => {
            let known = Aside::named(&aside.method).ok_or(Absent("call without effect"))?;
            Request::Aside(known, aside.id)
        }
    })
}

fn call_result(ended: wire::CallEnded) -> Result<Result<Reply, CallFault>, Absent> {
    use wire::call_ended::Result as From;
    Ok(Ok(match ended.result.ok_or(Absent("result"))? {
        From::Fault(fault) => return Ok(Err(call_fault(fault))),
        From::Done(wire::Empty {}) => Reply::Done,
        From::Version(version) => Reply::Version(runtime_version(version)),
        From::Sandbox(id) => Reply::Sandbox(SandboxId::from(id)),
        From::Container(id) => Reply::Container(ContainerId::from(id)),
        From::SandboxStatus(status) => Reply::SandboxStatus(SandboxReport {
            status: sandbox_status(status).into(),
            containers: each(ended.containers_statuses, |told| {
                container_status(told).into()
            }),
            timestamp: RuntimeNanos(ended.timestamp),
        }),
        From::ContainerStatus(status) => Reply::ContainerStatus(ContainerReport {
            status: container_status(status).into(),
            stop_signal: Signal(ended.stop_signal),
        }),
        From::Sandboxes(list) => Reply::Sandboxes(each(list.items, sandbox_listing)),
        From::Containers(list) => Reply::Containers(each(list.items, container_listing)),
        From::Image(found) => Reply::Image(found.image.map(image_listing)),
        From::Pulled(image) => Reply::Pulled(image),
        From::Images(list) => Reply::Images(each(list.items, image_listing)),
        From::Exec(code) => Reply::Exec(code),
        From::RuntimeStatus(status) => Reply::RuntimeStatus(RuntimeStatus {
            conditions: status.conditions,
            handlers: status.handlers,
        }),
    }))
}

fn steps_end(end: wire::steps_ended::End) -> StepsEnd {
    use wire::steps_ended::End as From;
    match end {
        From::Complete(wire::Empty {}) => StepsEnd::Complete,
        From::Unmet(wire::Empty {}) => StepsEnd::Unmet,
        From::Inconclusive(reason) => StepsEnd::Inconclusive(reason),
        From::NotApplicable(reason) => StepsEnd::NotApplicable(reason),
        From::Error(reason) => StepsEnd::Error(reason),
    }
}

fn stream_end(end: wire::subscription_ended::End) -> StreamEnd {
    use wire::subscription_ended::End as From;
    match end {
        From::Cancelled(wire::Empty {}) => StreamEnd::Cancelled,
        From::Closed(wire::Empty {}) => StreamEnd::Closed,
        From::Failed(fault) => StreamEnd::Failed(call_fault(fault)),
    }
}

fn waited(told: wire::Waited) -> Body {
    Body::Waited {
        case: CaseRun(told.case_run),
        wanted: told.wanted,
        met: told.met,
        bound: Duration::from_nanos(told.bound_ns),
        took: told.took.map(took),
        instead: told.instead,
    }
}

fn took(took: wire::waited::Took) -> Took {
    use wire::waited::Took as From;
    match took {
        From::EventNs(time) => Took::Event(Duration::from_nanos(time)),
        From::EndNs(time) => Took::End(Duration::from_nanos(time)),
    }
}

fn event(arrived: wire::EventArrived) -> Event {
    Event {
        container: ContainerId::from(arrived.container),
        kind: event_kind(arrived.kind),
        created_at: RuntimeNanos(arrived.created_at),
        sandbox: arrived.sandbox.map(|status| sandbox_status(status).into()),
        containers: each(arrived.containers, |status| container_status(status).into()),
    }
}

fn call_fault(fault: wire::CallFault) -> CallFault {
    CallFault {
        code: StatusCode(fault.code),
        message: fault.message,
        deadline: Duration::from_nanos(fault.deadline_ns),
    }
}

fn sandbox_spec(spec: wire::SandboxSpec) -> SandboxSpec {
    SandboxSpec {
        binding: spec.binding,
        name: spec.name,
        namespace: spec.namespace,
        uid: PodUid::from(spec.uid),
        attempt: spec.attempt,
        labels: labels(spec.labels),
        annotations: labels(spec.annotations),
        runtime_handler: spec.runtime_handler,
        sysctls: labels(spec.sysctls),
        own_network: spec.own_network,
        shared_pid: spec.shared_pid,
        cgroup_parent: spec.cgroup_parent,
        memory_bytes: spec.memory_bytes,
        log_directory: spec.log_directory,
    }
}

/// A flaw that is not known is none.
pub(super) fn flaw(flaw: i32) -> Option<Flaw> {
    match wire::Flaw::try_from(flaw).unwrap_or_default() {
        wire::Flaw::None => None,
        wire::Flaw::User => Some(Flaw::User),
        wire::Flaw::Directory => Some(Flaw::Directory),
        wire::Flaw::Mount => Some(Flaw::Mount),
        wire::Flaw::CrashAtCreate => Some(Flaw::CrashAtCreate),
        wire::Flaw::CrashAtStart => Some(Flaw::CrashAtStart),
        wire::Flaw::CrashAtKill => Some(Flaw::CrashAtKill),
        wire::Flaw::CrashAtDelete => Some(Flaw::CrashAtDelete),
    }
}

fn container_spec(spec: wire::ContainerSpec) -> ContainerSpec {
    let flaw = flaw(spec.flaw);
    ContainerSpec {
        sandbox: SandboxId::from(spec.sandbox),
        sandbox_spec: Arc::new(sandbox_spec(spec.sandbox_spec.unwrap_or_default())),
        binding: spec.binding,
        attempt: spec.attempt,
        image: spec.image,
        command: spec.command,
        name: spec.name,
        tty: spec.tty,
        declared_exit: spec.declared_exit,
        memory_bytes: spec.memory_bytes,
        labels: labels(spec.labels),
        annotations: labels(spec.annotations),
        flaw,
        stop_signal: Signal(spec.stop_signal),
        pid_target: spec.pid_target.map(ContainerId::from),
        oom_group: spec.oom_group,
        mounted: spec.mounted,
        log_path: spec.log_path,
    }
}

fn runtime_version(version: wire::RuntimeVersion) -> RuntimeVersion {
    RuntimeVersion {
        runtime_name: version.runtime_name,
        runtime_version: version.runtime_version,
        api_version: version.api_version,
    }
}

fn labels(map: BTreeMap<String, String>) -> Labels {
    map.into_iter().collect()
}

fn sandbox_metadata(metadata: wire::SandboxMetadata) -> SandboxMetadata {
    SandboxMetadata {
        name: metadata.name.into(),
        uid: PodUid::from(metadata.uid),
        namespace: metadata.namespace.into(),
        attempt: metadata.attempt,
    }
}

fn sandbox_status(status: wire::SandboxStatus) -> SandboxStatus {
    SandboxStatus {
        id: SandboxId::from(status.id),
        metadata: status.metadata.map(sandbox_metadata),
        state: sandbox_state(status.state),
        created_at: RuntimeNanos(status.created_at),
        ips: status.ips,
        labels: labels(status.labels),
        annotations: labels(status.annotations),
        runtime_handler: status.runtime_handler,
    }
}

fn container_metadata(metadata: wire::ContainerMetadata) -> ContainerMetadata {
    ContainerMetadata {
        name: metadata.name.into(),
        attempt: metadata.attempt,
    }
}

fn container_status(status: wire::ContainerStatus) -> ContainerStatus {
    ContainerStatus {
        id: ContainerId::from(status.id),
        metadata: status.metadata.map(container_metadata),
        state: container_state(status.state),
        created_at: RuntimeNanos(status.created_at),
        started_at: RuntimeNanos(status.started_at),
        finished_at: RuntimeNanos(status.finished_at),
        exit_code: status.exit_code,
        image: status.image.map(Text::from),
        image_ref: status.image_ref.into(),
        reason: status.reason.into(),
        message: status.message,
        labels: labels(status.labels),
        annotations: labels(status.annotations),
        details: status.details.map(|told| details::from_wire(told).into()),
    }
}

fn sandbox_listing(listing: wire::SandboxListing) -> SandboxListing {
    SandboxListing {
        id: SandboxId::from(listing.id),
        metadata: listing.metadata.map(sandbox_metadata),
        state: sandbox_state(listing.state),
        created_at: RuntimeNanos(listing.created_at),
        labels: labels(listing.labels),
    }
}

fn container_listing(listing: wire::ContainerListing) -> ContainerListing {
    ContainerListing {
        id: ContainerId::from(listing.id),
        sandbox: SandboxId::from(listing.sandbox),
        metadata: listing.metadata.map(container_metadata),
        state: container_state(listing.state),
        created_at: RuntimeNanos(listing.created_at),
        labels: labels(listing.labels),
        image: listing.image.map(Text::from),
    }
}

fn image_listing(listing: wire::ImageListing) -> ImageListing {
    ImageListing {
        id: listing.id,
        tags: listing.tags,
    }
}

pub(super) fn event_kind(number: i32) -> EventKind {
    match number {
        0 => EventKind::Created,
        1 => EventKind::Started,
        2 => EventKind::Stopped,
        3 => EventKind::Deleted,
        number => EventKind::Unknown(number),
    }
}

pub(super) fn sandbox_state(number: i32) -> SandboxState {
    match number {
        0 => SandboxState::Ready,
        1 => SandboxState::NotReady,
        number => SandboxState::Unknown(number),
    }
}

pub(super) fn container_state(number: i32) -> ContainerState {
    match number {
        0 => ContainerState::Created,
        1 => ContainerState::Running,
        2 => ContainerState::Exited,
        number => ContainerState::Unknown(number),
    }
}

fn each<From, To>(items: Vec<From>, convert: impl Fn(From) -> To) -> Vec<To> {
    items.into_iter().map(convert).collect()
}
