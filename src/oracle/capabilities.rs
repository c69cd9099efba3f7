//! The capabilities of a runtime that a history shows, independent of any requirement.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::clocks::CLOCKS_APART_NS;
use crate::history::{Body, Entry, FanOut, Reply, SubscriptionId};
use crate::limits;
use crate::outcome::Capabilities;

/// The greatest age of a replayed event: an older `created_at` is due to a wrong clock.
const OLDEST_NS: i64 = 24 * 3_600 * 1_000_000_000;

#[derive(Debug, Default)]
pub struct Measuring {
    found: Capabilities,
    open: BTreeMap<SubscriptionId, Stream>,
    /// A sandbox or container was created since the last stream ended.
    unreported: bool,
    made_sandbox: bool,
    seen_container: bool,
}

#[derive(Debug)]
struct Stream {
    opened_ns: i64,
    /// A sandbox or container was created before it was asked for, while no stream was open.
    after_gap: bool,
}

impl Measuring {
    pub fn push(&mut self, entry: &Entry) {
        match &entry.body {
            Body::RunPlanned(plan) => {
                let everyone = |fan_out| fan_out == FanOut::Broadcast;
                self.found.broadcast = plan.fan_out.map(everyone);
                self.found.events = plan.probed.events;
                self.found.streamed_lists = plan.probed.streamed_lists;
                self.found.handlers = plan.probed.handlers;
                self.found.network = plan.probed.network;
                self.found.stop_signal = plan.probed.stop_signal;
            }
            Body::CallEnded {
                result: Ok(reply), ..
            } => self.returned(reply),
            Body::SubscriptionOpened { subscription, .. } => {
                // A run has some hundreds of streams; of a file that has more, some are enough.
                if self.open.len() < limits::RUN_CONTAINERS {
                    let after_gap = self.unreported && self.open.is_empty();
                    let opened_ns = entry.at.realtime_ns;
                    let stream = Stream {
                        opened_ns,
                        after_gap,
                    };
                    self.open.insert(*subscription, stream);
                }
                self.unreported = false;
            }
            // A replay comes before the event that proves the stream.
            Body::SubscriptionProven { subscription }
                if self.open.get(subscription).is_some_and(|it| it.after_gap) =>
            {
                self.found.replay.get_or_insert(false);
            }
            Body::SubscriptionEnded { subscription, .. } => {
                self.open.remove(subscription);
            }
            Body::Event {
                subscription,
                event,
                ..
            } => {
                self.found.events.get_or_insert(true);
                let sandbox = event.sandbox.as_ref();
                if sandbox.is_some_and(|sandbox| sandbox.id.as_str() == event.container.as_str()) {
                    self.found.sandbox_events = Some(true);
                } else {
                    self.seen_container = true;
                }
                if let Some(stream) = self.open.get(subscription) {
                    let age_ns = stream.opened_ns.saturating_sub(event.created_at.0);
                    if (CLOCKS_APART_NS + 1..OLDEST_NS).contains(&age_ns) {
                        self.found.replay = Some(true);
                    }
                }
            }
            _ => {}
        }
    }

    /// The capabilities shown so far.
    pub fn found(&self) -> Capabilities {
        let mut found = self.found;
        if self.made_sandbox && self.seen_container {
            found.sandbox_events.get_or_insert(false);
        }
        found
    }

    fn returned(&mut self, reply: &Reply) {
        match reply {
            Reply::Sandbox(_) => {
                self.made_sandbox = true;
                self.unreported |= self.open.is_empty();
            }
            Reply::Container(_) => self.unreported |= self.open.is_empty(),
            Reply::SandboxStatus(report) => {
                let is_set = report.timestamp.0 != 0;
                let before = self.found.sandbox_status_timestamp;
                self.found.sandbox_status_timestamp = Some(is_set || before == Some(true));
            }
            _ => {}
        }
    }
}
