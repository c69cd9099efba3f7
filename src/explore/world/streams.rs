//! Subscriptions, and whether they can bring anything.

use super::{Container, End, Life, PodState, Stream, World};
use crate::case::Need;
use crate::explore::capabilities::Behaviour;
use crate::explore::plan::Reader;

impl World {
    pub(super) fn subscribe(&mut self, name: &str, reader: Reader) -> Option<End> {
        let stalls = matches!(reader, Reader::Stalls | Reader::StoppedProcess);
        if stalls && !self.can.has(Behaviour::OutlivesStalledSubscriber) {
            return None;
        }
        if !self.can_subscribe() || !self.bind(name) {
            return None;
        }
        let stream = Stream {
            stalled: stalls,
            behind: stalls,
            accompanied: true,
        };
        self.streams.insert(name.to_owned(), stream);
        Some(End::Success)
    }

    /// A subscription that has ended when the operation is over.
    pub(super) fn deadline(&mut self, name: &str) -> Option<End> {
        (self.can_subscribe() && self.bind(name)).then_some(End::Success)
    }

    fn can_subscribe(&self) -> bool {
        self.can.meets(Need::Broadcast) && !self.around.concurrent && !self.around.unsubscribed
    }

    pub(super) fn resume(&mut self, name: &str) -> Option<End> {
        let stream = self.streams.get_mut(name)?;
        std::mem::take(&mut stream.stalled).then_some(End::Success)
    }

    /// Whether no event can come any more.
    pub(super) fn is_quiet(&self) -> bool {
        let is_settled = |it: &Container| {
            let events = it.events.as_ref();
            events.is_some_and(|events| events.len() == it.seen) && it.life != Life::Ending
        };
        // A second subscriber may get late what the first one has got.
        !self.around.concurrent
            && !self.around.unsubscribed
            && self.unmade.is_empty()
            && self.streams.is_empty()
            && self.containers.values().all(is_settled)
            && self
                .pods
                .values()
                .all(|pod| pod.seen && pod.state == PodState::Ready)
    }
}
