//! What can be wrong with what could not be made, with what its caller gave up, and with ids.

use std::time::Duration;

use super::{Fault, Row};
use crate::history::Request;
use crate::model::Leftover;

pub(super) const FAILURES: &[Row] = &[
    (
        "created-for-a-refused-creation",
        Fault::Behaviour(|behaviour| behaviour.leftover = Leftover::Told),
    ),
    (
        "refused-creation-stays",
        Fault::Behaviour(|behaviour| behaviour.leftover = Leftover::Listed),
    ),
    (
        "taken-back-silently",
        Fault::Behaviour(|behaviour| {
            behaviour.undoes_silently = true;
            behaviour.replies.push(|request, mut answer| {
                if matches!(request, Request::CreateContainer(_)) {
                    answer.after = Some(Duration::from_millis(20));
                }
                answer
            });
        }),
    ),
    (
        "process-outlives-its-container",
        Fault::Behaviour(|behaviour| behaviour.leaves_processes = true),
    ),
    (
        "removal-refused-for-ever",
        Fault::Behaviour(|behaviour| behaviour.refuses_removal_of_started = true),
    ),
    (
        "sandbox-found-by-uid",
        Fault::Behaviour(|behaviour| behaviour.finds_sandboxes_by_uid = true),
    ),
    (
        "deleted-by-the-id-as-asked",
        Fault::Behaviour(|behaviour| behaviour.tells_ids_as_asked = true),
    ),
];
