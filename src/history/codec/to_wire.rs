//! From our types to those of the format. Every value has a place there, so nothing fails.

mod run;

use std::collections::BTreeMap;
use std::time::Duration;

use run::{run_began, run_planned};

use super::details;
use crate::history::wire;
use crate::history::{
    Body, CallFault, CallId, CaseRun, ContainerFilter, ContainerListing, ContainerMetadata,
    ContainerSpec, ContainerState, ContainerStatus, Entry, Event, EventKind, Flaw, HostFact,
    ImageListing, Labels, Observer, Reply, Request, RuntimeVersion, SandboxListing,
    SandboxMetadata, SandboxSpec, SandboxState, SandboxStatus, StepsEnd, StreamEnd, SubscriptionId,
    Took,
};

pub(super) fn entry(entry: &Entry) -> wire::Entry {
    wire::Entry {
        seq: entry.seq.0,
        monotonic_ns: entry.at.monotonic_ns,
        realtime_ns: entry.at.realtime_ns,
        body: Some(body(&entry.body)),
    }
}

fn body(body: &Body) -> wire::entry::Body {
    use wire::entry::Body as To;
    match body {
        Body::RunBegan(info) => To::RunBegan(run_began(info)),
        Body::CaseBegan {
            case,
            id,
            definition,
            timeout_percent,
        } => To::CaseBegan(wire::CaseBegan {
            case_run: case.0,
            id: id.clone(),
            definition: definition.clone(),
            timeout_percent: *timeout_percent,
        }),
        Body::StepsEnded { case, end } => To::StepsEnded(wire::StepsEnded {
            case_run: case.0,
            end: Some(steps_end(end)),
        }),
        Body::CaseEnded { case } => To::CaseEnded(case_mark(*case)),
        Body::CallBegan {
            call,
            case,
            request,
        } => To::CallBegan(call_began(*call, *case, request)),
        Body::CallEnded { call, result } => To::CallEnded(call_ended(*call, result)),
        Body::SubscriptionOpened {
            subscription,
            observer,
        } => To::SubscriptionOpened(subscription_opened(*subscription, observer.as_ref())),
        Body::SubscriptionAnswered { subscription } => {
            To::SubscriptionAnswered(subscription_mark(*subscription))
        }
        Body::SubscriptionProven { subscription } => {
            To::SubscriptionProven(subscription_mark(*subscription))
        }
        Body::SubscriptionEnded { subscription, end } => {
            To::SubscriptionEnded(subscription_ended(*subscription, end))
        }
        Body::Event {
            subscription,
            event,
            bytes,
        } => To::Event(event_arrived(*subscription, event, *bytes)),
        Body::Waited {
            case,
            wanted,
            met,
            bound,
            took,
            instead,
        } => To::Waited(waited(*case, (wanted, *met, instead), *bound, *took)),
        Body::Fact { case, fact } => To::Fact(host_fact(*case, *fact)),
        Body::RunPlanned(plan) => To::RunPlanned(run_planned(plan)),
        Body::Unjudged {
            case,
            skipped,
            reason,
        } => To::Unjudged(unjudged(*case, *skipped, reason)),
        Body::CasesEnded => To::CasesEnded(wire::Empty {}),
        Body::HeldUp { by } => To::HeldUp(wire::HeldUp { by_ns: nanos(*by) }),
        Body::RunEnded(end) => To::RunEnded(wire::RunEnded {
            removed: end.removed,
            faults: end.faults.clone(),
        }),
    }
}

fn host_fact(case: CaseRun, fact: HostFact) -> wire::Fact {
    wire::Fact {
        case_run: case.0,
        fact: Some(match fact {
            HostFact::OomKills(count) => wire::fact::Fact::OomKills(count),
        }),
    }
}

fn case_mark(case: CaseRun) -> wire::CaseMark {
    wire::CaseMark { case_run: case.0 }
}

