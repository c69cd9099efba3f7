//! What of this host is a run's: files and cgroups by the run and its process in their names,
//! processes by the id of what a call of the run made and by their age.

use std::collections::BTreeMap;
use std::fmt;

use super::clock::BootTicks;
use super::this_process;
use crate::history::RunId;

/// The prefix of the names of everything that runs create on a host.
pub(super) const PREFIX: &str = "cri-event-conformance-";

/// A run and its process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    run: String,
    process: String,
}

impl Owner {
    pub fn new(run: &RunId) -> Self {
        Self {
            run: run.to_string(),
            process: this_process(),
        }
    }

    pub fn run(&self) -> &str {
        &self.run
    }

    /// The process of the run, as [`is_alive`](super::is_alive) takes it.
    pub fn process(&self) -> &str {
        &self.process
    }

    /// When the process began; none if its name does not say.
    pub(super) fn began(&self) -> Option<BootTicks> {
        self.process.split_once('-')?.1.parse().ok()
    }

    /// Parses the name of a file or cgroup; none if it is not the name of a run's.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let (run, process) = name.strip_prefix(PREFIX)?.split_once('.')?;
        Self::parse(run, process)
    }

    /// Parses the parts of a name; none if they are not a run's, whose id is a UUID.
    pub fn parse(run: &str, process: &str) -> Option<Self> {
        let mut letters = process.bytes();
        let is_word = letters.all(|it| it.is_ascii_alphanumeric() || it == b'-');
        (is_uuid(run) && is_word && !process.is_empty()).then(|| Self {
            run: run.to_owned(),
            process: process.to_owned(),
        })
    }
}

/// Whether this is a UUID as the suite writes one.
pub fn is_uuid(text: &str) -> bool {
    uuid::Uuid::try_parse(text).is_ok_and(|uuid| uuid.to_string() == text)
}

/// The minimum length of an id, in bytes. Those of containerd and CRI-O have 64.
pub(super) const SHORTEST_ID: usize = 32;

/// The id of a sandbox or container that a call of a run made. Its processes began after that call
/// did: an older one is of something else that bears the id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnId {
    pub id: String,
    pub since: BootTicks,
}

impl fmt::Display for OwnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

/// The ids of sandboxes and containers that calls of a run made. Ids that are too short to be
/// unique are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnIds(BTreeMap<String, BootTicks>);

impl OwnIds {
    /// Adds an id. One that is there keeps its time.
    pub fn insert(&mut self, OwnId { id, since }: OwnId) {
        if id.len() >= SHORTEST_ID {
            self.0.entry(id).or_insert(since);
        }
    }

    /// The id with its time; none if it is not among these.
    pub fn get(&self, id: &str) -> Option<OwnId> {
        let (id, since) = self.0.get_key_value(id)?;
        let (id, since) = (id.clone(), *since);
        Some(OwnId { id, since })
    }

    /// Whether it is among these.
    pub fn contains(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those for which this holds.
    pub fn only(&self, holds: impl Fn(&str) -> bool) -> Self {
        self.iter().filter(|own| holds(&own.id)).collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = OwnId> {
        let all = self.0.iter();
        all.map(|(id, since)| OwnId {
            id: id.clone(),
            since: *since,
        })
    }

    /// Whether a process that began then may be of this id.
    pub(super) fn may_own(&self, id: &str, began: BootTicks) -> bool {
        self.0.get(id).is_some_and(|since| began >= *since)
    }
}

impl FromIterator<OwnId> for OwnIds {
    fn from_iter<T: IntoIterator<Item = OwnId>>(ids: T) -> Self {
        let mut all = Self::default();
        all.extend(ids);
        all
    }
}

impl Extend<OwnId> for OwnIds {
    fn extend<T: IntoIterator<Item = OwnId>>(&mut self, ids: T) {
        ids.into_iter().for_each(|own| self.insert(own));
    }
}

/// The id in a component of a cgroup's path: all of the component, or what follows the prefix of a
/// runtime, as in `cri-containerd-ID.scope` and `crio-conmon-ID`.
pub(super) fn id_in(component: &str) -> &str {
    let plain = component.strip_suffix(".scope").unwrap_or(component);
    let is_prefix = |text: &str| {
        let mut letters = text.bytes();
        letters.all(|letter| letter.is_ascii_lowercase() || letter == b'-')
    };
    match plain.rsplit_once('-') {
        Some((prefix, id)) if is_prefix(prefix) => id,
        _ => plain,
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.run, self.process)
    }
}
