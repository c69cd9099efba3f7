//! Durations as people write them: `50ms`, `2s`, `1m 30s`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub(super) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&humantime::format_duration(*duration))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    humantime::parse_duration(&text)
        .map_err(|fault| D::Error::custom(format!("`{text}` is no duration such as `2s`: {fault}")))
}

/// The same for an optional field.
pub(super) mod option {
    use super::{Deserializer, Duration, Serializer};

    pub(in crate::case) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, to),
            None => to.serialize_none(),
        }
    }

    pub(in crate::case) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        super::deserialize(from).map(Some)
    }
}
