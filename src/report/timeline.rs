//! History entries as lines of text: number, time, lane and description.
//!
//! ```text
//!      #41     +1.203  rpc     StartContainer c (3f2a9c81d0e4b) → ok in 35.1 ms
//! >    #42     +1.204  event   STARTED c  pod READY  [c RUNNING, d EXITED 0]  lag 0.6 ms
//! ```
//!
//! One entry is one line. The second column counts seconds by the monotonic clock. The third is the
//! lane: `rpc` for calls that change state, `relist` for read-only calls, `event`, and `stream`,
//! `wait`, `fact`, `case` and `run` for the rest. Names are those of the case, as soon as any of
//! the entries binds an id to a name; other ids are truncated as by `crictl`. Text holds no colours
//! and no control characters.

mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use words::{
    MESSAGE, asked_for, container_state, list, run_began, run_ended, run_planned, steps_end,
    stream_end, unjudged,
};

use super::printable::{cut, short_id, short_ids, signed_span, span};
use crate::history::{
    Body, CallFault, CallId, CaseRun, ContainerId, ContainerStatus, Entry, Event, HostInstant,
    Labels, Reply, Request, SandboxReport, SandboxStatus, Seq, Shared, SubscriptionId,
};

pub(super) use words::{Brief, attempted};

/// The entries as lines; those in `marked` begin with `>`.
pub fn timeline<'a, I>(start: HostInstant, entries: I, marked: &[Seq]) -> Vec<String>
where
    I: IntoIterator<Item = &'a Entry> + Clone,
{
    let timeline = Timeline::new(start, entries.clone());
    let line = |entry: &Entry| timeline.line(entry, marked.contains(&entry.seq));
    entries.into_iter().map(line).collect()
}

/// The context for rendering the lines of a history: names and calls.
#[derive(Clone, Debug)]
pub struct Timeline<'a> {
    start: HostInstant,
    calls: BTreeMap<CallId, Begun<'a>>,
    names: BTreeMap<&'a str, String>,
    cases: BTreeSet<CaseRun>,
    streams: BTreeSet<SubscriptionId>,
}

#[derive(Clone, Copy, Debug)]
struct Begun<'a> {
    at: HostInstant,
    case: Option<CaseRun>,
    request: &'a Request,
}

impl<'a> Timeline<'a> {
    /// Collects names and calls from entries. Times are relative to `start`.
    pub fn new(start: HostInstant, entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut timeline = Self {
            start,
            calls: BTreeMap::new(),
            names: BTreeMap::new(),
            cases: BTreeSet::new(),
            streams: BTreeSet::new(),
        };
        let mut named = Vec::new();
        for entry in entries {
            timeline.learn(entry, &mut named);
        }
        // Only now is it known whether the names of several cases must be distinguished.
        for (id, name, case) in named {
            let name = timeline.qualified(name, case);
            timeline.names.entry(id).or_insert(name);
        }
        timeline
    }

    /// The entry as one line, without a line break.
    pub fn line(&self, entry: &Entry, marked: bool) -> String {
        let mark = if marked { '>' } else { ' ' };
        let seq = format!("#{}", entry.seq);
        let at = self.time(entry);
        let (lane, text) = self.describe(entry);
        format!("{mark} {seq:>6} {at:>10}  {lane:<6}  {text}")
    }

