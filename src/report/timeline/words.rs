//! The words for the content of an entry.

use crate::history::{
    ContainerState, ContainerStatus, HostInstant, Observer, RunEnd, RunInfo, RunPlan, StepsEnd,
    StreamEnd, SubscriptionId,
};
use crate::report::calendar::rfc3339;
use crate::report::printable::{cut, printable};

/// The maximum length of a message, a reference or any other text of a runtime, in characters.
pub(super) const MESSAGE: usize = 80;

/// The maximum length of a reason, in characters; the CRI intends one word.
const REASON: usize = 24;

/// The maximum number of containers or sandboxes in a list.
const ITEMS: usize = 6;

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
