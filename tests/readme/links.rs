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

/// The command lines in a page's blocks of code, each with its program.
fn command_lines(text: &str) -> Vec<String> {
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
        found.push(command[..end.unwrap_or(command.len())].to_owned());
    }
    found
}

/// Those of the suite, without the program.
fn commands(text: &str) -> Vec<String> {
    let lines = command_lines(text).into_iter();
    let of_suite = lines.filter_map(|line| {
        let (program, rest) = line.split_once(' ')?;
        let is_suite = program.rsplit('/').next() == Some("cri-event-conformance");
        is_suite.then(|| rest.to_owned())
    });
    of_suite.collect()
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

/// The long options that a script knows by the alternatives of its `case`, with those of the files
/// that it reads.
fn options_of_script(text: &str) -> BTreeSet<String> {
    let mut texts = vec![text.to_owned()];
    let read = text
        .lines()
        .filter_map(|line| line.strip_prefix(". \"$here/"));
    texts.extend(read.map(|path| {
        let path = root().join("ci").join(path.trim_end_matches('"'));
        fs::read_to_string(path).expect("the script reads it, too")
    }));
    let lines = texts.iter().flat_map(|text| text.lines());
    let alternatives = lines.filter_map(|line| Some(line.trim().split_once(')')?.0));
    let words = alternatives.flat_map(|alternatives| alternatives.split('|'));
    let options = words.map(str::trim).filter(|word| word.starts_with("--"));
    options.map(str::to_owned).collect()
}

/// The commands of a script, such as `up`, by the head of it, which is its help.
fn commands_of_script(name: &str, text: &str) -> BTreeSet<String> {
    let head = text.lines().take_while(|line| line.starts_with('#'));
    let usages = head.filter_map(|line| line.split_once(name)?.1.strip_prefix(' '));
    let words = usages.filter_map(|usage| usage.split_whitespace().next());
    let is_word = |word: &&str| word.bytes().all(|byte| byte.is_ascii_lowercase());
    words.filter(is_word).map(str::to_owned).collect()
}

fn long_options(command: &clap::Command, found: &mut BTreeSet<String>) {
    let options = command.get_arguments().filter_map(clap::Arg::get_long);
    found.extend(options.map(|option| format!("--{option}")));
    for command in command.get_subcommands() {
        long_options(command, found);
    }
}

/// What is wrong with a call of a script of ours; none if it is no such call.
fn fault_of_script(call: &str, of_suite: &BTreeSet<String>) -> Option<String> {
    let mut words = call.split_whitespace().take_while(|word| *word != "#");
    let name = words.find(|word| !word.contains('='))?;
    let path = root().join(name.strip_prefix("ci/").map(|_| name)?);
    if name.contains(['<', '*', '.']) || path.is_dir() {
        return None;
    }
    let Ok(text) = fs::read_to_string(path) else {
        return Some("no such script".to_owned());
    };
    let (known, commands) = (options_of_script(&text), commands_of_script(name, &text));
    let words: Vec<&str> = words.collect();
    let is_unknown = |option: &&&str| !known.contains(**option) && !of_suite.contains(**option);
    let mut options = words.iter().filter(|word| word.starts_with("--"));
    if let Some(option) = options.find(is_unknown) {
        return Some(format!("no option {option}"));
    }
    let first = words.first()?;
    let is_command = first.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_missing = is_command && !commands.is_empty() && !commands.contains(*first);
    is_missing.then(|| format!("no command {first}: there are {commands:?}"))
}

/// What is wrong with a call of `cargo test`: the target of `--test`, or a filter that fits no file
/// and no function.
fn fault_of_test(call: &str) -> Option<String> {
    let (_, call) = call.split_once("cargo test")?;
    let mut words = call
        .split_whitespace()
        .skip_while(|it| !["--test", "--lib"].contains(it));
    let folder = if words.next()? == "--lib" {
        root().join("src")
    } else {
        let target = words.next()?;
        let places = [format!("tests/{target}.rs"), format!("tests/{target}")];
        let mut places = places.iter().map(|it| root().join(it));
        let Some(place) = places.find(|it| it.exists()) else {
            return Some(format!("no test {target}"));
        };
        place
    };
    let filter = words
        .next()
        .filter(|word| *word != "FILTER" && !word.starts_with('-'))?;
    let filter = filter.trim_end_matches("::").replace("::", "/");
    let mut files = vec![folder.clone()];
    if folder.is_dir() {
        sources(&folder, &mut files);
    }
    let fits = files.iter().any(|file| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let names = ["fn ", "\""].map(|before| format!("{before}{filter}"));
        file.to_string_lossy().contains(&filter) || names.iter().any(|it| text.contains(it))
    });
    (!fits).then(|| format!("no test fits {filter}"))
}

#[test]
fn scripts_and_tests_in_pages_exist() {
    let (mut of_suite, mut found) = (BTreeSet::new(), Vec::new());
    long_options(&<Cli as clap::CommandFactory>::command(), &mut of_suite);
    pages(root(), &mut found);
    let (mut calls, mut wrong) = (0, Vec::new());
    for page in found {
        let text = fs::read_to_string(&page).expect("it can be read");
        let mut code = command_lines(&text);
        let inline = prose(&text);
        code.extend(inline.split('`').skip(1).step_by(2).map(str::to_owned));
        for call in code {
            calls += usize::from(call.starts_with("ci/") || call.contains("cargo test"));
            let fault = fault_of_script(&call, &of_suite).or_else(|| fault_of_test(&call));
            wrong.extend(fault.map(|fault| format!("{}: {call}: {fault}", page.display())));
        }
    }
    assert!(calls > 60, "{calls}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    let fault = |call| fault_of_script(call, &of_suite).or_else(|| fault_of_test(call));
    for call in [
        "ci/container up 2.1",
        "ci/containerd upp 2.1",
        "CRI_CI_DIR=/x ci/containerd up 2.1 --nmae x",
        "cargo test --test clii",
        "UPDATE_EXPECT=1 cargo test --test readme linkz",
        "cargo test --lib no_such_test",
    ] {
        assert!(fault(call).is_some(), "{call}");
    }
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
