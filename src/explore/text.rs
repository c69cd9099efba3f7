//! A plan as a case: the text that a person reads and runs, and its parts.

use std::path::Path;

use serde::Serialize;
use serde_json::json;
use serde_yaml::value::Serializer;
use serde_yaml::with::singleton_map_recursive;
use serde_yaml::{Mapping, Value};

use super::checks::checks;
use super::plan::{Capabilities, Plan, flat, step};
use super::world::World;
use crate::case::{Case, Step, parse};
use crate::checks::Check;
use crate::outcome::Kind;
use crate::report::cut;

/// The header of a case.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) number: u32,
    /// Its name in its folder.
    pub(super) name: String,
    pub(super) title: String,
    pub(super) why: String,
    pub(super) source: String,
    /// Whether only the steps make calls.
    pub(super) silent: bool,
    /// How often the steps are repeated, if they are.
    pub(super) repeat: Option<u32>,
    /// The finding that the case is to show: it has only the checks that can find it, or one that
    /// is always there if an invariant does.
    pub(super) only: Option<Focus>,
}

/// A plan that is legal, and its case.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    pub(super) plan: Plan,
    pub(super) case: Case,
}

/// The finding that a case is to show.
#[derive(Clone, Debug)]
pub(super) struct Focus {
    pub(super) kind: Kind,
    /// The name of its subject.
    pub(super) name: String,
    /// Whether an invariant finds it.
    pub(super) by_invariant: bool,
}

/// How many characters of a text a case has: as many as help to understand it.
const LONGEST_TEXT: usize = 2_000;

/// The folder of the cases that this module makes.
pub(super) const FOLDER: &str = "explore";

/// Makes a case of the legal steps of a plan.
pub(super) fn walk(plan: Plan, can: &Capabilities, header: &Header) -> Walk {
    let mut world = World::new(can.clone());
    let plan = world.take_all(plan);
    let mut checks = checks(&world, header.silent);
    if let Some(focus) = &header.only {
        checks = focus.checks(&checks);
    }
    let steps = match header.repeat {
        Some(times) => vec![step("repeat", json!({"times": times, "steps": plan}))],
        None => plan.clone(),
    };
    let text = header.render(&steps, &checks);
    let path = format!("{FOLDER}/{}.yaml", header.name);
    match parse(Path::new(&path), &text) {
        Ok(case) => Walk { plan, case },
        Err(problems) => panic!("a walk is a case: {problems:#?}\n{text}"),
    }
}

impl Focus {
    /// The checks of a case that can find it, on its subject or on all.
    fn checks(&self, all: &[Check]) -> Vec<Check> {
        let about = format!("of: {}", self.name);
        let is_about = |check: &&Check| {
            let text = one_line(*check);
            text.split(['{', ',', '}']).any(|key| key.trim() == about)
        };
        let finds = |check: &&Check| !self.by_invariant && check.kinds().contains(&self.kind);
        let any: Vec<&Check> = all.iter().filter(finds).collect();
        let own: Vec<&Check> = any.iter().copied().filter(is_about).collect();
        let chosen = [own, any, all.iter().take(1).collect()];
        let chosen = chosen.into_iter().find(|checks| !checks.is_empty());
        chosen.into_iter().flatten().cloned().collect()
    }
}

impl Header {
    fn render(&self, steps: &[Step], checks: &[Check]) -> String {
        let Self {
            number,
            title,
            why,
            source,
            ..
        } = self;
        let streams = flat(steps)
            .into_iter()
            .any(|step| matches!(step, Step::Subscribe(_)));
        let needs = if streams { "needs: [broadcast]\n" } else { "" };
        let silent = if self.silent { "silent: true\n" } else { "" };
        format!(
            "id: EXP-{number:02}\n\
             title: {}\n\
             why: {}\n\
             sources: [{}]\n\
             levels: {{cache: must, hint: must, observer: must}}\n\
             {needs}\
             exclusive: true\n\
             {silent}\
             steps:\n{}expect:\n{}",
            quoted(&sentence(title)),
            quoted(why),
            quoted(source),
            list(steps),
            list(checks)
        )
    }
}

/// A title as a case has it, which ends with a period even if it was cut.
fn sentence(title: &str) -> String {
    let title = cut(title, LONGEST_TEXT - 1);
    let is_whole = title.ends_with('.');
    title + if is_whole { "" } else { "." }
}

/// A text in double quotes, as YAML and JSON have them, with all unprintable characters escaped:
/// YAML has no room for some. The text of a runtime is cut.
fn quoted(text: &str) -> String {
    serde_json::Value::from(cut(text, LONGEST_TEXT)).to_string()
}

/// A list of steps or checks in a case.
fn list<T: Serialize>(items: &[T]) -> String {
    let items = items.iter().map(value).collect();
    let lines = lines(&Value::Sequence(items));
    let parts = lines.iter().flat_map(|line| ["  ", line, "\n"]);
    parts.collect()
}

/// A step or check on one line.
pub(super) fn one_line<T: Serialize>(item: &T) -> String {
    lines(&value(item)).join(" ")
}

/// A step or check without the keys that have their defaults.
fn value<T: Serialize>(item: &T) -> Value {
    let value = singleton_map_recursive::serialize(item, Serializer);
    without_defaults(value.expect("words, names and numbers are YAML"))
}