fn call_began(call: CallId, case: Option<CaseRun>, request: &Request) -> wire::CallBegan {
    use wire::call_began::Request as To;
    let request = match request {
        Request::Version => To::Version(wire::Empty {}),
        Request::RunSandbox(spec) => To::RunSandbox(sandbox_spec(spec)),
        Request::StopSandbox(id) => To::StopSandbox(id.to_string()),
        Request::RemoveSandbox(id) => To::RemoveSandbox(id.to_string()),
        Request::SandboxStatus(id) => To::SandboxStatus(id.to_string()),
        Request::ListSandboxes(labels) => To::ListSandboxes(wire::ListSandboxes {
            labels: pairs(labels),
        }),
        Request::CreateContainer(spec) => To::CreateContainer(container_spec(spec)),
        Request::StartContainer(id) => To::StartContainer(id.to_string()),
        Request::StopContainer { container, grace } => To::StopContainer(wire::StopContainer {
            container: container.to_string(),
            grace_ns: nanos(*grace),
        }),
        Request::RemoveContainer(id) => To::RemoveContainer(id.to_string()),
        Request::ContainerStatus(id) => To::ContainerStatus(id.to_string()),
        Request::ListContainers { sandbox, labels } => To::ListContainers(wire::ListContainers {
            sandbox: sandbox.as_ref().map(ToString::to_string),
            labels: pairs(labels),
        }),
        Request::RuntimeStatus => To::RuntimeStatus(wire::Empty {}),
        Request::FindSandboxes(filter) => To::FindSandboxes(wire::FindSandboxes {
            id: filter.id.as_ref().map(ToString::to_string),
            state: filter.state.map(sandbox_state),
            labels: pairs(&filter.labels),
            streamed: filter.streamed,
        }),
        Request::FindContainers(filter) => To::FindContainers(find_containers(filter)),
        Request::ImageStatus(image) => To::ImageStatus(image.clone()),
        Request::PullImage(image) => To::PullImage(image.clone()),
        Request::RemoveImage(image) => To::RemoveImage(image.clone()),
        Request::ListImages => To::ListImages(wire::Empty {}),
        Request::ExecSync {
            container,
            command,
            timeout,
        } => To::ExecSync(wire::ExecSync {
            container: container.to_string(),
            command: command.clone(),
            timeout_ns: nanos(*timeout),
        }),
        Request::Aside(aside, id) => To::Aside(wire::Aside {
            method: aside.method().to_owned(),
            id: id.clone(),
        }),
    };
    wire::CallBegan {
        call: call.0,
        case_run: case.map(|case| case.0),
        request: Some(request),
    }
}

fn find_containers(filter: &ContainerFilter) -> wire::FindContainers {
    wire::FindContainers {
        id: filter.id.as_ref().map(ToString::to_string),
        state: filter.state.map(container_state),
        sandbox: filter.sandbox.as_ref().map(ToString::to_string),
        labels: pairs(&filter.labels),
        streamed: filter.streamed,
    }
}

fn steps_end(end: &StepsEnd) -> wire::steps_ended::End {
    use wire::steps_ended::End as To;
    match end {
        StepsEnd::Complete => To::Complete(wire::Empty {}),
        StepsEnd::Unmet => To::Unmet(wire::Empty {}),
        StepsEnd::Inconclusive(reason) => To::Inconclusive(reason.clone()),
        StepsEnd::NotApplicable(reason) => To::NotApplicable(reason.clone()),
        StepsEnd::Error(reason) => To::Error(reason.clone()),
    }
}

fn call_ended(call: CallId, result: &Result<Reply, CallFault>) -> wire::CallEnded {
    use wire::call_ended::Result as To;
    let (containers, timestamp) = match result {
        Ok(Reply::SandboxStatus(report)) => (&report.containers[..], report.timestamp.0),
        _ => (&[][..], 0),
    };
    let stop_signal = match result {
        Ok(Reply::ContainerStatus(report)) => report.stop_signal.0,
        _ => 0,
    };
    let result = match result {
        Err(fault) => To::Fault(call_fault(fault)),
        Ok(Reply::Done) => To::Done(wire::Empty {}),
        Ok(Reply::Version(version)) => To::Version(runtime_version(version)),
        Ok(Reply::Sandbox(id)) => To::Sandbox(id.to_string()),
        Ok(Reply::Container(id)) => To::Container(id.to_string()),
        Ok(Reply::SandboxStatus(report)) => To::SandboxStatus(sandbox_status(&report.status)),
        Ok(Reply::ContainerStatus(report)) => To::ContainerStatus(container_status(&report.status)),
        Ok(Reply::Sandboxes(listed)) => To::Sandboxes(wire::SandboxListings {
            items: listed.iter().map(sandbox_listing).collect(),
        }),
        Ok(Reply::Containers(listed)) => To::Containers(wire::ContainerListings {
            items: listed.iter().map(container_listing).collect(),
        }),
        Ok(Reply::Image(image)) => To::Image(wire::ImageFound {
            image: image.as_ref().map(image_listing),
        }),
        Ok(Reply::Pulled(image)) => To::Pulled(image.clone()),
        Ok(Reply::Images(listed)) => To::Images(wire::ImageListings {
            items: listed.iter().map(image_listing).collect(),
        }),
        Ok(Reply::Exec(code)) => To::Exec(*code),
        Ok(Reply::RuntimeStatus(status)) => To::RuntimeStatus(wire::RuntimeStatus {
            conditions: status.conditions.clone(),
            handlers: status.handlers.clone(),
        }),
    };
    wire::CallEnded {
        call: call.0,
        result: Some(result),
        containers_statuses: containers
            .iter()
            .map(|told| container_status(told))
            .collect(),
        timestamp,
        stop_signal,
    }
}

