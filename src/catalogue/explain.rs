//! `explain`: describes one id of the catalogue.

use std::fmt::Write as _;

use super::{Catalogue, Checker};
use crate::case::{self, Case, Defect, Requirement};
use crate::model::fault_named;
use crate::oracle::{INVARIANTS, Invariant};
use crate::plan::label;
use crate::report::Sheet;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no case, invariant, requirement or defect `{id}`; {help}")]
pub struct UnknownId {
    id: String,
    help: String,
}

impl Catalogue {
    /// Describes a case, an invariant, a requirement or a defect, found by its id or name, ignoring
    /// case.
    pub fn explain(&self, id: &str) -> Result<String, UnknownId> {
        if let Some(sheet) = self.sheet(id) {
            return Ok(sheet.into_text());
        }
        let folded = id.to_ascii_uppercase();
        let help = case::did_you_mean(&folded, self.ids())
            .or_else(|| case::did_you_mean(&id.to_ascii_lowercase(), self.names()));
        Err(UnknownId {
            id: id.to_owned(),
            help: help.unwrap_or_else(|| "`--list` and `defects` list all".to_owned()),
        })
    }

    fn sheet(&self, id: &str) -> Option<Sheet> {
        let is = |known: &str| known.eq_ignore_ascii_case(id);
        let mut cases = self.cases.iter();
        if let Some(case) = cases.find(|case| is(&case.id) || is(&case.name)) {
            return Some(self.case_sheet(case));
        }
        let mut invariants = INVARIANTS.iter();
        if let Some(rule) = invariants.find(|rule| is(rule.id) || is(rule.name)) {
            return Some(self.invariant_sheet(rule));
        }
        if let Some(requirement) = self.requirements.iter().find(|known| is(&known.id)) {
            return Some(self.requirement_sheet(requirement));
        }
        let defect = self.defects.iter().find(|defect| is(&defect.name));
        defect.map(|defect| self.defect_sheet(defect))
    }

    fn ids(&self) -> impl Iterator<Item = &str> {
        let requirements = self
            .requirements
            .iter()
            .map(|requirement| requirement.id.as_str());
        self.checkers()
            .map(|checker| checker.id)
            .chain(requirements)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let defects = self.defects.iter().map(|defect| defect.name.as_str());
        self.checkers().map(|checker| checker.name).chain(defects)
    }

    pub(super) fn case_sheet(&self, case: &Case) -> Sheet {
        let mut sheet = Sheet::new(&label(&case.id, &case.name), &case.title);
        sheet.paragraph("why it matters", &case.why);
        let mut facts = format!("{}; tier {}", case.levels, case.tier);
        if !case.tags.is_empty() {
            let _ = write!(facts, "; tags {}", case.tags.join(", "));
        }
        if case.exclusive {
            facts.push_str("; exclusive");
        }
        sheet.paragraph("levels", &facts);
        self.requirements_of(&mut sheet, case.requirements.iter().map(String::as_str));
        sheet.items("sources", &case.sources);
        sheet.verbatim("definition", procedure(&case.definition));
        self.proofs(&mut sheet, &case.id);
        sheet
    }

    pub(super) fn invariant_sheet(&self, invariant: &Invariant) -> Sheet {
        let title = label(invariant.id, invariant.name);
        let mut sheet = Sheet::new(&title, invariant.sentence);
        let levels = format!("{}; judged on the history of every case", invariant.levels);
        sheet.paragraph("levels", &levels);
        self.requirements_of(&mut sheet, invariant.requirements.iter().copied());
        sheet.items("sources", &[invariant.source]);
        self.proofs(&mut sheet, invariant.id);
        sheet
    }

    pub(super) fn requirement_sheet(&self, requirement: &Requirement) -> Sheet {
        let mut sheet = Sheet::new(&requirement.id, &requirement.sentence);
        sheet.paragraph("if violated", &requirement.breaks);
        sheet.paragraph("levels", &requirement.levels.to_string());
        sheet.items("sources", &requirement.sources);
        let checkers: Vec<_> = self
            .checkers_of(&requirement.id)
            .map(|checker| Self::line(&checker))
            .collect();
        sheet.items("checked by", &checkers);
        if let Some(later) = &requirement.later {
            sheet.paragraph("not checked in full yet", later);
        }
        let breaks = self
            .defects
            .iter()
            .filter(|defect| defect.requirements.contains(&requirement.id));
        sheet.items(
            "violated by defects",
            &breaks.map(describe).collect::<Vec<_>>(),
        );
        sheet
    }

    pub(super) fn defect_sheet(&self, defect: &Defect) -> Sheet {
        let mut sheet = Sheet::new(&defect.name, &defect.description);
        sheet.paragraph("similar to", &defect.similar_to);
        self.requirements_of(&mut sheet, defect.requirements.iter().map(String::as_str));
        let named = |ids: &[&str]| -> Vec<String> {
            let named = self.checkers().filter(|checker| ids.contains(&checker.id));
            named.map(|checker| Self::line(&checker)).collect()
        };
        let shown_in: Vec<&str> = defect.shown_in().collect();
        let noticed_by: Vec<&str> = defect.noticed_by.iter().map(String::as_str).collect();
        sheet.items("shown in", &named(&shown_in));
        sheet.items("noticed by", &named(&noticed_by));
        let shown_in = shown_in.join(" ");
        let mut how = format!(
            "--runtime-endpoint model --defect {} {shown_in}\n",
            defect.name
        );
        if fault_named(&defect.name).is_some_and(|named| named.fault.is_relayable()) {
            let _ = writeln!(
                how,
                "--runtime-endpoint ENDPOINT --inject {} {shown_in}",
                defect.name
            );
        }
        sheet.verbatim("reproduce with", &how);
        sheet
    }

    fn requirements_of<'a>(&self, sheet: &mut Sheet, ids: impl Iterator<Item = &'a str>) {
        let requirements = ids.map(|id| match self.requirement(id) {
            Some(requirement) => format!("{id} {}", requirement.sentence),
            None => format!("{id} (there is no such requirement)"),
        });
        sheet.items("requirements", &requirements.collect::<Vec<_>>());
    }

    /// The defects that it notices, and the runtimes that fail it.
    fn proofs(&self, sheet: &mut Sheet, id: &str) {
        let defects: Vec<_> = self.noticed_by(id).map(describe).collect();
        sheet.items("defects that it notices", &defects);
        let offenders = self.offenders(id).into_iter();
        let offenders = offenders.map(|(runtime, failure)| {
            let when = failure.when.as_ref().map(|when| format!(" {when}"));
            let sometimes = failure.is_race() && failure.rate.is_none();
            let sometimes = if sometimes { ", sometimes" } else { "" };
            let (when, why) = (when.unwrap_or_default(), failure.explanation());
            format!("{runtime}{when}{sometimes}: {why}")
        });
        sheet.items("known to fail on", &offenders.collect::<Vec<_>>());
    }

    fn line(checker: &Checker<'_>) -> String {
        let Checker {
            id, title, levels, ..
        } = checker;
        format!("{id} {title} ({levels})")
    }
}

/// The part of a case's YAML below the levels: needs, steps and expectations.
fn procedure(definition: &str) -> &str {
    let levels = definition.find("\nlevels:").map_or(0, |at| at + 1);
    let end = definition[levels..].find('\n');
    end.map_or("", |end| &definition[levels + end + 1..])
}

fn describe(defect: &Defect) -> String {
    format!("{}: {}", defect.name, defect.description)
}
