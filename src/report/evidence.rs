//! The lines of a history that prove a violation, with their context; and the causal links between
//! entries: the events that a call can cause, and the states in a list that show an event's change.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::summary::counted;
use super::timeline::Timeline;
use crate::history::{ContainerState, Entry, EventKind, Reply, Request, SandboxState, Seq};
use crate::outcome::{LAST_SHOWN, Outcome, Violation};

/// The number of entries shown before and after each evidence entry.
const CONTEXT: usize = 2;

/// The maximum number of entries for one violation. A case that starts hundreds of containers can
/// break a rule with each; forty are two screens, and the recorded history has the rest.
const LINES: usize = 40;

/// Renders the evidence of an outcome's violations.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    entries: &'a [Arc<Entry>],
    timeline: Timeline<'a>,
}

/// The state of a sandbox or container in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shown {
    Created,
    Started,
    Stopped,
}

impl<'a> Evidence<'a> {
    /// Collects the names in the history slice of the outcome.
    pub fn of(outcome: &'a Outcome) -> Self {
        let entries = &outcome.evidence;
        // An invariant is judged after all that it is about.
        let first = entries.first().map(|entry| entry.at);
        let origin = outcome.began.min(first.unwrap_or(outcome.began));
        Self {
            entries,
            timeline: Timeline::new(origin, entries.iter().map(AsRef::as_ref)),
        }
    }

    /// The timeline around a violation's evidence, where `>` marks the evidence itself. Empty if
    /// the violation has none.
    pub fn lines(&self, violation: &Violation) -> Vec<String> {
        let place = |seq: &Seq| self.entries.binary_search_by_key(seq, |entry| entry.seq);
        let (held, absent): (Vec<_>, Vec<_>) = violation
            .evidence
            .iter()
            .partition(|seq| place(seq).is_ok());
        let marked: BTreeSet<_> = held.into_iter().filter_map(|seq| place(seq).ok()).collect();
        let mut lines = self.stretches(&marked);
        lines.extend(missing(&absent));
        lines
    }

    pub(super) fn entries(&self) -> &'a [Arc<Entry>] {
        self.entries
    }

    /// The names and times of the entries.
    pub(super) fn timeline(&self) -> &Timeline<'a> {
        &self.timeline
    }

    /// The last entries of the slice, none marked.
    pub(super) fn last(&self) -> impl Iterator<Item = String> {
        let first = self.entries.len().saturating_sub(LAST_SHOWN);
        let entries = self.entries[first..].iter();
        entries.map(|entry| self.timeline.line(entry, false))
    }

    fn stretches(&self, marked: &BTreeSet<usize>) -> Vec<String> {
        let mut lines = Vec::new();
        let mut budget = LINES;
        let mut shown_until = 0;
        for window in windows(self.entries.len(), marked) {
            let window = window.start..window.end.min(window.start + budget);
            if window.is_empty() {
                break;
            }
            budget -= window.len();
            lines.extend(left_out(window.start - shown_until));
            shown_until = window.end;
            lines.extend(window.map(|at| {
                let entry: &Entry = &self.entries[at];
                self.timeline.line(entry, marked.contains(&at))
            }));
        }
        if !lines.is_empty() {
            lines.extend(left_out(self.entries.len() - shown_until));
        }
        lines
    }
}

/// The ranges of entries to show: each marked one with its context, merged where they touch.
fn windows(count: usize, marked: &BTreeSet<usize>) -> Vec<Range<usize>> {
    let mut windows: Vec<Range<usize>> = Vec::new();
    for at in marked {
        let window = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(count);
        match windows.last_mut() {
            // A gap of one line would be replaced by a line that says so.
            Some(last) if window.start <= last.end + 1 => last.end = window.end,
            _ => windows.push(window),
        }
    }
    windows
}

fn left_out(count: usize) -> Option<String> {
    (count > 0).then(|| format!("       … {}", counted(count, "entry", "entries")))
}

/// The line about evidence that the slice of the history does not contain, if any.
fn missing(absent: &[&Seq]) -> Option<String> {
    let named: Vec<_> = absent
        .iter()
        .take(CONTEXT)
        .map(|seq| format!("#{seq}"))
        .collect();
    let more = if absent.len() > CONTEXT {
        " and others"
    } else {
        ""
    };
    (!named.is_empty()).then(|| {
        let named = named.join(", ");
        format!("       see also {named}{more} in the recorded history")
    })
}

/// The events that a call can cause, each by the id of its subject; `made` is the object that the
/// call has created. A call that ends a sandbox also ends its containers, but does not name them.
pub(super) fn effects<'a>(
    request: &'a Request,
    made: Option<&'a str>,
) -> Vec<(&'a str, EventKind)> {
    use EventKind::{Created, Deleted, Started, Stopped};
    let (id, kinds): (Option<&str>, &[EventKind]) = match request {
        Request::RunSandbox(_) => (made, &[Created, Started]),
        Request::CreateContainer(_) => (made, &[Created]),
        Request::StartContainer(id) => (Some(id.as_str()), &[Started]),
        Request::StopContainer { container, .. } => (Some(container.as_str()), &[Stopped]),
        Request::StopSandbox(id) => (Some(id.as_str()), &[Stopped]),
        Request::RemoveContainer(id) => (Some(id.as_str()), &[Stopped, Deleted]),
        Request::RemoveSandbox(id) => (Some(id.as_str()), &[Stopped, Deleted]),
        _ => (None, &[]),
    };
    let of = |id| kinds.iter().map(move |kind| (id, *kind));
    id.into_iter().flat_map(of).collect()
}

