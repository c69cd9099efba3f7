//! Leftovers of earlier runs of this suite.

use super::finding::{Area, Finding, Status};

/// The maximum number of listed leftovers.
const LISTED: usize = 20;

/// The finding, given one line per leftover.
pub(super) fn finding(leftovers: &[String]) -> Finding {
    let read = "ListPodSandbox, ListContainers, ListImages, /var/log, cgroups";
    if leftovers.is_empty() {
        let (id, finding) = (
            "no-leftovers",
            "no earlier run of this suite left anything behind",
        );
        return Finding::new((Area::Leftovers, Status::Ok), id, finding, read);
    }
    let mut listed = leftovers
        .iter()
        .take(LISTED)
        .map(String::as_str)
        .collect::<Vec<_>>();
    let more = leftovers.len().saturating_sub(LISTED);
    let more = format!("{more} more");
    if leftovers.len() > LISTED {
        listed.push(&more);
    }
    let finding = format!(
        "earlier runs of this suite left behind: {}",
        listed.join(", ")
    );
    Finding::new((Area::Leftovers, Status::Note), "leftovers", finding, read)
        .why("They use resources of the node, and a kubelet reports containers that it does not know.")
        .fix("cri-event-conformance cleanup, with --runtime-endpoint of the runtime of the run")
}
