//! When an event arrives, from one end of a call.

use std::time::Duration;

use super::Events;
use super::Finding::{self, Broken, Holds, Unproven};
use super::calls::{edge, edge_name};
use crate::case::TimingCheck;
use crate::history::EventKind;

impl Events<'_> {
    pub(super) fn come_in_time(&self, check: &TimingCheck) -> Finding {
        let Some(sighting) = self.first(check.event) else {
            return self.awaited(check.event);
        };
        let Some(edge) = edge(check.after, self.history, self.subject) else {
            return Holds;
        };
        let evidence = vec![edge.seq.min(sighting.seq()), edge.seq.max(sighting.seq())];
        let late = sighting.at().since(edge.at);
        let early = edge.at.since(sighting.at());
        let too_early = edge.seq > sighting.seq();
        let actual = if too_early {
            format!("{early:?} before {}", edge_name(check.after))
        } else {
            format!("{late:?} after {}", edge_name(check.after))
        };
        let event = check.event;
        let at_most = check.at_most.map(|bound| self.history.stretched(bound));
        if let Some(bound) = at_most.filter(|bound| late > *bound) {
            let held_up = self.history.held_up(edge.at, sighting.at());
            if late.saturating_sub(held_up) <= bound {
                return Unproven(own_fault(event, &actual, held_up));
            }
            return Broken {
                expected: format!("{event} within {bound:?}"),
                actual,
                evidence,
            };
        }
        // The time that the case's workloads and grace periods take is stretched, and never shrunk.
        let at_least = check
            .at_least
            .map(|bound| self.history.stretched(bound).max(bound));
        if let Some(bound) = at_least.filter(|bound| too_early || late < *bound) {
            // What both of them were read late for may have come long after one another.
            let last = edge.at.max(sighting.at());
            if let Some(held_up) = self.history.held_up_before(last, bound) {
                return Unproven(own_fault(event, &actual, held_up));
            }
            let expected = format!("{event} not before {bound:?} have passed");
            return Broken {
                expected,
                actual,
                evidence,
            };
        }
        Holds
    }
}

fn own_fault(event: EventKind, came: &str, held_up: Duration) -> String {
    format!("{event} came {came}, and the suite itself was held up for {held_up:?} meanwhile")
}
