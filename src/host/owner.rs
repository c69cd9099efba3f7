//! The owner of files and cgroups on this host: the run and its process, as encoded in names.

use std::fmt;

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
    /// A run in this process.
    #[must_use]
    pub fn new(run: &RunId) -> Self {
        Self {
            run: run.to_string(),
            process: this_process(),
        }
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The process of the run, as [`is_alive`](super::is_alive) takes it.
    #[must_use]
    pub fn process(&self) -> &str {
        &self.process
    }

    /// Parses the name of a file or cgroup; none if it is not the name of a run's.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let (run, process) = name.strip_prefix(PREFIX)?.split_once('.')?;
        Self::parse(run, process)
    }

    /// Parses the parts of a name; none if they are not a run's.
    pub(super) fn parse(run: &str, process: &str) -> Option<Self> {
        let is_word = |word: &str| {
            let mut letters = word.bytes();
            !word.is_empty() && letters.all(|it| it.is_ascii_alphanumeric() || it == b'-')
        };
        (is_word(run) && is_word(process)).then(|| Self {
            run: run.to_owned(),
            process: process.to_owned(),
        })
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.run, self.process)
    }
}
