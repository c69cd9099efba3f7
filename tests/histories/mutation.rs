//! A history after a single change, as caused by a runtime with one defect.
//!
//! The order of the entries is their order in the vector: places and times are fixed, and the
//! contents move.
//!
//! Long, because it has every kind of change.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a mutation looks for one kind of entry and passes over all others"
)]

use std::time::Duration;

use cri_event_conformance::testing::history::{
    Body, CallFault, CallId, ContainerId, ContainerState, ContainerStatus, Entry, Event, EventKind,
    HostInstant, Observer, PodUid, Reply, Request, RuntimeNanos, SandboxId, SandboxMetadata,
    SandboxState, SandboxStatus, Seq, Shared, StatusCode, StreamEnd, SubscriptionId,
};

/// Applies the described change, such as `drop STOPPED of c`, where `c#1` would be the second
/// container of that name; or several such changes, joined by `and`.
pub(crate) fn mutate(entries: &mut Vec<Entry>, words: &str) {
    for words in words.split(" and ") {
        mutate_once(entries, words);
    }
}

fn mutate_once(entries: &mut Vec<Entry>, words: &str) {
    let words: Vec<&str> = words.split_whitespace().collect();
    match words[0] {
        "drop" | "repeat" | "swap" => alter(entries, &words),
        "move" => displace(entries, &words),
        "insert" | "replay" => add(entries, &words),
        "observe" => observe(entries, &words),
        "delay" | "hasten" => shift(entries, &words),
        "set" => change(entries, &words),
        "report" => report(entries, &words),
        "answer" => answer(entries, &words),
        "refuse" => refuse(entries, &words),
        _ => panic!("not a mutation: {words:?}"),
    }
    for (place, entry) in entries.iter_mut().enumerate() {
        entry.seq = Seq(place as u64);
    }
}

fn alter(entries: &mut Vec<Entry>, words: &[&str]) {
    match *words {
        ["drop", kind, "of", name] => {
            let place = place(entries, kind, name);
            entries.remove(place);
        }
        ["repeat", kind, "of", name] => {
            let place = place(entries, kind, name);
            entries.insert(place + 1, entries[place].clone());
        }
        ["swap", first, second, "of", name] => {
            let (first, second) = (place(entries, first, name), place(entries, second, name));
            let body = entries[first].body.clone();
            entries[first].body = std::mem::replace(&mut entries[second].body, body);
        }
        _ => panic!("not a mutation: {words:?}"),
    }
}

fn displace(entries: &mut Vec<Entry>, words: &[&str]) {
    let ["move", kind, "of", name, ref whither @ ..] = *words else {
        panic!("not a mutation: {words:?}");
    };
    let moved = entries.remove(place(entries, kind, name));
    let (to, reference) = match *whither {
        ["before", method] => {
            let call = call(entries, method, name);
            (call, call)
        }
        ["behind", other, "of", whose] => {
            let place = place(entries, other, whose);
            (place + 1, place)
        }
        _ => panic!("not a mutation: {words:?}"),
    };
    let at = entries[reference].at;
    entries.insert(to, Entry { at, ..moved });
}

fn add(entries: &mut Vec<Entry>, words: &[&str]) {
    let (to, made) = match *words {
        ["insert", kind, "of", name, "before", other] => {
            let to = place(entries, other, name);
            (to, made_up(entries, to, kind, name))
        }
        ["insert", kind, "of", name, "behind", other] => {
            let to = place(entries, other, name) + 1;
            (to, made_up(entries, to, kind, name))
        }
        ["replay", kind, "of", name, "behind", other, "of", whose] => {
            let mut replayed = entries[place(entries, kind, name)].clone();
            let reference = place(entries, other, whose);
            replayed.at = entries[reference].at;
            *stream(&mut replayed) = *stream(&mut entries[reference]);
            (reference + 1, replayed)
        }
        [
            "insert",
            "end",
            "of",
            "stream",
            "behind",
            other,
            "of",
            whose,
        ] => {
            let reference = place(entries, other, whose);
            let mut ended = entries[reference].clone();
            ended.body = Body::SubscriptionEnded {
                subscription: *stream(&mut entries[reference]),
                end: StreamEnd::Closed,
            };
            (reference + 1, ended)
        }
        _ => panic!("not a mutation: {words:?}"),
    };
    entries.insert(to, made);
}

