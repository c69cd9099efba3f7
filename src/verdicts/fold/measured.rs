//! The measurements in the cases of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::watched::Watched;
use super::Verdicts;
use crate::outcome::{Largest, Limit, Spread, Times, Worst};

impl Verdicts {
    /// The maximum of each limit, and the first case that saw it; for a watch, the lag of events.
    pub(super) fn worst(&self) -> Vec<Worst> {
        let mut worst = BTreeMap::<(Limit, Duration), Worst>::new();
        for (run, latencies) in &self.latencies {
            let Some(outcome) = self.outcomes.get(run) else {
                continue;
            };
            for Times { longest, spread } in latencies {
                let found = worst.entry((longest.limit, longest.bound));
                let found = found.or_insert_with(|| Worst {
                    latency: *longest,
                    spread: Spread::default(),
                    case: outcome.id.clone(),
                });
                found.spread.merge(spread);
                if found.latency.took < longest.took {
                    (found.latency, found.case) = (*longest, outcome.id.clone());
                }
            }
        }
        let of_watch = self.watched.iter().filter_map(Watched::lags).cloned();
        worst.into_values().chain(of_watch).collect()
    }

    /// The largest message of an event, in the first case that saw it.
    pub(super) fn largest_event(&self) -> Option<Largest> {
        let seen = self.largest_events.iter().filter_map(|(run, bytes)| {
            let case = self.outcomes.get(run)?.id.clone();
            let bytes = *bytes;
            (bytes > 0).then_some(Largest { bytes, case })
        });
        // Of several of the same size, `max_by_key` gives the last.
        seen.rev().max_by_key(|largest| largest.bytes)
    }
}