fn subscription_mark(subscription: SubscriptionId) -> wire::Subscription {
    wire::Subscription {
        subscription: subscription.0,
    }
}

fn unjudged(case: CaseRun, skipped: bool, reason: &str) -> wire::Unjudged {
    wire::Unjudged {
        case_run: case.0,
        skipped,
        reason: reason.to_owned(),
    }
}

fn subscription_opened(
    subscription: SubscriptionId,
    observer: Option<&Observer>,
) -> wire::SubscriptionOpened {
    wire::SubscriptionOpened {
        subscription: subscription.0,
        observer: observer.map(self::observer),
    }
}

fn observer(observer: &Observer) -> wire::Observer {
    wire::Observer {
        case_run: observer.case.map(|case| case.0),
        binding: observer.binding.clone(),
        stalls: observer.stalls,
        deadline_ns: observer.deadline.map(nanos),
        unknown_fields: observer.unknown_fields,
        authority: observer.authority.clone(),
    }
}

fn subscription_ended(subscription: SubscriptionId, end: &StreamEnd) -> wire::SubscriptionEnded {
    use wire::subscription_ended::End as To;
    wire::SubscriptionEnded {
        subscription: subscription.0,
        end: Some(match end {
            StreamEnd::Cancelled => To::Cancelled(wire::Empty {}),
            StreamEnd::Closed => To::Closed(wire::Empty {}),
            StreamEnd::Failed(fault) => To::Failed(call_fault(fault)),
        }),
    }
}

fn event_arrived(subscription: SubscriptionId, event: &Event, bytes: u32) -> wire::EventArrived {
    wire::EventArrived {
        subscription: subscription.0,
        bytes,
        container: event.container.to_string(),
        kind: match event.kind {
            EventKind::Created => 0,
            EventKind::Started => 1,
            EventKind::Stopped => 2,
            EventKind::Deleted => 3,
            EventKind::Unknown(number) => number,
        },
        created_at: event.created_at.0,
        sandbox: event.sandbox.as_deref().map(sandbox_status),
        containers: event
            .containers
            .iter()
            .map(|status| container_status(status))
            .collect(),
    }
}

fn call_fault(fault: &CallFault) -> wire::CallFault {
    wire::CallFault {
        code: fault.code.0,
        message: fault.message.clone(),
        deadline_ns: nanos(fault.deadline),
    }
}

fn sandbox_spec(spec: &SandboxSpec) -> wire::SandboxSpec {
    wire::SandboxSpec {
        binding: spec.binding.clone(),
        name: spec.name.clone(),
        namespace: spec.namespace.clone(),
        uid: spec.uid.to_string(),
        attempt: spec.attempt,
        labels: pairs(&spec.labels),
        annotations: pairs(&spec.annotations),
        runtime_handler: spec.runtime_handler.clone(),
        sysctls: pairs(&spec.sysctls),
        own_network: spec.own_network,
        shared_pid: spec.shared_pid,
        cgroup_parent: spec.cgroup_parent.clone(),
        memory_bytes: spec.memory_bytes,
        log_directory: spec.log_directory.clone(),
    }
}

fn container_spec(spec: &ContainerSpec) -> wire::ContainerSpec {
    wire::ContainerSpec {
        sandbox: spec.sandbox.to_string(),
        sandbox_spec: Some(sandbox_spec(&spec.sandbox_spec)),
        binding: spec.binding.clone(),
        attempt: spec.attempt,
        image: spec.image.clone(),
        command: spec.command.clone(),
        name: spec.name.clone(),
        tty: spec.tty,
        declared_exit: spec.declared_exit,
        memory_bytes: spec.memory_bytes,
        labels: pairs(&spec.labels),
        annotations: pairs(&spec.annotations),
        flaw: match spec.flaw {
            None => wire::Flaw::None.into(),
            Some(Flaw::User) => wire::Flaw::User.into(),
            Some(Flaw::Directory) => wire::Flaw::Directory.into(),
            Some(Flaw::Mount) => wire::Flaw::Mount.into(),
            Some(Flaw::CrashAtCreate) => wire::Flaw::CrashAtCreate.into(),
            Some(Flaw::CrashAtStart) => wire::Flaw::CrashAtStart.into(),
            Some(Flaw::CrashAtKill) => wire::Flaw::CrashAtKill.into(),
            Some(Flaw::CrashAtDelete) => wire::Flaw::CrashAtDelete.into(),
        },
        stop_signal: spec.stop_signal.0,
        pid_target: spec.pid_target.as_ref().map(ToString::to_string),
        oom_group: spec.oom_group,
        mounted: spec.mounted,
        log_path: spec.log_path.clone(),
    }
}

