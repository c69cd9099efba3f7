//! The labels of a filter.

use crate::history::Labels;

/// Whether an object has all of these labels.
pub(super) fn carries(own: &Labels, wanted: &Labels) -> bool {
    let mut wanted = wanted.iter();
    wanted.all(|(key, value)| own.get(key) == Some(value))
}
