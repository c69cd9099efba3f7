//! Relists with an inspection of each pod, as the Generic PLEG makes them, outdated snapshots, and
//! the ends of streams.

use super::event::{created_at, metadata, state};
use super::{BEGAN_NS, CASE, Extras, Script, Times};
use crate::history::{
    Body, CallFault, CallId, ContainerFilter, ContainerId, ContainerListing, ContainerMetadata,
    ContainerState, ContainerStatus, Labels, Reply, Request, RuntimeNanos, SandboxFilter,
    SandboxId, SandboxListing, SandboxReport, SandboxState, SandboxStatus, StatusCode, StreamEnd,
    SubscriptionId,
};
use crate::pleg::POD_UID_LABEL;
use bytes::Bytes;

/// The label that names a pod, if the words request it: `labelled`.
pub(super) fn own_labels(pod: &str, extras: &Extras<'_>) -> Labels {
    let uid = (POD_UID_LABEL.to_owned(), format!("uid-of-{pod}"));
    extras.has("labelled").then_some(uid).into_iter().collect()
}

impl Script {
    /// `pod inspect c=running d=exited:137` is the inspection of one pod by the case; `run inspect`
    /// with the same words is a relist of all pods, of which there is one, outside the cases; with
    /// `on-demand` it is one of that pod.
    ///
    /// With `unanswered` the calls for statuses fail, with `failing` by an error of the runtime.
    /// `read=+0s`, in the words of an event's `at=`, is the timestamp of the sandbox's status, that
    /// then has the containers, too: `reported=none` leaves them out, `reported=c:running` replaces
    /// the status of one. `ip=x` is the sandbox's address; `not-ready` is its state. A container
    /// that is `c=gone` has no status.
    ///
    /// With `sandbox` only the sandbox's status is requested. Containers are `unlisted`, or listed
    /// and `unasked`, or listed and `missing` when requested; in the same way the sandbox is
    /// `sandbox-unlisted`, `sandbox-unasked` or `sandbox-missing`. With `resubscribe` the stream is
    /// replaced after the lists, and before the statuses are requested; with `created=d` a CREATED
    /// arrives then.
    pub(super) fn inspect(&mut self, name: &str, extras: &Extras<'_>) {
        let of_run = name == "run";
        let pod = if of_run { "pod" } else { name };
        let sandbox = SandboxId::from(self.id_of(pod).as_str());
        let mut status = self.sandbox_status(pod, &Extras(&[]));
        if extras.has("not-ready") {
            status.state = SandboxState::NotReady;
        }
        status.ips = extras.value("ip").into_iter().map(str::to_owned).collect();
        let uid = status.metadata.clone().unwrap_or_default().uid;
        let label = Labels::from([(POD_UID_LABEL.to_owned(), uid.to_string())]);
        let of_all = of_run && !extras.has("on-demand");
        let labels = if of_all { Labels::new() } else { label.clone() };
        let listing = sandbox_listed_as(&status, &label);
        let words = extras.0.iter().filter_map(|word| word.split_once('='));
        let words = words.filter(|(name, _)| !["read", "reported", "ip", "created"].contains(name));
        let (gone, words): (Vec<_>, Vec<_>) = words.partition(|(_, words)| *words == "gone");
        let statuses: Vec<ContainerStatus> = words
            .into_iter()
            .map(|(name, words)| self.snapshot(name, words))
            .collect();
        let in_a_list = |status| listed_as(status, &sandbox, &label);
        let listed = statuses.iter().map(in_a_list);
        let listed = listed.filter(|_| !extras.has("unlisted"));
        let listed = Reply::Containers(listed.collect());
        let is_listed = !extras.has("sandbox-unlisted");
        let listing = is_listed.then_some(listing);
        self.ask(
            of_run,
            Request::sandboxes(labels.clone()),
            Ok(Reply::Sandboxes(listing.into_iter().collect())),
        );
        if extras.has("sandbox") {
            let reply = Ok(Reply::SandboxStatus(status.into()));
            return self.ask(of_run, Request::SandboxStatus(sandbox), reply);
        }
        let list = Request::containers((!of_run).then(|| sandbox.clone()), labels);
        self.ask(of_run, list, Ok(listed));
        self.after_the_lists(extras);
        let fault = |word: &str, code| extras.has(word).then(|| refused(code));
        let refusal = fault("unanswered", StatusCode::UNAVAILABLE);
        let refusal = refusal.or_else(|| fault("failing", StatusCode::UNKNOWN));
        let answer = |missing: &str, reply| {
            let fault = fault(missing, StatusCode::NOT_FOUND);
            fault.or(refusal.clone()).map_or(Ok(reply), Err)
        };
        let report = Reply::SandboxStatus(self.report(status, &statuses, extras));
        let report = answer("sandbox-missing", report);
        if is_listed && !extras.has("sandbox-unasked") {
            self.ask(of_run, Request::SandboxStatus(sandbox), report);
        }
        for status in statuses.into_iter().filter(|_| !extras.has("unasked")) {
            let request = Request::ContainerStatus(status.id.clone());
            let report = Reply::ContainerStatus(status.into());
            self.ask(of_run, request, answer("missing", report));
        }
        for (name, _) in gone {
            let request = Request::ContainerStatus(self.id_of(name));
            self.ask(of_run, request, Err(refused(StatusCode::NOT_FOUND)));
        }
    }

