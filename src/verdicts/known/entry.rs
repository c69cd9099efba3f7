//! The entries of an expectation file.

use serde::{Deserialize, Serialize};

use super::terms::{Bound, Day, Rate};
use super::texts::{Signatures, Texts, has_in_order};
use super::when::When;
use crate::history::HostInstant;
use crate::outcome::Seen;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "an entry with `case`, `reason` and `link`"
)]
pub struct KnownFailure {
    /// The id of the case or invariant that fails.
    pub case: String,
    /// On which runtimes it does; on all, if this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    pub reason: String,
    /// Where more is said of it: an issue, or the runtime's source.
    pub link: String,
    /// The page about the runtime's defect, in a built-in file: the name of one in
    /// `ci/findings/<runtime>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// The first versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_in: Option<Texts>,
    /// Of an invariant: the ids of the cases whose histories break it; any, if this is absent.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub cases: Option<Texts>,
    /// A race: it fails in some runs and passes in others, and both are as expected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sometimes: bool,
    /// The same, with how often it was seen to fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The same, with how often it may be lost at most; more often is no known failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Bound>,
    /// The last day on which the entry counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Day>,
    /// What was found, one kind of findings or several, with values that were seen; any other
    /// failure of the case is no known one. All are, if this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Signatures>,
}

/// A call that fails now and then, though the case has done nothing to make it fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a fault with `message`, `reason` and `link`"
)]
pub struct KnownFault {
    /// A part of what the call's failure says; `…` stands for what changes in it.
    pub message: String,
    /// On which runtimes it does; on all, if this is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// The ids of the cases in which it does; any, if this is absent.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub cases: Option<Texts>,
    pub reason: String,
    /// Where more is said of it.
    pub link: String,
    /// The page about the runtime's defect, as of a known failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

impl KnownFailure {
    /// Whether it has expired at a moment.
    pub fn is_over(&self, at: HostInstant) -> bool {
        self.expires.as_ref().is_some_and(|day| day.is_over(at))
    }

    /// Whether it is of a failure of this kind. What broke when its case had been judged can be of
    /// any case.
    pub fn covers(&self, seen: &Seen) -> bool {
        let finding = self.finding.as_ref();
        finding.is_none_or(|finding| finding.fit(&seen.signature))
            && seen.case.as_deref().is_none_or(|case| self.is_of(case))
    }

    /// Whether it is of an invariant that a case's history breaks.
    pub fn is_of(&self, case: &str) -> bool {
        self.cases.as_ref().is_none_or(|cases| cases.fit(case))
    }

    /// Whether its case may pass as well.
    pub fn is_race(&self) -> bool {
        self.sometimes || self.rate.is_some() || self.at_most.is_some()
    }

    /// Why it fails and where more is said of it, as a phrase.
    pub fn explanation(&self) -> String {
        let rate = self.rate.map(|rate| format!(", seen in {rate}"));
        let fixed = self.fixed_in.as_ref();
        let fixed = fixed.map(|versions| {
            let versions: Vec<&str> = versions.iter().collect();
            format!("; fixed in {}", versions.join(" and "))
        });
        let (rate, fixed) = (rate.unwrap_or_default(), fixed.unwrap_or_default());
        format!("{}{rate} ({}{fixed})", self.reason.trim(), self.link)
    }

    /// Whether one failure may be of both.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let cases = match (&self.cases, &other.cases) {
            (Some(one), Some(other)) => one.meet(other),
            _ => true,
        };
        let findings = match (&self.finding, &other.finding) {
            (Some(one), Some(other)) => one.meet(other),
            _ => true,
        };
        let conditions = match (&self.when, &other.when) {
            (Some(one), Some(other)) => one.meets(other),
            _ => true,
        };
        self.case == other.case && conditions && cases && findings
    }
}

impl KnownFault {
    /// Whether it is why a case could not be decided.
    pub fn explains(&self, case: &str, reason: &str) -> bool {
        let of_case = self.cases.as_ref().is_none_or(|cases| cases.fit(case));
        of_case && has_in_order(reason, &self.message)
    }
}