    fn learn(&mut self, entry: &'a Entry, named: &mut Vec<(&'a str, String, Option<CaseRun>)>) {
        match &entry.body {
            Body::CallBegan {
                call,
                case,
                request,
                ..
            } => {
                let begun = Begun {
                    at: entry.at,
                    case: *case,
                    request,
                };
                self.calls.insert(*call, begun);
                self.cases.extend(*case);
                if let Request::CreateContainer(spec) = request {
                    let name = cut(&spec.sandbox_spec.binding, MESSAGE);
                    named.push((spec.sandbox.as_str(), name, *case));
                }
            }
            Body::CallEnded {
                call,
                result: Ok(reply),
                ..
            } => {
                let begun = self.calls.get(call);
                named.extend(begun.and_then(|begun| begun.names(reply)));
            }
            Body::CaseBegan { case, .. } => {
                self.cases.insert(*case);
            }
            Body::Event { subscription, .. } | Body::SubscriptionOpened { subscription, .. } => {
                self.streams.insert(*subscription);
            }
            Body::RunBegan(_)
            | Body::StepsEnded { .. }
            | Body::CaseEnded { .. }
            | Body::CallEnded { .. }
            | Body::SubscriptionAnswered { .. }
            | Body::SubscriptionProven { .. }
            | Body::SubscriptionEnded { .. }
            | Body::Waited { .. }
            | Body::Fact { .. }
            | Body::RunPlanned(_)
            | Body::Unjudged { .. }
            | Body::CasesEnded
            | Body::HeldUp { .. }
            | Body::RunEnded(_) => {}
        }
    }

    /// Its lane and its description, without number and time.
    pub(super) fn describe(&self, entry: &Entry) -> (&'static str, String) {
        match &entry.body {
            Body::RunBegan(info) => ("run", run_began(info, entry.at)),
            Body::CaseBegan { case, id, .. } => {
                ("case", format!("{case} begins: {}", cut(id, MESSAGE)))
            }
            Body::StepsEnded { case, end } => (
                "case",
                format!("{case} {}; teardown begins", steps_end(end)),
            ),
            Body::CaseEnded { case } => ("case", format!("{case} ends")),
            Body::CallBegan {
                call,
                case,
                request,
                ..
            } => {
                let request_text = self.request(request, *case);
                (lane(request), format!("{request_text} called, call {call}"))
            }
            Body::CallEnded { call, result, .. } => self.call_ended(*call, result, entry.at),
            Body::SubscriptionOpened {
                subscription,
                observer,
            } => ("stream", asked_for(*subscription, observer.as_ref())),
            Body::SubscriptionAnswered { subscription } => {
                ("stream", format!("{subscription} answered"))
            }
            Body::SubscriptionProven { subscription } => {
                ("stream", format!("{subscription} proven live"))
            }
            Body::SubscriptionEnded { subscription, end } => {
                ("stream", format!("{subscription} {}", stream_end(end)))
            }
            Body::Event {
                subscription,
                event,
                ..
            } => {
                let stream = if self.streams.len() > 1 {
                    format!(", stream {subscription}")
                } else {
                    String::new()
                };
                ("event", format!("{}{stream}", self.event(event, entry.at)))
            }
            Body::Waited {
                case,
                wanted,
                met,
                bound,
                instead,
                ..
            } => ("wait", self.waited(*case, (wanted, *met, instead), *bound)),
            Body::Fact { fact, .. } => ("fact", fact.to_string()),
            Body::RunPlanned(plan) => ("run", run_planned(plan)),
            Body::Unjudged {
                case,
                skipped,
                reason,
            } => ("case", format!("{case} {}", unjudged(*skipped, reason))),
            Body::CasesEnded => ("run", "all cases are over; clean-up begins".to_owned()),
            Body::HeldUp { by } => ("run", format!("the suite itself was held up for {by:?}")),
            Body::RunEnded(end) => ("run", run_ended(end)),
        }
    }

    fn waited(
        &self,
        case: CaseRun,
        (wanted, met, instead): (&str, bool, &str),
        bound: Duration,
    ) -> String {
        let wanted = self.qualified(cut(&short_ids(wanted), MESSAGE), Some(case));
        let met = if met { "came" } else { "did NOT come" };
        let bound = humantime::format_duration(bound);
        let instead = cut(instead, MESSAGE);
        let colon = if instead.is_empty() { "" } else { ": " };
        format!("for {wanted}: {met} within {bound}{colon}{instead}")
    }

    fn call_ended(
        &self,
        call: CallId,
        result: &Result<Reply, CallFault>,
        at: HostInstant,
    ) -> (&'static str, String) {
        let result = match result {
            Ok(reply) => self.reply(reply),
            Err(fault) => format!("failed with {}", cut(&fault.to_string(), MESSAGE)),
        };
        match self.calls.get(&call) {
            Some(begun) => {
                let request = self.request(begun.request, begun.case);
                let took = span(at.since(begun.at));
                (
                    lane(begun.request),
                    format!("{request} → {result} in {took}"),
                )
            }
            None => ("rpc", format!("call {call} → {result}")),
        }
    }

    fn request(&self, request: &Request, case: Option<CaseRun>) -> String {
        let method = request.method();
        match request {
            Request::Version
            | Request::RuntimeStatus
            | Request::ListSandboxes { .. }
            | Request::ListImages => method.to_owned(),
            Request::FindSandboxes(filter) => {
                let id = filter.id.as_ref().map(|id| self.name(id.as_str()));
                let state = filter.state.map(|state| state.to_string());
                format!("{method}{}", filtered([id, state, None]))
            }
            Request::FindContainers(filter) => {
                let id = filter.id.as_ref().map(|id| self.name(id.as_str()));
                let state = filter.state.map(|state| state.to_string());
                let sandbox = filter.sandbox.as_ref().map(|id| self.name(id.as_str()));
                format!("{method}{}", filtered([id, state, sandbox]))
            }
            Request::RunSandbox(spec) => {
                let name = cut(&spec.binding, MESSAGE);
                format!("{method} {}", self.qualified(name, case))
            }
            Request::StopSandbox(id) | Request::RemoveSandbox(id) | Request::SandboxStatus(id) => {
                format!("{method} {}", self.name_and_id(id.as_str()))
            }
            Request::CreateContainer(spec) => {
                let sandbox = self.name(spec.sandbox.as_str());
                let name = self.qualified(attempted(&spec.binding, spec.attempt), case);
                format!("{method} {name} in {sandbox}")
            }
            Request::StartContainer(id)
            | Request::RemoveContainer(id)
            | Request::ContainerStatus(id) => self.on(method, id),
            Request::StopContainer { container, grace } => {
                let grace = humantime::format_duration(*grace);
                format!("{}, grace {grace}", self.on(method, container))
            }
            Request::ListContainers { sandbox, .. } => match sandbox {
                Some(sandbox) => format!("{method} of {}", self.name(sandbox.as_str())),
                None => method.to_owned(),
            },
            Request::ImageStatus(image)
            | Request::PullImage(image)
            | Request::RemoveImage(image) => format!("{method} {}", cut(image, MESSAGE)),
            Request::ExecSync {
                container,
                command,
                timeout,
            } => {
                let container = self.name_and_id(container.as_str());
                let command = cut(&command.join(" "), MESSAGE);
                let timeout = humantime::format_duration(*timeout);
                format!("{method} `{command}` in {container}, at most {timeout}")
            }
            Request::CheckpointContainer {
                container,
                location,
            } => format!(
                "{} to {}",
                self.on(method, container),
                cut(location, MESSAGE)
            ),
            Request::UpdateContainerResources {
                container,
                resources,
            } => self.on(method, container) + &set(resources),
            Request::NoEventCall(_, id) if id.is_empty() => method.to_owned(),
            Request::NoEventCall(_, id) => format!("{method} {}", self.name_and_id(id)),
        }
    }

    fn on(&self, method: &str, container: &ContainerId) -> String {
        format!("{method} {}", self.name_and_id(container.as_str()))
    }

    fn reply(&self, reply: &Reply) -> String {
        match reply {
            Reply::Done => "ok".to_owned(),
            Reply::Version(version) => {
                let name = cut(&version.runtime_name, MESSAGE);
                format!("{name} {}", cut(&version.runtime_version, MESSAGE))
            }
            Reply::Sandbox(id) => short_id(id.as_str()),
            Reply::Container(id) => short_id(id.as_str()),
            Reply::SandboxStatus(report) => self.sandbox_report(report),
            Reply::ContainerStatus(report) => container_state(&report.status),
            Reply::Sandboxes(sandboxes) => list(sandboxes, |listed| {
                format!("{} {}", self.name(listed.id.as_str()), listed.state)
            }),
            Reply::Containers(containers) => list(containers, |listed| {
                format!("{} {}", self.name(listed.id.as_str()), listed.state)
            }),
            Reply::Image(Some(image)) => format!("present, {}", short_id(&image.id)),
            Reply::Image(None) => "absent".to_owned(),
            Reply::Pulled(image) => format!("ok, {}", cut(image, MESSAGE)),
            Reply::Images(images) => format!("{} images", images.len()),
            Reply::Exec(code) => format!("exit code {code}"),
            Reply::RuntimeStatus(status) => {
                let handlers = list(&status.handlers, |name| format!("`{}`", cut(name, MESSAGE)));
                let holding = list(&status.conditions, |name| cut(name, MESSAGE));
                format!("{holding}, handlers {handlers}")
            }
        }
    }

    fn event(&self, event: &Event, at: HostInstant) -> String {
        let subject = self.name(event.container.as_str());
        let sandbox = match event.sandbox.as_deref() {
            Some(SandboxStatus { id, state, .. }) => format!("{} {state}", self.name(id.as_str())),
            None => "NO sandbox status".to_owned(),
        };
        let containers = self.statuses(&event.containers);
        let lag = match event.created_at.0 {
            0 => "created_at NOT set".to_owned(),
            created => format!(
                "lag {}",
                signed_span(at.realtime_ns.saturating_sub(created))
            ),
        };
        format!("{} {subject}  {sandbox}  {containers}  {lag}", event.kind)
    }

    fn sandbox_report(&self, report: &SandboxReport) -> String {
        let state = report.status.state;
        if report.timestamp.0 == 0 && report.containers.is_empty() {
            return state.to_string();
        }
        let containers = self.statuses(&report.containers);
        format!("{state}  {containers}  read at {}", report.timestamp.0)
    }

    fn statuses(&self, statuses: &[Shared<ContainerStatus>]) -> String {
        list(statuses, |status| {
            let name = self.name(status.id.as_str());
            format!("{name} {}", container_state(status))
        })
    }

    /// The name in the case, or the short id.
    fn name(&self, id: &str) -> String {
        match self.names.get(id) {
            Some(name) => name.clone(),
            None if id.is_empty() => "(no id)".to_owned(),
            None => short_id(id),
        }
    }

    /// The name in the case, and the short id.
    fn name_and_id(&self, id: &str) -> String {
        match self.names.get(id) {
            Some(name) => format!("{name} ({})", short_id(id)),
            None => self.name(id),
        }
    }

    /// The name, with the number of its case if there are several cases.
    fn qualified(&self, name: String, case: Option<CaseRun>) -> String {
        match case {
            Some(case) if self.cases.len() > 1 => format!("{name}@{case}"),
            _ => name,
        }
    }
}

