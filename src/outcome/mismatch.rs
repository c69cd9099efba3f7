//! A problem as values; and its only conversion to words.

use std::borrow::Cow;

use super::fact::{Fact, Facts};
use super::kind::Kind;
use super::signature::Signature;
use crate::history::EventKind;

/// A problem: its kind, the expected and the actual values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mismatch {
    pub kind: Kind,
    pub expected: Facts,
    pub actual: Facts,
}

impl Mismatch {
    pub fn new(kind: Kind, expected: impl Into<Facts>, actual: impl Into<Facts>) -> Self {
        Self {
            kind,
            expected: expected.into(),
            actual: actual.into(),
        }
    }

    /// A missing event, with the reason to expect it.
    pub fn missing(event: EventKind, expected: impl IntoIterator<Item = Fact>) -> Self {
        let expected: Facts = [Fact::Event(event)].into_iter().chain(expected).collect();
        Self::new(Kind::missing(event), expected, [])
    }

    /// The same problem with actual values.
    pub fn with(self, actual: Facts) -> Self {
        Self { actual, ..self }
    }

    /// The absence of the subject of a check.
    pub fn unobserved(what: impl Into<String>) -> Self {
        Self::new(Kind::NothingObserved, [Fact::Text(what.into())], [])
    }

    /// The parts that are equal in every run.
    pub fn signature(&self) -> Signature {
        Signature {
            kind: self.kind,
            facts: self.actual.stable(),
        }
    }

    pub fn expected(&self) -> String {
        let value = |name: &str| self.expected.get(name).or_else(|| self.actual.get(name));
        sentence(self.kind.sentences().expected, value)
    }

    pub fn actual(&self) -> String {
        let value = |name: &str| self.actual.get(name).or_else(|| self.expected.get(name));
        sentence(self.kind.sentences().actual, value)
    }
}

/// The sentences for the expected and the actual state.
pub(super) struct Sentences {
    pub(super) expected: &'static str,
    pub(super) actual: &'static str,
}

/// Fills the values into a template of [`Kind`].
fn sentence<'a>(template: &str, value: impl Fn(&str) -> Option<&'a Fact>) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, optional)) = rest.split_once('[') {
        let (optional, after) = optional.split_once(']').unwrap_or((optional, ""));
        text.push_str(&filled(before, &value).0);
        let (part, is_whole) = filled(optional, &value);
        if is_whole {
            text.push_str(&part);
        }
        rest = after;
    }
    let (last, is_whole) = filled(rest, &value);
    debug_assert!(is_whole, "a fact is missing: {template}");
    text + &last
}

/// The text of a template without optional parts, and whether all of its values are present.
fn filled<'a>(template: &str, value: &impl Fn(&str) -> Option<&'a Fact>) -> (String, bool) {
    let mut parts = template.split('{');
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut is_whole = true;
    for part in parts {
        let (name, after) = part.split_once('}').unwrap_or((part, ""));
        let value = value(name).map(Fact::text);
        is_whole &= value.is_some();
        text.push_str(&value.map_or(Cow::Borrowed("nothing"), Cow::Owned));
        text.push_str(after);
    }
    (text, is_whole)
}
