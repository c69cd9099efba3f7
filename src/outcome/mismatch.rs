//! What is wrong, as values; and the one place that puts it in words.

use std::borrow::Cow;

use super::fact::{Fact, Facts};
use super::kind::Kind;
use super::signature::Signature;
use crate::history::EventKind;

/// What is wrong: of which kind it is, what should have been, and what was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mismatch {
    pub kind: Kind,
    /// The values that should have been.
    pub expected: Facts,
    pub actual: Facts,
}

impl Mismatch {
    /// One of a kind, with the values that should have been and those that were.
    pub fn new(kind: Kind, expected: impl Into<Facts>, actual: impl Into<Facts>) -> Self {
        Self {
            kind,
            expected: expected.into(),
            actual: actual.into(),
        }
    }

    /// That an event has not come, with what says that it should have.
    pub fn missing(event: EventKind, expected: impl IntoIterator<Item = Fact>) -> Self {
        let expected: Facts = [Fact::Event(event)].into_iter().chain(expected).collect();
        Self::new(Kind::missing(event), expected, [])
    }

    /// The same with values that were.
    pub fn with(self, actual: Facts) -> Self {
        Self { actual, ..self }
    }

    /// That what a check looks at has not come.
    pub fn unobserved(what: impl Into<String>) -> Self {
        Self::new(Kind::NothingObserved, [Fact::Text(what.into())], [])
    }

    /// What every run sees of it.
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

/// The words for what a finding expected and saw.
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

/// The text of a template without optional parts, and whether each of its values is there.
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
