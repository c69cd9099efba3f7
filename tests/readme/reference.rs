//! `cases/REFERENCE.md`, the vocabulary of a case file. It is generated from the JSON Schema, and
//! so from the doc comments of the types for a case; the cases provide an example for each word.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use cri_event_conformance::testing::case::{load, schema};
use serde_json::Value;
use serde_yaml::Value as Yaml;

use crate::golden::assert_file;

const HEAD: &str = "\
<!-- Generated from the doc comments of the types that read a case: edit those, and run
     UPDATE_EXPECT=1 cargo test --test readme -->

# The vocabulary of a case

[README.md](README.md) teaches how to write a case; this page lists every word that one can use.
`cri-event-conformance schema case` prints the same as a JSON Schema, which editors understand.
A key is required unless its type says `optional`.
";

/// The types with their own section, with its title.
const SECTIONS: [(&str, &str); 4] = [
    ("Need", "Needs"),
    ("Step", "Steps"),
    ("WorkloadSpec", "Workloads"),
    ("Check", "Checks"),
];

/// The maximum length of an example.
const EXAMPLE_COLUMNS: usize = 160;

/// One use of a word in a case.
struct Example {
    text: String,
    /// The path of the case's file, relative to `cases`.
    path: String,
}

/// The schema of a case file, and the uses of its words in the cases.
struct Vocabulary {
    schema: Value,
    /// The shortest use of each word of each type.
    examples: BTreeMap<(String, String), Example>,
}

/// The name of the type that a schema refers to.
fn target(node: &Value) -> Option<&str> {
    node["$ref"].as_str()?.strip_prefix("#/$defs/")
}

/// A schema without `null`, which represents an absent key.
fn without_null(node: &Value) -> &Value {
    let choices = node["anyOf"].as_array().into_iter().flatten();
    let mut present = choices.filter(|choice| choice["type"] != "null");
    present.next().unwrap_or(node)
}

/// The schemas that a value may follow.
fn choices(node: &Value) -> impl Iterator<Item = &Value> {
    node["oneOf"].as_array().into_iter().flatten()
}

/// The word of a choice, and the schema of its content.
fn word(choice: &Value) -> Option<(&str, Option<&Value>)> {
    if let Some(word) = choice["const"].as_str() {
        return Some((word, None));
    }
    let (word, payload) = choice["properties"].as_object()?.iter().next()?;
    Some((word, Some(payload)))
}

