//! The catalogue of the suite: requirements, the cases and invariants that check them, the defects
//! that they must notice, and the known failures of runtimes.
//!
//! Pure and independent of any run; known failures come from the built-in expectation files.

mod explain;
mod pages;
#[cfg(test)]
mod tests;

use crate::case::{Case, Defect, Requirement};
use crate::oracle::INVARIANTS;
use crate::outcome::{Level, Levels, Profile};
use crate::verdicts::{Known, KnownFailure, builtin};

/// The requirements, cases, defects and known failures.
#[derive(Clone, Debug)]
pub struct Catalogue {
    cases: Vec<Case>,
    requirements: Vec<Requirement>,
    defects: Vec<Defect>,
    expectations: Vec<Known>,
}

/// A case or an invariant that checks requirements.
#[derive(Clone, Debug)]
pub struct Checker<'a> {
    pub id: &'a str,
    pub name: &'a str,
    /// Its rule, as a sentence.
    pub title: &'a str,
    /// The ids of the requirements that it checks.
    pub requirements: Vec<&'a str>,
    /// The requirement level for each profile.
    pub levels: Levels,
}

impl Catalogue {
    /// A catalogue with the built-in known failures.
    pub fn new(cases: Vec<Case>, requirements: Vec<Requirement>, defects: Vec<Defect>) -> Self {
        Self {
            cases,
            requirements,
            defects,
            expectations: builtin(),
        }
    }

    pub fn checkers(&self) -> impl Iterator<Item = Checker<'_>> {
        let cases = self.cases.iter().map(|case| Checker {
            id: &case.id,
            name: &case.name,
            title: &case.title,
            requirements: case.requirements.iter().map(String::as_str).collect(),
            levels: case.levels,
        });
        let invariants = INVARIANTS.iter().map(|invariant| Checker {
            id: invariant.id,
            name: invariant.name,
            title: invariant.sentence,
            requirements: invariant.requirements.to_vec(),
            levels: invariant.levels,
        });
        cases.chain(invariants)
    }

    /// The cases and invariants that check a requirement.
    pub fn checkers_of<'a>(&'a self, requirement: &str) -> impl Iterator<Item = Checker<'a>> {
        self.checkers()
            .filter(move |checker| checker.requirements.contains(&requirement))
    }

    /// The requirements that are a MUST for a profile in which no case or invariant checks them as
    /// a MUST.
    pub fn unchecked(&self) -> impl Iterator<Item = (&Requirement, Profile)> {
        let is_must = |levels: Levels, profile| levels.of(profile) == Some(Level::Must);
        let demanded = self.requirements.iter().flat_map(move |requirement| {
            let profiles = Profile::ALL
                .into_iter()
                .filter(move |profile| is_must(requirement.levels, *profile));
            profiles.map(move |profile| (requirement, profile))
        });
        demanded.filter(move |(requirement, profile)| {
            let mut checkers = self.checkers_of(&requirement.id);
            !checkers.any(|checker| is_must(checker.levels, *profile))
        })
    }

    /// References to requirements that do not exist, with the id or name of their origin.
    pub fn dangling(&self) -> impl Iterator<Item = (String, &str)> {
        let checkers = self
            .checkers()
            .map(|checker| (checker.id.to_owned(), checker.requirements));
        let defects = self.defects.iter().map(|defect| {
            let requirements = defect.requirements.iter().map(String::as_str);
            (defect.name.clone(), requirements.collect())
        });
        let named = checkers.chain(defects).flat_map(|(id, requirements)| {
            let named = requirements.into_iter();
            named.map(move |requirement| (id.clone(), requirement))
        });
        named.filter(|(_, id)| self.requirement(id).is_none())
    }

    fn requirement(&self, id: &str) -> Option<&Requirement> {
        let mut requirements = self.requirements.iter();
        requirements.find(|requirement| requirement.id == id)
    }

    /// The defects that a case or an invariant must notice.
    fn noticed_by(&self, id: &str) -> impl Iterator<Item = &Defect> {
        self.defects
            .iter()
            .filter(move |defect| defect.noticed_by.iter().any(|by| by == id))
    }

    /// The known failures of a case or an invariant, by runtime.
    fn offenders<'a>(&'a self, id: &str) -> Vec<(&'a str, &'a KnownFailure)> {
        let files = self.expectations.iter();
        let offenders = files.flat_map(|known| {
            let failures = known.known.iter().filter(|failure| failure.case == id);
            failures.map(|failure| (known.runtime.as_str(), failure))
        });
        offenders.collect()
    }
}
