//! One text or several, in an entry of an expectation file. In a text `…` matches any part that
//! changes from run to run: a time, an id.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::outcome::{Kind, Signature};

/// Matches any text.
const ANYTHING: char = '…';

/// The minimum length of an id in hexadecimal digits.
const SHORTEST_ID: usize = 12;

/// The maximum number of digits of a count; a longer number is a time in nanoseconds or a pid.
const LONGEST_COUNT: usize = 4;

/// One or several, as a file has them.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is only a schema")]
enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

/// A finding, as a file has it.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is only a schema")]
enum Finding {
    Key(Kind),
    Values {
        kind: Kind,
        #[serde(flatten)]
        values: BTreeMap<String, Value>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "OneOrMore<String>")]
pub struct Texts(Vec<String>);

impl Texts {
    /// These texts; `None` if empty.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Option<Self> {
        let texts: Vec<String> = texts.into_iter().collect();
        (!texts.is_empty()).then_some(Self(texts))
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub fn fit(&self, text: &str) -> bool {
        self.iter().any(|pattern| fits(pattern, text))
    }

    /// Whether a text can match one of these and one of the others.
    pub(super) fn meet(&self, other: &Self) -> bool {
        self.iter().any(|text| other.fit(text)) || other.iter().any(|text| self.fit(text))
    }
}

/// At least one finding, as a pattern. In its texts `…` matches any part that changes.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(with = "OneOrMore<Finding>")]
pub struct Signatures(Vec<Signature>);

impl Signatures {
    /// These findings; `None` if empty.
    pub fn new(signatures: impl IntoIterator<Item = Signature>) -> Option<Self> {
        let signatures: Vec<Signature> = signatures.into_iter().collect();
        (!signatures.is_empty()).then_some(Self(signatures))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Signature> {
        self.0.iter()
    }

    /// Whether one of them matches a finding.
    pub fn fit(&self, found: &Signature) -> bool {
        self.iter().any(|pattern| pattern.matches(found, fits))
    }

    /// Whether a finding can match one of these and one of the others.
    pub(super) fn meet(&self, other: &Self) -> bool {
        self.iter().any(|one| other.fit(one)) || other.iter().any(|one| self.fit(one))
    }
}

/// Whether a text matches a pattern.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once(ANYTHING) else {
        return pattern == text;
    };
    let (middle, end) = rest.rsplit_once(ANYTHING).unwrap_or(("", rest));
    let between = text.strip_prefix(start);
    let between = between.and_then(|text| text.strip_suffix(end));
    between.is_some_and(|text| has_in_order(text, middle))
}

/// Whether a text contains the parts of a pattern in order.
fn has_in_order(mut text: &str, pattern: &str) -> bool {
    pattern.split(ANYTHING).all(|part| match text.find(part) {
        Some(at) => {
            text = &text[at + part.len()..];
            true
        }
        None => false,
    })
}

/// A text with `…` for the parts that change from run to run: ids, wall-clock times, measured
/// durations. A bound, such as `10s`, is kept.
pub(crate) fn stable(text: &str) -> String {
    let mut stable = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let is_part = |letter: char| letter.is_alphanumeric() || "-+:._".contains(letter);
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let plain = word.trim_end_matches([':', '.', '-', '+']);
        if changes(plain) {
            stable.push(ANYTHING);
            stable.push_str(&word[plain.len()..]);
        } else {
            stable.push_str(word);
        }
        let next = after.find(is_part).unwrap_or(after.len());
        stable.push_str(&after[..next]);
        rest = &after[next..];
    }
    stable
}

/// Whether a word changes from run to run.
fn changes(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_id = word.len() >= SHORTEST_ID
        && digits > 0
        && word
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let number = word.trim_start_matches(['-', '+']);
    let is_number =
        number.len() > LONGEST_COUNT && number.bytes().all(|byte| byte.is_ascii_digit());
    let starts_with_digit = number.starts_with(|letter: char| letter.is_ascii_digit());
    let is_measured = starts_with_digit && number.contains('.') && is_duration(number);
    let is_time = starts_with_digit && word.matches(':').count() >= 2 && digits >= 6;
    is_id || is_number || is_measured || is_time
}

