//! Whether the expectations of a case are about something, and can fail.

use super::findings::Findings;
use super::names::Names;
use crate::case::file::CaseFile;
use crate::checks::{CallEdge, Check, Kind, Scope, Wanted};
use crate::history::Holder;

pub(super) fn check(file: &CaseFile, names: &Names<'_>, found: &mut Findings) {
    if file.expect.is_empty() && file.expect_should.is_empty() {
        found
            .object("a case that expects nothing cannot fail")
            .advise("add `expect:` with what must be seen once the steps are over");
    }
    let mut bound = Bound { names, found };
    bound.list("expect", &file.expect);
    bound.list("expect-should", &file.expect_should);
}

/// The names of a case, and what is wrong with its checks.
struct Bound<'a, 'f> {
    names: &'a Names<'a>,
    found: &'f mut Findings,
}

impl Bound<'_, '_> {
    fn list(&mut self, key: &'static str, checks: &[Check]) {
        self.found.enter(key);
        for (index, check) in checks.iter().enumerate() {
            self.found.enter_element(index);
            self.found.enter(check.word());
            check.validate(self);
            self.found.leave();
            self.found.leave();
        }
        self.found.leave();
    }
}

impl<'a> Scope<'a> for Bound<'a, '_> {
    fn resolve_unsure(
        &mut self,
        key: &'static str,
        name: &str,
        wanted: Wanted,
    ) -> Option<Kind<'a>> {
        self.names.in_expectation((key, name), wanted, self.found)
    }

    fn is_unsure(&self, name: &str) -> bool {
        self.names.is_unsure(name)
    }

    fn is_called(&self, name: &str, edge: CallEdge) -> bool {
        self.names.is_called(name, edge)
    }

    fn is_relisted(&self, sandbox: &str) -> bool {
        self.names.is_relisted(sandbox)
    }

    fn measurements(&self, holder: Holder) -> u64 {
        self.names.measurements(holder)
    }

    fn enter(&mut self, key: &'static str) {
        self.found.enter(key);
    }

    fn leave(&mut self) {
        self.found.leave();
    }

    fn report(&mut self, key: Option<&'static str>, message: String) {
        match key {
            Some(key) => self.found.object_to(key, message),
            None => self.found.object(message),
        };
    }

    fn add_help(&mut self, help: String) {
        self.found.advise(help);
    }
}