/// Adds a subscription of the case that delivers only the last of all events.
fn observe(entries: &mut Vec<Entry>, words: &[&str]) {
    let ["observe", "since", kind, "of", name] = *words else {
        panic!("not a mutation: {words:?}");
    };
    let place = place(entries, kind, name);
    let case = entries.iter().find_map(|entry| match entry.body {
        Body::CaseBegan { case, .. } => Some(case),
        _ => None,
    });
    let subscription = SubscriptionId(1_000);
    let observer = Observer {
        case,
        binding: "b".to_owned(),
        ..Observer::default()
    };
    let opened = Body::SubscriptionOpened {
        subscription,
        observer: Some(observer),
    };
    let bodies = [opened, Body::SubscriptionProven { subscription }];
    let reference = entries[place].clone();
    let made = bodies.map(|body| Entry {
        body,
        ..reference.clone()
    });
    let is_event = |entry: &Entry| matches!(entry.body, Body::Event { .. });
    let last = entries.iter().rposition(is_event).expect("there is one");
    let mut passed = entries[last].clone();
    *stream(&mut passed) = subscription;
    entries.insert(last + 1, passed);
    entries.splice(place + 1..=place, made);
}

fn shift(entries: &mut [Entry], words: &[&str]) {
    let [verb, kind, "of", name, "by", span] = *words else {
        panic!("not a mutation: {words:?}");
    };
    let span = humantime::parse_duration(span).expect("a time such as 2s");
    let shifted = if verb == "delay" { later } else { earlier };
    let place = place(entries, kind, name);
    for (nth, entry) in entries[place..].iter_mut().enumerate() {
        entry.at = shifted(entry.at, span);
        // Later events are made later, too.
        if let Body::Event { event, .. } = &mut entry.body
            && nth > 0
            && verb == "delay"
        {
            event.created_at.0 += i64::try_from(span.as_nanos()).expect("a short time");
        }
    }
}

fn change(entries: &mut [Entry], words: &[&str]) {
    let ["set", change, kind, "of", name] = *words else {
        panic!("not a mutation: {words:?}");
    };
    let place = place(entries, kind, name);
    if let Some((whose, other)) = change
        .strip_prefix("snapshot=")
        .and_then(|of| of.split_once('.'))
    {
        let other = self::place(entries, other, whose);
        let stale = event(&mut entries[other]).containers.clone();
        event(&mut entries[place]).containers = stale;
        return;
    }
    let lost = status_before(entries, place);
    let (what, value) = change.split_once('=').expect("a change such as exit=0");
    set(event(&mut entries[place]), lost, what, value);
}

/// Changes one field in every `ContainerStatus` of a container.
fn answer(entries: &mut [Entry], words: &[&str]) {
    let ["answer", change, "of", name] = *words else {
        panic!("not a mutation: {words:?}");
    };
    let id = id_of(entries, name);
    let mut answered = 0;
    for entry in entries {
        let status = match &mut entry.body {
            Body::CallEnded {
                result: Ok(Reply::ContainerStatus(report)),
                ..
            } if report.status.id == id => &mut report.status,
            _ => continue,
        };
        answered += 1;
        match change {
            "mounts=none" => status.setup.mounts.clear(),
            "user=none" => status.setup.user = None,
            "state=created" => status.state = ContainerState::Created,
            _ => panic!("nothing to change: {change}"),
        }
    }
    assert_ne!(answered, 0, "nobody asked about {name}");
}

/// Makes the removal of a sandbox fail.
fn refuse(entries: &mut [Entry], words: &[&str]) {
    let ["refuse", "removal", "of", name] = *words else {
        panic!("not a mutation: {words:?}");
    };
    let removal = Request::RemoveSandbox(SandboxId::from(id_of(entries, name).as_str()));
    let asked = last_call(entries, |request| *request == removal);
    let ended = entries.iter_mut().find_map(|entry| match &mut entry.body {
        Body::CallEnded { call, result, .. } if Some(*call) == asked => Some(result),
        _ => None,
    });
    *ended.expect("it is removed") = Err(CallFault {
        code: StatusCode::UNKNOWN,
        message: "in use".to_owned(),
        deadline: Duration::from_secs(30),
    });
}

fn last_call(entries: &[Entry], is_wanted: impl Fn(&Request) -> bool) -> Option<CallId> {
    entries.iter().rev().find_map(|entry| match &entry.body {
        Body::CallBegan { call, request, .. } => is_wanted(request).then_some(*call),
        _ => None,
    })
}

