//! The findings in a history that do not depend on its case: the invariants. Pure: a
//! verdict can be recomputed from a recorded history at any time.
//!
//! [`invariants()`] finds the violations of the rules of [`INVARIANTS`], [`WholeRun`] those that
//! happen only after a case was judged. [`unannounced`] names an event that is still due, for a
//! driver that waits.

mod capabilities;
mod clocks;
mod fields;
mod index;
mod invariants;
mod life;
mod objects;
mod rules;
#[cfg(test)]
pub(crate) mod script;
mod streams;
mod subjects;
mod subscribers;
#[cfg(test)]
mod tests;
mod transition;
mod whole_run;

pub use capabilities::Measuring;
pub(crate) use clocks::{CLOCKS_APART_NS, TICK_NS, held_up_at_the_end, span};
pub(crate) use fields::Message;
pub use index::Index;
pub(crate) use invariants::broken_by;
pub use invariants::{Invariant, context, invariant, invariants};
pub(crate) use life::Shown;
pub(crate) use objects::{Object, Source};
pub(crate) use rules::calls_succeed::refused_step;
pub use rules::no_missed_events::unannounced;
pub(crate) use rules::no_missed_events::unannounced_of;
pub use rules::{INVARIANTS, NO_MISSED_EVENT, PLEGS_AGREE};
pub(crate) use streams::{lost_with_the_runtime, unexpected_end};
pub(crate) use subjects::{entries_about, is_about, makes, name_of};
pub(crate) use subscribers::difference;
pub use whole_run::WholeRun;
