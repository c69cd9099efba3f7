//! The rules that every history must keep: one file each, with its row, its function and its tests.

#![cfg_attr(
    test,
    expect(
        clippy::needless_pass_by_value,
        clippy::needless_raw_string_hashes,
        reason = "this is how expect-test is used"
    )
)]

pub(super) mod agree;
pub(super) mod answers_current;
pub(super) mod calls_succeed;
pub(super) mod complete_sandbox_status;
pub(super) mod containers_in_snapshot;
pub(super) mod created_at_is_current;
pub(super) mod created_at_never_decreases;
pub(super) mod event_within_call;
pub(super) mod events_in_order;
pub(super) mod exit_code_of_process;
pub(super) mod known_type_and_full_id;
pub(super) mod no_duplicate_events;
pub(super) mod no_missed_events;
pub(super) mod no_replay;
pub(super) mod no_unknown_ids;
pub(super) mod plegs_agree;
pub(super) mod pod_events_in_time_order;
pub(super) mod sandbox_in_its_state;
pub(super) mod sandbox_with_pod_uid;
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
    events_in_order::RULE,
    no_duplicate_events::RULE,
    known_type_and_full_id::RULE,
    created_at_is_current::RULE,
    created_at_never_decreases::RULE,
    sandbox_with_pod_uid::RULE,
    status_as_new_as_event::RULE,
    snapshots_never_regress::RULE,
    no_unknown_ids::RULE,
    no_missed_events::RULE,
    subscribers_agree::RULE,
    plegs_agree::RULE,
    containers_in_snapshot::RULE,
    sandbox_in_its_state::RULE,
    snapshots::PREMATURE,
    exit_code_of_process::RULE,
    streams_stay_open::RULE,
    complete_sandbox_status::RULE,
    pod_events_in_time_order::RULE,
    no_replay::RULE,
    event_within_call::RULE,
    snapshots::RULE,
    agree::ANSWERS,
    agree::SNAPSHOTS,
    calls_succeed::RULE,
    answers_current::RULE,
];
