//! The catalogue of the suite: requirements, the cases and invariants that check them, the defects
//! that they must notice, and the known failures of runtimes.
//!
//! Pure and independent of any run; known failures come from the built-in expectation files, and
//! the pages about them from `ci/findings`.

mod page;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::case::{self, Case, Defect, Requirement, Tier};
use crate::model::{NamedFault, fault_named};
use crate::oracle::{INVARIANTS, Invariant};
use crate::outcome::{Guarantee, Kind, Level, Levels, Profile, area};
use crate::plan::label;
use crate::report::{Markdown, Sheet};
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

/// A file of an mdBook: a page for each guarantee, case, invariant, requirement and defect, named
/// for its id, which is never reused, and a list of each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub file: String,
    pub text: String,
}

/// A page's name, its title in lists, and its content.
type Entry = (String, String, Sheet);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is nothing of the name `{id}` to explain; {help}")]
pub struct UnknownId {
    id: String,
    help: String,
}

impl Checker<'_> {
    /// The guarantee that a pass proves; `None` for a case of a user's own area.
    pub fn guarantee(&self) -> Option<Guarantee> {
        Guarantee::proven_by(self.name, &self.requirements)
    }
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

    /// Describes all that has this id or name, ignoring case: a case, an area of cases, an
    /// invariant, a requirement, a defect of the model, a guarantee, a kind of finding, a profile,
    /// or a page about a defect of a runtime. Wrapped for a terminal with these columns.
    pub fn explain(&self, id: &str, columns: usize) -> Result<String, UnknownId> {
        let sheets = self.sheets(id).into_iter();
        let sheets = sheets.map(|sheet| sheet.into_text(columns));
        let texts: Vec<String> = self.findings(id).into_iter().chain(sheets).collect();
        if !texts.is_empty() {
            return Ok(texts.join("\n"));
        }
        let mut known = self.known();
        known.extend(Self::finding_paths());
        let is_filter = id.contains(':');
        // Ids of the catalogue have three letters.
        let is_own = id.split_once('-').is_some_and(|(area, number)| {
            area.len() > 3 && number.starts_with(|digit: char| digit.is_ascii_digit())
        });
        let help = case::successor(id)
            .or_else(|| is_filter.then(|| format!("`--list {id}` shows the cases of a filter")))
            .or_else(|| {
                is_own.then(|| "name the file of a case of your own with --cases".to_owned())
            })
            .or_else(|| case::did_you_mean(id, known.iter().map(String::as_str)));
        Err(UnknownId {
            id: id.to_owned(),
            help: help.unwrap_or_else(|| "`--list` and `defects` list all".to_owned()),
        })
    }

    fn sheets(&self, id: &str) -> Vec<Sheet> {
        let is = |known: &str| known.eq_ignore_ascii_case(id);
        let cases = self.cases.iter().filter(|it| is(&it.id) || is(&it.name));
        let cases = cases.map(|case| self.case_sheet(case));
        let rules = INVARIANTS.iter().filter(|it| is(it.id) || is(it.name));
        let rules = rules.map(|rule| self.invariant_sheet(rule));
        let requirements = self.requirements.iter().filter(|it| is(&it.id));
        let requirements = requirements.map(|it| self.requirement_sheet(it));
        let defects = self.defects.iter().filter(|defect| is(&defect.name));
        let defects = defects.map(|defect| self.defect_sheet(defect));
        let guarantees = Guarantee::ALL.into_iter().filter(|it| is(it.name()));
        let guarantees = guarantees.map(|it| self.guarantee_sheet(it));
        let kinds = Kind::ALL.iter().filter(|kind| is(kind.key()));
        let kinds = kinds.map(|kind| Self::kind_sheet(*kind));
        let profiles = Profile::ALL.into_iter().filter(|it| is(it.name()));
        let profiles = profiles.map(|profile| self.profile_sheet(profile));
        let sheets = cases.chain(rules).chain(requirements).chain(defects);
        let sheets = sheets.chain(guarantees).chain(kinds).chain(profiles);
        sheets.chain(self.area_sheet(id)).collect()
    }

    /// The ids and names that can be explained.
    pub fn known(&self) -> Vec<String> {
        let ids = self.checkers().map(|checker| checker.id);
        let names = self.checkers().map(|checker| checker.name);
        let requirements = self.requirements.iter().map(|it| it.id.as_str());
        let defects = self.defects.iter().map(|defect| defect.name.as_str());
        let known = ids.chain(requirements).chain(names).chain(defects);
        let known = known.chain(Guarantee::ALL.map(Guarantee::name));
        let known = known.chain(Kind::ALL.iter().map(|kind| kind.key()));
        let known = known.chain(Profile::ALL.map(Profile::name));
        let known = known.map(str::to_owned);
        known.chain(Self::finding_names()).collect()
    }

    fn case_sheet(&self, case: &Case) -> Sheet {
        let mut sheet = Sheet::new(&label(&case.id, &case.name), &case.title);
        sheet.paragraph("why it matters", &case.why);
        let mut facts = format!("{}; tier {}", case.levels, case.tier);
        let proves = Guarantee::proven_by(&case.name, &case.requirements);
        if let Some(guarantee) = proves {
            let _ = write!(facts, "; proves {guarantee}");
        }
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

    fn invariant_sheet(&self, invariant: &Invariant) -> Sheet {
        let title = label(invariant.id, invariant.name);
        let mut sheet = Sheet::new(&title, invariant.sentence);
        let proves = Guarantee::proven_by(invariant.name, invariant.requirements);
        let proves = proves.map_or_else(String::new, |it| format!("; proves {it}"));
        let levels = format!(
            "{}; judged on the history of every case{proves}",
            invariant.levels
        );
        sheet.paragraph("levels", &levels);
        self.requirements_of(&mut sheet, invariant.requirements.iter().copied());
        sheet.items("sources", &[invariant.source]);
        self.proofs(&mut sheet, invariant.id);
        sheet
    }

    fn requirement_sheet(&self, requirement: &Requirement) -> Sheet {
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

    fn guarantee_sheet(&self, guarantee: Guarantee) -> Sheet {
        let mut sheet = Sheet::new(guarantee.name(), guarantee.sentence());
        self.requirements_of(&mut sheet, guarantee.scope().requirements.iter().copied());
        let proofs: Vec<_> = self
            .checkers()
            .filter(|checker| checker.guarantee() == Some(guarantee))
            .map(|checker| Self::line(&checker))
            .collect();
        sheet.items("proven by", &proofs);
        let kinds = Kind::ALL
            .iter()
            .filter(|kind| kind.guarantee() == guarantee);
        let kinds: Vec<_> = kinds
            .map(|kind| format!("{kind}: {}", kind.meaning()))
            .collect();
        sheet.items("broken by findings", &kinds);
        sheet
    }

    fn kind_sheet(kind: Kind) -> Sheet {
        let mut sheet = Sheet::new(kind.key(), kind.meaning());
        let broken = kind.guarantee();
        let broken = format!("{broken}: {}", broken.sentence());
        sheet.paragraph("breaks, unless a case has a situation of its own", &broken);
        let rules = INVARIANTS.iter().filter(|rule| rule.kinds.contains(&kind));
        let rules = rules.map(|rule| format!("{} {}", rule.id, rule.sentence));
        sheet.items("found in every case by", &rules.collect::<Vec<_>>());
        sheet
    }

    fn profile_sheet(&self, profile: Profile) -> Sheet {
        let mut sheet = Sheet::new(profile.name(), &profile.meaning());
        let is_must = |it: &&Requirement| it.levels.of(profile) == Some(Level::Must);
        let musts = self.requirements.iter().filter(is_must);
        let musts = musts.map(|it| format!("{} {}", it.id, it.sentence));
        sheet.items("a MUST", &musts.collect::<Vec<_>>());
        sheet
    }

    /// The cases of an area, by its name or the beginning of their ids.
    fn area_sheet(&self, id: &str) -> Option<Sheet> {
        let is_in = |checker: &Checker<'_>| {
            let prefix = checker.id.split('-').next();
            let names = [prefix, Some(area(checker.name))];
            names
                .into_iter()
                .flatten()
                .any(|it| it.eq_ignore_ascii_case(id))
        };
        let cases: Vec<_> = self.checkers().filter(is_in).collect();
        let sentence = format!("An area of {} cases.", cases.len());
        let mut sheet = Sheet::new(area(cases.first()?.name), &sentence);
        sheet.items("cases", &cases.iter().map(Self::line).collect::<Vec<_>>());
        Some(sheet)
    }

    fn defect_sheet<'a>(&self, defect: &'a Defect) -> Sheet {
        let mut sheet = Sheet::new(&defect.name, &defect.description);
        sheet.paragraph("similar to", &defect.similar_to);
        self.requirements_of(&mut sheet, defect.requirements.iter().map(String::as_str));
        let named = |ids: &[&str]| -> Vec<String> {
            let named = self.checkers().filter(|checker| ids.contains(&checker.id));
            named.map(|checker| Self::line(&checker)).collect()
        };
        let ids = |ids: &'a [String]| ids.iter().map(String::as_str).collect::<Vec<_>>();
        sheet.items("noticed by", &named(&ids(&defect.noticed_by)));
        sheet.items("in the history of", &named(&ids(&defect.also_shown_in)));
        let shown_in: Vec<&str> = defect.shown_in().collect();
        let mut cases = self.cases.iter();
        let is_large = |case: &Case| shown_in.contains(&&*case.id) && case.tier > Tier::Extended;
        let tier = if cases.any(is_large) {
            " --tier full"
        } else {
            ""
        };
        let how = |target: &str| {
            let (name, cases) = (&defect.name, shown_in.join(" "));
            format!("cri-event-conformance --runtime-endpoint {target} {name}{tier} {cases}\n")
        };
        let relayable = |named: NamedFault| named.fault.is_relayable();
        let relayed = fault_named(&defect.name).is_some_and(relayable);
        let relayed = relayed.then(|| how("ENDPOINT --inject"));
        let how = how("model --defect") + &relayed.unwrap_or_default();
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

    /// All pages, and last `SUMMARY.md`, the part of a book's summary that lists them all.
    pub fn pages(&self) -> Vec<Page> {
        let kinds = self.kinds();
        let entries = kinds.iter().flat_map(|(.., entries)| entries);
        let names: BTreeSet<&str> = entries.map(|(name, ..)| name.as_str()).collect();
        let (mut pages, mut summary) = (Vec::new(), String::new());
        for (file, heading, sentence, entries) in &kinds {
            let _ = writeln!(summary, "- [{heading}]({file}.md)");
            let mut list = Markdown::default();
            list.heading(1, heading);
            list.paragraph(sentence);
            let links = entries.iter().map(|(name, title, _)| (&**title, &**name));
            list.links(links);
            pages.push(page(file, list.into_text()));
            for (name, title, sheet) in entries {
                let _ = writeln!(summary, "  - [{title}]({name}.md)");
                let text = sheet.clone().into_markdown(|word| names.contains(word));
                pages.push(page(name, text));
            }
        }
        pages.push(page("SUMMARY", summary));
        pages
    }

    /// Each kind of ids: its page, its heading, a sentence and its entries.
    fn kinds(&self) -> [(&str, &str, &str, Vec<Entry>); 5] {
        let guarantees = Guarantee::ALL.map(|it| {
            let title = format!("{it}: {}", it.sentence());
            (it.to_string(), title, self.guarantee_sheet(it))
        });
        let cases = self.cases.iter().map(|case| {
            let title = label(&case.id, &case.name);
            (case.id.clone(), title, self.case_sheet(case))
        });
        let invariants = INVARIANTS.iter().map(|rule| {
            let title = label(rule.id, rule.name);
            (rule.id.to_owned(), title, self.invariant_sheet(rule))
        });
        let requirements = self.requirements.iter().map(|it| {
            let title = format!("{} {}", it.id, it.sentence);
            (it.id.clone(), title, self.requirement_sheet(it))
        });
        let defects = self.defects.iter().map(|defect| {
            let name = || defect.name.clone();
            (name(), name(), self.defect_sheet(defect))
        });
        let of_guarantees = "What a consumer of events relies on.";
        let of_cases = "The calls that the suite makes, and the events and states that it expects.";
        let of_invariants = "Rules that the history of every case has to keep.";
        let of_requirements = "What a kubelet needs of the event stream.";
        let of_defects = "What the model runtime can do wrong, and the suite must notice.";
        [
            ("guarantees", "Guarantees", of_guarantees, guarantees.into()),
            ("cases", "Cases", of_cases, cases.collect()),
            (
                "invariants",
                "Invariants",
                of_invariants,
                invariants.collect(),
            ),
            (
                "requirements",
                "Requirements",
                of_requirements,
                requirements.collect(),
            ),
            ("defects", "Defects", of_defects, defects.collect()),
        ]
    }
}

fn page(name: &str, text: String) -> Page {
    Page {
        file: format!("{name}.md"),
        text,
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
