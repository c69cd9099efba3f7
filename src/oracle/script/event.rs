//! Events of a script, with the statuses that they show.

use super::{BEGAN_NS, Container, Extras, Script, Times, shares};
use crate::history::{
    Body, ContainerId, ContainerMetadata, ContainerSetup, ContainerSpec, ContainerState,
    ContainerStatus, Event, EventKind, PodUid, RuntimeNanos, SandboxId, SandboxMetadata,
    SandboxState, SandboxStatus, SubscriptionId,
};

impl Script {
    /// Events: `CREATED`, `STARTED`, `STOPPED`, `DELETED`, `TYPE=9`. For the event: `on=2`
    /// (stream), `id=c.0` (another id), `at=0` (`created_at`; also `s`, `ms`, `us`, `first`,
    /// `last`, `go` for Go's zero time, or a shift such as `+2s`). For its sandbox: `no-sandbox`,
    /// `no-metadata`, `uid=x`, `sandbox=x`, `pod-name=x`, `ip=x`, `ready`, `not-ready`. For its own
    /// status: `exit=`, `reason=`, `state=`, `started=0` and `finished=-1s` (as `at`, of the usual
    /// time), `missing`, `twice`, `present`, and `status-lacks=` an `id`, `metadata`, `image` or
    /// `time`. `ref=x` is its image's reference, from then on; `shares=512` its CPU shares. For a
    /// sibling's: `stale=d:running`, `without=d`.
    pub(super) fn event(&mut self, name: &str, word: &str, extras: &Extras<'_>) {
        let id = self.id_of(name);
        let kind = kind(word);
        let now_ns = self.next_at().realtime_ns;
        if let Some(container) = self.containers.get_mut(id.as_str()) {
            container.show(&id, kind, extras, now_ns);
        }
        let pod = match self.containers.get(id.as_str()) {
            Some(container) => container.spec.sandbox_spec.binding.clone(),
            None => name.to_owned(),
        };
        let mut shown: Vec<_> = self
            .containers
            .values()
            .filter(|container| container.spec.sandbox_spec.binding == pod)
            .filter_map(|container| container.shown.clone())
            .filter(|status| status.id != id || !extras.has("missing"))
            .collect();
        let own = shown.iter().find(|status| status.id == id).cloned();
        shown.extend(own.clone().filter(|_| extras.has("twice")));
        for status in shown.iter_mut().filter(|status| status.id == id) {
            lack(status, extras.value("status-lacks"));
        }
        self.make_stale(&mut shown, extras);
        if let Some(name) = extras.value("without") {
            let other = self.id_of(name);
            shown.retain(|status| status.id != other);
        }
        if name == pod && matches!(kind, EventKind::Stopped | EventKind::Deleted) {
            self.stopped.insert(pod.clone());
        }
        let stream = extras
            .number("on")
            .map(|stream| u32::try_from(stream).expect("a stream"));
        let event = Event {
            container: extras.value("id").map_or(id, ContainerId::from),
            kind,
            created_at: RuntimeNanos(0),
            sandbox: (!extras.has("no-sandbox")).then(|| self.sandbox_status(&pod, extras).into()),
            containers: shown.into_iter().map(Into::into).collect(),
        };
        let subscription = SubscriptionId(stream.unwrap_or(self.stream));
        let bytes = extras.value("bytes").unwrap_or("0");
        self.record(Body::Event {
            subscription,
            event,
            message: vec![0; bytes.parse().expect("a number")].into(),
        });
        let recorded = self.entries.last_mut().expect("just recorded");
        let now_ns = recorded.at.realtime_ns;
        if let Body::Event { event, .. } = &mut recorded.body {
            event.created_at = RuntimeNanos(created_at(extras.value("at"), now_ns));
        }
    }

    pub(super) fn sandbox_metadata(&self, pod: &str) -> SandboxMetadata {
        let spec = self.sandboxes.get(pod);
        let uid = spec.map(|spec| spec.uid.clone());
        SandboxMetadata {
            uid: uid.unwrap_or_else(|| PodUid::from(format!("uid-of-foreign-{pod}"))),
            name: spec.map_or("", |spec| &spec.name).into(),
            ..SandboxMetadata::default()
        }
    }

    pub(super) fn sandbox_status(&self, pod: &str, extras: &Extras<'_>) -> SandboxStatus {
        let mut metadata = self.sandbox_metadata(pod);
        if let Some(uid) = extras.value("uid") {
            metadata.uid = PodUid::from(uid);
        }
        if let Some(name) = extras.value("pod-name") {
            metadata.name = name.into();
        }
        let id = self.id_of(extras.value("sandbox").unwrap_or(pod));
        let stopped = self.stopped.contains(pod) || extras.has("not-ready");
        SandboxStatus {
            id: SandboxId::from(id.as_str()),
            metadata: (!extras.has("no-metadata")).then_some(metadata),
            state: if stopped && !extras.has("ready") {
                SandboxState::NotReady
            } else {
                SandboxState::Ready
            },
            created_at: RuntimeNanos(BEGAN_NS),
            ips: extras.value("ip").into_iter().map(str::to_owned).collect(),
            ..SandboxStatus::default()
        }
    }
}

