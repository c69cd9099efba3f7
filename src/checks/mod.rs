//! What a case can expect: one file for each word of the case language, with its shape, its
//! validation, its assessment and its tests; and the verdict on a case by its expectations. Pure.
//!
//! A new check is a file here, its `mod` line, and a line of the list in `check.rs`. [`judge()`]
//! makes the verdict; [`pending`] names what is still to come, for a driver that waits.

#![cfg_attr(
    test,
    expect(
        clippy::needless_pass_by_value,
        clippy::needless_raw_string_hashes,
        reason = "this is how expect-test is used"
    )
)]

mod addresses;
mod aftermath;
mod all_containers;
mod announced;
mod answered;
mod call_edge;
mod check;
mod created_at_valid;
pub(crate) mod duration;
mod ended;
mod events;
mod eventually_known;
mod explained;
mod filtered;
mod final_status;
mod headers;
mod includes;
mod invariant;
mod judge;
pub(crate) mod kind_words;
mod labels;
mod latencies;
mod latency;
mod matches_spec;
mod message_size;
mod name_refs;
mod never;
mod no_repeats;
mod nothing_older;
mod order;
mod own_status;
mod replay;
mod same_events;
mod same_replay;
mod same_status;
mod sandbox_state;
mod sandbox_status;
mod scope;
mod shown;
mod situation;
mod status;
mod status_times;
mod stays_open;
mod subject_events;
#[cfg(test)]
pub(crate) mod testing;
mod timing;
mod unchanged;
mod word;

pub use call_edge::CallEdge;
pub use check::{Check, Expectation};
pub use judge::{Claim, Judgement, Undecided, judge, pending};
pub use latencies::latencies;
pub use scope::{Kind, Scope, Wanted};
pub use situation::Situation;