fn runtime_version(version: &RuntimeVersion) -> wire::RuntimeVersion {
    wire::RuntimeVersion {
        runtime_name: version.runtime_name.clone(),
        runtime_version: version.runtime_version.clone(),
        api_version: version.api_version.clone(),
    }
}

pub(super) fn pairs(labels: &Labels) -> BTreeMap<String, String> {
    let pairs = labels.iter();
    let pairs = pairs.map(|(key, value)| (key.to_string(), value.to_string()));
    pairs.collect()
}

fn sandbox_metadata(metadata: &SandboxMetadata) -> wire::SandboxMetadata {
    wire::SandboxMetadata {
        name: metadata.name.to_string(),
        uid: metadata.uid.to_string(),
        namespace: metadata.namespace.to_string(),
        attempt: metadata.attempt,
    }
}

fn sandbox_status(status: &SandboxStatus) -> wire::SandboxStatus {
    wire::SandboxStatus {
        id: status.id.to_string(),
        metadata: status.metadata.as_ref().map(sandbox_metadata),
        state: sandbox_state(status.state),
        created_at: status.created_at.0,
        ips: status.ips.clone(),
        labels: pairs(&status.labels),
        annotations: pairs(&status.annotations),
        runtime_handler: status.runtime_handler.clone(),
    }
}

fn container_metadata(metadata: &ContainerMetadata) -> wire::ContainerMetadata {
    wire::ContainerMetadata {
        name: metadata.name.to_string(),
        attempt: metadata.attempt,
    }
}

fn container_status(status: &ContainerStatus) -> wire::ContainerStatus {
    wire::ContainerStatus {
        id: status.id.to_string(),
        metadata: status.metadata.as_ref().map(container_metadata),
        state: container_state(status.state),
        created_at: status.created_at.0,
        started_at: status.started_at.0,
        finished_at: status.finished_at.0,
        exit_code: status.exit_code,
        image: status.image.as_deref().map(str::to_owned),
        image_ref: status.image_ref.to_string(),
        reason: status.reason.to_string(),
        message: status.message.clone(),
        labels: pairs(&status.labels),
        annotations: pairs(&status.annotations),
        details: status.details.as_ref().map(|told| details::to_wire(told)),
    }
}

fn sandbox_listing(listing: &SandboxListing) -> wire::SandboxListing {
    wire::SandboxListing {
        id: listing.id.to_string(),
        metadata: listing.metadata.as_ref().map(sandbox_metadata),
        state: sandbox_state(listing.state),
        created_at: listing.created_at.0,
        labels: pairs(&listing.labels),
    }
}

fn container_listing(listing: &ContainerListing) -> wire::ContainerListing {
    wire::ContainerListing {
        id: listing.id.to_string(),
        sandbox: listing.sandbox.to_string(),
        metadata: listing.metadata.as_ref().map(container_metadata),
        state: container_state(listing.state),
        created_at: listing.created_at.0,
        labels: pairs(&listing.labels),
        image: listing.image.as_deref().map(str::to_owned),
    }
}

fn image_listing(listing: &ImageListing) -> wire::ImageListing {
    wire::ImageListing {
        id: listing.id.clone(),
        tags: listing.tags.clone(),
    }
}

fn sandbox_state(state: SandboxState) -> i32 {
    match state {
        SandboxState::Ready => 0,
        SandboxState::NotReady => 1,
        SandboxState::Unknown(number) => number,
    }
}

fn container_state(state: ContainerState) -> i32 {
    match state {
        ContainerState::Created => 0,
        ContainerState::Running => 1,
        ContainerState::Exited => 2,
        ContainerState::Unknown(number) => number,
    }
}

fn waited(
    case: CaseRun,
    (wanted, met, instead): (&str, bool, &str),
    bound: Duration,
    took: Option<Took>,
) -> wire::Waited {
    wire::Waited {
        case_run: case.0,
        wanted: wanted.to_owned(),
        met,
        bound_ns: nanos(bound),
        took: took.map(self::took),
        instead: instead.to_owned(),
    }
}

fn took(took: Took) -> wire::waited::Took {
    match took {
        Took::Event(time) => wire::waited::Took::EventNs(nanos(time)),
        Took::End(time) => wire::waited::Took::EndNs(nanos(time)),
    }
}

/// Durations here are deadlines and grace periods; one of more than 584 years is written as that.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
