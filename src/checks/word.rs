//! The trait of all checks: names, validation and assessment.

use super::scope::Scope;
use super::subject_events::SubjectEvents;
use crate::history::{CaseHistory, Observed, Seq};
use crate::oracle::{Index, name_of};
use crate::outcome::{Kind, Latency, Mismatch};

/// The assessment of one check on one subject.
pub(super) enum Finding {
    Holds,
    /// An event or reply that the check needs has not arrived yet.
    Pending {
        missing: Mismatch,
        evidence: Vec<Seq>,
    },
    Broken {
        mismatch: Mismatch,
        evidence: Vec<Seq>,
    },
    /// The check would be broken, but the suite itself was held up: the duration, in a sentence.
    Unproven(String),
}

/// The short and the full name of a finding's subject.
pub(super) struct About {
    pub(super) label: String,
    pub(super) name: String,
}

impl About {
    /// A subject with only its label as a name.
    pub(super) fn new(label: String) -> Self {
        let name = label.clone();
        Self { label, name }
    }
}

/// One check of the case language.
pub(super) trait Word {
    /// The name of the sandboxes, containers or subscriptions that it assesses.
    fn of(&self) -> &str;

    fn names(&self) -> Vec<&str> {
        vec![self.of()]
    }

    /// Reports contradictions with the steps of the case, and checks that can never fail.
    fn validate(&self, scope: &mut dyn Scope<'_>);

    fn kinds(&self) -> Vec<Kind>;

    /// Assesses a sandbox or container of the name.
    fn assess(&self, _: &SubjectEvents<'_, '_>) -> Finding {
        Finding::Holds
    }

    /// Assesses each claim about a subscription of the name.
    fn assess_subscription(&self, _: &CaseHistory, _: &Observed) -> Vec<Finding> {
        Vec::new()
    }

    /// The measured times that it limits.
    fn latencies(&self, _: &Index<'_>) -> Vec<Latency> {
        Vec::new()
    }

    /// Whether a driver waits for it. An invariant never waits, and some are expensive to judge.
    fn is_awaited(&self) -> bool {
        true
    }

    /// Whether the case has created a sandbox, container or subscription of this name.
    fn is_present(&self, index: &Index<'_>, name: &str) -> bool {
        let history = index.history;
        let mut observed = history.observed();
        history.named(name).next().is_some()
            || observed.any(|observed| observed.observer().binding == name)
    }

    /// The findings on all subjects of the name.
    fn findings(&self, index: &Index<'_>) -> Vec<(About, Finding)> {
        let history = index.history;
        let name = self.of();
        let subjects = history.named(name).map(|subject| {
            let about = About {
                label: subject.label(),
                name: name_of(subject),
            };
            (about, self.assess(&SubjectEvents { index, subject }))
        });
        let observed = history
            .observed()
            .filter(|observed| observed.observer().binding == name);
        let of_subscriptions = observed.flat_map(|observed| {
            let findings = self.assess_subscription(history, observed);
            findings.into_iter().map(|finding| {
                let about = About {
                    label: name.to_owned(),
                    name: format!("{name}, stream {}", observed.id()),
                };
                (about, finding)
            })
        });
        subjects.chain(of_subscriptions).collect()
    }
}
