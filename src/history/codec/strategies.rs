//! Arbitrary entries, for property tests. Every kind of body, request and reply can come up.

mod details;
mod filters;
mod run;

use std::sync::Arc;
use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::sample::select;

pub(super) use run::run_info;
use run::run_plan;

use crate::history::{
    Aside, Body, CallFault, CallId, CaseRun, ContainerId, ContainerListing, ContainerMetadata,
    ContainerReport, ContainerSpec, ContainerState, ContainerStatus, Entry, Event, EventKind, Flaw,
    HostFact, HostInstant, ImageListing, Labels, Observer, PodUid, Reply, Request, RunEnd,
    RuntimeNanos, RuntimeStatus, RuntimeVersion, SandboxId, SandboxListing, SandboxMetadata,
    SandboxReport, SandboxSpec, SandboxState, SandboxStatus, Seq, Signal, StatusCode, StepsEnd,
    StreamEnd, SubscriptionId, Took,
};

pub(super) fn entry() -> impl Strategy<Value = Entry> {
    (any::<u64>(), any::<u64>(), any::<i64>(), body()).prop_map(
        |(seq, monotonic_ns, realtime_ns, body)| Entry {
            seq: Seq(seq),
            at: HostInstant {
                monotonic_ns,
                realtime_ns,
            },
            body,
        },
    )
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        run_info().prop_map(|info| Body::RunBegan(info.into())),
        (case(), text(), text(), any::<u32>()).prop_map(
            |(case, id, definition, timeout_percent)| Body::CaseBegan {
                case,
                id,
                definition,
                timeout_percent,
            }
        ),
        (case(), steps_end()).prop_map(|(case, end)| Body::StepsEnded { case, end }),
        case().prop_map(|case| Body::CaseEnded { case }),
        (any::<u64>(), option::of(case()), request()).prop_map(|(call, case, request)| {
            Body::CallBegan {
                call: CallId(call),
                case,
                request,
            }
        }),
        (any::<u64>(), result()).prop_map(|(call, result)| Body::CallEnded {
            call: CallId(call),
            result
        }),
        (stream(), option::of(observer())).prop_map(|(subscription, observer)| {
            Body::SubscriptionOpened {
                subscription,
                observer,
            }
        }),
        stream().prop_map(|subscription| Body::SubscriptionAnswered { subscription }),
        stream().prop_map(|subscription| Body::SubscriptionProven { subscription }),
        (stream(), stream_end())
            .prop_map(|(subscription, end)| Body::SubscriptionEnded { subscription, end }),
        (stream(), event(), any::<u32>()).prop_map(|(subscription, event, bytes)| Body::Event {
            subscription,
            event,
            bytes,
        }),
        waited(),
        (case(), any::<u64>()).prop_map(|(case, count)| Body::Fact {
            case,
            fact: HostFact::OomKills(count)
        }),
        run_plan().prop_map(|plan| Body::RunPlanned(Arc::new(plan))),
        (case(), any::<bool>(), text()).prop_map(|(case, skipped, reason)| Body::Unjudged {
            case,
            skipped,
            reason
        }),
        Just(Body::CasesEnded),
        duration().prop_map(|by| Body::HeldUp { by }),
        (any::<bool>(), vec(text(), 0..3))
            .prop_map(|(removed, faults)| Body::RunEnded(RunEnd { removed, faults })),
    ]
}

