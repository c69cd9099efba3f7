//! The defects that walks do not find, each with the reason.

/// Their names and reasons.
pub(super) const BEYOND_WALKS: &[(&str, &str)] = &[];
