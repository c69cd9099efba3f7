//! Output in a GitHub workflow, which interprets lines such as `::error::…` as commands.

use super::Renderer;
use crate::outcome::Outcome;
use crate::report::github;

/// Renders outcomes as another renderer does, but so that GitHub interprets no line as a command.
pub(super) struct WithoutCommands<T> {
    lines: T,
    token: String,
}

impl<T: Renderer> WithoutCommands<T> {
    pub(super) fn new(lines: T) -> Self {
        let token = uuid::Uuid::new_v4().to_string();
        Self { lines, token }
    }
}

impl<T: Renderer> Renderer for WithoutCommands<T> {
    fn begin(&mut self, cases: usize, invariants: usize) -> String {
        github::stop(&self.token) + &self.lines.begin(cases, invariants)
    }

    fn outcome(&mut self, name: &str, outcome: &Outcome) -> String {
        self.lines.outcome(name, outcome)
    }

    fn end(&mut self) -> String {
        self.lines.end() + &github::resume(&self.token)
    }
}
