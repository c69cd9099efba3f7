//! The invariants that can still break after a case was judged: a late repetition, an event after
//! DELETED. Of each container of the run only the kinds of its events are kept.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::invariants::{INVARIANTS, Invariant, rank};
use crate::history::{
    Body, ContainerId, Entry, EventKind, HostInstant, PodUid, Request, Seq, SubscriptionId,
};
use crate::outcome::Violation;

/// All events about the pods of a run, in short.
#[derive(Debug, Default)]
pub struct WholeRun {
    pods: BTreeSet<PodUid>,
    seen: BTreeMap<(ContainerId, SubscriptionId), Vec<Brief>>,
}

#[derive(Clone, Copy, Debug)]
struct Brief {
    kind: EventKind,
    seq: Seq,
    at: HostInstant,
}

impl WholeRun {
    /// Takes in the next entry of the run.
    pub fn push(&mut self, entry: &Entry) {
        match &entry.body {
            Body::CallBegan {
                request: Request::RunSandbox(spec),
                ..
            } => {
                self.pods.insert(spec.uid.clone());
            }
            Body::Event {
                subscription,
                event,
            } => {
                let key = (event.container.clone(), *subscription);
                let ours = event.pod_uid().is_some_and(|uid| self.pods.contains(uid));
                if ours || self.seen.contains_key(&key) {
                    let brief = Brief {
                        kind: event.kind,
                        seq: entry.seq,
                        at: entry.at,
                    };
                    self.seen.entry(key).or_default().push(brief);
                }
            }
            _ => {}
        }
    }

    /// The first violation of each container, unless a case has told it already.
    #[must_use]
    pub fn violations(&self, told: &[Violation]) -> Vec<Violation> {
        let mut found = Vec::new();
        for ((container, _), events) in &self.seen {
            let broken = [repeated(container, events), reordered(container, events)];
            found.extend(broken.into_iter().flatten().find(|found| {
                let same = |told: &Violation| {
                    told.rule == found.rule && told.subject.contains(container.as_str())
                };
                !told.iter().any(same)
            }));
        }
        found
    }
}

fn repeated(container: &ContainerId, events: &[Brief]) -> Option<Violation> {
    events.iter().enumerate().find_map(|(place, later)| {
        let earlier = events[..place]
            .iter()
            .find(|earlier| earlier.kind == later.kind)?;
        let expected = format!("one {} event", later.kind);
        Some(violation(
            &INVARIANTS[1],
            container,
            expected,
            [earlier, later],
        ))
    })
}

fn reordered(container: &ContainerId, events: &[Brief]) -> Option<Violation> {
    let ranked: Vec<_> = events
        .iter()
        .filter_map(|brief| Some((rank(brief.kind)?, brief)))
        .collect();
    ranked.windows(2).find_map(|pair| {
        let [(before, earlier), (after, later)] = [pair[0], pair[1]];
        if before <= after {
            return None;
        }
        let expected = format!("{} before {}", later.kind, earlier.kind);
        Some(violation(
            &INVARIANTS[0],
            container,
            expected,
            [earlier, later],
        ))
    })
}

fn violation(
    rule: &Invariant,
    container: &ContainerId,
    expected: String,
    [earlier, later]: [&Brief; 2],
) -> Violation {
    let pause = later.at.since(earlier.at);
    Violation {
        rule: rule.id.to_owned(),
        level: rule.levels.cache,
        sentence: rule.sentence.to_owned(),
        subject: container.to_string(),
        expected,
        actual: format!(
            "{} and, {pause:?} later, {}, when its case had been judged",
            earlier.kind, later.kind
        ),
        evidence: vec![earlier.seq, later.seq],
    }
}
