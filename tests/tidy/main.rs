//! Rules for the whole source code: dependencies of modules, sizes, and forbidden constructs. An
//! exception is listed with its reason.

mod crates;
mod file_names;
mod opening;
mod printing;
mod rust_version;
mod source;
mod uses;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs;
use std::path::Path;

use cri_event_conformance::testing::case::load;
use cri_event_conformance::testing::oracle::INVARIANTS;

use source::{Source, behind, sources, words};
use uses::USES;

/// Modules without input and output: their inputs are data, including the time.
const PURE: &[&str] = &[
    "case",
    "catalogue",
    "checks",
    "gate",
    "history",
    "model",
    "oracle",
    "outcome",
    "plan",
    "pleg",
    "report",
    "verdicts",
];

/// Their impure parts, each with its purpose.
const IMPURE: &[(&str, &str)] = &[
    ("src/case/load.rs", "reads the files of cases"),
    (
        "src/model/live.rs",
        "gives the model a clock and a lock, and serves it at a socket",
    ),
    (
        "src/model/relay.rs",
        "passes calls and events of a real runtime on",
    ),
];

/// Modules of the standard library that reach out of the process.
const OUTSIDE: &[&str] = &["env", "fs", "net", "os", "process", "thread"];

/// Where a text of the program may contain a case's id.
const EXAMPLES: &[(&str, &str)] = &[(
    "src/case/validate.rs",
    "shows the form of an id next to a wrong one",
)];

/// Long functions, each one table of independent lines.
const LONG_FUNCTIONS: &[(&str, &str)] = &[
    ("src/cri/client.rs", "one arm for each RPC"),
    ("src/report/fixture.rs", "the entries of one history"),
];

const MAIN_LINES: usize = 60;
const FILE_LINES: usize = 500;
const LONGEST_FILE: usize = 800;
const FUNCTION_LINES: usize = 70;
const COLUMNS: usize = 100;
/// The length above which a text may exceed the maximum columns.
const UNBREAKABLE: usize = 60;

/// Fails with all findings, each with its place and problem.
#[track_caller]
fn none(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}\n{}", findings.join("\n"));
}

fn finding(source: &Source, what: impl Display) -> String {
    format!("{}: {what}", source.path)
}

fn product() -> Vec<Source> {
    let mut sources = sources(&["src"]);
    sources.retain(|source| !source.is_test);
    sources
}

fn everything() -> Vec<Source> {
    sources(&["src", "tests", "fixtures"])
}

#[test]
fn arrows_never_point_up() {
    for (place, (module, uses)) in USES.iter().enumerate() {
        for used in *uses {
            let above = USES[..place].iter().any(|(above, _)| above == used);
            assert!(above, "`{used}` does not stand above `{module}`");
        }
    }
}

#[test]
fn modules_use_only_what_they_may() {
    let mut findings = Vec::new();
    for source in product() {
        let Some(top) = source.top() else { continue };
        let Some((_, allowed)) = USES.iter().find(|(module, _)| *module == top) else {
            findings.push(finding(&source, format!("`{top}` has no line in USES")));
            continue;
        };
        for used in behind("crate", source.product(&source.code)) {
            let is_module = USES.iter().any(|(module, _)| *module == used);
            if is_module && used != top && !allowed.contains(&used.as_str()) {
                findings.push(finding(&source, format!("`{top}` uses `{used}`")));
            }
        }
        let is_root = source.module() == format!("src/{top}");
        if is_root && words(source.product(&source.code)).any(|(_, word)| word == "super") {
            findings.push(finding(
                &source,
                "reaches for siblings by `super`, not `crate`",
            ));
        }
    }
    none("A module uses only what stands below it.", &findings);
}

