//! The pages about defects of runtimes, `ci/findings`: each entry of the built-in expectation files
//! belongs to one, and its page contains the facts in these files, the cases and the rules.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use cri_event_conformance::testing::case::{Case, load};
use cri_event_conformance::testing::oracle::INVARIANTS;
use cri_event_conformance::testing::verdicts::{Known, KnownFailure, Texts, builtin};

use super::{root, word};
use crate::golden::assert_file;

const BEGIN: &str =
    "<!-- made of ci/expectations; UPDATE_EXPECT=1 cargo test --test readme writes it -->\n";
const END: &str = "<!-- made until here -->\n";

/// The sections of a page, in order.
const SECTIONS: [&str; 5] = [
    "\n## What a kubelet suffers\n",
    "\n## Reproduce\n",
    BEGIN,
    "\n## Evidence\n",
    "\n## Upstream\n",
];

/// Pages about defects that no case covers, so that no expectation file has an entry.
const WITHOUT_ENTRY: [&str; 3] = [
    "containerd/exits-while-down-have-no-event.md",
    "cri-o/exits-while-down-have-no-event.md",
    "cri-o/panic-without-sandbox.md",
];

/// The beginning of a reproduction.
const COMMAND: &str = "\n# cri-event-conformance ";

/// The page of one defect.
struct Page {
    /// The runtime's name in its expectation file.
    runtime: String,
    /// The file's name without its ending.
    name: String,
    text: String,
}

impl Page {
    /// Its path, relative to `ci/findings`.
    fn path(&self) -> String {
        format!("{}/{}.md", self.runtime, self.name)
    }

    fn title(&self) -> &str {
        let title = self.text.strip_prefix("# ");
        let title = title.and_then(|rest| rest.lines().next());
        title.unwrap_or_else(|| panic!("{} begins with no title", self.path()))
    }

    /// The text under the last heading.
    fn upstream(&self) -> &str {
        let upstream = self.text.split_once(SECTIONS[4]);
        upstream.map_or("", |(_, upstream)| upstream)
    }

    /// The ids in the commands that reproduce it.
    fn reproduced_by(&self) -> impl Iterator<Item = &str> {
        let commands = self.text.split(COMMAND).skip(1);
        let lines = commands.filter_map(|rest| rest.lines().next());
        let words = lines.flat_map(str::split_whitespace);
        words.filter(|word| word.starts_with(|first: char| first.is_ascii_uppercase()))
    }
}

fn folder() -> PathBuf {
    root().join("ci/findings")
}

fn pages() -> Vec<Page> {
    let mut pages = Vec::new();
    for known in builtin() {
        let files = fs::read_dir(folder().join(&known.runtime)).expect("it has a folder");
        for file in files {
            let path = file.expect("it can be listed").path();
            let name = path.file_stem().expect("it has a name").to_string_lossy();
            pages.push(Page {
                runtime: known.runtime.clone(),
                name: name.into_owned(),
                text: fs::read_to_string(&path).expect("it can be read"),
            });
        }
    }
    pages.sort_by_key(Page::path);
    pages
}

/// The entries of the expectation files for one defect.
#[derive(Default)]
struct Entries {
    measured: String,
    failures: Vec<KnownFailure>,
}

impl Entries {
    /// The ids that fail, each once, and the cases in which an invariant does.
    fn ids(&self) -> Vec<&str> {
        let mut ids = Vec::new();
        for failure in &self.failures {
            if !ids.contains(&&*failure.case) {
                ids.push(&*failure.case);
            }
        }
        ids
    }

    fn cases(&self) -> impl Iterator<Item = &str> {
        let of_failures = self.failures.iter().flat_map(|failure| &failure.cases);
        let own = self.failures.iter().map(|failure| &*failure.case);
        of_failures.flat_map(Texts::iter).chain(own)
    }

