//! What can be wrong with what could not be made, with what its caller gave up, and with ids.

use std::time::Duration;

use super::{Defect, Fault};
use crate::history::Request;
use crate::model::Leftover;

pub(super) const FAILURES: &[Defect] = &[
    Defect {
        name: "created-for-a-refused-creation",
        what: "What could not be made is told to be CREATED, and never to be DELETED.",
        imitates: "CRI-O main, StartContainer: what failed is removed after its CREATED, untold",
        requirements: &["R6"],
        shown_in: &["FLR-01", "FLR-04", "FLR-05", "FLR-05a", "FLR-06", "FLR-08"],
        noticed_by: &["FLR-01", "FLR-04", "FLR-05", "FLR-05a", "FLR-06", "FLR-08"],
        fault: Fault::Behaviour(|behaviour| behaviour.leftover = Leftover::Told),
    },
    Defect {
        name: "refused-creation-stays",
        what: "What could not be made stays in the lists, and nothing tells of it.",
        imitates: "cri-o/cri-o#8272 (a failed creation left what could not be removed)",
        requirements: &["R6", "R23"],
        shown_in: &["FLR-01", "FLR-05", "FLR-05a"],
        noticed_by: &["FLR-01", "FLR-05", "FLR-05a"],
        fault: Fault::Behaviour(|behaviour| behaviour.leftover = Leftover::Listed),
    },
    Defect {
        name: "taken-back-silently",
        what: "A container whose maker has gone is removed after its CREATED, without DELETED.",
        imitates: "catalogue: a call that is given up and taken back",
        requirements: &["R6", "R23"],
        shown_in: &["FLR-09"],
        noticed_by: &["FLR-09"],
        fault: Fault::Behaviour(|behaviour| {
            behaviour.undoes_silently = true;
            behaviour.replies.push(|request, mut answer| {
                if matches!(request, Request::CreateContainer(_)) {
                    answer.after = Some(Duration::from_millis(20));
                }
                answer
            });
        }),
    },
    Defect {
        name: "process-outlives-its-container",
        what: "A container is removed, and told to be, and its process lives on.",
        imitates: "containerd 2.1.9: what a start leaves whose caller has gone (FLR-09b)",
        requirements: &["R6"],
        shown_in: &["FLR-09b"],
        noticed_by: &["FLR-09b"],
        fault: Fault::Behaviour(|behaviour| behaviour.leaves_processes = true),
    },
    Defect {
        name: "removal-refused-for-ever",
        what: "The removal of a container that was started is refused, however often it is tried.",
        imitates: "containerd 2.1.9, cannot delete running task: after a start whose caller has gone",
        requirements: &["R6"],
        shown_in: &["FLR-09b"],
        noticed_by: &["FLR-09b"],
        fault: Fault::Behaviour(|behaviour| behaviour.refuses_removal_of_started = true),
    },
    Defect {
        name: "sandbox-found-by-uid",
        what: "Events tell the latest sandbox of the pod, though they are about an earlier one.",
        imitates: "CRI-O main: what an event shows is found by the pod's UID",
        requirements: &["R12", "R13"],
        shown_in: &["SBX-08", "SNP-06b"],
        noticed_by: &["SBX-08", "INV-18", "SNP-06b"],
        fault: Fault::Behaviour(|behaviour| behaviour.finds_sandboxes_by_uid = true),
    },
    Defect {
        name: "deleted-by-the-id-as-asked",
        what: "DELETED of what was removed by the beginning of its id has that as its id.",
        imitates: "catalogue: an event that is made of the request, and not of what it has found",
        requirements: &["R11"],
        shown_in: &["CMP-11"],
        noticed_by: &["CMP-11", "INV-03"],
        fault: Fault::Behaviour(|behaviour| behaviour.tells_ids_as_asked = true),
    },
];