/// The table of modules in the crate's documentation allows the same uses as `USES`, and `limits`
/// everywhere.
#[test]
fn the_documented_arrows_are_these() {
    let lib = product()
        .into_iter()
        .find(|source| source.path == "src/lib.rs");
    let lib = lib.expect("the crate has a root").text;
    let mut documented: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in lib.lines().filter_map(|line| line.strip_prefix("//! | [`")) {
        let (module, rest) = row.split_once("`]").expect("a module is a link");
        let known = rest
            .trim_end_matches(" |")
            .rsplit(" | ")
            .next()
            .unwrap_or_default();
        let known = match known {
            "nothing" => BTreeSet::new(),
            "all above" => documented.keys().copied().collect(),
            listed => listed.split(", ").collect(),
        };
        documented.insert(module, known);
    }
    for (module, uses) in USES.iter().filter(|(module, _)| *module != "limits") {
        let documented = documented.get(*module);
        let documented = documented.unwrap_or_else(|| panic!("`{module}` has no row"));
        let uses: BTreeSet<&str> = uses
            .iter()
            .copied()
            .filter(|used| *used != "limits")
            .collect();
        assert!(
            uses.is_subset(documented),
            "`{module}`: {uses:?}, not {documented:?}"
        );
    }
}

#[test]
fn pure_modules_reach_for_nothing_outside() {
    let mut findings = Vec::new();
    for source in product() {
        let is_pure = source.top().is_some_and(|top| PURE.contains(&top));
        let is_exempt = IMPURE.iter().any(|(path, _)| source.path.starts_with(path));
        if !is_pure || is_exempt {
            continue;
        }
        let code = source.product(&source.code);
        let outside = behind("std", code);
        let outside = outside.iter().map(String::as_str);
        let outside = outside.filter(|module| OUTSIDE.contains(module));
        let times = behind("time", code);
        let times = times.iter().map(String::as_str);
        let outside = outside.chain(times.filter(|name| *name == "Instant"));
        let clocks = ["SystemTime", "tokio", "println", "eprintln"];
        let named = words(code).map(|(_, word)| word);
        let named = named.filter(|word| clocks.contains(word));
        findings.extend(outside.chain(named).map(|what| finding(&source, what)));
    }
    none(
        "Pure modules know no clock, file, network or task.",
        &findings,
    );
}

#[test]
fn every_file_says_what_it_is_for() {
    let is_silent = |source: &Source| !source.text.starts_with("//! ");
    let silent = everything();
    let silent = silent.iter().filter(|source| is_silent(source));
    let findings = silent.map(|source| finding(source, "does not begin with `//! `"));
    none(
        "Every file begins with its purpose.",
        &findings.collect::<Vec<_>>(),
    );
}

#[test]
fn files_are_short_or_say_why_not() {
    let mut findings = Vec::new();
    for source in everything() {
        let lines = source.text.lines().count();
        let doc: String = source
            .text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .collect();
        let limit = match source.path.as_str() {
            "src/main.rs" => MAIN_LINES,
            _ if doc.contains("Long") && doc.contains("because") => LONGEST_FILE,
            _ => FILE_LINES,
        };
        if lines > limit {
            findings.push(finding(&source, format!("{lines} lines, not {limit}")));
        }
    }
    none(
        "A longer file says `Long, because …` at its top, and even that has its limit.",
        &findings,
    );
}

#[test]
fn functions_fit_on_a_screen() {
    let mut findings = Vec::new();
    for source in everything() {
        if LONG_FUNCTIONS
            .iter()
            .any(|(path, _)| source.path.starts_with(path))
        {
            continue;
        }
        let long = source.functions().into_iter();
        let long = long.filter(|(_, lines)| *lines > FUNCTION_LINES);
        findings.extend(long.map(|(at, lines)| format!("{}:{at}: {lines} lines", source.path)));
    }
    none("A function has at most 70 lines.", &findings);
}

/// A long text or a table's row is not broken, nor is an expected output in a test.
#[test]
fn lines_fit_on_a_screen() {
    let mut findings = Vec::new();
    for source in everything() {
        let both = source.text.lines().zip(source.strings.lines());
        for (number, (line, strings)) in both.enumerate() {
            let is_text = strings.trim().chars().count() > UNBREAKABLE;
            let is_row = line.starts_with("//! |");
            if line.chars().count() > COLUMNS && !is_text && !is_row {
                findings.push(format!("{}:{}", source.path, number + 1));
            }
        }
    }
    none("A line has at most 100 columns.", &findings);
}

