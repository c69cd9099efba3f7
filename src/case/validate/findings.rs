//! The problems found so far, and the path at which the search stands.

use crate::case::diagnose::Problem;
use crate::case::locate::{Part, Segment};

/// Collects problems at paths.
#[derive(Default)]
pub(in crate::case) struct Findings {
    path: Vec<Segment>,
    problems: Vec<Problem>,
}

impl Findings {
    /// Goes down to the value of a key.
    pub(super) fn enter(&mut self, key: &'static str) {
        self.path.push(Segment::Key(key));
    }

    /// Goes down to an element of a list.
    pub(super) fn enter_element(&mut self, index: usize) {
        self.path.push(Segment::Index(index));
    }
    pub(super) fn leave(&mut self) {
        self.path.pop();
    }

    /// Objects to the value of a key.
    pub(super) fn object_to(&mut self, key: &'static str, message: impl Into<String>) -> &mut Self {
        self.enter(key);
        self.push(Part::Value, message.into());
        self.leave();
        self
    }

    /// Objects to an element of the list that is the value of a key.
    pub(super) fn object_to_element(
        &mut self,
        key: &'static str,
        index: usize,
        message: impl Into<String>,
    ) -> &mut Self {
        self.enter(key);
        self.enter_element(index);
        self.push(Part::Value, message.into());
        self.leave();
        self.leave();
        self
    }

    /// Objects to the whole at which the search stands, pointing at its key.
    pub(super) fn object(&mut self, message: impl Into<String>) -> &mut Self {
        self.push(Part::Key, message.into());
        self
    }

    /// Adds a way out to the latest objection.
    pub(in crate::case) fn advise(&mut self, help: impl Into<String>) {
        if let Some(problem) = self.problems.last_mut() {
            problem.help = Some(help.into());
        }
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems
    }

    fn push(&mut self, part: Part, message: String) {
        self.problems.push(Problem {
            path: self.path.clone(),
            part,
            message,
            help: None,
        });
    }
}
