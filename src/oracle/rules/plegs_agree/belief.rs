//! The belief of a kubelet about a pod, and the differences between two beliefs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::history::{EventArrival, EventKind, SandboxState};
use crate::outcome::{Fact, Facts};
use crate::pleg::{Moment, PodStatus, State};

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

/// The data of a belief, which is derived on demand.
#[derive(Clone, Debug, Default)]
pub(super) struct Believed(pub(super) Option<Arc<PodStatus>>);

impl<'a> Part<'a> {
    pub(super) fn id(&self) -> &'a str {
        match self {
            Self::Sandbox(id) | Self::Container(_, id) => id,
        }
    }

    /// The id of a container.
    pub(super) fn container(&self) -> Option<&'a str> {
        match self {
            Self::Sandbox(_) => None,
            Self::Container(_, id) => Some(id),
        }
    }
}

impl Believed {
    /// The belief about the parts of the pod that are not older than a sandbox. An event's snapshot
    /// has only one sandbox, so that an evented kubelet knows the newest one.
    pub(super) fn belief(&self, since: Moment) -> Belief<'_> {
        let status = self.0.as_ref();
        status.map_or_else(Belief::new, |status| belief(status, since))
    }

    /// The creation time of the newest sandbox; [`Moment::NEVER`] without one.
    pub(super) fn newest_sandbox(&self) -> Moment {
        let status = self.0.iter();
        let sandboxes = status.flat_map(|status| &status.sandboxes);
        let newest = sandboxes.map(|sandbox| sandbox.created_at).max();
        newest.unwrap_or(Moment::NEVER)
    }

    /// The last of a pod's events, if its snapshot has an older sandbox than this relist: a kubelet
    /// that follows events then believes nothing of the newest sandbox.
    pub(super) fn replaced_by<'a>(
        &self,
        events: impl Iterator<Item = &'a EventArrival>,
    ) -> Option<Fact> {
        let kept = events.filter(|arrival| arrival.event().kind != EventKind::Deleted);
        let event = kept.max_by_key(|arrival| arrival.seq())?.event();
        let shown = event.sandbox.as_ref()?;
        let sandboxes = &self.0.as_ref()?.sandboxes;
        let newest = sandboxes.iter().max_by_key(|sandbox| sandbox.created_at)?;
        let is_same = newest.id.as_str() == shown.id.as_str();
        let is_older = !is_same && newest.created_at >= shown.created_at.into();
        is_older.then(|| {
            let (kind, id) = (event.kind, &event.container);
            Fact::Cause(format!("{kind} of {id} in the older sandbox {}", shown.id))
        })
    }

    pub(super) fn differs_from(&self, other: &Self) -> bool {
        let statuses = self.0.as_ref().zip(other.0.as_ref());
        let is_same = statuses.is_some_and(|(own, other)| Arc::ptr_eq(own, other));
        !is_same && self.belief(Moment::NEVER) != other.belief(Moment::NEVER)
    }
}

/// The belief derived from a pod's status, without the parts created before `since`.
fn belief(status: &PodStatus, since: Moment) -> Belief<'_> {
    let sandboxes = status.sandboxes.iter();
    let sandboxes = sandboxes.filter(|sandbox| sandbox.created_at >= since);
    let sandboxes = sandboxes.map(|sandbox| {
        let part = Part::Sandbox(sandbox.id.as_str());
        (part, PartStatus::Sandbox(sandbox.state))
    });
    let containers = status
        .containers
        .iter()
        .filter(|container| container.created_at >= since)
        .map(|container| {
            let part = Part::Container(&container.name, container.id.as_str());
            let (state, code) = (container.state, container.exit_code);
            (part, PartStatus::Container(state, code, &container.reason))
        });
    sandboxes.chain(containers).collect()
}

/// The differences between one belief and all of several successive ones: the text of the one and
/// of the last of the several, with the parts that differ. A relist reads the parts in sequence,
/// and an event may show two changes at once, so that each part is compared separately.
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
