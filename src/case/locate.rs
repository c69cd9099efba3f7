//! Positions of values in a YAML text, found by their paths.
//!
//! The parser reports no positions apart from those of its errors. So a [`Probe`] provokes an
//! error: it walks down the path and refuses the value at its end.

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// One step of the way from the top of a file to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    Key(&'static str),
    /// The list's element of this number, from 0.
    Index(usize),
}

/// Which end of a mapping's entry a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The value at the path's end.
    Value,
    Key,
}

/// The bytes of the text that a path names, or of its nearest ancestor if the text lacks it.
pub(super) fn locate(text: &str, path: &[Segment], part: Part) -> Option<Range<usize>> {
    (0..=path.len()).rev().find_map(|length| {
        let part = if length < path.len() { Part::Key } else { part };
        let path = &path[..length];
        fault_of(text, Probe { path, part })
    })
}

/// The first key that its mapping has already.
pub(super) fn locate_repeated_key(text: &str) -> Option<Range<usize>> {
    fault_of(text, KeysOnce)
}

/// The `---` that begins the second document of a text.
pub(super) fn locate_second_document(text: &str) -> Option<Range<usize>> {
    const MARK: &str = "---";
    let mut has_content = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let is_mark = line
            .strip_prefix(MARK)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
        if is_mark && has_content {
            return Some(start..start + MARK.len());
        }
        let is_blank = line.trim().is_empty() || line.starts_with(['#', '%']);
        has_content |= is_mark || !is_blank;
        start += line.len();
    }
    None
}

fn fault_of<'de, S: DeserializeSeed<'de>>(text: &'de str, seed: S) -> Option<Range<usize>> {
    let from = serde_yaml::Deserializer::from_str(text);
    let location = seed.deserialize(from).err()?.location()?;
    Some(token(text, location.line(), location.column()))
}

/// The word, quoted string or bracketed group that begins at a line and a column, both from 1.
pub(super) fn token(text: &str, line: usize, column: usize) -> Range<usize> {
    let line_start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let line = text[line_start..].lines().next().unwrap_or_default();
    let (before, rest) = line
        .char_indices()
        .nth(column.saturating_sub(1))
        .map_or((line, ""), |(offset, _)| line.split_at(offset));
    let start = line_start + before.len();
    start..start + token_length(before, rest)
}

fn token_length(before: &str, rest: &str) -> usize {
    let closed_by = |close| rest[1..].find(close).map_or(rest.len(), |at| at + 2);
    match rest.chars().next() {
        None => 0,
        Some(quote @ ('"' | '\'')) => closed_by(quote),
        Some('[') => closed_by(']'),
        Some('{') => closed_by('}'),
        Some(_) => plain_length(rest, before.contains(['{', '['])),
    }
}

/// How long a scalar without quotes is. In flow style, between brackets, a comma ends it too.
fn plain_length(rest: &str, in_flow: bool) -> usize {
    let ends = |&(at, char): &(usize, char)| match char {
        ':' => rest[at + 1..].is_empty() || rest[at + 1..].starts_with(char::is_whitespace),
        '#' => rest[..at].ends_with(char::is_whitespace),
        ',' | ']' | '}' => in_flow,
        _ => false,
    };
    let end = rest.char_indices().find(ends);
    let scalar = end.map_or(rest, |(end, _)| &rest[..end]);
    scalar.trim_end().len()
}

/// Walks down a path and fails at its end.
struct Probe<'a> {
    path: &'a [Segment],
    part: Part,
}

impl<'de> DeserializeSeed<'de> for Probe<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

/// Scalars need no methods: a visitor refuses them by default.
impl<'de> Visitor<'de> for Probe<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("to fail here")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((Segment::Key(wanted), path)) = self.path.split_first() else {
            return Err(A::Error::custom("here"));
        };
        let part = self.part;
        let refused = path.is_empty() && part == Part::Key;
        while let Some(found) = map.next_key_seed(KeyProbe { wanted, refused })? {
            if found {
                map.next_value_seed(Probe { path, part })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Some((Segment::Index(wanted), path)) = self.path.split_first() else {
            return Err(A::Error::custom("here"));
        };
        let part = self.part;
        for _ in 0..*wanted {
            list.next_element::<IgnoredAny>()?;
        }
        list.next_element_seed(Probe { path, part })?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Whether a key is the wanted one; fails at it if it is to be refused.
struct KeyProbe {
    wanted: &'static str,
    refused: bool,
}

impl<'de> DeserializeSeed<'de> for KeyProbe {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<bool, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyProbe {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<bool, E> {
        if self.refused && key == self.wanted {
            return Err(E::custom("here"));
        }
        Ok(key == self.wanted)
    }
}

/// Accepts anything in which no mapping has a key twice.
struct KeysOnce;

impl<'de> DeserializeSeed<'de> for KeysOnce {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeysOnce {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keys that are not repeated")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut known = Vec::new();
        while map.next_key_seed(NewKey(&mut known))?.is_some() {
            map.next_value_seed(KeysOnce)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(KeysOnce)?.is_some() {}
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// A key that is none of those that are known.
struct NewKey<'a>(&'a mut Vec<String>);

impl<'de> DeserializeSeed<'de> for NewKey<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for NewKey<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<(), E> {
        if self.0.iter().any(|known| known == key) {
            return Err(E::custom("here"));
        }
        self.0.push(key.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Segment::{Index, Key};
    use super::*;

    const TEXT: &str = "\
id: ORD-01
title: A claim, with a comma.
steps:
  - sandbox: {as: pod}
  - create:
      as: \"c\"
      in: pod
";

    #[track_caller]
    fn check(path: &[Segment], part: Part, expected: &str) {
        let found = locate(TEXT, path, part).expect("the text has it");
        assert_eq!(&TEXT[found], expected);
    }

    #[test]
    fn a_path_leads_to_its_value() {
        check(&[Key("title")], Part::Value, "A claim, with a comma.");
        check(
            &[Key("steps"), Index(0), Key("sandbox"), Key("as")],
            Part::Value,
            "pod",
        );
        check(
            &[Key("steps"), Index(0), Key("sandbox")],
            Part::Value,
            "{as: pod}",
        );
        check(
            &[Key("steps"), Index(1), Key("create"), Key("as")],
            Part::Value,
            "\"c\"",
        );
    }

    #[test]
    fn a_path_leads_to_its_key() {
        check(
            &[Key("steps"), Index(1), Key("create")],
            Part::Key,
            "create",
        );
        check(
            &[Key("steps"), Index(0), Key("sandbox"), Key("as")],
            Part::Key,
            "as",
        );
    }

    #[test]
    fn a_missing_value_is_located_at_its_parent() {
        check(
            &[Key("steps"), Index(1), Key("create"), Key("workload")],
            Part::Value,
            "create",
        );
        check(&[Key("expect")], Part::Value, "id");
    }

    #[test]
    fn a_repeated_key_is_found_where_it_is_repeated() {
        let text = "id: A\nsteps:\n  - start: {container: a, container: b}\n";
        let found = locate_repeated_key(text).expect("a key is repeated");
        assert_eq!(found.start, text.rfind("container").expect("it is there"));
        assert_eq!(locate_repeated_key(TEXT), None);
    }
}
