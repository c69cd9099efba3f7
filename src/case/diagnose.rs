//! Diagnostics of case files in the style of rustc: the place, the line, a caret, and a suggestion.
//! Knows no rule of a case; see `validate`.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::limits;
use super::locate::{Part, Segment, locate, locate_repeated_key, locate_second_document, token};
use crate::escape::printable;
use crate::yaml::Invalid;

/// The beginning of the YAML parser's error about a second document.
const SEVERAL_DOCUMENTS: &str = "deserializing from YAML containing more than one document";

/// The longest word of a message that is printed whole, in characters. A file may be a single word,
/// and messages quote the rejected value.
const LONGEST_WORD: usize = 160;

/// One problem of one case file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub file: PathBuf,
    /// The place in the file; absent for a problem of the file as a whole.
    pub position: Option<Position>,
    pub message: String,
    /// A suggestion how to mend it.
    pub help: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The character in it, from 1.
    pub column: usize,
    text: String,
    span: Range<usize>,
}

/// All problems of all case files, one at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

/// A problem of a parsed case, at the path of a value.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) path: Vec<Segment>,
    pub(super) part: Part,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Diagnostics {
    /// The problems as one error, unless there are none.
    pub fn from_found(found: Vec<Diagnostic>) -> Result<(), Self> {
        if found.is_empty() {
            Ok(())
        } else {
            Err(Self(found))
        }
    }

    /// The problems of one file, one at least.
    pub(super) fn new(found: Vec<Diagnostic>) -> Self {
        debug_assert!(!found.is_empty(), "nothing is wrong");
        Self(found)
    }

    /// The problems, file by file.
    #[must_use = "an iterator does nothing by itself"]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Diagnostic> {
        self.0.iter()
    }

    /// The text for people, with colours if `styled`.
    pub fn render(&self, styled: bool) -> String {
        let renderer = if styled {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let snippets = self.iter().map(|diagnostic| diagnostic.render(&renderer));
        snippets.collect::<Vec<_>>().join("\n\n")
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

impl Diagnostic {
    /// A problem of the file as a whole.
    pub(super) fn of_file(file: &Path, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            position: None,
            message: message.into(),
            help: None,
        }
    }

    /// Adds a suggestion.
    pub(super) fn with_help(self, help: impl Into<String>) -> Self {
        Self {
            help: Some(help.into()),
            ..self
        }
    }

    fn render(&self, renderer: &Renderer) -> String {
        let file = printable(&self.file.to_string_lossy()).into_owned();
        let message = with_short_words(&printable(&self.message));
        let help = self.help.as_deref().map(with_short_words);
        let title = Level::ERROR.primary_title(message);
        let mut group = match &self.position {
            Some(position) => title.element(
                Snippet::source(&position.text)
                    .path(file)
                    .line_start(position.line)
                    .annotation(AnnotationKind::Primary.span(position.span.clone())),
            ),
            None => Group::with_title(title).element(Origin::path(file)),
        };
        if let Some(help) = help {
            group = group.element(Level::HELP.message(help));
        }
        renderer.render(&[group])
    }
}

impl Position {
    /// The position of these bytes of a text.
    fn new(text: &str, span: Range<usize>) -> Self {
        let before = &text[..span.start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[line_start..].lines().next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: text[line_start..span.start].chars().count() + 1,
            text: line.to_owned(),
            span: span.start - line_start..span.end - line_start,
        }
    }
}

impl Problem {
    /// The problem at its place in the file's text.
    pub(super) fn locate(self, file: &Path, text: &str) -> Diagnostic {
        let span = locate(text, &self.path, self.part);
        Diagnostic {
            file: file.to_owned(),
            position: span.map(|span| Position::new(text, span)),
            message: self.message,
            help: self.help,
        }
    }
}

/// Problems at their places in the file's text, from its beginning to its end.
pub(super) fn locate_all(problems: Vec<Problem>, file: &Path, text: &str) -> Vec<Diagnostic> {
    let omitted = problems.len().saturating_sub(limits::PROBLEMS);
    let shown = problems.into_iter().take(limits::PROBLEMS);
    let mut located: Vec<_> = shown.map(|problem| problem.locate(file, text)).collect();
    located.sort_by_key(|found| {
        let position = found.position.as_ref();
        position.map(|position| (position.line, position.column))
    });
    if omitted > 0 {
        located.push(Diagnostic::of_file(
            file,
            format!("there are {omitted} more problems"),
        ));
    }
    located
}

/// The error of the YAML parser, or of the type of a value.
pub(super) fn of_yaml(file: &Path, text: &str, fault: &serde_yaml::Error) -> Diagnostic {
    let message = without_place(&fault.to_string());
    let mut span = fault
        .location()
        .map(|at| token(text, at.line(), at.column()));
    if message.starts_with("duplicate ") {
        span = locate_repeated_key(text).or(span);
    }
    if message.starts_with(SEVERAL_DOCUMENTS) {
        span = locate_second_document(text);
    }
    let span = span.map(|span| quoted(text, span.start, &message).unwrap_or(span));
    let at_tab = |span: &Range<usize>| text[span.start..].starts_with('\t');
    let (message, help) = if span.as_ref().is_some_and(at_tab) {
        (
            message,
            Some("indent with spaces; YAML does not allow tabs there".to_owned()),
        )
    } else {
        in_words_of_a_case(&message)
    };
    Diagnostic {
        file: file.to_owned(),
        position: span.map(|span| Position::new(text, span)),
        message,
        help,
    }
}

/// A mistake in a value of any file, marked at its first place: the message, the line with a caret.
pub fn wrong_value(file: &Path, text: &str, value: &str, message: String) -> String {
    let span = place_of(text, 0, value);
    let found = Diagnostic {
        file: file.to_owned(),
        position: span.map(|span| Position::new(text, span)),
        message,
        help: None,
    };
    let found = found.render(&Renderer::plain());
    found.trim_start_matches("error: ").to_owned()
}

/// The value that a message about a type quotes first, behind the mapping to which the parser
/// points.
fn quoted(text: &str, from: usize, message: &str) -> Option<Range<usize>> {
    let is_of_type = message.starts_with('`') || message.starts_with("there is no ");
    let value = message.split('`').nth(1).filter(|_| is_of_type)?;
    place_of(text, from, value)
}

/// The first place at which this is a key or a whole value.
fn place_of(text: &str, from: usize, value: &str) -> Option<Range<usize>> {
    let is_whole = |at: usize| {
        let before = text[from..at].trim_end_matches([' ', '"', '\'']);
        let after = text[at + value.len()..].chars().next();
        before.ends_with([':', '[', '{', ',', '-']) && !after.is_some_and(char::is_alphanumeric)
    };
    let mut places = text[from..].match_indices(value).map(|(at, _)| from + at);
    let at = places.find(|at| is_whole(*at))?;
    Some(at..at + value.len())
}

/// The error of the YAML parser about any file: the message, the line with a caret, and a
/// suggestion.
pub fn wrong_yaml(file: &Path, text: &str, fault: &Invalid) -> String {
    let found = of_yaml(file, text, &fault.0).render(&Renderer::plain());
    let error = "error: ";
    found.strip_prefix(error).unwrap_or(&found).to_owned()
}

/// The parser's message without the path before it and the position behind it, both of which the
/// snippet shows.
fn without_place(message: &str) -> String {
    let message = match message.split_once(": ") {
        Some((path, rest)) if !path.contains([' ', '`']) => rest,
        _ => message,
    };
    match message.find(" at line ") {
        Some(place) => {
            let rest = message[place..]
                .find(", ")
                .map(|rest| &message[place + rest..]);
            format!("{}{}", &message[..place], rest.unwrap_or_default())
        }
        None => message.to_owned(),
    }
}

/// A message and help in the words of a case's author, for serde's own words are those of
/// Rust's types.
fn in_words_of_a_case(message: &str) -> (String, Option<String>) {
    if message.starts_with(SEVERAL_DOCUMENTS) {
        let message = "a file has one YAML document, and this one has several";
        let help = "put each into a file of its own, without a `---` between them";
        return (message.to_owned(), Some(help.to_owned()));
    }
    if message.contains("expected newtype variant") {
        let message = "this keyword needs a value".to_owned();
        return (
            message,
            Some("write a mapping behind it, `keyword: {…}`".to_owned()),
        );
    }
    if message.contains("expected map with a single key") {
        let message = "an item of this list has one keyword".to_owned();
        return (message, Some("begin another item with `- `".to_owned()));
    }
    let renamed = [
        ("unknown field ", "unknown key "),
        ("missing field ", "missing key "),
        ("unknown variant ", "unknown word "),
    ];
    for (theirs, ours) in renamed {
        if let Some(rest) = message.strip_prefix(theirs) {
            return with_known_words(ours, rest);
        }
    }
    if let Some(key) = message.strip_prefix("duplicate field ") {
        return (format!("the key {key} is given twice"), None);
    }
    let wrong = message.strip_prefix("invalid type: ");
    match wrong.and_then(|it| it.rsplit_once(", expected ")) {
        Some((found, expected)) => (wrong_type(found, expected), None),
        None => (message.to_owned(), None),
    }
}

/// The message about a value of a wrong type, in the words of YAML.
fn wrong_type(found: &str, expected: &str) -> String {
    let expected = match expected {
        "a sequence" => "a list",
        "a map" => "a mapping",
        "a string" => "a text",
        "field identifier" => "a key",
        "a boolean" => "`true` or `false`",
        "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not negative",
        "i32" | "i64" => "a whole number",
        own => own,
    };
    let found = match found.split_once(' ') {
        None if found == "sequence" => "a list".to_owned(),
        None if found == "map" => "a mapping".to_owned(),
        Some(("string", text)) => format!("the text {text}"),
        Some(("integer", number)) => format!("the number {number}"),
        Some(("floating", point)) => point.replacen("point", "the number", 1),
        Some(("boolean", value)) => value.to_owned(),
        Some(("unit", _)) => "no value".to_owned(),
        _ => found.to_owned(),
    };
    format!("expected {expected}, found {found}")
}

/// A text with the middle of its very long words left out.
fn with_short_words(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let length = word.chars().count();
        if length <= LONGEST_WORD {
            return word.to_owned();
        }
        let first: String = word.chars().take(LONGEST_WORD / 2).collect();
        let last: String = word.chars().skip(length - LONGEST_WORD / 4).collect();
        format!("{first}…{last}")
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Splits "`wrong`, expected one of `this`, `that`" into a message and help.
fn with_known_words(objection: &str, rest: &str) -> (String, Option<String>) {
    let Some((word, list)) = rest.split_once(", expected ") else {
        return (format!("{objection}{rest}"), None);
    };
    let known: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    let name = word.trim_matches('`');
    let help = did_you_mean(name, known.iter().copied());
    let help = help.unwrap_or_else(|| format!("expected {list}"));
    (format!("{objection}{word}"), Some(help))
}

/// Advice to use the known word that is nearest to an unknown one, in any case, if one is near.
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let distance = |known: &str| strsim::osa_distance(&word.to_lowercase(), &known.to_lowercase());
    let (distance, nearest) = known.map(|known| (distance(known), known)).min()?;
    (distance <= 1 + word.chars().count() / 4).then(|| format!("did you mean `{nearest}`?"))
}

/// Advice on the id of a case that has ended, by the table in `cases/README.md`.
pub fn successor(id: &str) -> Option<String> {
    let rows = include_str!("../../cases/README.md").lines();
    let rows = rows.filter(|line| line.starts_with('|'));
    rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>())
        .find_map(|cells| {
            let mut pairs = cells.windows(2);
            let pair = pairs.find(|pair| pair[0].eq_ignore_ascii_case(id))?;
            Some(format!(
                "it has ended, and its claims are part of {}",
                pair[1]
            ))
        })
}
