//! What has been decoded, by its bytes: a runtime tells the same thing again and again.

use std::hash::BuildHasher;

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
        let hash = FixedState::default().hash_one(bytes);
        let place = usize::try_from(hash % PLACES as u64).expect("there are fewer places");
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
