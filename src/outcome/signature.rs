//! The identity of a finding across runs.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::fact::{Fact, Facts};
use super::kind::Kind;

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
