//! The twelve guarantees: all that a consumer of events relies on, as sentences.
//!
//! Each requirement is listed with one of them, and by it each case and invariant; a kind of
//! findings names one in its own list.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Kind, Outcome, Violation, area, is_invariant};

/// A promise of a runtime to the consumers of its events.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Guarantee {
    Complete,
    Once,
    Ordered,
    Prompt,
    Truthful,
    Consistent,
    Current,
    Addressed,
    Continuous,
    Independent,
    Recoverable,
    Bounded,
}

/// What belongs to a guarantee.
pub(crate) struct Scope {
    name: &'static str,
    sentence: &'static str,
    pub(crate) requirements: &'static [&'static str],
    /// Areas of cases. A case of another area, and an invariant, proves what its first requirement
    /// belongs to.
    pub(crate) areas: &'static [&'static str],
}

/// What belongs to each guarantee, in their order.
const SCOPES: [Scope; 12] = [
    Scope {
        name: "Complete",
        sentence: "While a stream is open, each creation, start, end and removal of a container has its \
            event.",
        requirements: &["R6", "R23", "C2", "C3", "C4"],
        areas: &["completeness", "failure", "scale", "several", "stop"],
    },
    Scope {
        name: "Once",
        sentence: "Nothing is reported twice, and nothing that did not happen.",
        requirements: &["R8", "R30", "C1"],
        areas: &["negative"],
    },
    Scope {
        name: "Ordered",
        sentence: "The events of an object come in the order of its life.",
        requirements: &["R9", "R10", "R14", "R20"],
        areas: &["order"],
    },
    Scope {
        name: "Prompt",
        sentence: "An event comes within a bound after its cause.",
        requirements: &["R31", "R33", "C5"],
        areas: &[],
    },
    Scope {
        name: "Truthful",
        sentence: "What an event shows was so at a moment between its cause and its arrival: never \
            ahead, never behind, never going back.",
        requirements: &["R7", "R15", "R17", "R18", "R19", "R21"],
        areas: &["snapshot"],
    },
    Scope {
        name: "Consistent",
        sentence: "Events, lists and statuses agree about an object, field by field, and with the \
            request that made it.",
        requirements: &[
            "R13", "R16", "R24", "R25", "R26", "C6", "C7", "C8", "C10", "C11",
        ],
        areas: &["exit", "oom"],
    },
    Scope {
        name: "Current",
        sentence: "Once a call has returned or an event has come, lists and statuses show at least \
            that.",
        requirements: &["R22", "R27", "R28", "R29", "C9"],
        areas: &["relist"],
    },
    Scope {
        name: "Addressed",
        sentence: "Each event names its object by its full id, and its pod by name, namespace and UID.",
        requirements: &["R11", "R12"],
        areas: &["sandbox"],
    },
    Scope {
        name: "Continuous",
        sentence: "A stream opens at once and stays open as long as the runtime runs; where there is \
            none, an error says so.",
        requirements: &["R1", "R2"],
        areas: &["feature"],
    },
    Scope {
        name: "Independent",
        sentence: "No subscriber, however slow, costs another one or a call anything; one that falls \
            behind gets everything or an error, never a silent gap.",
        requirements: &["R3", "R5"],
        areas: &[],
    },
    Scope {
        name: "Recoverable",
        sentence: "After a reconnection or a restart, lists show what was missed, exit codes are kept, \
            and what runs is still watched.",
        requirements: &["R4", "R32"],
        areas: &["checkpoint", "monitor", "reconnect", "restart"],
    },
    Scope {
        name: "Bounded",
        sentence: "What has ended is freed: no memory, descriptor, process, mount or cgroup grows with \
            the lives that have passed.",
        requirements: &["R34", "R35", "C12"],
        areas: &["leak"],
    },
];

impl Guarantee {
    pub const ALL: [Self; 12] = [
        Self::Complete,
        Self::Once,
        Self::Ordered,
        Self::Prompt,
        Self::Truthful,
        Self::Consistent,
        Self::Current,
        Self::Addressed,
        Self::Continuous,
        Self::Independent,
        Self::Recoverable,
        Self::Bounded,
    ];

    pub fn name(self) -> &'static str {
        self.scope().name
    }

    pub fn sentence(self) -> &'static str {
        self.scope().sentence
    }

    pub(crate) fn scope(self) -> &'static Scope {
        &SCOPES[self as usize]
    }

    /// The guarantee that a pass of a case or an invariant proves; `None` for a case of a user's
    /// own area without requirements.
    pub fn proven_by(name: &str, requirements: &[impl AsRef<str>]) -> Option<Self> {
        let area = area(name);
        let that = |is: &dyn Fn(&Scope) -> bool| {
            let mut all = Self::ALL.into_iter();
            all.find(|guarantee| is(guarantee.scope()))
        };
        let first = requirements.first().map(AsRef::as_ref);
        that(&|scope| scope.areas.contains(&area))
            .or_else(|| first.and_then(|id| that(&|scope| scope.requirements.contains(&id))))
    }

    /// The guarantee that a finding breaks of a case or an invariant that proves `own`. A case
    /// about a situation, such as a slow subscriber or a restart, breaks that of its situation, any
    /// other that of the finding.
    pub fn broken_by(own: Option<Self>, rule: &str, kind: Kind) -> Self {
        let is_of_a_situation = matches!(
            own,
            Some(Self::Continuous | Self::Independent | Self::Recoverable | Self::Bounded)
        );
        let own = own.filter(|_| is_invariant(rule) || is_of_a_situation);
        own.unwrap_or_else(|| kind.guarantee())
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Outcome {
    /// The guarantee that its pass proves; `None` for a case of a user's own area.
    pub fn proves(&self) -> Option<Guarantee> {
        Guarantee::proven_by(&self.name, &self.requirements)
    }

    /// The guarantee that one of its violations breaks, which may be of an invariant in a case.
    pub fn breaks(&self, violation: &Violation) -> Guarantee {
        let own = self.proves().filter(|_| *violation.rule == *self.id);
        Guarantee::broken_by(own, &violation.rule, violation.mismatch.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::Guarantee::{Complete, Independent, Once, Ordered, Recoverable};
    use super::{Guarantee, Kind, SCOPES};

    #[test]
    fn a_finding_breaks_the_guarantee_of_its_situation_or_its_own() {
        let broken = |rule, area, requirement, kind| {
            Guarantee::broken_by(Guarantee::proven_by(area, &[requirement]), rule, kind)
        };
        let missing = Kind::MissingStopped;
        assert_eq!(broken("A", "order", "R5", missing), Complete);
        assert_eq!(broken("A", "restart", "R5", missing), Recoverable);
        assert_eq!(broken("A", "stream", "R5", missing), Independent);
        assert_eq!(broken("INV-02", "invariant", "R8", missing), Once);
        assert_eq!(broken("A", "mine", "", Kind::EventOutOfOrder), Ordered);
        assert_eq!(Guarantee::proven_by("mine", &[""; 0]), None);
    }

    #[test]
    fn each_guarantee_has_its_own_scope() {
        for (guarantee, scope) in Guarantee::ALL.into_iter().zip(&SCOPES) {
            assert_eq!(format!("{guarantee:?}"), scope.name);
        }
    }
}
