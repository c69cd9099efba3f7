//! The rules that every history must keep: each with its row, its function and its tests, and
//! those of one subject in one file.

#![cfg_attr(
    test,
    expect(
        clippy::needless_pass_by_value,
        clippy::needless_raw_string_hashes,
        reason = "this is how expect-test is used"
    )
)]

pub(super) mod addressed;
pub(super) mod agree;
pub(super) mod answers_current;
pub(super) mod calls_succeed;
pub(super) mod complete_sandbox_status;
pub(super) mod created_at;
pub(super) mod events_are_prompt;
pub(super) mod events_in_order;
pub(super) mod exit_code_of_process;
pub(super) mod no_missed_events;
pub(super) mod plegs_agree;
pub(super) mod pod_events_in_time_order;
pub(super) mod shown_in_events;
pub(super) mod snapshots;
pub(super) mod snapshots_never_regress;
pub(super) mod status_as_new_as_event;
pub(super) mod streams_stay_open;
pub(super) mod subscribers_agree;
#[cfg(test)]
mod testing;

use super::invariants::Invariant;

/// The id of the rule about missed events.
pub const NO_MISSED_EVENT: &str = no_missed_events::RULE.id;
/// The id of the rule about the beliefs of both PLEGs.
pub const PLEGS_AGREE: &str = plegs_agree::RULE.id;

/// All rules, in the order of their ids.
pub const INVARIANTS: &[Invariant] = &[
    events_in_order::ORDER,
    events_in_order::ONCE,
    addressed::TYPE_AND_ID,
    created_at::CURRENT,
    events_in_order::INCREASING,
    addressed::POD_UID,
    status_as_new_as_event::RULE,
    snapshots_never_regress::RULE,
    addressed::KNOWN,
    no_missed_events::RULE,
    subscribers_agree::RULE,
    plegs_agree::RULE,
    shown_in_events::CONTAINERS,
    shown_in_events::SANDBOX,
    snapshots::PREMATURE,
    exit_code_of_process::RULE,
    streams_stay_open::RULE,
    complete_sandbox_status::RULE,
    pod_events_in_time_order::RULE,
    events_in_order::REPLAY,
    created_at::WITHIN_CALL,
    snapshots::RULE,
    agree::ANSWERS,
    agree::SNAPSHOTS,
    calls_succeed::RULE,
    answers_current::RULE,
    events_are_prompt::RULE,
    no_missed_events::OF_SANDBOXES,
];
