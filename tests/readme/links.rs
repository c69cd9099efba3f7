//! The pages are consistent: links between them resolve, named files exist, and the first page is
//! short.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cri_event_conformance::testing::cli::Cli;

/// The maximum length of a README that users read to its end.
const README_BYTES: usize = 10_000;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages in a directory and below it.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("it can be listed").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            pages(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The text without its blocks of code.
fn prose(text: &str) -> String {
    let mut in_code = false;
    let lines = text.lines().filter(|line| {
        let fence = line.starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The targets of links, except those to other sites.
fn links(text: &str) -> Vec<String> {
    let targets = text.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://"))
        .map(str::to_owned)
        .collect()
}

/// The anchors of a page: its headings in GitHub's form.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ => letter.is_alphanumeric().then_some(letter),
        });
        kept.collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut found = Vec::new();
    pages(root(), &mut found);
    assert!(found.len() > 5, "{found:?}");
    let mut broken = Vec::new();
    for page in found {
        let text = prose(&fs::read_to_string(&page).expect("it can be read"));
        for link in links(&text) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let folder = page.parent().expect("it is in a folder");
            let target = match path {
                "" => page.clone(),
                path => folder.join(path),
            };
            let reached = match fs::read_to_string(&target) {
                Ok(text) => anchor.is_empty() || anchors(&prose(&text)).contains(anchor),
                Err(_) => target.exists() && anchor.is_empty(),
            };
            if !reached {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// `ci/docs` puts the summary of the book above all pages.
#[test]
fn no_page_links_to_a_summary() {
    let mut found = Vec::new();
    pages(root(), &mut found);
    found.retain(|page| !page.ends_with("SUMMARY.md"));
    for page in found {
        let text = prose(&fs::read_to_string(&page).expect("it can be read"));
        let linked = links(&text)
            .into_iter()
            .find(|link| link.contains("SUMMARY.md"));
        assert_eq!(linked, None, "{}", page.display());
    }
}

/// The command lines of the suite in a page's blocks of code and in its inline code.
fn commands(text: &str) -> Vec<String> {
    let lines = text.replace("\\\n", " ");
    let mut found = Vec::new();
    let mut in_code = false;
    for line in lines.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            in_code = !in_code;
            continue;
        }
        let prompted = line.strip_prefix("$ ").or_else(|| line.strip_prefix("# "));
        let Some(command) = prompted.filter(|_| in_code) else {
            continue;
        };
        // The rest belongs to the shell.
        let ends = [
            "   #", " | ", " > ", " >> ", " && ", " & ", "; ", " 2>", " || ", "  #",
        ];
        let end = ends.iter().filter_map(|end| command.find(end)).min();
        let command = &command[..end.unwrap_or(command.len())];
        let mut words = command.split_whitespace();
        let program = words.next().unwrap_or_default();
        if program.rsplit('/').next() == Some("cri-event-conformance") {
            found.push(words.collect::<Vec<_>>().join(" "));
        }
    }
    found
}

/// The command lines of the suite in messages of the program, with values in their gaps.
fn printed_commands(source: &str) -> Vec<String> {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let lines: Vec<_> = source.lines().filter(is_code).map(str::trim).collect();
    // A line that ends with a backslash continues in the next one.
    let text = lines.join("\n").replace("\\\n", "");
    let starts = text.match_indices("cri-event-conformance ");
    let starts = starts.filter(|(at, _)| !text[..*at].ends_with(['/', '-', '.']));
    let commands = starts.map(|(at, _)| {
        let rest = &text[at..];
        let end = rest.find(['"', '`', '\\', ';', '\n']).unwrap_or(rest.len());
        let mut words = Vec::new();
        for word in rest[..end].split_whitespace().skip(1) {
            match word.split_once('{') {
                None => words.push(word),
                Some(("", _)) => words.push("unix:///run/x.sock"),
                // The possible output of an option before it.
                Some((word, _)) => words.push(word),
            }
        }
        words.join(" ")
    });
    commands.filter(|command| !command.is_empty()).collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|name| name == "rs") {
            found.push(path);
        }
    }
}

/// Asserts that the suite accepts all the commands, of which there are more than a minimum.
fn are_understood(files: &[PathBuf], commands: fn(&str) -> Vec<String>, more_than: usize) {
    let (mut tried, mut refused) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(file).expect("it can be read");
        for command in commands(&text) {
            tried += 1;
            let words = shlex::split(&command).unwrap_or_default();
            let words = [vec!["cri-event-conformance".to_owned()], words].concat();
            if let Err(fault) = Cli::parse_from_args(words)
                && fault.exit_code() != 0
            {
                refused.push(format!("{}: {command}: {fault}", file.display()));
            }
        }
    }
    assert!(tried > more_than, "{tried}");
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn commands_in_pages_are_understood() {
    let mut found = Vec::new();
    pages(root(), &mut found);
    are_understood(&found, commands, 60);
}

#[test]
fn commands_in_messages_are_understood() {
    let mut found = Vec::new();
    sources(&root().join("src"), &mut found);
    are_understood(&found, printed_commands, 8);
}

/// Paths of this project in the text: code of one word that begins with one of its folders.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    const FOLDERS: [&str; 8] = [
        "benches/",
        "cases/",
        "ci/",
        "fixtures/",
        "fuzz/",
        "proto/",
        "src/",
        "tests/",
    ];
    let code = text.split('`').skip(1).step_by(2);
    code.filter(|code| !code.contains(' ') && FOLDERS.iter().any(|at| code.starts_with(at)))
}

#[test]
fn tests_that_pages_name_exist() {
    let (mut files, mut tested) = (Vec::new(), BTreeSet::new());
    sources(&root().join("src"), &mut files);
    sources(&root().join("tests"), &mut files);
    for file in files {
        let text = fs::read_to_string(file).expect("it can be read");
        let functions = text.split("fn ").skip(1);
        tested.extend(functions.filter_map(|rest| Some(rest.split_once("()")?.0.to_owned())));
    }
    let text = fs::read_to_string(root().join("SECURITY.md")).expect("there is one");
    let named = text.split('`').skip(1).step_by(2);
    let named: Vec<_> = named
        .filter(|name| name.matches('_').count() > 2 && !name.contains(char::is_uppercase))
        .collect();
    let missing: Vec<_> = named
        .iter()
        .filter(|name| !tested.contains(**name))
        .collect();
    assert!(named.len() > 20 && missing.is_empty(), "{missing:?}");
}

/// For a path such as `cases/<area>/<claim>.yaml` the directory named in full must exist.
#[test]
fn files_that_pages_name_exist() {
    let mut found = Vec::new();
    pages(root(), &mut found);
    let mut missing = Vec::new();
    for page in found {
        let text = prose(&fs::read_to_string(&page).expect("it can be read"));
        for path in paths(&text) {
            let named = path.split(['<', '*']).next().unwrap_or_default();
            let exists = if named == path {
                root().join(path).exists()
            } else {
                let folder = named.rsplit_once('/').map_or("", |(folder, _)| folder);
                root().join(folder).is_dir()
            };
            if !exists {
                missing.push(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_readme_is_short() {
    let readme = fs::read_to_string(root().join("README.md")).expect("there is one");
    assert!(readme.len() <= README_BYTES, "{} bytes", readme.len());
}