#[test]
fn no_test_is_left_out() {
    let mut findings = Vec::new();
    for source in everything() {
        let named: BTreeSet<&str> = words(&source.code).map(|(_, word)| word).collect();
        let left_out = ["ignore", "should_panic"];
        let left_out = left_out
            .iter()
            .filter(|name| named.contains(*name) && source.code.contains(&format!("#[{name}")));
        findings.extend(left_out.map(|name| finding(&source, name)));
        let unfinished = ["todo!", "unimplemented!", "dbg!"].into_iter();
        let unfinished = unfinished.filter(|name| source.code.contains(name));
        findings.extend(unfinished.map(|name| finding(&source, name)));
    }
    none("No test is skipped, and nothing is left to do.", &findings);
}

#[test]
fn no_case_is_special_to_the_program() {
    let cases = load::embedded().expect("the cases are valid");
    let mut findings = Vec::new();
    for source in product() {
        if EXAMPLES
            .iter()
            .any(|(path, _)| source.path.starts_with(path))
        {
            continue;
        }
        let strings = source.product(&source.strings);
        let ids = cases.iter().map(|case| case.id.as_str());
        let named = ids.filter(|id| strings.contains(id));
        findings.extend(named.map(|id| finding(&source, id)));
        // Also the id of a case that is gone, or not there yet.
        let like_ids = case_ids(strings).filter(|id| !id.starts_with("INV-"));
        findings.extend(like_ids.map(|id| finding(&source, id)));
        let rules = INVARIANTS.iter().map(|invariant| invariant.id);
        let rules = rules.filter(|id| strings.contains(id) && source.top() != Some("oracle"));
        findings.extend(rules.map(|id| finding(&source, id)));
    }
    none("The program knows no case by its id.", &findings);
}

/// The words of a text that look like the id of a case: three letters, a hyphen and two digits.
fn case_ids(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
        .filter(|word| {
            let (letters, digits) = word.split_once('-').unwrap_or_default();
            letters.len() == 3
                && letters.bytes().all(|letter| letter.is_ascii_uppercase())
                && digits.len() == 2
                && digits.bytes().all(|digit| digit.is_ascii_digit())
        })
}

#[test]
fn every_case_names_the_source_of_its_rule() {
    let cases = load::embedded().expect("the cases are valid");
    assert!(!cases.is_empty(), "no case is built in");
    let rootless = cases.iter().filter(|case| case.sources.is_empty());
    none(
        "Every case is one rule, and has a source.",
        &rootless.map(|case| case.id.clone()).collect::<Vec<_>>(),
    );
}

/// `- owner/repo#1 and #2` ends before the second number.
#[test]
fn no_source_is_cut_by_a_comment() {
    let cut = |line: &&str| {
        let mut comments = line.split(" #").skip(1);
        comments.any(|comment| comment.starts_with(|letter: char| letter.is_ascii_digit()))
    };
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut findings = Vec::new();
    for area in fs::read_dir(cases).expect("the cases") {
        // Only directories are areas.
        for file in fs::read_dir(area.expect("an area").path())
            .into_iter()
            .flatten()
        {
            let path = file.expect("a case").path();
            let text = fs::read_to_string(&path).expect("a case is text");
            let lines = text.lines().filter(cut);
            findings.extend(lines.map(|line| format!("{}: {line}", path.display())));
        }
    }
    none("YAML takes what follows ` #` for a comment.", &findings);
    assert!(cut(&"  - owner/repo#1 and #2 (why)"));
    assert!(!cut(&"  - owner/repo#1 and owner/repo#2 (why) # a comment"));
}

/// The rules above detect their targets.
#[test]
fn code_is_distinguished_from_text() {
    let all = everything();
    let this = all
        .iter()
        .find(|source| source.path == "tests/tidy/main.rs");
    let this = this.expect("this file is among the sources");
    assert!(this.text.contains("A line has at most 100 columns."));
    assert!(!this.code.contains("A line has at most 100 columns."));
    assert!(this.strings.contains("A line has at most 100 columns."));
    assert_eq!(this.text.lines().count(), this.code.lines().count());
    let used = behind("cri_event_conformance", &this.code);
    assert_eq!(used, BTreeSet::from(["testing".to_owned()]));
    let tests = all.iter().filter(|source| source.is_test);
    let tests: Vec<&str> = tests.map(|source| source.path.as_str()).collect();
    for path in [
        "src/oracle/script.rs",
        "src/report/fixture.rs",
        "src/case/tests.rs",
    ] {
        assert!(tests.contains(&path), "{path} is not seen to be for tests");
    }
    assert!(!tests.contains(&"src/oracle.rs"));
}
