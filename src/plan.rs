//! Which cases run, and in what order. Pure.

use std::sync::Arc;

use crate::case::Case;

/// What the user wants to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only cases that match one of these; all if there are none.
    pub filters: Vec<String>,
    /// None that match one of these.
    pub skip: Vec<String>,
    /// Filters are whole ids or names, not parts of them.
    pub exact: bool,
    /// How often each case runs.
    pub repeat: u32,
}

/// One execution to come.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The case.
    pub case: Arc<Case>,
    /// Which repetition, from 1; absent unless cases are repeated.
    pub repetition: Option<u32>,
}

impl Selection {
    /// Whether a case or invariant with this id and name is wanted.
    #[must_use]
    pub fn takes(&self, id: &str, name: &str) -> bool {
        let wanted = self.filters.is_empty() || self.matches(&self.filters, id, name);
        wanted && !self.skips(id, name)
    }

    /// Whether a case or invariant with this id and name is skipped.
    #[must_use]
    pub fn skips(&self, id: &str, name: &str) -> bool {
        self.matches(&self.skip, id, name)
    }

    /// Whether it may leave cases out.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !self.filters.is_empty() || !self.skip.is_empty()
    }

    fn matches(&self, filters: &[String], id: &str, name: &str) -> bool {
        filters.iter().any(|filter| {
            if self.exact {
                filter == id || filter == name || *filter == label(id, name)
            } else {
                label(id, name).contains(filter.as_str())
            }
        })
    }

    /// The selected cases, in the order in which they start: those that may run beside others
    /// first, then those that run alone.
    #[must_use]
    pub fn plan(&self, cases: Vec<Case>) -> Vec<Planned> {
        let wanted = cases
            .into_iter()
            .filter(|case| self.takes(&case.id, &case.name));
        let mut wanted: Vec<Arc<Case>> = wanted.map(Arc::new).collect();
        wanted.sort_by(|a, b| (a.exclusive, &a.id).cmp(&(b.exclusive, &b.id)));
        let repetitions = 1..=self.repeat.max(1);
        let number = |repetition| (self.repeat > 1).then_some(repetition);
        let round = |repetition| {
            wanted
                .iter()
                .map(move |case| (case.clone(), number(repetition)))
        };
        let mut planned: Vec<Planned> = repetitions
            .flat_map(round)
            .map(|(case, repetition)| Planned { case, repetition })
            .collect();
        planned.sort_by_key(|planned| planned.case.exclusive);
        planned
    }
}

/// How a case is listed, and what filters look at: `ORD-01 order::created-started-stopped-deleted`.
#[must_use]
pub fn label(id: &str, name: &str) -> String {
    format!("{id} {name}")
}