fn without_defaults(value: Value) -> Value {
    /// The values that a key need not say, apart from `false`.
    const DEFAULTS: [(&str, &str); 2] = [("connection", "own"), ("expect", "success")];
    let is_default = |key: &Value, value: &Value| match value {
        Value::Bool(value) => !value,
        Value::Number(workers) => key == "workers" && workers.as_u64() == Some(1),
        value => DEFAULTS
            .iter()
            .any(|default| key == default.0 && value == default.1),
    };
    match value {
        Value::Sequence(items) => items.into_iter().map(without_defaults).collect(),
        Value::Mapping(keys) => {
            let given = keys
                .into_iter()
                .filter(|(key, value)| !is_default(key, value));
            let given = given.map(|(key, value)| (key, without_defaults(value)));
            Value::Mapping(given.collect::<Mapping>())
        }
        value => value,
    }
}

/// The lines of a value, in which each key and item that contains no list of mappings has one.
fn lines(value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    match value {
        Value::Mapping(keys) => {
            for (key, value) in keys {
                let key = flow(key);
                if is_flat(value) {
                    all.push(format!("{key}: {}", flow(value)));
                } else {
                    all.push(format!("{key}:"));
                    all.extend(lines(value).iter().map(|line| format!("  {line}")));
                }
            }
        }
        Value::Sequence(items) => {
            for item in items {
                let prefixes = std::iter::once("- ").chain(std::iter::repeat("  "));
                let lines = lines(item);
                all.extend(
                    prefixes
                        .zip(&lines)
                        .map(|(prefix, line)| prefix.to_owned() + line),
                );
            }
        }
        value => all.push(flow(value)),
    }
    all
}

/// Whether a value contains no list of mappings.
fn is_flat(value: &Value) -> bool {
    match value {
        Value::Mapping(keys) => keys.values().all(is_flat),
        Value::Sequence(items) => !items.iter().any(Value::is_mapping),
        _ => true,
    }
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Mapping(keys) => {
            let keys = keys.iter();
            let keys = keys.map(|(key, value)| format!("{}: {}", flow(key), flow(value)));
            format!("{{{}}}", keys.collect::<Vec<_>>().join(", "))
        }
        Value::Sequence(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::String(text) if is_plain(text) => text.clone(),
        value => serde_json::to_string(value).unwrap_or_default(),
    }
}

/// Whether a text without quotes is the same text in YAML, and not a number or another word.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 7] = ["false", "no", "null", "off", "on", "true", "yes"];
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b" -./_".contains(&byte);
    let is_number = |first: u8, last: u8| {
        let prefixes = ["0b", "0o", "0x"];
        first.is_ascii_digit()
            && (last.is_ascii_digit() || prefixes.iter().any(|prefix| text.starts_with(prefix)))
    };
    match text.as_bytes() {
        [first, .., last] | [first @ last] => {
            first.is_ascii_alphanumeric()
                && last.is_ascii_alphanumeric()
                && !is_number(*first, *last)
                && text.bytes().all(is_part)
                && !WORDS.contains(&text.to_ascii_lowercase().as_str())
        }
        [] => false,
    }
}

#[cfg(test)]
impl Header {
    pub(super) fn of_test() -> Self {
        Self {
            number: 1,
            name: "found-1-undecided".to_owned(),
            title: "A random walk keeps all rules.".to_owned(),
            why: "Someone is harmed.".to_owned(),
            source: "explore --seed 1".to_owned(),
            silent: false,
            repeat: None,
            only: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use serde::de::DeserializeOwned;

    use super::*;
    use crate::case::load;
    use crate::escape::printable_lines;
    use crate::explore::coverage::Coverage;
    use crate::explore::generate::{Size, generate};
    use crate::yaml;

    #[track_caller]
    fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(items: &[T]) {
        let text = list(items);
        let read = yaml::parser(&text).and_then(singleton_map_recursive::deserialize);
        let read: Vec<T> = read.unwrap_or_else(|fault| panic!("{fault}: {text}"));
        assert_eq!(read, items, "{text}");
    }

    #[test]
    fn the_steps_and_checks_of_all_cases_are_the_same_when_read_again() {
        for case in load::embedded().expect("the suite's own cases are right") {
            check(&case.steps);
            let checks = case.expect.into_iter().map(|expected| expected.check);
            check(&checks.collect::<Vec<_>>());
        }
    }

    #[test]
    fn texts_that_yaml_would_take_for_something_else_are_quoted() {
        for text in [
            "", "1", "1e3", "0x1f", "No", "null", "-", "a ", " a", "a: b", "a #b", "[a]",
        ] {
            assert!(!is_plain(text), "{text}");
        }
        for text in [
            "c1",
            "8f3c",
            "300ms",
            "1s 900ms",
            "kubernetes.io/config.source",
        ] {
            assert!(is_plain(text), "{text}");
        }
        check(&["1", "1e3", "0x1f", "No", "c1", "8f3c", "300ms", "1s 900ms"].map(str::to_owned));
    }

    /// A runtime's text may have any characters: those that drive a terminal, commands of a
    /// workflow, and characters that YAML does not take; and it may have any length.
    #[test]
    fn any_text_of_a_runtime_makes_a_case_of_printable_lines() {
        let evil = "evil\u{1b}]0;x\u{7}\0\r\u{7f}\u{9b}31m\u{202e}\u{e0001}\u{fffe}\n::error::end";
        for text in [evil.to_owned(), "\u{202e}".repeat(1 << 20)] {
            let header = Header {
                title: format!("{text} is expected."),
                why: text,
                ..Header::of_test()
            };
            let can = Capabilities::default();
            let size = Size { steps: 9, pods: 1 };
            let plan = generate((1, 0), size, &can, &Coverage::default());
            let made = walk(plan, &can, &header);
            let text = made.case.definition;
            assert!(text.len() < 64 << 10, "{}", text.len());
            assert_eq!(printable_lines(&text), text);
            assert!(text.lines().all(|line| !line.starts_with("::")), "{text}");
        }
    }
}