/// A doc comment as one line.
fn description(node: &Value) -> String {
    let text = node["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The name of a type as a heading: `StopSignal` is `Stop signal`.
fn heading(name: &str) -> String {
    let mut words = String::new();
    for (at, letter) in name.char_indices() {
        if at > 0 && letter.is_uppercase() {
            words.push(' ');
            words.extend(letter.to_lowercase());
        } else {
            words.push(letter);
        }
    }
    words
}

/// A value as YAML in one line. Steps inside a step are left out.
fn flow(value: &Yaml) -> String {
    let list = |parts: Vec<String>| parts.join(", ");
    match value {
        Yaml::Mapping(map) => {
            let entries = map.iter().map(|(key, value)| match (flow(key), value) {
                (key, Yaml::Sequence(_)) if key == "steps" => format!("{key}: […]"),
                (key, value) => format!("{key}: {}", flow(value)),
            });
            format!("{{{}}}", list(entries.collect()))
        }
        Yaml::Sequence(items) => format!("[{}]", list(items.iter().map(flow).collect())),
        other => serde_yaml::to_string(other)
            .expect("a scalar is YAML")
            .trim()
            .to_owned(),
    }
}

/// The entry of a list: `word: {…}`, or the word alone.
fn entry(value: &Yaml) -> String {
    let text = flow(value);
    let inner = text.strip_prefix('{');
    let inner = inner.and_then(|text| text.strip_suffix('}'));
    inner.unwrap_or(&text).to_owned()
}

/// The name of a type, with a link to its description.
fn type_name(node: &Value) -> String {
    let node = without_null(node);
    if let Some(name) = target(node) {
        let section = SECTIONS.iter().find(|(known, _)| *known == name);
        let title = section.map_or_else(|| heading(name), |(_, title)| (*title).to_owned());
        let anchor = title.to_lowercase().replace(' ', "-");
        let shown = heading(name.trim_end_matches("Spec")).to_lowercase();
        return format!("[{shown}](#{anchor})");
    }
    let name = match &node["type"] {
        Value::Array(types) => types.first(),
        name => Some(name),
    };
    match name.and_then(Value::as_str) {
        Some("string") => "text".to_owned(),
        Some("integer" | "number") => "number".to_owned(),
        Some("boolean") => "boolean".to_owned(),
        Some("array") => format!("list of {}", type_name(&node["items"])),
        Some("object") => {
            format!("mapping to {}", type_name(&node["additionalProperties"]))
        }
        other => panic!("a type without a name: {other:?} in {node}"),
    }
}

/// The keys of a mapping: required ones first, in the order of the type.
fn keys(text: &mut String, node: &Value) {
    let Some(properties) = node["properties"].as_object() else {
        return;
    };
    let required: Vec<&str> = node["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let optional = properties.keys().map(String::as_str);
    let optional = optional.filter(|key| !required.contains(key));
    for key in required.iter().copied().chain(optional) {
        let property = &properties[key];
        let type_name = type_name(property);
        let presence = match &property["default"] {
            _ if required.contains(&key) => String::new(),
            Value::String(word) => format!(", optional, `{word}` unless said"),
            Value::Number(number) => format!(", optional, {number} unless said"),
            _ => ", optional".to_owned(),
        };
        let _ = writeln!(
            text,
            "- `{key}` ({type_name}{presence}): {}",
            description(property)
        );
    }
}

/// The words of a type without keys of their own, as a list.
fn words(text: &mut String, node: &Value) {
    for choice in choices(node) {
        let meaning = description(choice);
        if let Some((word, _)) = word(choice).filter(|_| !meaning.is_empty()) {
            let _ = writeln!(text, "- `{word}`: {meaning}");
        }
    }
    for word in node["enum"].as_array().into_iter().flatten() {
        let _ = writeln!(text, "- `{}`", word.as_str().unwrap_or_default());
    }
}

/// The text under a type's heading.
fn body(text: &mut String, node: &Value) {
    let mut list = String::new();
    keys(&mut list, node);
    words(&mut list, node);
    if !list.is_empty() {
        let _ = write!(text, "\n{list}");
    }
}

impl Vocabulary {
    fn new() -> Self {
        let schema = serde_json::to_value(schema()).expect("a schema is JSON");
        let mut vocabulary = Self {
            schema: schema.clone(),
            examples: BTreeMap::new(),
        };
        for case in load::embedded().expect("the cases are valid") {
            let text = &case.definition;
            let value: Yaml = serde_yaml::from_str(text).expect("a case is YAML");
            let path = format!("{}.yaml", case.name.replace("::", "/"));
            vocabulary.collect(&schema, &value, &path);
        }
        vocabulary
    }

    /// Keeps the shortest use of each word in a value that follows a schema.
    fn collect(&mut self, node: &Value, value: &Yaml, path: &str) {
        let node = without_null(node);
        if let Some(name) = target(node) {
            let definition = self.schema["$defs"][name].clone();
            self.keep(name, value, path);
            return self.collect(&definition, value, path);
        }
        match value {
            Yaml::Sequence(items) => {
                for item in items {
                    self.collect(&node["items"], item, path);
                }
            }
            Yaml::Mapping(map) => {
                for (key, value) in map {
                    let key = key.as_str().expect("a key is text");
                    let of_choice = choices(node).find_map(|choice| choice["properties"].get(key));
                    if let Some(node) = node["properties"].get(key).or(of_choice) {
                        self.collect(node, value, path);
                    }
                }
            }
            _ => {}
        }
    }

    fn keep(&mut self, name: &str, value: &Yaml, path: &str) {
        let word = match value {
            Yaml::String(word) => Some(word.as_str()),
            Yaml::Mapping(map) if map.len() == 1 => map.keys().next().and_then(Yaml::as_str),
            _ => None,
        };
        let Some(word) = word else { return };
        let example = Example {
            text: entry(value),
            path: path.to_owned(),
        };
        let key = (name.to_owned(), word.to_owned());
        let shortest = self.examples.get(&key).map(|known| known.text.len());
        if shortest.is_none_or(|shortest| example.text.len() < shortest) {
            self.examples.insert(key, example);
        }
    }

    /// The schema of a type. A type that only wraps another one has that one's.
    fn definition(&self, name: &str) -> &Value {
        self.resolved(&self.schema["$defs"][name])
    }

    /// A schema that refers to no other one.
    fn resolved<'a>(&'a self, node: &'a Value) -> &'a Value {
        target(node).map_or(node, |name| self.definition(name))
    }

    /// The types of keys, other than the sections. Each is described under a heading of its own.
    fn types_of_keys(&self) -> BTreeSet<&str> {
        let definitions = self.schema["$defs"].as_object().expect("there are types");
        let mappings = definitions.values().chain([&self.schema]);
        let keys = mappings.filter_map(|node| node["properties"].as_object());
        let nodes = keys.flat_map(serde_json::Map::values).map(without_null);
        let names = nodes.filter_map(|node| target(node).or_else(|| target(&node["items"])));
        names
            .filter(|name| SECTIONS.iter().all(|(section, _)| section != name))
            .collect()
    }

    /// A word of a section: its meaning, its keys, and an example.
    fn word(&self, text: &mut String, section: &str, choice: &Value) {
        let (word, payload) = word(choice).expect("a word");
        let _ = writeln!(text, "\n### `{word}`\n\n{}", self.meaning(choice, payload));
        if let Some(shape) = payload.map(|payload| self.resolved(payload)) {
            match shape["type"].as_str() {
                Some("array") => {
                    text.push_str("\nA list, of which each element has:\n");
                    body(text, self.resolved(&shape["items"]));
                }
                Some("integer" | "number" | "boolean") => {
                    let _ = writeln!(text, "\nIt takes a {}.", type_name(shape));
                }
                _ => body(text, shape),
            }
        }
        let example = self.examples.get(&(section.to_owned(), word.to_owned()));
        let example = example.unwrap_or_else(|| panic!("no case uses `{word}` of {section}"));
        if example.text.len() <= EXAMPLE_COLUMNS {
            let path = &example.path;
            let _ = writeln!(text, "\nAs in [{path}]({path}): `{}`", example.text);
        } else {
            let _ = writeln!(text, "\nAs in [{0}]({0}).", example.path);
        }
    }

    /// The doc comment of the word, followed by that of its type.
    fn meaning(&self, choice: &Value, payload: Option<&Value>) -> String {
        let own = description(choice);
        let Some(name) = payload.and_then(target) else {
            return own;
        };
        let uses = self.schema.to_string();
        if uses.matches(&format!("\"#/$defs/{name}\"")).count() > 1 {
            return own;
        }
        let added = description(self.definition(name));
        match added.split_once(". ") {
            Some((_, rest)) if !own.contains(rest) => format!("{own} {rest}"),
            _ => own,
        }
    }

    fn render(&self) -> String {
        let mut text = String::from(HEAD);
        text.push_str("\n## Keys of a case\n\n");
        keys(&mut text, &self.schema);
        for (name, title) in SECTIONS {
            let definition = self.definition(name);
            let _ = writeln!(text, "\n## {title}\n\n{}", description(definition));
            if choices(definition).all(|choice| choice["const"].is_string()) {
                body(&mut text, definition);
                continue;
            }
            for choice in choices(definition) {
                self.word(&mut text, name, choice);
            }
        }
        text.push_str("\n## Other types\n");
        for name in self.types_of_keys() {
            let definition = self.definition(name);
            let _ = writeln!(
                text,
                "\n### {}\n\n{}",
                heading(name),
                description(definition)
            );
            body(&mut text, definition);
        }
        text
    }
}

#[test]
fn the_reference_of_cases_is_that_of_the_types() {
    assert_file("cases/REFERENCE.md", &Vocabulary::new().render());
}
