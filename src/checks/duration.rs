//! Durations in human-readable form: `50ms`, `2s`, `1m 30s`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;

pub(crate) const LONGEST_SPAN: Duration = Duration::from_secs(10 * 60);

/// How a field for a duration is read and written, and its JSON Schema; the field may be optional.
/// The units are those of `humantime`.
pub(crate) struct Span;

impl Span {
    pub(crate) fn serialize<T, S: Serializer>(span: &T, to: S) -> Result<S::Ok, S::Error>
    where
        T: Copy + Into<Option<Duration>>,
    {
        match (*span).into() {
            Some(span) => to.collect_str(&humantime::format_duration(span)),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T, D: Deserializer<'de>>(from: D) -> Result<T, D::Error>
    where
        T: From<Duration>,
    {
        from.deserialize_str(Words).map(T::from)
    }
}

impl JsonSchema for Span {
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
