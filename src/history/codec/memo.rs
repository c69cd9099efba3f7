//! What has been decoded, by its bytes: a runtime tells the same thing again and again.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use foldhash::fast::FixedState;

/// How many things are remembered: more than the pods of a few cases at once need, and few enough
/// to stay in the processor's cache.
const PLACES: usize = 1 << 8;

/// What is longer is rare, and not worth its memory.
const LONGEST: usize = 1 << 12;

/// A bounded memory: where two things meet in one place, the later one stays.
#[derive(Clone, Debug)]
pub(super) struct Memo<T> {
    places: Vec<Option<Known<T>>>,
}

#[derive(Clone, Debug)]
struct Known<T> {
    /// Of the bytes, which need not be looked at where it differs.
    hash: u64,
    bytes: Box<[u8]>,
    value: T,
}

impl<T: Clone> Default for Memo<T> {
    fn default() -> Self {
        Self {
            places: vec![None; PLACES],
        }
    }
}

impl<T: Clone> Memo<T> {
    /// What these bytes mean: as remembered, or else as decoded now.
    pub(super) fn get(
        &mut self,
        bytes: &[u8],
        decode: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Option<T> {
        if bytes.len() > LONGEST {
            return decode(bytes);
        }
        let (hash, place) = place(bytes, PLACES);
        if let Some(known) = &self.places[place]
            && known.hash == hash
            && *known.bytes == *bytes
        {
            return Some(known.value.clone());
        }
        let value = decode(bytes)?;
        self.places[place] = Some(Known {
            hash,
            bytes: bytes.into(),
            value: value.clone(),
        });
        Some(value)
    }
}

/// How many texts are remembered: more than are told of a few cases at once.
const TEXTS: usize = 1 << 9;

/// A bounded memory of texts, as one of what else is decoded.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    places: Vec<Option<(u64, Arc<str>)>>,
}

impl Default for Texts {
    fn default() -> Self {
        Self {
            places: vec![None; TEXTS],
        }
    }
}

impl Texts {
    /// These bytes as a text, if they are one.
    pub(super) fn get(&mut self, bytes: &[u8]) -> Option<Arc<str>> {
        let (hash, place) = place(bytes, TEXTS);
        if let Some((known, text)) = &self.places[place]
            && *known == hash
            && text.as_bytes() == bytes
        {
            return Some(text.clone());
        }
        let text: Arc<str> = std::str::from_utf8(bytes).ok()?.into();
        if bytes.len() <= LONGEST {
            self.places[place] = Some((hash, text.clone()));
        }
        Some(text)
    }
}

/// The hash of these bytes, and which of so many places is theirs.
fn place(bytes: &[u8], places: usize) -> (u64, usize) {
    let mut hasher = FixedState::default().build_hasher();
    hasher.write(bytes);
    let hash = hasher.finish();
    let place = usize::try_from(hash % places as u64).expect("there are fewer places");
    (hash, place)
}
