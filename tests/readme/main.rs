//! The pages are correct: the numbers and the output in `README.md`, the tables of known failures,
//! generated from `ci/expectations`, and the reference of the case language.

mod findings;
#[path = "../support/golden.rs"]
mod golden;
mod kinds;
mod links;
mod output;
mod reference;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use cri_event_conformance::testing::case::load;
use cri_event_conformance::testing::catalogue::{Catalogue, Checker};
use cri_event_conformance::testing::model::VARIATIONS;
use cri_event_conformance::testing::outcome::{Guarantee, Level};
use cri_event_conformance::testing::verdicts::{
    Known, KnownFailure, RuntimeFacts, Signatures, When, builtin, builtin_files,
};
use golden::assert_file;
use serde::Deserialize;

const BEGIN: &str = "<!-- made of the files here; UPDATE_EXPECT=1 cargo test --test readme -->\n";
const END: &str = "<!-- the table ends -->\n";

/// The columns: the names of runtimes, and their measured versions.
const RUNTIMES: [(&str, &str, &str); RUNTIME_COUNT] = [
    ("containerd 1.7", "containerd", "1.7.24"),
    ("containerd 2.1", "containerd", "2.1.9"),
    ("CRI-O 1.36", "cri-o", "1.36.3"),
];
const RUNTIME_COUNT: usize = 3;

/// The measured OCI runtimes.
const HANDLERS: [&str; 2] = ["runc", "crun"];
const CGROUPS: [&str; 2] = ["v1", "v2"];

/// The titles of the columns, with the end of a version's support.
fn columns() -> [String; RUNTIME_COUNT] {
    #[derive(Deserialize)]
    struct KnownVersion {
        id: String,
        runtime: String,
        versions: String,
    }
    let file = root().join("src/doctor/known-versions.yaml");
    let file = fs::read_to_string(file).expect("it is there");
    let known: Vec<KnownVersion> = serde_yaml::from_str(&file).expect("it is valid");
    RUNTIMES.map(|(title, name, version)| {
        let facts = RuntimeFacts {
            version: version.to_owned(),
            ..RuntimeFacts::default()
        };
        let has_ended = known.iter().any(|it| {
            let when = format!("version: '{}'", it.versions);
            let when: When = serde_yaml::from_str(&when).expect("it is a range");
            it.id == "end-of-life" && it.runtime == name && when.holds(&facts)
        });
        format!("{title}{}", if has_ended { " (support ended)" } else { "" })
    })
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Its failure rate, as a word.
fn word(failure: &KnownFailure) -> String {
    match failure.rate {
        Some(rate) => format!("in {rate}"),
        None if failure.is_race() => "sometimes".to_owned(),
        None => "always".to_owned(),
    }
}

fn holds(when: Option<&When>, facts: &RuntimeFacts) -> bool {
    when.is_none_or(|when| when.holds(facts))
}

/// The selected entries that hold on a runtime with one OCI runtime.
fn entries<'a>(
    files: &'a [Known],
    facts: &RuntimeFacts,
    selects: impl Fn(&KnownFailure) -> bool,
) -> Vec<&'a KnownFailure> {
    let files = files.iter();
    let file = files.filter(|file| file.runtime.eq_ignore_ascii_case(&facts.name));
    let entries = file.flat_map(|file| &file.known);
    let selected = entries.filter(|entry| selects(entry));
    selected
        .filter(|entry| holds(entry.when.as_ref(), facts))
        .collect()
}

/// The content of a cell: the failure rate of the selected entries, and the conditions if not all
/// are affected.
fn cell(
    files: &[Known],
    (name, version): (&str, &str),
    selects: impl Fn(&KnownFailure) -> bool,
) -> String {
    let mut words = BTreeMap::<String, BTreeSet<(&str, &str)>>::new();
    for handler in HANDLERS {
        for cgroup in CGROUPS {
            let facts = RuntimeFacts {
                name: name.to_owned(),
                version: version.to_owned(),
                handler: Some(handler.to_owned()),
                cgroup_driver: None,
                cgroup: Some(cgroup.to_owned()),
            };
            // Of several the one that says the most stands first.
            let words_here = entries(files, &facts, &selects).into_iter().map(word);
            if let Some(word) = words_here.min() {
                words.entry(word).or_default().insert((handler, cgroup));
            }
        }
    }
    let parts = words.iter().map(|(word, with)| {
        let only = |all: [&'static str; 2],
                    of: fn(&(&'static str, &'static str)) -> &'static str| {
            let named: BTreeSet<&str> = with.iter().map(of).collect();
            (named.len() < all.len()).then(|| named.into_iter().collect::<String>())
        };
        let mut part = word.clone();
        if let Some(handler) = only(HANDLERS, |with| with.0) {
            part = format!("{part}, {handler}");
        }
        if let Some(cgroup) = only(CGROUPS, |with| with.1) {
            part = format!("{part}, cgroup {cgroup}");
        }
        part
    });
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() {
        "–".to_owned()
    } else {
        parts.join("; ")
    }
}

