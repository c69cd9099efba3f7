//! The words for events in a case: `created`, `started`, `stopped`, `deleted`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::history::EventKind;

/// The events that a case can name: those that the CRI defines.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Event")]
pub(crate) enum Word {
    Created,
    Started,
    Stopped,
    Deleted,
}

impl From<Word> for EventKind {
    fn from(word: Word) -> Self {
        match word {
            Word::Created => Self::Created,
            Word::Started => Self::Started,
            Word::Stopped => Self::Stopped,
            Word::Deleted => Self::Deleted,
        }
    }
}

pub(crate) fn one<'de, D: Deserializer<'de>>(from: D) -> Result<EventKind, D::Error> {
    Word::deserialize(from).map(EventKind::from)
}

pub(crate) fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<EventKind>, D::Error> {
    let words = Vec::<Word>::deserialize(from)?;
    Ok(words.into_iter().map(EventKind::from).collect())
}
