//! The catalogue as Markdown pages of an mdBook: a page for each case, invariant, requirement and
//! defect, named for its id, which is never reused, and a list of each kind.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::Catalogue;
use crate::oracle::INVARIANTS;
use crate::plan::label;
use crate::report::{Markdown, Sheet};

/// A file of the book.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub file: String,
    pub text: String,
}

/// A page's name, its title in lists, and its content.
type Entry = (String, String, Sheet);

impl Catalogue {
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
            list.links(
                entries
                    .iter()
                    .map(|(name, title, _)| (title.as_str(), name.as_str())),
            );
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

    fn kinds(&self) -> [(&str, &str, &str, Vec<Entry>); 4] {
        let cases = self.cases.iter().map(|case| {
            let title = label(&case.id, &case.name);
            (case.id.clone(), title, self.case_sheet(case))
        });
        let invariants = INVARIANTS.iter().map(|invariant| {
            let title = label(invariant.id, invariant.name);
            (
                invariant.id.to_owned(),
                title,
                self.invariant_sheet(invariant),
            )
        });
        let requirements = self.requirements.iter().map(|requirement| {
            let title = format!("{} {}", requirement.id, requirement.sentence);
            (
                requirement.id.clone(),
                title,
                self.requirement_sheet(requirement),
            )
        });
        let defects = self.defects.iter().map(|defect| {
            (
                defect.name.clone(),
                defect.name.clone(),
                self.defect_sheet(defect),
            )
        });
        [
            (
                "cases",
                "Cases",
                "The calls that the suite makes, and the events and states that it expects.",
                cases.collect(),
            ),
            (
                "invariants",
                "Invariants",
                "Rules that the history of every case has to keep.",
                invariants.collect(),
            ),
            (
                "requirements",
                "Requirements",
                "What a kubelet needs of the event stream.",
                requirements.collect(),
            ),
            (
                "defects",
                "Defects",
                "What the model runtime can do wrong, and the suite must notice.",
                defects.collect(),
            ),
        ]
    }
}

fn page(name: &str, text: String) -> Page {
    Page {
        file: format!("{name}.md"),
        text,
    }
}
