//! Rest of a pod: the deadline by which the state in a relist must have been reported by events,
//! too.

use std::collections::BTreeSet;

use super::Pod;
use super::relists::PlegRelist;
use crate::history::{
    Call, CaseHistory, ContainerId, Entry, Reply, Request, SandboxId, SandboxListing, Seq,
    StepsEnd, Subject, SubjectKind,
};
use crate::limits;
use crate::pleg::Moment;

impl Pod<'_> {
    /// The entry by which both kubelets must believe the state in a relist; `None` if the pod is
    /// not at rest.
    pub(super) fn at_rest_until(&self, relist: &PlegRelist<'_>, place: usize) -> Option<Seq> {
        let uid = self.spec.uid.as_str();
        let mut inspections = self.relists.iter().filter(|relist| relist.inspects(uid));
        let is_last = inspections.next_back().map(|last| last.ended.seq) == Some(relist.ended.seq);
        let waited_for = self.history.steps_end() == Some(&StepsEnd::Complete);
        if is_last && waited_for && self.is_left_alone(relist) {
            return Some(Seq(u64::MAX));
        }
        let bound = self.history.scaled(limits::EVENT_WAIT);
        let is_foreign = self.history.is_of_foreign_pod();
        let in_time = |entry: &Entry| {
            let taken = if is_foreign {
                self.history.not_held_up(relist.ended.at, entry.at)
            } else {
                entry.at.since(relist.ended.at)
            };
            taken <= bound
        };
        let past = self
            .history
            .entries()
            .iter()
            .find(|entry| entry.seq > relist.ended.seq && !in_time(entry))?;
        if !is_foreign && self.history.held_up_before(past.at, bound).is_some() {
            return None;
        }
        let disturbs = |call: &&Call| {
            let ended = call
                .ended()
                .is_none_or(|ended| ended.seq > relist.began.seq);
            call.began().seq < past.seq && ended
        };
        let shown = &self.relisting[place].1;
        if shown.belief(Moment::NEVER).is_empty() && self.is_gone_between(relist, past) {
            return None;
        }
        let mut later = self.relisting[place..].iter();
        let changed = later.any(|(seq, later)| *seq < past.seq && later.differs_from(shown));
        let at_rest = !changed && !self.changes.iter().any(disturbs);
        (at_rest && self.history.within_steps(past.seq)).then_some(past.seq)
    }

    /// Whether a list of all pods after a relist does not have the sandbox: if it was listed and
    /// then not found, it was being removed.
    fn is_gone_between(&self, relist: &PlegRelist<'_>, until: &Entry) -> bool {
        let later = |call: &Call| {
            let began = call.began().seq;
            began > relist.began.seq && began < until.seq
        };
        self.history.calls().filter(|call| later(call)).any(|call| {
            match (call.request(), call.result()) {
                (Request::ListSandboxes { labels, .. }, Some(Ok(Reply::Sandboxes(listed)))) => {
                    let is_own =
                        |listed: &SandboxListing| listed.id.as_str() == self.subject.id.as_str();
                    labels.is_empty() && !listed.iter().any(is_own)
                }
                _ => false,
            }
        })
    }

    /// Whether no call of the steps changes the pod during an inspection or after it. The driver's
    /// own inspection follows the steps; steps may read the same data of a pod that they remove.
    fn is_left_alone(&self, relist: &PlegRelist<'_>) -> bool {
        let changes = |call: &&Call| {
            let ended = call.ended();
            ended.is_none_or(|ended| ended.seq > relist.began.seq)
                && self.history.within_steps(call.began().seq)
        };
        !self.changes.iter().any(changes)
    }
}

/// The calls that change a sandbox or its containers.
pub(super) fn changes<'a>(history: &'a CaseHistory, sandbox: &Subject) -> Vec<&'a Call> {
    let is_own = |id: &SandboxId| id.as_str() == sandbox.id.as_str();
    let containers = history.subjects().iter().filter(
        |subject| matches!(&subject.kind, SubjectKind::Container(spec) if is_own(&spec.sandbox)),
    );
    let containers: BTreeSet<&ContainerId> = containers.map(|subject| &subject.id).collect();
    let changes = |call: &&Call| match call.request() {
        Request::StopSandbox(sandbox) | Request::RemoveSandbox(sandbox) => is_own(sandbox),
        Request::CreateContainer(spec) => is_own(&spec.sandbox),
        Request::StartContainer(container)
        | Request::StopContainer { container, .. }
        | Request::RemoveContainer(container) => containers.contains(container),
        _ => false,
    };
    history.calls().filter(changes).collect()
}