/// The highest level in any profile.
fn level(checker: &Checker<'_>) -> Level {
    checker.levels.highest().unwrap_or(Level::May)
}

/// Links of all entries, each named by the end of its path.
fn links(files: &[Known], id: &str) -> String {
    let entries = files.iter().flat_map(|file| &file.known);
    let of_id = entries.filter(|entry| entry.case == id);
    let mut seen = BTreeSet::new();
    let links = of_id.filter(|entry| seen.insert(&entry.link));
    let links = links.map(|entry| {
        let short = entry.link.rsplit('/').next().unwrap_or(&entry.link);
        let short = short.split('#').next().unwrap_or(short);
        format!("[{short}]({})", entry.link)
    });
    links.collect::<Vec<_>>().join(", ")
}

/// The first versions without it, of each runtime.
fn fixed_in(files: &[Known], id: &str) -> String {
    let mut fixed = BTreeSet::new();
    for file in files {
        let entries = file.known.iter().filter(|entry| entry.case == id);
        for versions in entries.filter_map(|entry| entry.fixed_in.as_ref()) {
            fixed.extend(
                versions
                    .iter()
                    .map(|version| format!("{} {version}", file.runtime)),
            );
        }
    }
    fixed.into_iter().collect::<Vec<_>>().join(", ")
}

/// The heading above the rows of a level.
fn heading(level: Level) -> &'static str {
    match level {
        Level::Must => {
            "### MUST\n\nCases and invariants that are a MUST in at least one profile.\n"
        }
        Level::Should => {
            "### SHOULD\n\nThe others. If one is broken, that is advice, and fails no run.\n"
        }
        Level::May => "### MAY\n",
    }
}

fn table() -> String {
    let cases = load::embedded().expect("the cases are valid");
    let requirements = load::requirements(None).expect("the requirements are valid");
    let suffers: BTreeMap<&str, &str> = requirements
        .iter()
        .map(|requirement| (requirement.id.as_str(), requirement.breaks.as_str()))
        .collect();
    let files = builtin();
    let catalogue = Catalogue::new(cases, requirements.clone(), Vec::new());
    let listed = |checker: &Checker<'_>| {
        let mut entries = files.iter().flat_map(|file| &file.known);
        entries.any(|entry| entry.case == checker.id)
    };
    let mut text = String::new();
    for of_table in [Level::Must, Level::Should, Level::May] {
        let mut checkers = catalogue
            .checkers()
            .filter(|checker| level(checker) == of_table && listed(checker))
            .peekable();
        if checkers.peek().is_none() {
            continue;
        }
        let _ = write!(text, "\n{}\n| fails |", heading(of_table));
        for runtime in columns() {
            let _ = write!(text, " {runtime} |");
        }
        text.push_str(" what a kubelet suffers | read more | fixed in |\n");
        let _ = writeln!(text, "|{}", "---|".repeat(4 + RUNTIMES.len()));
        for checker in checkers {
            // The most particular of them stands last.
            let mut breaks = checker.requirements.iter().rev();
            let breaks = breaks.find_map(|id| suffers.get(id));
            let breaks = breaks.unwrap_or(&checker.title);
            let (id, title) = (checker.id, checker.title);
            let cells = RUNTIMES
                .map(|(_, name, version)| cell(&files, (name, version), |entry| entry.case == id));
            let (cells, links) = (cells.join(" | "), links(&files, id));
            let fixed = fixed_in(&files, id);
            let _ = writeln!(
                text,
                "| {id}: {title} | {cells} | {breaks} | {links} | {fixed} |"
            );
        }
    }
    text + "\n"
}

