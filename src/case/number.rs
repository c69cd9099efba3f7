//! A number in a case, or the word `item`.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use super::Number;

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Given(number) => to.serialize_u8(*number),
            Self::Item => to.serialize_str("item"),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NumberVisitor)
    }
}

impl JsonSchema for Number {
    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number, or `item`: the current item of the `repeat` around it.",
            "oneOf": [
                {"type": "integer", "minimum": 0, "maximum": 255},
                {"const": "item"},
            ],
        })
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number from 0 to 255, or `item`")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
        u8::try_from(number)
            .map(Number::Given)
            .map_err(|_| E::custom(format!("{number} is not from 0 to 255")))
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Number, E> {
        if word == "item" {
            Ok(Number::Item)
        } else {
            Err(E::invalid_value(serde::de::Unexpected::Str(word), &self))
        }
    }
}
