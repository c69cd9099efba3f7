//! The words for the content of an entry, and an entry in two short texts that fit into a diagram.

use super::{Timeline, asks_only};
use crate::history::{
    Body, CallFault, CallId, CaseRun, ContainerState, ContainerStatus, Entry, Event, HostFact,
    HostInstant, Observer, Reply, Request, RunEnd, RunInfo, RunPlan, StepsEnd, StreamEnd,
    SubscriptionId,
};
use crate::report::printable::{cut, printable, rfc3339, span};

/// The maximum length of a message, a reference or any other text of a runtime, in characters.
pub(super) const MESSAGE: usize = 80;

/// The maximum length of a reason, in characters; the CRI intends one word.
const REASON: usize = 24;

/// The maximum number of containers or sandboxes in a list.
const ITEMS: usize = 6;

/// The text beside an entry in a diagram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::report) struct Brief {
    /// The event or call, such as `STARTED c`.
    pub(in crate::report) label: String,
    /// Its content, such as `pod READY [c RUNNING]`; may be empty.
    pub(in crate::report) detail: String,
}

impl Brief {
    fn new(label: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            detail: detail.into(),
        }
    }
}

pub(super) fn run_began(info: &RunInfo, at: HostInstant) -> String {
    format!(
        "{} by {} against {} {} at {}, {}",
        printable(info.run.as_str()),
        cut(&info.suite, MESSAGE),
        cut(&info.runtime.runtime_name, MESSAGE),
        cut(&info.runtime.runtime_version, MESSAGE),
        cut(&info.endpoint, MESSAGE),
        rfc3339(at)
    )
}

pub(super) fn unjudged(skipped: bool, reason: &str) -> String {
    let word = if skipped { "skipped" } else { "undecided" };
    format!("is {word}: {}", cut(reason, MESSAGE))
}

pub(super) fn run_planned(plan: &RunPlan) -> String {
    format!(
        "plans {} executions of {} cases, with {}",
        plan.executions.len(),
        plan.cases.len(),
        cut(&plan.image, MESSAGE)
    )
}

pub(super) fn run_ended(end: &RunEnd) -> String {
    let faults = end.faults.iter().map(|fault| cut(fault, MESSAGE));
    let faults: Vec<_> = faults.collect();
    match &faults[..] {
        [] => "ends".to_owned(),
        faults => format!("ends, with faults: {}", faults.join("; ")),
    }
}

pub(super) fn steps_end(end: &StepsEnd) -> String {
    match end {
        StepsEnd::Complete => "has done its steps".to_owned(),
        StepsEnd::Unmet => "has waited in vain".to_owned(),
        StepsEnd::NotApplicable(reason) => format!("skipped: {}", cut(reason, MESSAGE)),
        StepsEnd::Inconclusive(reason) => format!("proves nothing: {}", cut(reason, MESSAGE)),
        StepsEnd::Error(reason) => format!("cannot go on: {}", cut(reason, MESSAGE)),
    }
}

pub(super) fn asked_for(subscription: SubscriptionId, observer: Option<&Observer>) -> String {
    let by = observer.map(|observer| cut(&observer.binding, MESSAGE));
    by.map_or_else(
        || format!("{subscription} asked for"),
        |by| format!("{subscription} asked for by {by}"),
    )
}

pub(super) fn stream_end(end: &StreamEnd) -> String {
    match end {
        StreamEnd::Cancelled => "given up by us".to_owned(),
        StreamEnd::Closed => "ended by the runtime with OK".to_owned(),
        StreamEnd::Failed(fault) => format!("broke with {}", cut(&fault.to_string(), MESSAGE)),
    }
}

/// `RUNNING`, `EXITED 137 OOMKilled`.
pub(super) fn container_state(status: &ContainerStatus) -> String {
    let state = status.state;
    let reason = cut(&status.reason, REASON);
    let gap = if reason.is_empty() { "" } else { " " };
    match state {
        ContainerState::Exited => format!("{state} {}{gap}{reason}", status.exit_code),
        ContainerState::Created | ContainerState::Running | ContainerState::Unknown(_) => {
            format!("{state}{gap}{reason}")
        }
    }
}

/// The 17th container of a name is `c#17`, as `Subject::label` has it.
pub(in crate::report) fn attempted(binding: &str, attempt: u32) -> String {
    let binding = cut(binding, MESSAGE);
    if attempt > 0 {
        format!("{binding}#{attempt}")
    } else {
        binding
    }
}

pub(super) fn list<T>(items: &[T], describe: impl Fn(&T) -> String) -> String {
    let mut words: Vec<_> = items.iter().take(ITEMS).map(describe).collect();
    if items.len() > ITEMS {
        words.push(format!("and {} more", items.len() - ITEMS));
    }
    format!("[{}]", words.join(", "))
}