impl Begun<'_> {
    /// The id that the reply assigns to the name in the request.
    fn names<'r>(&self, reply: &'r Reply) -> Option<(&'r str, String, Option<CaseRun>)> {
        match (self.request, reply) {
            (Request::RunSandbox(spec), Reply::Sandbox(id)) => {
                Some((id.as_str(), cut(&spec.binding, MESSAGE), self.case))
            }
            (Request::CreateContainer(spec), Reply::Container(id)) => Some((
                id.as_str(),
                attempted(&spec.binding, spec.attempt),
                self.case,
            )),
            _ => None,
        }
    }
}

/// Resources to set, in words.
fn set(resources: &Labels) -> String {
    let words = resources
        .iter()
        .map(|(name, value)| format!(", {name} {value}"));
    cut(&words.collect::<String>(), MESSAGE)
}

/// The filter of a list without its labels: the id, the state and the sandbox.
fn filtered([id, state, sandbox]: [Option<String>; 3]) -> String {
    let state = state.map(|state| format!(" {state}"));
    let id = id.map(|id| format!(" {id}"));
    let sandbox = sandbox.map(|sandbox| format!(" of {sandbox}"));
    [state, id, sandbox].into_iter().flatten().collect()
}

fn lane(request: &Request) -> &'static str {
    if asks_only(request) { "relist" } else { "rpc" }
}

/// Whether a call is read-only and about sandboxes or containers.
pub(super) fn asks_only(request: &Request) -> bool {
    match request {
        Request::SandboxStatus(_)
        | Request::ListSandboxes { .. }
        | Request::ContainerStatus(_)
        | Request::ListContainers { .. }
        | Request::FindSandboxes(_)
        | Request::FindContainers(_) => true,
        Request::Version
        | Request::RuntimeStatus
        | Request::RunSandbox(_)
        | Request::StopSandbox(_)
        | Request::RemoveSandbox(_)
        | Request::CreateContainer(_)
        | Request::StartContainer(_)
        | Request::StopContainer { .. }
        | Request::RemoveContainer(_)
        | Request::ImageStatus(_)
        | Request::PullImage(_)
        | Request::RemoveImage(_)
        | Request::ListImages
        | Request::ExecSync { .. }
        | Request::CheckpointContainer { .. }
        | Request::UpdateContainerResources { .. }
        | Request::NoEventCall(..) => false,
    }
}

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]
mod tests;