    /// The first versions without it.
    fn fixed_in(&self) -> Vec<&str> {
        let fixed = self.failures.iter().flat_map(|failure| &failure.fixed_in);
        let mut fixed: Vec<&str> = fixed.flat_map(Texts::iter).collect();
        fixed.sort_unstable();
        fixed.dedup();
        fixed
    }
}

/// The entries of each page, by its path. Entries without a page are under the empty name.
fn entries() -> BTreeMap<String, Entries> {
    let mut entries = BTreeMap::<String, Entries>::new();
    for Known {
        runtime,
        measured,
        known,
        ..
    } in builtin()
    {
        let path = |page: &Option<String>| {
            let page = page.as_deref().unwrap_or_default();
            format!("{runtime}/{page}.md")
        };
        for failure in known {
            let of_page = entries.entry(path(&failure.page)).or_default();
            of_page.failures.push(failure);
        }
        let of_runtime = format!("{runtime}/");
        for (_, of_page) in entries
            .iter_mut()
            .filter(|(path, _)| path.starts_with(&of_runtime))
        {
            of_page.measured = measured.clone().unwrap_or_default();
        }
    }
    entries
}

/// The sentence and the sources of a case or an invariant, and a link to it.
fn rule(cases: &[Case], id: &str) -> (String, String, String) {
    if let Some(case) = cases.iter().find(|case| case.id == id) {
        let path = case.name.replace("::", "/");
        let link = format!("[{id}](../../../cases/{path}.yaml)");
        return (case.title.clone(), case.sources.join("; "), link);
    }
    let invariant = INVARIANTS.iter().find(|invariant| invariant.id == id);
    let invariant = invariant.unwrap_or_else(|| panic!("there is no {id}"));
    (
        invariant.sentence.to_owned(),
        invariant.source.to_owned(),
        id.to_owned(),
    )
}

/// Its failure rate, with the limit in a run.
fn how_often(failure: &KnownFailure) -> String {
    let bound = failure.at_most.map(|bound| format!(", at most in {bound}"));
    format!("{}{}", word(failure), bound.unwrap_or_default())
}

/// The part of a page derived from its entries.
fn measured(runtime: &str, entries: &Entries, cases: &[Case]) -> String {
    let mut text = format!(
        "\n## Measured\n\nOn {runtime} {}.\n\n\
         | fails | demands | on | how often | what was seen |\n|---|---|---|---|---|\n",
        entries.measured.trim()
    );
    for failure in &entries.failures {
        let (sentence, _, link) = rule(cases, &failure.case);
        let within = failure.cases.as_ref().map(|cases| {
            let cases: Vec<&str> = cases.iter().collect();
            format!(" in {}", cases.join(", "))
        });
        let when = failure.when.as_ref().map(|when| format!(" {when}"));
        let _ = writeln!(
            text,
            "| {link}{} | {sentence} | {runtime}{} | {} | {} ([source]({})) |",
            within.unwrap_or_default(),
            when.unwrap_or_default(),
            how_often(failure),
            failure.reason.trim(),
            failure.link,
        );
    }
    let fixed = entries.fixed_in().join(" and ");
    if fixed.is_empty() {
        text.push_str("\nNot fixed in any of these versions.\n");
    } else {
        let _ = writeln!(text, "\nFixed in {runtime} {fixed}.");
    }
    if !entries.failures.is_empty() {
        text.push_str("\nWho demands it:\n\n");
    }
    for id in entries.ids() {
        let (_, sources, link) = rule(cases, id);
        let _ = writeln!(text, "* {link}: {sources}");
    }
    text
}

/// A page with the part derived from its entries.
fn made(page: &Page, entries: &Entries, cases: &[Case]) -> String {
    let Some((before, rest)) = page.text.split_once(BEGIN) else {
        panic!("{} has no line {BEGIN}", page.path());
    };
    let (_, after) = rest
        .split_once(END)
        .expect("the part that is made has an end");
    let part = measured(&page.runtime, entries, cases);
    format!("{before}{BEGIN}{part}{END}{after}")
}

