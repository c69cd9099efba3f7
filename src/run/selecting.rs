//! What of all cases and invariants is meant, before anything runs.

use std::io::Write;

use super::listing::Listing;
use super::{Format, RunError};
use crate::case::{Case, Requirement};
use crate::oracle::{INVARIANTS, Invariant};
use crate::plan::{Planned, Selection};

/// Prints the selected cases, without touching a runtime; as JSON also the invariants, and which of
/// the requirements they check.
///
/// # Errors
/// If none is selected, or the output is closed.
pub fn list(
    cases: Vec<Case>,
    requirements: &[Requirement],
    selection: &Selection,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), RunError> {
    let planned = plan(cases, selection)?;
    let invariants = invariants(selection);
    let listing = Listing::of(&planned, &invariants, requirements);
    Ok(listing.write(format, out)?)
}

/// The selected cases, in the order in which they run.
///
/// # Errors
/// If there are none.
pub(super) fn plan(cases: Vec<Case>, selection: &Selection) -> Result<Vec<Planned>, RunError> {
    let planned = selection.plan(cases);
    if planned.is_empty() {
        return Err(nothing_selected(selection));
    }
    Ok(planned)
}

/// Why the selection is empty.
pub(super) fn nothing_selected(selection: &Selection) -> RunError {
    let quoted = |filters: &[String]| {
        filters
            .iter()
            .map(|filter| format!("`{filter}`"))
            .collect::<Vec<_>>()
            .join(" or ")
    };
    let mut wanted = match &selection.filters[..] {
        [] => "the selection".to_owned(),
        filters => quoted(filters),
    };
    if !selection.skip.is_empty() {
        wanted = format!("{wanted} without {}", quoted(&selection.skip));
    }
    RunError::NothingSelected(wanted)
}

/// The selected invariants.
pub(super) fn invariants(selection: &Selection) -> Vec<&'static Invariant> {
    let wanted = INVARIANTS
        .iter()
        .filter(|invariant| !selection.skips(invariant.id, invariant.name));
    wanted.collect()
}
