//! What each check offers: its names, its validation and its assessment.

use super::scope::Scope;
use super::subject_events::SubjectEvents;
use crate::history::{CaseHistory, Observed, Seq};
use crate::oracle::name_of;
use crate::outcome::{Kind, Latency, Mismatch};

/// What a history says of one check on one subject.
pub(super) enum Finding {
    Holds,
    /// Something that the check needs has not come yet.
    Pending {
        missing: Mismatch,
        evidence: Vec<Seq>,
    },
    Broken {
        mismatch: Mismatch,
        evidence: Vec<Seq>,
    },
    /// It would be broken, had the suite itself not been late: how, in a sentence.
    Unproven(String),
}

/// What a finding is about, in short and in full.
pub(super) struct About {
    pub(super) label: String,
    pub(super) name: String,
}

impl About {
    /// Something that has no other name than its label.
    pub(super) fn new(label: String) -> Self {
        let name = label.clone();
        Self { label, name }
    }
}

/// One check of the case language.
pub(super) trait Word {
    /// The name of the sandboxes, containers or subscriptions that it assesses.
    fn of(&self) -> &str;

    /// All names that it looks at.
    fn names(&self) -> Vec<&str> {
        vec![self.of()]
    }

    /// Reports what makes no sense, or can never fail.
    fn validate(&self, scope: &mut dyn Scope<'_>);

    /// The kinds of its findings.
    fn kinds(&self) -> Vec<Kind>;

    /// Assesses a sandbox or container of the name.
    fn assess(&self, _: &SubjectEvents<'_>) -> Finding {
        Finding::Holds
    }

    /// Assesses each claim about a subscription of the name.
    fn assess_subscription(&self, _: &CaseHistory, _: &Observed) -> Vec<Finding> {
        Vec::new()
    }

    /// How long things took that it bounds.
    fn latencies(&self, _: &CaseHistory) -> Vec<Latency> {
        Vec::new()
    }

    /// Whether a driver waits for it. A rule never waits, and some are dear to ask.
    fn is_awaited(&self) -> bool {
        true
    }

    /// Whether the case has made something of this name.
    fn is_there(&self, history: &CaseHistory, name: &str) -> bool {
        let mut observed = history.observed();
        history.named(name).next().is_some()
            || observed.any(|observed| observed.observer().binding == name)
    }

    /// The findings on all that the name stands for.
    fn findings(&self, history: &CaseHistory) -> Vec<(About, Finding)> {
        let name = self.of();
        let subjects = history.named(name).map(|subject| {
            let about = About {
                label: subject.label(),
                name: name_of(subject),
            };
            (about, self.assess(&SubjectEvents { history, subject }))
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