impl Container {
    /// Updates the container's status in snapshots by an event.
    fn show(&mut self, id: &ContainerId, event: EventKind, extras: &Extras<'_>, now_ns: i64) {
        if event == EventKind::Deleted && !extras.has("present") {
            self.shown = None;
            return;
        }
        let usual_state = match event {
            EventKind::Created => ContainerState::Created,
            EventKind::Started => ContainerState::Running,
            EventKind::Stopped | EventKind::Deleted | EventKind::Unknown(_) => {
                ContainerState::Exited
            }
        };
        let code = extras.number("exit").unwrap_or(0);
        let usual = if code == 0 { "Completed" } else { "Error" };
        let exited = usual_state == ContainerState::Exited;
        let shown = extras.value("state").map_or(usual_state, state);
        let [started_at, finished_at] = self.times.of(shown, extras, now_ns);
        self.shown = Some(ContainerStatus {
            id: id.clone(),
            metadata: Some(metadata(&self.spec)),
            state: shown,
            created_at: RuntimeNanos(self.times.created),
            started_at,
            finished_at,
            exit_code: code,
            image: Some("workload".into()),
            image_ref: extras.value("ref").unwrap_or("sha256:beef").into(),
            reason: extras
                .value("reason")
                .unwrap_or(if exited { usual } else { "" })
                .into(),
            message: extras.value("message").unwrap_or_default().to_owned(),
            setup: ContainerSetup {
                resources: Some(shares(extras.value("shares"))),
                ..ContainerSetup::default()
            }
            .into(),
            ..ContainerStatus::default()
        });
    }
}

pub(super) fn kind(word: &str) -> EventKind {
    match word {
        "CREATED" => EventKind::Created,
        "STARTED" => EventKind::Started,
        "STOPPED" => EventKind::Stopped,
        "DELETED" => EventKind::Deleted,
        _ => {
            let number = word.strip_prefix("TYPE=").expect("an event's word");
            EventKind::Unknown(number.parse().expect("a number"))
        }
    }
}

pub(super) fn state(word: &str) -> ContainerState {
    match word {
        "created" => ContainerState::Created,
        "running" => ContainerState::Running,
        "exited" => ContainerState::Exited,
        "unknown" => ContainerState::Unknown(3),
        _ => panic!("no state: {word}"),
    }
}

pub(super) fn metadata(spec: &ContainerSpec) -> ContainerMetadata {
    ContainerMetadata {
        name: spec.name().into(),
        attempt: spec.attempt,
    }
}

impl Times {
    /// The times at which a container in this state was started and finished.
    pub(super) fn of(
        &mut self,
        state: ContainerState,
        extras: &Extras<'_>,
        now_ns: i64,
    ) -> [RuntimeNanos; 2] {
        let time = |key: &str, is_set: bool, usual_ns: i64| {
            let word = extras.value(key).or((!is_set).then_some("0"));
            RuntimeNanos(created_at(word, usual_ns))
        };
        let exited = state == ContainerState::Exited;
        let was_started = exited || state == ContainerState::Running;
        let started = self.started.unwrap_or(self.created);
        if exited {
            self.finished.get_or_insert(now_ns);
        }
        let finished = self.finished.unwrap_or(started);
        [
            time("started", was_started, started),
            time("finished", exited, finished),
        ]
    }
}

pub(super) fn lack(status: &mut ContainerStatus, what: Option<&str>) {
    match what {
        None => {}
        Some("id") => status.id = ContainerId::default(),
        Some("metadata") => status.metadata = None,
        Some("image") => status.image = None,
        Some("time") => status.created_at = RuntimeNanos(0),
        Some(what) => panic!("no part of a status: {what}"),
    }
}

pub(super) fn created_at(word: Option<&str>, now_ns: i64) -> i64 {
    let span = |text: &str| {
        let span = humantime::parse_duration(text).expect("a time such as 2s");
        i64::try_from(span.as_nanos()).expect("a short time")
    };
    match word {
        None => now_ns,
        Some("0") => 0,
        Some("s") => now_ns / 1_000_000_000,
        Some("ms") => now_ns / 1_000_000,
        Some("us") => now_ns / 1_000,
        Some("first") => i64::MIN,
        Some("last") => i64::MAX,
        Some("go") => -6_795_364_578_871_345_152,
        Some(shift) => match shift.split_at(1) {
            ("+", later) => now_ns + span(later),
            ("-", earlier) => now_ns - span(earlier),
            _ => panic!("no time: {shift}"),
        },
    }
}
