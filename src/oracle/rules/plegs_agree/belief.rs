//! The belief of a kubelet about a pod, and the differences between two beliefs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::history::SandboxState;
use crate::outcome::{Fact, Facts};
use crate::pleg::{PodStatus, State};

/// The belief of a kubelet about one pod: the status of each part.
pub(super) type Belief<'a> = BTreeMap<Part<'a>, PartStatus<'a>>;

/// A sandbox of a pod by its id, or a container by its name and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part<'a> {
    Sandbox(&'a str),
    Container(&'a str, &'a str),
}

/// The state of a part; for a container, its exit code and reason, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartStatus<'a> {
    Sandbox(SandboxState),
    Container(State, i32, &'a str),
}

/// The belief that follows from a pod's status, without the containers that events have deleted.
pub(super) fn belief<'a>(status: &'a PodStatus, deleted: &BTreeSet<String>) -> Belief<'a> {
    let sandboxes = status.sandboxes.iter().map(|sandbox| {
        let part = Part::Sandbox(sandbox.id.as_str());
        (part, PartStatus::Sandbox(sandbox.state))
    });
    let containers = status
        .containers
        .iter()
        .filter(|container| !deleted.contains(container.id.as_str()))
        .map(|container| {
            let part = Part::Container(&container.name, container.id.as_str());
            let (state, code) = (container.state, container.exit_code);
            (part, PartStatus::Container(state, code, &container.reason))
        });
    sandboxes.chain(containers).collect()
}

/// The differences between one belief and all of several successive ones: the text of the one and
/// of the last of the several, with the parts that they are about. A relist reads one part after
/// the other, and an event may show two changes at once, so that each part is compared by itself.
pub(super) fn differences(
    relisting: &Belief<'_>,
    evented: &[Belief<'_>],
) -> BTreeMap<Facts, Vec<String>> {
    let nothing = Belief::new();
    let last = evented.last().unwrap_or(&nothing);
    let parts: BTreeSet<&Part<'_>> = relisting.keys().chain(last.keys()).collect();
    let differs = |part: &&Part<'_>| {
        let mut held = evented.iter().map(|belief| belief.get(*part));
        held.all(|held| held != relisting.get(*part))
    };
    let text = |belief: &Belief<'_>, part: &Part<'_>| {
        let status = belief.get(part).map(ToString::to_string);
        status.unwrap_or_else(|| "nothing".to_owned())
    };
    let mut differences = BTreeMap::<_, Vec<_>>::new();
    for part in parts.into_iter().filter(differs) {
        let (relisting, evented) = (text(relisting, part), text(last, part));
        if relisting != evented {
            let beliefs = [Fact::ByRelists(relisting), Fact::ByEvents(evented)].into();
            differences
                .entry(beliefs)
                .or_default()
                .push(part.to_string());
        }
    }
    differences
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sandbox(id) => write!(f, "sandbox {id}"),
            Self::Container("", id) => f.write_str(id),
            Self::Container(name, id) => write!(f, "{name} {id}"),
        }
    }
}

impl fmt::Display for PartStatus<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sandbox(state) => state.fmt(f),
            Self::Container(state, code, "") => write!(f, "{} {code}", state.label()),
            Self::Container(state, code, reason) => write!(f, "{} {code} {reason}", state.label()),
        }
    }
}