fn waited() -> impl Strategy<Value = Body> {
    (
        case(),
        text(),
        any::<bool>(),
        duration(),
        option::of(took()),
        text(),
    )
        .prop_map(|(case, wanted, met, bound, took, instead)| Body::Waited {
            case,
            wanted,
            met,
            bound,
            took,
            instead,
        })
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        Just(Request::Version),
        Just(Request::ListImages),
        sandbox_spec().prop_map(|spec| Request::RunSandbox(Arc::new(spec))),
        container_spec().prop_map(|spec| Request::CreateContainer(Arc::new(spec))),
        sandbox().prop_map(Request::StopSandbox),
        sandbox().prop_map(Request::RemoveSandbox),
        sandbox().prop_map(Request::SandboxStatus),
        labels().prop_map(Request::ListSandboxes),
        container().prop_map(Request::StartContainer),
        container().prop_map(Request::RemoveContainer),
        container().prop_map(Request::ContainerStatus),
        (container(), duration())
            .prop_map(|(container, grace)| Request::StopContainer { container, grace }),
        (option::of(sandbox()), labels())
            .prop_map(|(sandbox, labels)| Request::ListContainers { sandbox, labels }),
        Just(Request::RuntimeStatus),
        filters::find_sandboxes(),
        filters::find_containers(),
        text().prop_map(Request::ImageStatus),
        text().prop_map(Request::PullImage),
        text().prop_map(Request::RemoveImage),
        (container(), vec(text(), 0..3), duration()).prop_map(|(container, command, timeout)| {
            Request::ExecSync {
                container,
                command,
                timeout,
            }
        }),
        (select(Aside::ALL), text()).prop_map(|(aside, id)| Request::Aside(aside, id)),
    ]
}

fn runtime_status() -> impl Strategy<Value = RuntimeStatus> {
    (vec(text(), 0..3), vec(text(), 0..3)).prop_map(|(conditions, handlers)| RuntimeStatus {
        conditions,
        handlers,
    })
}

fn result() -> impl Strategy<Value = Result<Reply, CallFault>> {
    prop_oneof![
        call_fault().prop_map(Err),
        Just(Ok(Reply::Done)),
        runtime_version().prop_map(|version| Ok(Reply::Version(version))),
        sandbox().prop_map(|id| Ok(Reply::Sandbox(id))),
        container().prop_map(|id| Ok(Reply::Container(id))),
        sandbox_report().prop_map(|report| Ok(Reply::SandboxStatus(report))),
        container_report().prop_map(|report| Ok(Reply::ContainerStatus(report))),
        vec(sandbox_listing(), 0..3).prop_map(|listed| Ok(Reply::Sandboxes(listed))),
        vec(container_listing(), 0..3).prop_map(|listed| Ok(Reply::Containers(listed))),
        option::of(image_listing()).prop_map(|image| Ok(Reply::Image(image))),
        text().prop_map(|image| Ok(Reply::Pulled(image))),
        vec(image_listing(), 0..3).prop_map(|listed| Ok(Reply::Images(listed))),
        any::<i32>().prop_map(|code| Ok(Reply::Exec(code))),
        runtime_status().prop_map(|status| Ok(Reply::RuntimeStatus(status))),
    ]
}

fn steps_end() -> impl Strategy<Value = StepsEnd> {
    prop_oneof![
        Just(StepsEnd::Complete),
        Just(StepsEnd::Unmet),
        text().prop_map(StepsEnd::Inconclusive),
        text().prop_map(StepsEnd::NotApplicable),
        text().prop_map(StepsEnd::Error),
    ]
}

fn took() -> impl Strategy<Value = Took> {
    prop_oneof![
        duration().prop_map(Took::Event),
        duration().prop_map(Took::End),
    ]
}

