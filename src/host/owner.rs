//! Who made what stands on this host: the run and its process, as they stand in names.

use std::fmt;

use super::this_process;
use crate::history::RunId;

/// What the name of everything that runs make on a host begins with.
pub(super) const PREFIX: &str = "cri-event-conformance-";

/// A run and the process that it runs in.
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

    /// The owner from the name of what a run has made; none if no run can have given it.
    pub(super) fn in_name(name: &str) -> Option<Self> {
        let (run, process) = name.strip_prefix(PREFIX)?.split_once('.')?;
        Self::parse(run, process)
    }

    /// The owner from the words of a name; none if no run can have given it.
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
