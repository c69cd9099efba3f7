//! What would be broken, had the suite itself not been late.

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::Finding::{Broken, Holds, Pending, Unproven};
use super::{findings, pending};
use crate::case::Case;
use crate::history::{CaseHistory, HostInstant};
use crate::limits;
use crate::oracle::unread;
use crate::outcome::Level;

/// Why a binding expectation is neither kept nor broken, as far as the suite could see: it was held
/// up itself.
pub(in crate::oracle) fn unproven(case: &Case, history: &CaseHistory) -> Option<String> {
    if let Some(held_up) = held_up_at_the_end(history)
        && let Some(awaited) = pending(case, history)
    {
        return Some(unread(&awaited, held_up));
    }
    let ended = history.steps_ended_at()?;
    if history.held_up(HostInstant::default(), ended).is_zero() {
        return None;
    }
    let mut binding = case.expect.iter().filter(|it| it.level == Level::Must);
    binding.find_map(|expectation| {
        let findings = findings(&expectation.check, history).into_iter();
        let mut unproven = findings.filter_map(|(about, finding)| match finding {
            Unproven(how) => Some(format!("{}: {how}", about.label)),
            Holds | Pending { .. } | Broken { .. } => None,
        });
        unproven.next()
    })
}

/// For how long the suite was held up before the steps were over, if that was so long that what has
/// not come by then may have come and not been read.
pub(in crate::oracle) fn held_up_at_the_end(history: &CaseHistory) -> Option<Duration> {
    let bound = history.stretched(limits::EVENT_WAIT);
    history.held_up_before(history.steps_ended_at()?, bound)
}