fn stream_end() -> impl Strategy<Value = StreamEnd> {
    prop_oneof![
        Just(StreamEnd::Cancelled),
        Just(StreamEnd::Closed),
        call_fault().prop_map(StreamEnd::Failed),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let kind = prop_oneof![
        Just(EventKind::Created),
        Just(EventKind::Started),
        Just(EventKind::Stopped),
        Just(EventKind::Deleted),
        undefined(4).prop_map(EventKind::Unknown),
    ];
    let sandbox = option::of(sandbox_status());
    let containers = vec(container_status(), 0..3);
    (container(), kind, time(), sandbox, containers).prop_map(
        |(container, kind, created_at, sandbox, containers)| Event {
            container,
            kind,
            created_at,
            sandbox: sandbox.map(Into::into),
            containers: containers.into_iter().map(Into::into).collect(),
        },
    )
}

fn sandbox_spec() -> impl Strategy<Value = SandboxSpec> {
    let names = (text(), text(), text(), text(), text());
    let rest = (any::<u32>(), any::<bool>(), any::<bool>());
    let rest = (rest, text(), option::of(any::<u64>()), text());
    (names, rest, labels(), labels(), labels()).prop_map(
        |((binding, name, namespace, uid, handler), rest, labels, notes, sysctls)| SandboxSpec {
            binding,
            name,
            namespace,
            uid: PodUid::from(uid),
            attempt: rest.0.0,
            labels,
            annotations: notes,
            runtime_handler: handler,
            sysctls,
            own_network: rest.0.1,
            shared_pid: rest.0.2,
            cgroup_parent: rest.1,
            memory_bytes: rest.2,
            log_directory: rest.3,
        },
    )
}

fn container_spec() -> impl Strategy<Value = ContainerSpec> {
    let place = (sandbox(), sandbox_spec(), text(), any::<u32>(), text());
    let crashes = Flaw::CRASHES.map(|(flaw, _)| flaw);
    let flaw = select([&[Flaw::User, Flaw::Directory, Flaw::Mount], &crashes[..]].concat());
    let limits = (
        option::of(any::<i32>()),
        option::of(any::<u64>()),
        option::of(text()),
        any::<bool>(),
        option::of(flaw),
        any::<i32>().prop_map(Signal),
        option::of(container()),
        any::<bool>(),
        (any::<bool>(), text()),
    );
    (place, vec(text(), 0..3), limits, labels(), labels()).prop_map(
        |((sandbox, sandbox_spec, binding, attempt, image), command, limits, labels, notes)| {
            ContainerSpec {
                sandbox,
                sandbox_spec: Arc::new(sandbox_spec),
                binding,
                attempt,
                image,
                command,
                declared_exit: limits.0,
                memory_bytes: limits.1,
                name: limits.2,
                tty: limits.3,
                labels,
                annotations: notes,
                flaw: limits.4,
                stop_signal: limits.5,
                pid_target: limits.6,
                oom_group: limits.7,
                mounted: limits.8.0,
                log_path: limits.8.1,
            }
        },
    )
}

fn sandbox_report() -> impl Strategy<Value = SandboxReport> {
    let containers = vec(container_status(), 0..3);
    (sandbox_status(), containers, time()).prop_map(|(status, containers, timestamp)| {
        SandboxReport {
            status: status.into(),
            containers: containers.into_iter().map(Into::into).collect(),
            timestamp,
        }
    })
}

fn container_report() -> impl Strategy<Value = ContainerReport> {
    (container_status(), any::<i32>()).prop_map(|(status, signal)| ContainerReport {
        status: status.into(),
        stop_signal: Signal(signal),
    })
}

fn sandbox_status() -> impl Strategy<Value = SandboxStatus> {
    let metadata = option::of(sandbox_metadata());
    let what = (sandbox(), metadata, sandbox_state(), time());
    (what, vec(text(), 0..3), labels(), labels(), text()).prop_map(
        |((id, metadata, state, created_at), ips, labels, annotations, runtime_handler)| {
            SandboxStatus {
                id,
                metadata,
                state,
                created_at,
                ips,
                labels,
                annotations,
                runtime_handler,
            }
        },
    )
}

fn container_status() -> impl Strategy<Value = ContainerStatus> {
    let metadata = option::of(container_metadata());
    let what = (container(), metadata, container_state(), any::<i32>());
    let times = (time(), time(), time());
    let texts = (option::of(text()), text(), text(), text());
    let details = option::of(details::details());
    (what, times, texts, (labels(), labels()), details).prop_map(
        |(what, times, texts, (labels, annotations), details)| ContainerStatus {
            id: what.0,
            metadata: what.1,
            state: what.2,
            created_at: times.0,
            started_at: times.1,
            finished_at: times.2,
            exit_code: what.3,
            image: texts.0.map(Into::into),
            image_ref: texts.1.into(),
            reason: texts.2.into(),
            message: texts.3,
            labels,
            annotations,
            details: details.map(Into::into),
        },
    )
}

fn sandbox_listing() -> impl Strategy<Value = SandboxListing> {
    let metadata = option::of(sandbox_metadata());
    (sandbox(), metadata, sandbox_state(), time(), labels()).prop_map(
        |(id, metadata, state, created_at, labels)| SandboxListing {
            id,
            metadata,
            state,
            created_at,
            labels,
        },
    )
}

fn container_listing() -> impl Strategy<Value = ContainerListing> {
    let metadata = option::of(container_metadata());
    let ids = (container(), sandbox(), option::of(text()));
    (ids, metadata, container_state(), time(), labels()).prop_map(
        |((id, sandbox, image), metadata, state, created_at, labels)| ContainerListing {
            id,
            sandbox,
            metadata,
            state,
            created_at,
            labels,
            image: image.map(Into::into),
        },
    )
}

fn image_listing() -> impl Strategy<Value = ImageListing> {
    (text(), vec(text(), 0..3)).prop_map(|(id, tags)| ImageListing { id, tags })
}

fn sandbox_metadata() -> impl Strategy<Value = SandboxMetadata> {
    (text(), text(), text(), any::<u32>()).prop_map(|(name, uid, namespace, attempt)| {
        SandboxMetadata {
            name: name.into(),
            uid: PodUid::from(uid),
            namespace: namespace.into(),
            attempt,
        }
    })
}

fn container_metadata() -> impl Strategy<Value = ContainerMetadata> {
    (text(), any::<u32>()).prop_map(|(name, attempt)| {
        let name = name.into();
        ContainerMetadata { name, attempt }
    })
}

fn runtime_version() -> impl Strategy<Value = RuntimeVersion> {
    (text(), text(), text()).prop_map(|(runtime_name, runtime_version, api_version)| {
        RuntimeVersion {
            runtime_name,
            runtime_version,
            api_version,
        }
    })
}

fn call_fault() -> impl Strategy<Value = CallFault> {
    (any::<i32>(), text(), duration()).prop_map(|(code, message, deadline)| CallFault {
        code: StatusCode(code),
        message,
        deadline,
    })
}

fn sandbox_state() -> impl Strategy<Value = SandboxState> {
    prop_oneof![
        Just(SandboxState::Ready),
        Just(SandboxState::NotReady),
        undefined(2).prop_map(SandboxState::Unknown),
    ]
}

fn container_state() -> impl Strategy<Value = ContainerState> {
    prop_oneof![
        Just(ContainerState::Created),
        Just(ContainerState::Running),
        Just(ContainerState::Exited),
        undefined(3).prop_map(ContainerState::Unknown),
    ]
}

/// A number of an enum that defines those from 0 to below `count`.
fn undefined(count: i32) -> impl Strategy<Value = i32> {
    prop_oneof![count..i32::MAX, i32::MIN..0]
}

fn case() -> impl Strategy<Value = CaseRun> {
    any::<u32>().prop_map(CaseRun)
}

fn observer() -> impl Strategy<Value = Observer> {
    let parts = (
        option::of(case()),
        text(),
        any::<bool>(),
        option::of(duration()),
        any::<bool>(),
        option::of(text()),
    );
    parts.prop_map(
        |(case, binding, stalls, deadline, unknown_fields, authority)| Observer {
            case,
            binding,
            stalls,
            deadline,
            unknown_fields,
            authority,
        },
    )
}

fn stream() -> impl Strategy<Value = SubscriptionId> {
    any::<u32>().prop_map(SubscriptionId)
}

fn sandbox() -> impl Strategy<Value = SandboxId> {
    text().prop_map(SandboxId::from)
}

fn container() -> impl Strategy<Value = ContainerId> {
    text().prop_map(ContainerId::from)
}

fn time() -> impl Strategy<Value = RuntimeNanos> {
    any::<i64>().prop_map(RuntimeNanos)
}

fn duration() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_nanos)
}

fn labels() -> impl Strategy<Value = Labels> {
    btree_map(text(), text(), 0..3).prop_map(Labels::from_iter)
}

fn text() -> impl Strategy<Value = String> {
    vec(any::<char>(), 0..6).prop_map(String::from_iter)
}
