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
    /// The id of the failing case or invariant.
    pub case: String,
    /// The affected runtimes; all, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    pub reason: String,
    /// A reference: an issue, or the runtime's source.
    pub link: String,
    /// The page about the runtime's defect, in a built-in file: the name of one in
    /// `ci/findings/<runtime>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// The first versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_in: Option<Texts>,
    /// For an invariant: the ids of the cases whose histories break it; any, if absent.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub cases: Option<Texts>,
    /// A race: it fails in some runs and passes in others, and both are expected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sometimes: bool,
    /// A race, with its observed failure rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// A race, with the maximum rate; more failures are unexpected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Bound>,
    /// The last day on which the entry applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Day>,
    /// The findings, by kind and values; any other failure of the case is unexpected. All findings,
    /// if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Signatures>,
}

/// A call that fails intermittently in a case that expects it to succeed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a fault with `message`, `reason` and `link`"
)]
pub struct KnownFault {
    /// A part of the call's error message; `…` matches any text.
    pub message: String,
    /// The affected runtimes; all, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// The ids of the affected cases; any, if absent.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub cases: Option<Texts>,
    pub reason: String,
    /// A reference.
    pub link: String,
    /// The page about the runtime's defect, as in a known failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

impl KnownFailure {
    pub fn is_over(&self, at: HostInstant) -> bool {
        self.expires.as_ref().is_some_and(|day| day.is_over(at))
    }

    /// Whether it applies to a failure of this kind. One after the case was judged can belong to
    /// any case.
    pub fn covers(&self, seen: &Seen) -> bool {
        let finding = self.finding.as_ref();
        finding.is_none_or(|finding| finding.fit(&seen.signature))
            && seen.case.as_deref().is_none_or(|case| self.is_of(case))
    }

    /// Whether it applies to an invariant broken by a case's history.
    pub fn is_of(&self, case: &str) -> bool {
        self.cases.as_ref().is_none_or(|cases| cases.fit(case))
    }

    /// Whether its case may pass, too.
    pub fn is_race(&self) -> bool {
        self.sometimes || self.rate.is_some() || self.at_most.is_some()
    }

    /// The reason and the reference, as a phrase.
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

    /// Whether one failure can match both.
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
    /// Whether it explains why a case could not be decided.
    pub fn explains(&self, case: &str, reason: &str) -> bool {
        let of_case = self.cases.as_ref().is_none_or(|cases| cases.fit(case));
        of_case && has_in_order(reason, &self.message)
    }
}
