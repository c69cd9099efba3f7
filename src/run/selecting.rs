//! What of all cases and invariants is meant, before anything runs.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::hints;
use super::listing::Listing;
use super::{Format, RunError};
use crate::case::{Case, Requirement};
use crate::oracle::{INVARIANTS, Invariant};
use crate::plan::{Facts, Planned, Selection};
use crate::report::Failed;
use crate::verdicts::facts_of;

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
    let mut planned = plan(cases, selection, 1)?;
    if selection.names_invariants() && selection.names_no_case() {
        planned.clear();
    }
    // They judge every case, but are not what a filter of cases asks for.
    let is_of_cases = selection.only.is_some() || !selection.filters.is_empty();
    let shown = !is_of_cases || selection.names_invariants();
    let invariants = invariants(selection);
    let listing = Listing::of(&planned, &invariants, requirements);
    Ok(listing.write(format, shown, out)?)
}

/// The selected cases, each so often, in the order in which they run.
///
/// # Errors
/// If there are none.
pub(super) fn plan(
    cases: Vec<Case>,
    selection: &Selection,
    repeat: u32,
) -> Result<Vec<Planned>, RunError> {
    if let Some(fault) = of_no_effect(selection, &cases) {
        return Err(fault);
    }
    if !cases.iter().any(|case| selection.takes(&Facts::of(case))) {
        return Err(nothing_selected(selection, &cases));
    }
    Ok(selection.plan(cases, repeat))
}

/// A filter that takes nothing of any tier and for any profile: a typing error, for which nothing
/// else shall run, either.
fn of_no_effect(selection: &Selection, cases: &[Case]) -> Option<RunError> {
    let mut all: Vec<_> = cases.iter().map(Facts::of).collect();
    for invariant in INVARIANTS {
        all.push(facts_of(invariant));
    }
    let takes_any = |filter: &&String| {
        all.iter()
            .any(|facts| facts.is_taken_by(filter, selection.exact))
    };
    let filter = selection.filters.iter().find(|filter| !takes_any(filter))?;
    let hint = match hints::of(filter, &all) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "`--list` shows all there are".to_owned(),
    };
    Some(RunError::NothingSelected(format!("`{filter}`; {hint}")))
}

/// Why none of these cases is selected.
pub(super) fn nothing_selected(selection: &Selection, cases: &[Case]) -> RunError {
    let quoted = |filters: &[String]| {
        let quoted = filters.iter().map(|filter| format!("`{filter}`"));
        quoted.collect::<Vec<_>>().join(" or ")
    };
    let mut wanted = match &selection.filters[..] {
        [] => "the selection".to_owned(),
        filters => quoted(filters),
    };
    if !selection.skip.is_empty() {
        wanted = format!("{wanted} without {}", quoted(&selection.skip));
    }
    match &selection.only {
        Some(failed) if failed.is_empty() => {
            return RunError::NothingSelected(
                "the selection: nothing failed in that run".to_owned(),
            );
        }
        Some(_) => wanted.push_str(" of those that failed"),
        None => {}
    }
    let taken_by = |wider: &Selection| {
        let taken = cases.iter().filter(|case| wider.takes(&Facts::of(case)));
        taken.count()
    };
    let of_all_tiers = Selection {
        tier: None,
        ..selection.clone()
    };
    let for_all = Selection {
        profiles: Vec::new(),
        ..of_all_tiers.clone()
    };
    let hint = match (taken_by(&of_all_tiers), taken_by(&for_all)) {
        (0, 0) => "`--list` shows all there are".to_owned(),
        (0, count) => format!("there are {count} for other profiles, see `--profile`"),
        (count, _) => format!("there are {count} in larger tiers, see `--tier`"),
    };
    RunError::NothingSelected(format!("{wanted}; {hint}"))
}

/// Why a report cannot tell what to run again.
#[derive(Debug, thiserror::Error)]
pub enum RerunError {
    /// It cannot be read, or is none of ours.
    #[error("run again what failed in {}: {fault}", path.display())]
    Read {
        /// The report.
        path: PathBuf,
        /// What is wrong.
        fault: String,
    },
    /// It is the report on other cases.
    #[error(
        "run again what failed in {}: there is no case `{id}`; name those of that run with --cases",
        path.display()
    )]
    Unknown {
        /// The report.
        path: PathBuf,
        /// The id or name.
        id: String,
    },
}

/// The ids of the cases that failed or were not decided in a run, as its report tells: those in
/// which an invariant was broken among them.
///
/// # Errors
/// If it cannot be read, is no report of this suite, or is one on other cases.
pub fn failed_in(report: &Path, cases: &[Case]) -> Result<BTreeSet<String>, RerunError> {
    /// A larger file is no report.
    const LARGEST_BYTES: u64 = 256 << 20;
    let path = report.to_owned();
    let read = File::open(report).and_then(|file| {
        let mut text = String::new();
        file.take(LARGEST_BYTES).read_to_string(&mut text)?;
        Ok(text)
    });
    let read = read.map_err(|fault| fault.to_string());
    let failed = match read.and_then(|text| Failed::read(&text)) {
        Ok(failed) => failed,
        Err(fault) => return Err(RerunError::Read { path, fault }),
    };
    if failed.anywhere {
        return Ok(cases.iter().map(|case| case.id.clone()).collect());
    }
    let found = failed.cases.into_iter().map(|id| {
        let mut cases = cases.iter();
        let case = cases.find(|case| case.id == id || case.name == id);
        let path = path.clone();
        case.map(|case| case.id.clone())
            .ok_or(RerunError::Unknown { path, id })
    });
    found.collect()
}

/// The selected invariants.
pub(super) fn invariants(selection: &Selection) -> Vec<&'static Invariant> {
    let wanted = |invariant: &&Invariant| selection.judges_by(&facts_of(invariant));
    INVARIANTS.iter().filter(wanted).collect()
}