/// Adds the next statuses of its containers to the last `PodSandboxStatus` of a sandbox.
fn report(entries: &mut [Entry], words: &[&str]) {
    let ["report", what, "of", name] = *words else {
        panic!("not a mutation: {words:?}");
    };
    let status = Request::SandboxStatus(SandboxId::from(id_of(entries, name).as_str()));
    let asked = last_call(entries, |request| *request == status);
    let asked = asked.unwrap_or_else(|| panic!("nobody asked about {name}"));
    let answered = entries
        .iter()
        .position(|entry| matches!(entry.body, Body::CallEnded { call, .. } if call == asked));
    let answered = answered.expect("it was answered");
    let later = entries[answered..].iter();
    let statuses = later.filter_map(|entry| match &entry.body {
        Body::CallEnded {
            result: Ok(Reply::ContainerStatus(report)),
            ..
        } => Some(report.status.clone()),
        _ => None,
    });
    let mut statuses: Vec<_> = statuses.collect();
    statuses.dedup_by(|later, first| later.id == first.id);
    assert_ne!(statuses, [], "{name} has no container then");
    let now_ns = entries[answered].at.realtime_ns;
    let Body::CallEnded {
        result: Ok(Reply::SandboxStatus(report)),
        ..
    } = &mut entries[answered].body
    else {
        panic!("{name} was not reported");
    };
    report.containers = statuses;
    report.timestamp = RuntimeNanos(now_ns);
    match what {
        "all" => {}
        "none" => report.containers.clear(),
        "running" => report.containers[0].state = ContainerState::Running,
        "seconds" => report.timestamp.0 /= 1_000_000_000,
        "untimed" => report.timestamp = RuntimeNanos(0),
        _ => panic!("not a report: {what}"),
    }
}

/// The first 13 characters of an id, its usual short form.
pub(crate) fn shortened(id: &ContainerId) -> ContainerId {
    let first: String = id.as_str().chars().take(13).collect();
    first.into()
}

/// Changes one field of an event.
fn set(event: &mut Event, lost: Option<Shared<ContainerStatus>>, what: &str, value: &str) {
    let number = || value.parse().expect("a number");
    let id = event.container.clone();
    match (what, value) {
        ("type", _) => event.kind = EventKind::Unknown(number()),
        ("id", "short") => event.container = shortened(&event.container),
        ("id", other) => event.container = ContainerId::from(other),
        ("created-at", "seconds") => event.created_at.0 /= 1_000_000_000,
        ("created-at", "zero") => event.created_at = RuntimeNanos(0),
        ("created-at", "earlier") => event.created_at.0 -= 900_000_000,
        ("created-at", "later") => event.created_at.0 += 2_000_000_000,
        ("sandbox", "none") => event.sandbox = None,
        ("metadata", "none") => sandbox(event).metadata = None,
        ("uid", _) => metadata(event).uid = PodUid::from(value),
        ("pod-name", _) => metadata(event).name = value.into(),
        ("sandbox-id", _) => sandbox(event).id = SandboxId::from(value),
        ("sandbox-state", "ready") => sandbox(event).state = SandboxState::Ready,
        ("sandbox-state", "not-ready") => sandbox(event).state = SandboxState::NotReady,
        ("siblings", "none") => event.containers.retain(|status| status.id == id),
        ("own-status", "none") => event.containers.retain(|status| status.id != id),
        ("own-status", "twice") => {
            let own = event.own_status().expect("an own status").clone();
            event.containers.push(own);
        }
        ("own-status", "kept") => event.containers.extend(lost),
        ("exit", _) => own(event).exit_code = number(),
        ("reason", _) => own(event).reason = value.into(),
        ("image", "none") => own(event).image = None,
        ("state", "running") => own(event).state = ContainerState::Running,
        ("state", "created") => own(event).state = ContainerState::Created,
        ("state", "exited") => own(event).state = ContainerState::Exited,
        ("started-at", "none") => own(event).started_at = RuntimeNanos(0),
        ("finished-at", "none") => own(event).finished_at = RuntimeNanos(0),
        _ => panic!("nothing to change: {what}={value}"),
    }
}

fn sandbox(event: &mut Event) -> &mut SandboxStatus {
    event.sandbox.as_mut().expect("a sandbox")
}

fn metadata(event: &mut Event) -> &mut SandboxMetadata {
    sandbox(event).metadata.as_mut().expect("metadata")
}

fn own(event: &mut Event) -> &mut ContainerStatus {
    let own = event
        .containers
        .iter_mut()
        .find(|status| status.id == event.container);
    own.expect("an own status")
}

/// The container's status as the last event about it before a place has shown it.
fn status_before(entries: &mut [Entry], place: usize) -> Option<Shared<ContainerStatus>> {
    let id = event(&mut entries[place]).container.clone();
    entries[..place]
        .iter()
        .rev()
        .find_map(|entry| match &entry.body {
            Body::Event { event, .. } if event.container == id => event.own_status().cloned(),
            _ => None,
        })
}

