//! A problem as values; and its only conversion to words.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::fact::{Fact, Facts};
use super::kind::Kind;
use crate::history::EventKind;

/// A problem: its kind, the expected and the actual values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mismatch {
    pub kind: Kind,
    pub expected: Facts,
    pub actual: Facts,
}

/// A finding without the parts that differ from run to run: its kind, and stable values.
///
/// In a file it is the key of the kind, `missing-stopped`, or a mapping with values too:
/// `{kind: event-out-of-order, event: STOPPED}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature {
    pub kind: Kind,
    /// The values; in a pattern the required ones.
    pub facts: Facts,
}

/// The sentences for the expected and the actual state.
pub(super) struct Sentences {
    pub(super) expected: &'static str,
    pub(super) actual: &'static str,
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

impl Signature {
    /// Whether a finding has this kind and these values. `fits` compares a text of this pattern
    /// with that of the finding.
    pub fn matches(&self, found: &Self, fits: impl Fn(&str, &str) -> bool) -> bool {
        let is_there = |wanted: &Fact| {
            let seen = found.facts.get(wanted.name());
            seen.is_some_and(|seen| seen == wanted || fits(&wanted.text(), &seen.text()))
        };
        self.kind == found.kind && self.facts.iter().all(is_there)
    }
}

impl Serialize for Signature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.facts.is_empty() {
            return self.kind.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", &self.kind)?;
        for fact in self.facts.iter() {
            map.serialize_entry(fact.name(), &fact.to_json())?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = |value: &Value| match value {
            Value::String(key) => Ok(Self {
                kind: Kind::from_key(key)?,
                facts: Facts::default(),
            }),
            Value::Object(map) => {
                let key = map.get("kind").and_then(Value::as_str);
                let key = key.ok_or("a finding has a `kind`, such as `missing-stopped`")?;
                let facts = map.iter().filter(|(name, _)| *name != "kind");
                let facts = facts.map(|(name, value)| Fact::read(name, value));
                Ok(Self {
                    kind: Kind::from_key(key)?,
                    facts: facts.collect::<Result<_, String>>()?,
                })
            }
            _ => Err(
                "expected the kind of a finding, such as `missing-stopped`, or a mapping such as \
                 `{kind: event-out-of-order, event: STOPPED}`"
                    .to_owned(),
            ),
        };
        read(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
