//! The commands in the integrations: the suite must accept them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cri_event_conformance::testing::cli::Cli;
use serde::Deserialize;
use serde_yaml::{Deserializer, Value};

const PROGRAM: &str = "cri-event-conformance";

/// The ends of a shell command within its line.
const ENDS: [&str; 6] = [" |", " >", " &", ";", ")", "`"];

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ci/integrations")
}

/// All files, with their paths within the directory.
pub(crate) fn files() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder()).unwrap();
                files.insert(
                    name.display().to_string(),
                    fs::read_to_string(&path).unwrap(),
                );
            }
        }
    }
    files
}

pub(crate) fn extension(path: &str) -> Option<&str> {
    path.rsplit_once('.').map(|(_, extension)| extension)
}

/// The documents of a YAML file.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    Deserializer::from_str(text)
        .map(|document| Value::deserialize(document).unwrap())
        .collect()
}

/// The error of these arguments; `None` if the suite accepts them.
pub(crate) fn refused<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let words = [PROGRAM].into_iter().chain(arguments);
    Cli::parse_from_args(words)
        .err()
        .map(|fault| fault.to_string())
}

/// Adds the texts in a value: one text for a list of words that is a command.
fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        // A rule of the Node Problem Detector.
        Value::Mapping(map) if map.contains_key("path") && map.contains_key("args") => {
            let words = map["args"].as_sequence().into_iter().flatten();
            let words = words.filter_map(Value::as_str);
            let path = map["path"].as_str().into_iter();
            found.push(path.chain(words).collect::<Vec<_>>().join(" "));
        }
        Value::Mapping(map) => map.iter().for_each(|(_, value)| texts(value, found)),
        Value::Sequence(list) => {
            let words = list.iter().map(|word| word.as_str().map(str::to_owned));
            match words.collect::<Option<Vec<String>>>() {
                Some(words) if words.first().is_some_and(|word| word.ends_with(PROGRAM)) => {
                    found.push(words.join(" "));
                }
                _ => list.iter().for_each(|value| texts(value, found)),
            }
        }
        _ => {}
    }
}

/// The value of a shell variable that the file sets by a line such as `NAME: value`.
fn value_of<'t>(name: &str, text: &'t str) -> &'t str {
    let mut lines = text.lines().map(str::trim_start);
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.map_or("anything", str::trim)
}

/// The arguments in the commands of a file.
fn commands(path: &str, text: &str) -> Vec<Vec<String>> {
    let mut parts = Vec::new();
    match extension(path) {
        Some("yaml" | "yml" | "json") => {
            for document in documents(text) {
                texts(&document, &mut parts);
            }
        }
        // A placeholder.
        Some("md") => {
            let typed = text.lines().filter_map(|line| line.strip_prefix("$ "));
            parts.extend(typed.map(str::to_owned));
        }
        _ => parts.push(text.to_owned()),
    }
    let parts = parts.iter().map(|part| part.replace("\\\n", " "));
    let lines: Vec<String> = parts
        .flat_map(|part| part.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines
        .iter()
        .filter_map(|line| arguments(line, text))
        .collect()
}

/// The arguments, if a line calls the suite: its name, then an option or a command.
fn arguments(line: &str, file: &str) -> Option<Vec<String>> {
    let start = line.find(&format!("{PROGRAM} "))?;
    let before = line[..start].trim_start();
    if before.starts_with('#') || !before.is_empty() && !before.ends_with([' ', '/', '=']) {
        return None;
    }
    let rest = &line[start + PROGRAM.len()..];
    let end = ENDS.iter().filter_map(|end| rest.find(end)).min();
    let words = shlex::split(&rest[..end.unwrap_or(rest.len())])?;
    let words = words.into_iter().map(|word| {
        let Some((before, name)) = word.split_once('$') else {
            return word;
        };
        format!("{before}{}", value_of(name.trim_matches(['{', '}']), file))
    });
    Some(words.collect())
}

pub(crate) fn every_command_of_the_integrations_is_one_of_the_suite() {
    let mut found = 0;
    let mut wrong = Vec::new();
    for (path, text) in files() {
        for command in commands(&path, &text) {
            found += 1;
            let fault = refused(command.iter().map(String::as_str));
            wrong.extend(fault.map(|fault| format!("{path}: {command:?}: {fault}")));
        }
    }
    assert!(found >= 5, "{found} commands are found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

pub(crate) fn an_unknown_option_is_noticed() {
    let file = "variables: {x: y}\nTIER: core\nscript:\n  - >-\n    cri-event-conformance run\n    \
                --tier \"$TIER\" --no-such-option || true\n";
    let found = commands("a/b.yml", file);
    assert_eq!(
        found,
        [["run", "--tier", "core", "--no-such-option"].map(str::to_owned)]
    );
    let refused = refused(found[0].iter().map(String::as_str)).unwrap();
    assert!(refused.contains("--no-such-option"), "{refused}");
    let bats = "\tcri-event-conformance run \\\n\t\t--tier core >&3\n";
    assert_eq!(
        commands("a.bats", bats),
        [["run", "--tier", "core"].map(str::to_owned)]
    );
    assert!(commands("a.md", "The command cri-event-conformance watch\n").is_empty());
}

pub(crate) fn the_page_says_of_each_integration_where_it_goes() {
    let files = files();
    let page = &files["README.md"];
    let linked = |path: &str| page.contains(&format!("]({path})"));
    let missing: Vec<&String> = files.keys().filter(|path| !linked(path)).collect();
    assert_eq!(missing, ["README.md"]);
}
