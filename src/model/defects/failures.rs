//! Defects after failed or abandoned creations, and of ids.

use std::time::Duration;

use super::{Fault, Row};
use crate::history::Request;
use crate::model::{Leftover, Twin};

pub(super) const FAILURES: &[Row] = &[
    (
        "created-for-a-refused-creation",
        Fault::Behaviour(|behaviour| behaviour.leftover = Leftover::Announced),
    ),
    (
        "refused-creation-stays",
        Fault::Behaviour(|behaviour| behaviour.leftover = Leftover::Listed),
    ),
    (
        "abandoned-container-removed-silently",
        Fault::Behaviour(|behaviour| {
            behaviour.cleans_up_silently = true;
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
        Fault::Behaviour(|behaviour| behaviour.leaks_processes = true),
    ),
    (
        "container-outlives-its-sandbox",
        Fault::Behaviour(|behaviour| behaviour.keeps_containers_of_removed_sandboxes = true),
    ),
    (
        "second-container-of-a-name",
        Fault::Behaviour(|behaviour| behaviour.twin = Twin::Second),
    ),
    (
        "removal-refused-for-ever",
        Fault::Behaviour(|behaviour| behaviour.refuses_removal_of_started = true),
    ),
    (
        "sandbox-found-by-uid",
        Fault::Behaviour(|behaviour| behaviour.resolves_sandbox_by_pod_uid = true),
    ),
    (
        "deleted-by-the-id-as-asked",
        Fault::Behaviour(|behaviour| behaviour.reports_requested_id = true),
    ),
];