/// The guarantees that an entry's findings break.
fn broken(catalogue: &Catalogue, entry: &KnownFailure) -> BTreeSet<Guarantee> {
    let checker = catalogue.checkers().find(|it| it.id == entry.case);
    let checker = checker.expect("entries name what there is");
    let kinds = entry.finding.iter().flat_map(Signatures::iter);
    let broken =
        kinds.map(|finding| Guarantee::broken_by(checker.guarantee(), checker.id, finding.kind));
    let broken: BTreeSet<_> = broken.collect();
    if broken.is_empty() {
        checker.guarantee().into_iter().collect()
    } else {
        broken
    }
}

/// A table of the twelve sentences, and for each measured runtime `show` of the MUSTs that break
/// them, each with its failure rate.
fn guarantees(show: fn(&[(&str, String)]) -> String) -> String {
    let files = builtin();
    let cases = load::embedded().expect("the cases are valid");
    let catalogue = Catalogue::new(cases, Vec::new(), Vec::new());
    let mut text = "\n| guarantee |".to_owned();
    for runtime in columns() {
        let _ = write!(text, " {runtime} |");
    }
    let _ = writeln!(text, "\n|{}", "---|".repeat(1 + RUNTIMES.len()));
    for guarantee in Guarantee::ALL {
        let cells = RUNTIMES.map(|(_, name, version)| {
            let musts = catalogue.checkers().filter(|it| level(it) == Level::Must);
            let breaks = musts.filter_map(|checker| {
                let rate = cell(&files, (name, version), |entry| {
                    entry.case == checker.id && broken(&catalogue, entry).contains(&guarantee)
                });
                (rate != "–").then_some((checker.id, rate))
            });
            let breaks: Vec<_> = breaks.collect();
            if breaks.is_empty() {
                "kept".to_owned()
            } else {
                show(&breaks)
            }
        });
        let (sentence, cells) = (guarantee.sentence(), cells.join(" | "));
        let _ = writeln!(text, "| **{guarantee}**: {sentence} | {cells} |");
    }
    text + "\n"
}

/// The ids with their failure rates.
fn with_rates(breaks: &[(&str, String)]) -> String {
    let breaks = breaks.iter().map(|(id, rate)| format!("{id} {rate}"));
    breaks.collect::<Vec<_>>().join("; ")
}

/// Whether each of them is a race.
fn in_a_word(breaks: &[(&str, String)]) -> String {
    let is_always = |(_, rate): &(&str, String)| rate.contains("always");
    let word = if breaks.iter().any(is_always) {
        "broken"
    } else {
        "races"
    };
    word.to_owned()
}

/// Compares the tables of a page, from the first to the last, with these.
fn assert_tables(page: &str, tables: &[String]) {
    let text = fs::read_to_string(root().join(page)).expect("it is there");
    let (mut made, mut rest) = (String::new(), text.as_str());
    for table in tables {
        let (before, after) = rest.split_once(BEGIN).expect("it has the table");
        let (_, after) = after.split_once(END).expect("the table has an end");
        made = format!("{made}{before}{BEGIN}{table}{END}");
        rest = after;
    }
    assert_file(page, &(made + rest));
}

#[test]
fn tables_of_known_failures_are_those_of_the_files() {
    assert_tables("README.md", &[guarantees(in_a_word)]);
    assert_tables(
        "ci/expectations/README.md",
        &[guarantees(with_rates), table()],
    );
}