/// The id of the sandbox or container that a request names and does not merely filter or use.
pub(super) fn subject(request: &Request) -> Option<&str> {
    match request {
        Request::StopSandbox(id) | Request::RemoveSandbox(id) | Request::SandboxStatus(id) => {
            Some(id.as_str())
        }
        Request::StartContainer(id)
        | Request::RemoveContainer(id)
        | Request::ContainerStatus(id)
        | Request::StopContainer { container: id, .. }
        | Request::ExecSync { container: id, .. }
        | Request::CheckpointContainer { container: id, .. }
        | Request::UpdateContainerResources { container: id, .. } => Some(id.as_str()),
        Request::NoEventCall(_, id) if !id.is_empty() => Some(id),
        _ => None,
    }
}

impl Shown {
    /// Whether the change that such an event reports has happened.
    pub(super) fn is_past(self, kind: EventKind) -> bool {
        match kind {
            EventKind::Created => true,
            EventKind::Started => self >= Self::Started,
            EventKind::Stopped => self == Self::Stopped,
            EventKind::Deleted | EventKind::Unknown(_) => false,
        }
    }
}

/// All subjects in a reply, by id.
pub(super) fn shown(reply: &Reply) -> Vec<(&str, Shown)> {
    match reply {
        Reply::Sandboxes(listed) => {
            let states = listed.iter();
            let states = states.map(|it| (it.id.as_str(), of_sandbox(it.state)));
            states.collect()
        }
        Reply::Containers(listed) => {
            let states = listed.iter();
            let states = states.map(|it| (it.id.as_str(), of_container(it.state)));
            states.collect()
        }
        Reply::ContainerStatus(report) => {
            let status = &report.status;
            vec![(status.id.as_str(), of_container(status.state))]
        }
        Reply::SandboxStatus(report) => {
            let own = (report.status.id.as_str(), of_sandbox(report.status.state));
            let containers = report.containers.iter();
            let containers = containers.map(|it| (it.id.as_str(), of_container(it.state)));
            containers.chain([own]).collect()
        }
        _ => Vec::new(),
    }
}

fn of_sandbox(state: SandboxState) -> Shown {
    match state {
        SandboxState::Ready | SandboxState::Unknown(_) => Shown::Started,
        SandboxState::NotReady => Shown::Stopped,
    }
}

fn of_container(state: ContainerState) -> Shown {
    match state {
        ContainerState::Created | ContainerState::Unknown(_) => Shown::Created,
        ContainerState::Running => Shown::Started,
        ContainerState::Exited => Shown::Stopped,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use std::sync::Arc;

    use super::Evidence;
    use crate::history::{Entry, Seq};
    use crate::report::fixture::{at, failed, violation};

    #[track_caller]
    fn check(seqs: &[u64], expect: &Expect) {
        let mut violation = violation("");
        violation.evidence = seqs.iter().copied().map(Seq).collect();
        let outcome = failed();
        let lines = Evidence::of(&outcome).lines(&violation);
        let starts = lines
            .iter()
            .map(|line| line.chars().take(8).collect::<String>());
        expect.assert_eq(&starts.collect::<Vec<_>>().join("|"));
    }

    #[test]
    fn no_evidence_is_no_lines() {
        check(&[], &expect![[""]]);
    }

    #[test]
    fn evidence_stands_in_its_context() {
        check(
            &[10, 11],
            &expect!["       …|      #8|      #9|>    #10|>    #11|     #12|     #13|       …"],
        );
    }

    #[test]
    fn neighbouring_stretches_are_joined() {
        check(
            &[2, 8, 20],
            &expect![
                "      #0|      #1|>     #2|      #3|      #4|      #5|      #6|      #7|>     #8|      #9|     #10|       …|     #18|     #19|>    #20|     #21|     #22"
            ],
        );
    }

    #[test]
    fn the_evidence_of_an_invariant_has_its_own_times() {
        let mut outcome = failed();
        outcome.began = at(60_000);
        let mut violation = violation("");
        violation.evidence = vec![Seq(20)];
        let lines = Evidence::of(&outcome).lines(&violation);
        assert!(
            lines.iter().all(|line| !line.contains(" +0.000 ")),
            "{lines:#?}"
        );
    }

    #[test]
    fn evidence_missing_from_the_slice_is_reported() {
        check(&[99], &expect!["       s"]);
    }

    #[test]
    fn one_violation_cannot_flood_the_screen() {
        let mut outcome = failed();
        let copy = |seq| {
            let entry = Entry::clone(&outcome.evidence[0]);
            let seq = Seq(seq);
            Arc::new(Entry { seq, ..entry })
        };
        outcome.evidence = (0..230).map(copy).collect();
        let mut violation = violation("");
        violation.evidence = (0..1_000).map(Seq).collect();
        let lines = Evidence::of(&outcome).lines(&violation);
        assert_eq!(lines.len(), super::LINES + 2);
        assert_eq!(
            lines[super::LINES..],
            [
                "       … 190 entries",
                "       see also #230, #231 and others in the recorded history"
            ]
        );
    }
}
