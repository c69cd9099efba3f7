//! A history as a trace for <https://ui.perfetto.dev>, in the format of `proto/perfetto.proto`.
//!
//! Each case is a group of tracks, in it each sandbox, in it each container. A call is a slice from
//! its beginning to its return, an event an instant of its subscription, a violation an instant
//! with the expected and the actual state. Arrows go from the call that caused an event to the
//! event, and on to the first list that shows the same change. The lag of events is drawn as
//! numbers. `#42` is the entry of this number, as `show` prints it.
//!
//! Every slice that begins ends, and the slices of one track never overlap: calls that do have
//! several tracks of the same name, which the viewer draws as one.

mod drawing;
mod links;
mod places;
#[expect(
    clippy::pedantic,
    unreachable_pub,
    reason = "generated from the documented proto/perfetto.proto"
)]
mod schema {
    include!(concat!(env!("OUT_DIR"), "/perfetto.protos.rs"));
}
#[cfg(test)]
mod tests;
mod trace;

use std::sync::Arc;

use crate::history::Entry;
use crate::outcome::Outcome;
use drawing::Drawing;

/// The trace file of a history, with the violations in the outcomes of its run. The entries are in
/// order.
pub fn perfetto(entries: &[Arc<Entry>], outcomes: &[Outcome]) -> Vec<u8> {
    let mut drawing = Drawing::new(entries);
    for entry in entries {
        drawing.draw(entry);
    }
    for outcome in outcomes {
        drawing.judged(outcome);
    }
    drawing.finish()
}
