//! A duration in a case, or the word `item`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use super::Delay;
use crate::checks::duration::{Span, Words, pattern};

impl JsonSchema for Delay {
    fn schema_name() -> Cow<'static, str> {
        "Delay".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A duration such as `300ms`; or `item`, as many milliseconds as the \
                            current item of the `repeat` around it.",
            "pattern": format!("^item$|{}", pattern()),
        })
    }
}

impl Serialize for Delay {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Given(duration) => Span::serialize(duration, to),
            Self::Item => to.serialize_str("item"),
        }
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(DelayWords)
    }
}

struct DelayWords;

impl Visitor<'_> for DelayWords {
    type Value = Delay;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as `300ms`, or `item`")
    }

    fn visit_str<E: Error>(self, words: &str) -> Result<Delay, E> {
        if words == "item" {
            Ok(Delay::Item)
        } else {
            Words.visit_str(words).map(Delay::Given)
        }
    }
}
