//! Whether the situation that a case is about has arisen.

use crate::case::{Case, Situation};
use crate::history::{CaseHistory, HostFact};

/// Why the case proves nothing, if its situation did not arise.
pub(super) fn missing(case: &Case, history: &CaseHistory) -> Option<String> {
    match case.provokes? {
        Situation::OomKill => {
            let kills: Vec<u64> = history
                .facts()
                .map(|HostFact::OomKills(kills)| kills)
                .collect();
            match kills[..] {
                [first, .., last] => (last <= first).then(|| {
                    format!("the kernel's count of OOM kills stayed at {first}: nothing was killed")
                }),
                [] | [_] => Some("the kernel's count of OOM kills was not read".to_owned()),
            }
        }
    }
}
