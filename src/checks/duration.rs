//! Durations as people write them: `50ms`, `2s`, `1m 30s`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;

/// The longest duration that a case may contain.
pub(crate) const LONGEST_SPAN: Duration = Duration::from_secs(10 * 60);

pub(crate) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&humantime::format_duration(*duration))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    from.deserialize_str(Words)
}

/// The JSON Schema of a duration: the units are those of `humantime`.
pub(crate) struct Text;

impl JsonSchema for Text {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A duration such as `300ms`, `2s` or `1m 30s`.",
            "pattern": pattern(),
        })
    }
}

/// The regular expression of a duration: one or more numbers with units.
pub(crate) fn pattern() -> String {
    const UNITS: &str = "nanos|nsec|ns|usec|us|millis|msec|ms|seconds|second|secs|sec|s|minutes|\
                         minute|mins|min|m|hours|hour|hrs|hr|h|days|day|d|weeks|week|w|months|\
                         month|M|years|year|y";
    format!("^\\s*([0-9]+(\\.[0-9]+)?\\s*({UNITS})\\s*)+$")
}

/// Parses a duration while serde visits it, so that an error has the position of the word.
pub(crate) struct Words;

impl Visitor<'_> for Words {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as `300ms`, `2s` or `1m 30s`")
    }

    fn visit_str<E: Error>(self, words: &str) -> Result<Duration, E> {
        humantime::parse_duration(words).map_err(|_| {
            E::custom(format_args!(
                "`{words}` is no duration such as `300ms`, `2s` or `1m 30s`"
            ))
        })
    }
}

/// The same for an optional field.
pub(crate) mod option {
    use super::{Deserializer, Duration, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(crate) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        super::deserialize(from).map(Some)
    }
}