#[test]
fn the_files_can_be_read_and_name_what_there_is() {
    let known = builtin();
    assert_eq!(known.len(), builtin_files().len());
    let cases = load::embedded().expect("the cases are valid");
    let catalogue = Catalogue::new(cases, Vec::new(), Vec::new());
    let ids: BTreeSet<&str> = catalogue.checkers().map(|checker| checker.id).collect();
    let unknown: Vec<&str> = known
        .iter()
        .flat_map(Known::ids)
        .filter(|id| !ids.contains(id))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// An invariant is judged on every case. An entry that names neither cases nor a rate would accept
/// every bug that breaks the invariant.
#[test]
fn entries_of_invariants_name_cases_or_bound_the_rate() {
    // containerd 1.7 breaks the first with every sandbox of every case, and CRI-O the second with
    // every container, and the last with every sandbox. The others are a single value that CRI-O
    // gives to what never ran, wherever that ends.
    const EVERYWHERE: [(&str, &str); 5] = [
        (
            "INV-06",
            r#"[{"kind":"missing-sandbox-status","event":"DELETED"}]"#,
        ),
        (
            "INV-28",
            r#"[{"kind":"field-changed","field":"created_at","method":"…Containers"}]"#,
        ),
        (
            "INV-28",
            r#"[{"kind":"zero-time-of-go","field":"started_at"}]"#,
        ),
        (
            "INV-29",
            r#"[{"kind":"zero-time-of-go","field":"started_at"}]"#,
        ),
        ("INV-33", r#"["missing-deleted"]"#),
    ];
    let entries = builtin().into_iter().flat_map(|known| known.known);
    let of_invariants = entries.filter(|entry| entry.case.starts_with("INV-"));
    let boundless = of_invariants.filter(|entry| entry.cases.is_none() && entry.at_most.is_none());
    let boundless: BTreeSet<_> = boundless
        .map(|entry| {
            let findings: Vec<_> = entry.finding.iter().flat_map(Signatures::iter).collect();
            let findings = serde_json::to_string(&findings).expect("it can be written");
            (entry.case.clone(), findings)
        })
        .collect();
    let expect = EVERYWHERE.map(|(case, findings)| (case.to_owned(), findings.to_owned()));
    assert_eq!(boundless, expect.into());
}

#[test]
fn every_listed_failure_stands_in_the_table() {
    let table = table();
    let mut listed = 0;
    for entry in builtin().into_iter().flat_map(|known| known.known) {
        let mut rows = table.lines();
        let row = rows.find(|line| line.starts_with(&format!("| {}: ", entry.case)));
        let columns = row.map(|row| row.matches('|').count());
        assert_eq!(columns, Some(5 + RUNTIMES.len()), "{}", entry.case);
        listed += 1;
    }
    assert!(listed > 10, "{listed}");
}

/// Lines behind a link to a branch change over time.
#[test]
fn links_to_sources_are_of_a_version() {
    let entries = builtin().into_iter().flat_map(|known| known.known);
    let moving = entries.filter(|entry| {
        let of_branch = entry.link.split_once("/blob/").map(|(_, path)| path);
        of_branch.is_some_and(|path| !path.starts_with('v'))
    });
    let moving: Vec<String> = moving.map(|entry| entry.link).collect();
    assert!(moving.is_empty(), "{moving:?}");
}

#[test]
fn cells_tell_what_fails_with_what() {
    let known = |keys: &str| {
        let text = format!("{{runtime: a, known: [{{case: X, reason: r, link: l{keys}}}]}}");
        let path = String::new();
        let file = cri_event_conformance::testing::history::ExpectationFile { path, text };
        Known::parse(&file).expect("it is right")
    };
    let cell = |keys: &str| cell(&[known(keys)], ("a", "2.1.9"), |entry| entry.case == "X");
    assert_eq!(cell(", when: {version: '>=3'}"), "–");
    assert_eq!(cell(""), "always");
    assert_eq!(cell(", when: {handler: runc}"), "always, runc");
    assert_eq!(
        cell(", rate: 2/20, when: {handler: crun}"),
        "in 2 of 20 runs, crun"
    );
    assert_eq!(
        cell(", at-most: 2/20, when: {cgroup: v2}"),
        "sometimes, cgroup v2"
    );
}

#[test]
fn the_proof_is_as_large_as_it_says() {
    let readme = fs::read_to_string(root().join("README.md")).expect("there is one");
    let defects = load::defects().expect("valid").len();
    let cases = load::embedded().expect("valid").len();
    let runs = 2 * VARIATIONS.len();
    let proof = format!(
        "{defects} defects, {defects} noticed; {cases} cases, {cases} can fail; \
         0 false alarms in {runs} clean runs"
    );
    let lines = readme.lines().map(|line| {
        if line.ends_with("clean runs") {
            return proof.clone();
        }
        let Some((before, after)) = line.split_once("each of ") else {
            return line.to_owned();
        };
        let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == after.len() {
            return line.to_owned();
        }
        format!("{before}each of {defects}{rest}")
    });
    let lines: Vec<_> = lines.collect();
    assert!(lines.contains(&proof), "README.md: {proof}");
    assert_file("README.md", &(lines.join("\n") + "\n"));
}