fn is_duration(number: &str) -> bool {
    let unit = number.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    ["ns", "µs", "us", "ms", "s"].contains(&unit)
}

impl Serialize for Texts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        one_or_more(&self.0, serializer)
    }
}

impl Serialize for Signatures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        one_or_more(&self.0, serializer)
    }
}

fn one_or_more<T: Serialize, S: Serializer>(list: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    match list {
        [one] => one.serialize(serializer),
        several => several.serialize(serializer),
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(vec![text])),
            Value::Array(list) => {
                let texts = list.iter().map(|text| text.as_str().map(str::to_owned));
                let texts: Option<Vec<String>> = texts.collect();
                let texts = texts.ok_or_else(|| D::Error::custom("expected a list of texts"))?;
                Self::new(texts).ok_or_else(|| D::Error::custom("a list without a text"))
            }
            _ => Err(D::Error::custom("expected a text or a list of texts")),
        }
    }
}

impl<'de> Deserialize<'de> for Signatures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = match Value::deserialize(deserializer)? {
            Value::Array(list) => list,
            one => vec![one],
        };
        let signatures = list.into_iter().map(Signature::deserialize);
        let signatures: Result<Vec<_>, _> = signatures.collect();
        let signatures = signatures.map_err(D::Error::custom)?;
        Self::new(signatures).ok_or_else(|| D::Error::custom("a list without a finding"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(patterns: &[&str], text: &str, fit: bool) {
        let patterns = Texts::new(patterns.iter().map(|&text| text.to_owned()));
        assert_eq!(patterns.expect("some").fit(text), fit, "{text}");
    }

    #[test]
    fn a_text_fits_itself_and_what_changes_in_it() {
        check(&["it is missing"], "it is missing", true);
        check(&["it is missing"], "it is missing from STOPPED", false);
        check(&["STOPPED came … later"], "STOPPED came 10.5s later", true);
        check(&["STOPPED came … later"], "CREATED came 10.5s later", false);
        check(&["STOPPED came … later"], "STOPPED came 10.5s", false);
        check(&["… then … then …"], "1 then 2 then 3", true);
        check(&["… then … then …"], "1 then 2", false);
        check(&["a…a"], "a", false);
        check(&["one", "two"], "two", true);
    }

    #[test]
    fn what_another_run_will_not_repeat_is_left_open() {
        for (text, expect) in [
            ("it did not come within 10s", "it did not come within 10s"),
            ("STOPPED came 10.482913s later", "STOPPED came … later"),
            ("after 83.1µs: nothing", "after …: nothing"),
            ("exit code 137, not 0", "exit code 137, not 0"),
            ("c (9443734b533548aaaf144eba) gone", "c (…) gone"),
            ("finished at 1795193560000000000", "finished at …"),
            ("from 2026-11-22T12:00:20.04Z on", "from … on"),
            ("containerd 2.1.9", "containerd 2.1.9"),
            ("created_at is -6795364578871345152", "created_at is …"),
        ] {
            assert_eq!(stable(text), expect);
            assert!(fits(&stable(text), text), "{text}");
        }
    }

    #[test]
    fn they_are_read_and_written_as_one_or_as_a_list() {
        for yaml in ["one\n", "- one\n- two\n"] {
            let read: Texts = serde_yaml::from_str(yaml).expect("it is right");
            assert_eq!(serde_yaml::to_string(&read).expect("it can be"), yaml);
        }
        for (wrong, expected) in [
            ("[]", "a list without a text"),
            ("{a: b}", "expected a text or a list of texts"),
        ] {
            let fault = serde_yaml::from_str::<Texts>(wrong).expect_err("it is wrong");
            assert!(fault.to_string().contains(expected), "{fault}");
        }
    }
}