/// An event that the runtime never sent, derived from the previous one.
fn made_up(entries: &[Entry], to: usize, kind: &str, name: &str) -> Entry {
    let id = id_of(entries, name);
    let earlier = entries[..to].iter().rposition(|entry| is_about(entry, &id));
    let mut made = entries[earlier.expect("an earlier event")].clone();
    made.at = entries[to].at.min(entries[to - 1].at);
    let event = event(&mut made);
    event.kind = kind_of(kind);
    match event.kind {
        EventKind::Stopped => {
            let now = event.created_at;
            *own(event) = exited(entries, &id).unwrap_or_else(|| ContainerStatus {
                state: ContainerState::Exited,
                finished_at: now,
                exit_code: 128,
                ..own(event).clone()
            });
            event.created_at = now.max(own(event).finished_at);
        }
        EventKind::Started => own(event).state = ContainerState::Running,
        EventKind::Deleted => event.containers.retain(|status| status.id != id),
        EventKind::Created | EventKind::Unknown(_) => {}
    }
    made
}

/// The first `ContainerStatus` that shows a container EXITED.
fn exited(entries: &[Entry], id: &ContainerId) -> Option<ContainerStatus> {
    entries.iter().find_map(|entry| match &entry.body {
        Body::CallEnded {
            result: Ok(Reply::ContainerStatus(report)),
            ..
        } => {
            let status = &report.status;
            let is_exited = status.id == *id && status.state == ContainerState::Exited;
            is_exited.then(|| ContainerStatus::clone(status))
        }
        _ => None,
    })
}

/// The index of the first event of this kind about this name.
fn place(entries: &[Entry], kind: &str, name: &str) -> usize {
    let (id, kind) = (id_of(entries, name), kind_of(kind));
    let found = entries.iter().position(|entry| match &entry.body {
        Body::Event { event, .. } => event.container == id && event.kind == kind,
        _ => false,
    });
    found.unwrap_or_else(|| panic!("no {kind} of {name}"))
}

fn is_about(entry: &Entry, id: &ContainerId) -> bool {
    matches!(&entry.body, Body::Event { event, .. } if event.container == *id)
}

/// The index of the begin of a call on this container.
fn call(entries: &[Entry], method: &str, name: &str) -> usize {
    let id = id_of(entries, name);
    let is_on_it = |request: &Request| {
        matches!(
            request,
            Request::StartContainer(on) | Request::StopContainer { container: on, .. } if *on == id
        )
    };
    let found = entries.iter().position(|entry| {
        matches!(&entry.body, Body::CallBegan { request, .. }
            if request.method() == method && is_on_it(request))
    });
    found.unwrap_or_else(|| panic!("no {method} of {name}"))
}

/// The runtime's id for a name of the case: `c#1` is the second `c`.
fn id_of(entries: &[Entry], name: &str) -> ContainerId {
    let (binding, attempt) = match name.split_once('#') {
        Some((binding, attempt)) => (binding, attempt.parse().expect("a number")),
        None => (name, 0),
    };
    let makes_it = |request: &Request| match request {
        Request::RunSandbox(spec) => spec.binding == binding,
        Request::CreateContainer(spec) => spec.binding == binding && spec.attempt == attempt,
        _ => false,
    };
    let call = entries.iter().find_map(|entry| match &entry.body {
        Body::CallBegan { call, request, .. } => makes_it(request).then_some(*call),
        _ => None,
    });
    let call = call.unwrap_or_else(|| panic!("nothing is called {name}"));
    let made = entries.iter().find_map(|entry| match &entry.body {
        Body::CallEnded {
            call: ended,
            result: Ok(Reply::Sandbox(id)),
            ..
        } if *ended == call => Some(ContainerId::from(id)),
        Body::CallEnded {
            call: ended,
            result: Ok(Reply::Container(id)),
            ..
        } if *ended == call => Some(id.clone()),
        _ => None,
    });
    made.unwrap_or_else(|| panic!("{name} was not made"))
}

fn event(entry: &mut Entry) -> &mut Event {
    match &mut entry.body {
        Body::Event { event, .. } => event,
        other => panic!("not an event: {other:?}"),
    }
}

fn stream(entry: &mut Entry) -> &mut SubscriptionId {
    match &mut entry.body {
        Body::Event { subscription, .. } => subscription,
        other => panic!("not an event: {other:?}"),
    }
}

fn kind_of(word: &str) -> EventKind {
    match word {
        "CREATED" => EventKind::Created,
        "STARTED" => EventKind::Started,
        "STOPPED" => EventKind::Stopped,
        "DELETED" => EventKind::Deleted,
        _ => panic!("no event: {word}"),
    }
}

fn later(at: HostInstant, span: Duration) -> HostInstant {
    let ns = u64::try_from(span.as_nanos()).expect("a short time");
    HostInstant {
        monotonic_ns: at.monotonic_ns + ns,
        realtime_ns: at.realtime_ns + ns.cast_signed(),
    }
}

fn earlier(at: HostInstant, span: Duration) -> HostInstant {
    let ns = u64::try_from(span.as_nanos()).expect("a short time");
    HostInstant {
        monotonic_ns: at.monotonic_ns - ns,
        realtime_ns: at.realtime_ns - ns.cast_signed(),
    }
}
