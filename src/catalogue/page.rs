//! The pages about defects of runtimes, as the text of an issue: a list in place of the table, and
//! no link into this repository.

use std::collections::BTreeSet;
use std::fmt::Write;

use rust_embed::RustEmbed;

use super::Catalogue;
use crate::case::did_you_mean;

#[derive(RustEmbed)]
#[folder = "ci/findings"]
#[include = "*/*.md"]
struct Findings;

/// The beginning of a line that is not shown.
const COMMENT: &str = "<!--";

impl Catalogue {
    /// The pages of this name, one for each runtime; or the one, by its runtime and name.
    pub(super) fn findings(&self, name: &str) -> Vec<String> {
        let pages = Findings::iter().filter_map(|path| {
            let whole = path.strip_suffix(".md")?;
            let (runtime, page) = whole.split_once('/')?;
            let is_it = [page, whole].iter().any(|it| it.eq_ignore_ascii_case(name));
            let file = Findings::get(&path).filter(|_| is_it)?;
            let text = String::from_utf8(file.data.into_owned()).ok()?;
            Some(as_issue(&text, &self.failures(runtime, page)))
        });
        pages.collect()
    }

    /// The page of this name, or why it is not one page.
    pub fn issue(&self, name: &str) -> Result<String, String> {
        if let [page] = &self.findings(name)[..] {
            return Ok(page.clone());
        }
        let is_it = |path: &String| path.split_once('/').is_some_and(|(_, page)| page == name);
        let alike: Vec<String> = Self::finding_paths().filter(is_it).collect();
        if !alike.is_empty() {
            let alike = alike.join(" or ");
            return Err(format!(
                "several runtimes have a page `{name}`: name {alike}"
            ));
        }
        let of_entries = self.pages_of(name);
        if !of_entries.is_empty() {
            let pages = of_entries.join(" or ");
            return Err(format!("`{name}` is no page about a defect; name {pages}"));
        }
        let all: Vec<String> = Self::finding_paths().chain(Self::finding_names()).collect();
        let near = did_you_mean(name, all.iter().map(String::as_str));
        let help = near.unwrap_or_else(|| "one is `containerd/oom-reason-lost`".to_owned());
        Err(format!("there is no page `{name}` about a defect; {help}"))
    }

    /// The pages about known failures of a case or an invariant.
    fn pages_of(&self, id: &str) -> Vec<String> {
        let files = self.expectations.iter();
        let pages = files.flat_map(|file| {
            let entries = file.known.iter();
            let entries = entries.filter(|entry| entry.case.eq_ignore_ascii_case(id));
            entries.filter_map(|entry| Some(format!("{}/{}", file.runtime, entry.page.as_ref()?)))
        });
        let pages: BTreeSet<String> = pages.collect();
        pages.into_iter().collect()
    }

    /// The names of all pages.
    pub(super) fn finding_names() -> impl Iterator<Item = String> {
        Self::finding_paths().filter_map(|path| Some(path.split_once('/')?.1.to_owned()))
    }

    /// The runtime and name of all pages, as in `containerd/oom-reason-lost`.
    pub(super) fn finding_paths() -> impl Iterator<Item = String> {
        Findings::iter().filter_map(|path| path.strip_suffix(".md").map(str::to_owned))
    }

    /// A line for each known failure of a page.
    fn failures(&self, runtime: &str, page: &str) -> String {
        let files = self.expectations.iter();
        let files = files.filter(|known| known.runtime.eq_ignore_ascii_case(runtime));
        let entries = files.flat_map(|known| &known.known);
        let of_page = entries.filter(|entry| entry.page.as_deref() == Some(page));
        of_page.fold(String::new(), |mut list, entry| {
            let when = entry.when.as_ref();
            let when = when.map_or_else(String::new, |when| format!(" on {runtime} {when}"));
            let _ = writeln!(list, "* {}{when}: {}", entry.case, entry.explanation());
            list
        })
    }
}

fn as_issue(page: &str, failures: &str) -> String {
    let mut text = String::new();
    let mut failures = Some(failures);
    for line in page.lines() {
        if line.starts_with('|') {
            text.push_str(failures.take().unwrap_or_default());
        } else if !line.starts_with(COMMENT) {
            text.push_str(&without_relative_links(line));
            text.push('\n');
        }
    }
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text
}

/// A line of Markdown in which only addresses of the web are links.
fn without_relative_links(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, link)) = rest.split_once('[') {
        let parts = link.split_once("](").and_then(|(words, target)| {
            let (target, after) = target.split_once(')')?;
            let is_relative = !target.contains("://") && !words.contains(['[', '`']);
            is_relative.then_some((words, after))
        });
        text.push_str(before);
        if let Some((words, after)) = parts {
            text.push_str(words);
            rest = after;
        } else {
            text.push('[');
            rest = link;
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::{Catalogue, as_issue, without_relative_links};

    #[test]
    fn a_page_becomes_an_issue() {
        let page = "# It fails\n\nSee [that](other.md), [this](https://a.b/c).\n\n<!-- made of -->\n\n\
                    | a | b |\n|---|---|\n| c | d |\n\n* [ORD-01](../it.yaml): why\n<!-- until -->\n\n\
                    ## Evidence\n";
        assert_eq!(
            as_issue(page, "* ORD-01: it fails\n"),
            "# It fails\n\nSee that, [this](https://a.b/c).\n\n* ORD-01: it fails\n\n\
             * ORD-01: why\n\n## Evidence\n"
        );
    }

    #[test]
    fn an_issue_is_one_page() {
        let catalogue = Catalogue::new(Vec::new(), Vec::new(), Vec::new());
        for (name, expected) in [
            ("of-no-runtime", Err("there is no page")),
            ("oom-reason-lots", Err("did you mean `oom-reason-lost`?")),
            (
                "oom-reason-lost",
                Err("containerd/oom-reason-lost or cri-o/oom-reason-lost"),
            ),
            ("cri-o/oom-reason-lost", Ok("# CRI-O: ")),
            ("panic-without-sandbox", Ok("# CRI-O: ")),
        ] {
            let issue = catalogue.issue(name);
            let ((Ok(found), Ok(part)) | (Err(found), Err(part))) = (&issue, expected) else {
                panic!("{name}: {issue:?}");
            };
            assert!(found.contains(part), "{name}: {found}");
        }
    }

    #[test]
    fn brackets_that_are_no_links_stay() {
        for line in [
            "[c RUNNING]",
            "pod READY  [c#92 EXITED](",
            "[a](b",
            "a]b)",
            "`[x]`",
        ] {
            assert_eq!(without_relative_links(line), line);
        }
    }
}