impl Timeline<'_> {
    /// The time of an entry as in [`Timeline::line`].
    pub(in crate::report) fn time(&self, entry: &Entry) -> String {
        format!("+{:.3}", entry.at.since(self.start).as_secs_f64())
    }

    /// The entry in two short texts, both printable.
    pub(in crate::report) fn brief(&self, entry: &Entry) -> Brief {
        match &entry.body {
            Body::CallBegan { request, case, .. } => self.brief_request(request, *case),
            Body::CallEnded { call, result, .. } => self.brief_result(*call, result, entry.at),
            Body::Event { event, .. } => self.brief_event(event),
            Body::SubscriptionOpened { observer, .. } => {
                let by = observer.as_ref();
                let by = by.map(|observer| format!("by {}", cut(&observer.binding, MESSAGE)));
                Brief::new("stream asked for", by.unwrap_or_default())
            }
            Body::SubscriptionAnswered { .. } => Brief::new("stream answered", ""),
            Body::SubscriptionProven { .. } => Brief::new("stream proven live", ""),
            Body::SubscriptionEnded { end, .. } => Brief::new("stream ended", stream_end(end)),
            Body::Waited {
                wanted, met, bound, ..
            } => {
                let came = if *met { "came" } else { "did not come" };
                let bound = humantime::format_duration(*bound);
                Brief::new(
                    format!("wait: {}", cut(wanted, MESSAGE)),
                    format!("{came} within {bound}"),
                )
            }
            Body::Fact {
                fact: HostFact::OomKills(count),
                ..
            } => Brief::new(format!("OOM kills: {count}"), "of the host since boot"),
            Body::Fact {
                fact: HostFact::Held { resource, count },
                ..
            } => Brief::new("measured", format!("{resource}: {count}")),
            Body::Fact {
                fact: HostFact::ProcessGone { container, pid },
                ..
            } => Brief::new(
                format!("process of {} is gone", self.name(container.as_str())),
                format!("{pid}, and the runtime reports it as RUNNING"),
            ),
            Body::Fact {
                fact: HostFact::Killed { id, pid },
                ..
            } => Brief::new(
                format!("{} killed", self.name(id.as_str())),
                format!("{pid}"),
            ),
            Body::HeldUp { by } => Brief::new("suite held up", format!("for {}", span(*by))),
            _ => Brief::new(self.describe(entry).1, ""),
        }
    }

    fn brief_request(&self, request: &Request, case: Option<CaseRun>) -> Brief {
        let method = request.method();
        let (name, detail) = match request {
            Request::RunSandbox(spec) => (
                self.qualified(cut(&spec.binding, MESSAGE), case),
                String::new(),
            ),
            Request::CreateContainer(spec) => {
                let sandbox = self.name(spec.sandbox.as_str());
                (
                    self.qualified(attempted(&spec.binding, spec.attempt), case),
                    format!("in {sandbox}"),
                )
            }
            Request::StopContainer { container, grace } => {
                let grace = humantime::format_duration(*grace);
                (self.name(container.as_str()), format!("grace {grace}"))
            }
            Request::StartContainer(id)
            | Request::RemoveContainer(id)
            | Request::ContainerStatus(id) => (self.name(id.as_str()), String::new()),
            Request::StopSandbox(id) | Request::RemoveSandbox(id) | Request::SandboxStatus(id) => {
                (self.name(id.as_str()), String::new())
            }
            Request::ExecSync {
                container, command, ..
            } => (
                self.name(container.as_str()),
                cut(&command.join(" "), MESSAGE),
            ),
            Request::CheckpointContainer { container, .. }
            | Request::UpdateContainerResources { container, .. } => {
                (self.name(container.as_str()), String::new())
            }
            Request::NoEventCall(_, id) if !id.is_empty() => (self.name(id), String::new()),
            _ => (String::new(), String::new()),
        };
        Brief::new(format!("{method} {name}").trim_end(), detail)
    }

    fn brief_result(
        &self,
        call: CallId,
        result: &Result<Reply, CallFault>,
        at: HostInstant,
    ) -> Brief {
        let begun = self.calls.get(&call);
        let took = begun.map(|begun| format!("in {}", span(at.since(begun.at))));
        let took = took.unwrap_or_default();
        match (begun, result) {
            (Some(begun), Ok(reply)) if asks_only(begun.request) => {
                let label = self.brief_request(begun.request, begun.case).label;
                let shown = match reply {
                    Reply::ContainerStatus(report) => container_state(&report.status),
                    reply => self.reply(reply),
                };
                Brief::new(label, shown)
            }
            (Some(begun), Err(fault)) if asks_only(begun.request) => {
                let label = self.brief_request(begun.request, begun.case).label;
                Brief::new(
                    label,
                    format!("failed: {}", cut(&fault.to_string(), MESSAGE)),
                )
            }
            (_, Ok(Reply::Exec(code))) => Brief::new(format!("→ exit code {code}"), took),
            (_, Ok(_)) => Brief::new("→ ok", took),
            (_, Err(fault)) => Brief::new(format!("→ failed: {}", fault.code), took),
        }
    }

    fn brief_event(&self, event: &Event) -> Brief {
        let sandbox = match event.sandbox.as_deref() {
            None => "NO sandbox status".to_owned(),
            Some(status) if status.id.as_str() == event.container.as_str() => {
                status.state.to_string()
            }
            Some(_) => String::new(),
        };
        let containers = self.statuses(&event.containers);
        let label = format!("{} {}", event.kind, self.name(event.container.as_str()));
        Brief::new(label, format!("{sandbox} {containers}").trim_start())
    }
}
