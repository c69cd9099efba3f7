//! Errors of calls as entries under `faults:` of an expectation file.

use std::collections::{BTreeMap, BTreeSet};

use super::{LONGEST_TEXT, TODO};
use crate::outcome::{Outcome, RunReport, Verdict};
use crate::verdicts::known::{Known, KnownFault, Texts, stable};

/// The beginnings of the reasons for errors of the suite itself.
const OURS: [&str; 3] = ["not run: ", "the history ", "the suite itself failed"];

/// The status of a lost runtime, which is no fault of a call.
const LOST: &str = "UNAVAILABLE";

/// An entry for each kind of error, with its cases. All errors of an incomplete run come from its
/// end.
pub(super) fn new_faults(reports: &[RunReport], known: &Known) -> Vec<KnownFault> {
    let mut found = BTreeMap::<String, BTreeSet<String>>::new();
    let whole = reports.iter().filter(|report| report.faults.is_empty());
    for outcome in whole.flat_map(|report| &report.outcomes) {
        if let Some(message) = message(outcome, known) {
            let cases = found.entry(message).or_default();
            cases.insert(outcome.id.to_string());
        }
    }
    let fault = |(message, cases): (String, BTreeSet<String>)| KnownFault {
        message,
        when: None,
        cases: Texts::new(cases),
        reason: TODO.to_owned(),
        link: TODO.to_owned(),
        page: None,
    };
    found.into_iter().map(fault).collect()
}

/// The message that identifies an error, if it is one of a call.
fn message(outcome: &Outcome, known: &Known) -> Option<String> {
    let reason = outcome.reason.as_deref()?;
    let is_ours = OURS.iter().any(|ours| reason.starts_with(ours)) || reason.contains(LOST);
    let mut listed = known.faults.iter();
    let is_listed = listed.any(|fault| fault.explains(&outcome.id, reason));
    if outcome.verdict != Verdict::Error || is_ours || is_listed {
        return None;
    }
    let message = stable(reason);
    let end = message
        .char_indices()
        .map(|(at, _)| at)
        .find(|at| *at > LONGEST_TEXT);
    Some(message[..end.unwrap_or(message.len())].to_owned())
}