    fn after_the_lists(&mut self, extras: &Extras<'_>) {
        if extras.has("resubscribe") {
            self.resubscribe();
        }
        if let Some(created) = extras.value("created") {
            self.event(created, "CREATED", &Extras(&[]));
        }
    }

    fn report(
        &mut self,
        status: SandboxStatus,
        statuses: &[ContainerStatus],
        extras: &Extras<'_>,
    ) -> SandboxReport {
        let read = extras.value("read");
        let reported = extras.value("reported");
        let mut containers = statuses.to_vec();
        if let Some((name, word)) = reported.and_then(|reported| reported.split_once(':')) {
            let replaced = self.snapshot(name, word);
            containers.retain(|status| status.id != replaced.id);
            containers.push(replaced);
        }
        if read.is_none() || reported == Some("none") {
            containers.clear();
        }
        let now_ns = self.entries.last().map_or(0, |entry| entry.at.realtime_ns);
        SandboxReport {
            containers: containers.into_iter().map(Into::into).collect(),
            timestamp: RuntimeNanos(read.map_or(0, |read| created_at(Some(read), now_ns))),
            ..status.into()
        }
    }

    /// `stale=d:running` puts an outdated status of a sibling into a snapshot.
    pub(super) fn make_stale(&mut self, shown: &mut Vec<ContainerStatus>, extras: &Extras<'_>) {
        if let Some((name, word)) = extras
            .value("stale")
            .and_then(|stale| stale.split_once(':'))
        {
            let stale = self.snapshot(name, word);
            shown.retain(|status| status.id != stale.id);
            shown.push(stale);
        }
    }

    /// `resubscribe` cancels the stream and opens another one.
    pub(super) fn resubscribe(&mut self) {
        self.unsubscribe();
        self.subscribe();
    }

    /// `unsubscribe` cancels the stream.
    pub(super) fn unsubscribe(&mut self) {
        let subscription = SubscriptionId(self.stream);
        let end = StreamEnd::Cancelled;
        self.record(Body::SubscriptionEnded { subscription, end });
    }

    /// `subscribe` opens another stream.
    pub(super) fn subscribe(&mut self) {
        self.stream += 1;
        self.record(Body::SubscriptionOpened {
            subscription: SubscriptionId(self.stream),
            observer: None,
        });
    }

    /// `stream ends` with OK; `stream ends UNAVAILABLE` with that code, or with another fault.
    pub(super) fn end_stream(&mut self, how: &[&str]) {
        let end = match how {
            [] => StreamEnd::Closed,
            _ => StreamEnd::Failed(CallFault {
                code: StatusCode::UNAVAILABLE,
                message: how.join(" "),
                deadline: std::time::Duration::ZERO,
            }),
        };
        let subscription = SubscriptionId(self.stream);
        self.record(Body::SubscriptionEnded { subscription, end });
    }

    /// The containers in the answer of a list, `c=running`, or the sandboxes, `pod=ready`.
    pub(super) fn found(&mut self, request: &Request, extras: &Extras<'_>) -> Reply {
        let words = extras.0.iter().filter_map(|word| word.split_once('='));
        let words = words.filter(|(name, _)| *name != "state");
        if let Request::FindSandboxes(_) = request {
            let listing = |(name, word): (&str, &str)| SandboxListing {
                id: SandboxId::from(self.id_of(name).as_str()),
                metadata: Some(self.sandbox_metadata(name)),
                state: sandbox_state(word),
                created_at: RuntimeNanos(BEGAN_NS),
                ..SandboxListing::default()
            };
            return Reply::Sandboxes(words.map(listing).collect());
        }
        let sandbox = match request {
            Request::ListContainers { sandbox, .. } => sandbox.clone(),
            _ => None,
        };
        let statuses = words.map(|(name, word)| self.snapshot(name, word));
        let statuses: Vec<_> = statuses.collect();
        let listing = |status: &ContainerStatus| {
            let container = self.containers.get(status.id.as_str());
            let own = container.map(|container| container.spec.sandbox.clone());
            let sandbox = own.or_else(|| sandbox.clone()).unwrap_or_default();
            listed_as(status, &sandbox, &Labels::new())
        };
        Reply::Containers(statuses.iter().map(listing).collect())
    }