#[test]
fn each_entry_belongs_to_a_page_and_each_page_has_entries() {
    let entries = entries();
    let pages = pages();
    let paths: Vec<String> = pages.iter().map(Page::path).collect();
    for (path, of_page) in &entries {
        let ids = of_page.ids();
        assert!(
            paths.contains(path),
            "ci/findings/{path} is missing, for {ids:?}"
        );
    }
    for path in &paths {
        let is_free = WITHOUT_ENTRY.contains(&&**path);
        let listed = entries.contains_key(path);
        assert!(listed != is_free, "{path}: has entries: {listed}");
    }
}

#[test]
fn each_page_says_what_a_maintainer_asks() {
    let cases = load::embedded().expect("the cases are valid");
    let summary = fs::read_to_string(root().join("ci/book/SUMMARY.md")).expect("there is one");
    let entries = entries();
    for page in pages() {
        let path = page.path();
        let places = SECTIONS.map(|section| page.text.find(section));
        assert!(
            places.iter().all(Option::is_some),
            "{path}: {SECTIONS:?}: {places:?}"
        );
        assert!(places.is_sorted(), "{path}: {SECTIONS:?} in another order");
        let upstream = page.upstream();
        let is_thread = |kind| upstream.contains("https://github.com/") && upstream.contains(kind);
        let has_thread = is_thread("/issues/") || is_thread("/pull/");
        assert!(
            has_thread || upstream.contains("None found"),
            "{path}: {upstream}"
        );
        assert!(
            page.text.contains(COMMAND.trim_end()),
            "{path} has no line {COMMAND:?}"
        );
        for id in page.reproduced_by() {
            assert!(
                cases.iter().any(|case| case.id == id),
                "{path}: no case {id}"
            );
        }
        if let Some(entries) = entries.get(&path) {
            let bounded = entries
                .failures
                .iter()
                .any(|failure| failure.cases.is_none());
            let by_invariant = entries.ids().iter().any(|id| id.starts_with("INV-"));
            let any_case = bounded && by_invariant;
            let listed = |id: &str| any_case || entries.cases().any(|case| case == id);
            assert!(
                page.reproduced_by().all(listed),
                "{path}: of another defect"
            );
        }
        let line = format!("  - [{}](../../ci/findings/{path})", page.title());
        let is_listed = summary.lines().any(|listed| listed == line);
        assert!(is_listed, "ci/book/SUMMARY.md: {line}");
    }
}

#[test]
fn what_was_measured_is_that_of_the_expectation_files() {
    let cases = load::embedded().expect("the cases are valid");
    let entries = entries();
    for page in pages() {
        if let Some(of_page) = entries.get(&page.path()) {
            let made = made(&page, of_page, &cases);
            assert_file(folder().join(page.path()), &made);
        }
    }
}

#[test]
fn the_list_of_pages_is_complete() {
    let entries = entries();
    let mut list =
        String::from("\n| defect | shown by | fixed in | upstream |\n|---|---|---|---|\n");
    for page in pages() {
        let of_page = entries.get(&page.path());
        let shown: Vec<&str> = page.reproduced_by().collect();
        let fixed = of_page.map(|entries| entries.fixed_in().join(", "));
        let upstream = page.upstream();
        let none = upstream.contains("None found");
        let known = if none { "none found" } else { "reported" };
        let _ = writeln!(
            list,
            "| [{}]({}) | {} | {} | {known} |",
            page.title(),
            page.path(),
            shown.join(", "),
            fixed.unwrap_or_default(),
        );
    }
    let readme = folder().join("README.md");
    let text = fs::read_to_string(&readme).expect("it is there");
    let (before, rest) = text.split_once(BEGIN).expect("it has the list");
    let (_, after) = rest.split_once(END).expect("the list has an end");
    assert_file(readme, &format!("{before}{BEGIN}{list}{END}{after}"));
}