    fn ask(&mut self, of_run: bool, request: Request, result: Result<Reply, CallFault>) {
        self.calls.push((String::new(), request.clone()));
        let call = CallId(self.calls.len() as u64);
        self.record(Body::CallBegan {
            call,
            case: (!of_run).then_some(CASE),
            request,
            message: Bytes::new(),
        });
        self.record(Body::CallEnded {
            call,
            result,
            message: Bytes::new(),
        });
    }
}

/// `c find` by the id of a container, `pod find` by a sandbox, `pod find-sandbox` by its id; each
/// with `state=running`, and `streamed`. The answer follows, as in `relist`.
pub(super) fn find(name: &str, word: &str, id: &ContainerId, extras: &Extras<'_>) -> Request {
    let sandbox = SandboxId::from(id.as_str());
    let wanted = extras.value("state");
    let streamed = extras.has("streamed");
    if word == "find-sandbox" {
        return Request::FindSandboxes(SandboxFilter {
            id: Some(sandbox),
            state: wanted.map(sandbox_state),
            streamed,
            ..SandboxFilter::default()
        });
    }
    let of_pod = name.starts_with("pod");
    Request::FindContainers(ContainerFilter {
        id: (!of_pod).then(|| id.clone()),
        sandbox: of_pod.then_some(sandbox),
        state: wanted.map(state),
        streamed,
        ..ContainerFilter::default()
    })
}

fn sandbox_listed_as(status: &SandboxStatus, labels: &Labels) -> SandboxListing {
    SandboxListing {
        id: status.id.clone(),
        metadata: status.metadata.clone(),
        state: status.state,
        created_at: status.created_at,
        labels: labels.clone(),
        ..SandboxListing::default()
    }
}

fn listed_as(status: &ContainerStatus, sandbox: &SandboxId, labels: &Labels) -> ContainerListing {
    ContainerListing {
        id: status.id.clone(),
        sandbox: sandbox.clone(),
        metadata: status.metadata.clone(),
        state: status.state,
        created_at: status.created_at,
        labels: labels.clone(),
        image: status.image.clone(),
        image_ref: status.image_ref.clone(),
        ..ContainerListing::default()
    }
}

fn sandbox_state(word: &str) -> SandboxState {
    match word {
        "ready" => SandboxState::Ready,
        "notready" => SandboxState::NotReady,
        _ => panic!("no state of a sandbox: {word}"),
    }
}

pub(super) fn refused(code: StatusCode) -> CallFault {
    CallFault {
        code,
        message: "gone".to_owned(),
        deadline: std::time::Duration::from_secs(30),
    }
}

impl Script {
    /// `running`, `exited:137` with an exit code, or `exited:137:why` with a message, too.
    fn snapshot(&mut self, name: &str, words: &str) -> ContainerStatus {
        let id = self.id_of(name);
        let now_ns = self.next_at().realtime_ns;
        let container = self.containers.get_mut(id.as_str());
        let metadata = container
            .as_ref()
            .map(|container| metadata(&container.spec));
        let mut unknown = Times {
            created: BEGAN_NS,
            ..Times::default()
        };
        let times = container.map_or(&mut unknown, |container| &mut container.times);
        let (word, rest) = words.split_once(':').unwrap_or((words, "0"));
        let (code, message) = rest.split_once(':').unwrap_or((rest, ""));
        let (state, exit_code) = (state(word), code.parse().expect("an exit code"));
        let reason = match (state, exit_code) {
            (ContainerState::Exited, 0) => "Completed",
            (ContainerState::Exited, _) => "Error",
            _ => "",
        };
        let [started_at, finished_at] = times.of(state, &Extras(&[]), now_ns);
        ContainerStatus {
            id,
            metadata: metadata.or_else(|| Some(ContainerMetadata::default())),
            state,
            created_at: RuntimeNanos(times.created),
            started_at,
            finished_at,
            exit_code,
            image: Some("workload".into()),
            image_ref: "sha256:beef".into(),
            reason: reason.into(),
            message: message.to_owned(),
            ..ContainerStatus::default()
        }
    }
}
