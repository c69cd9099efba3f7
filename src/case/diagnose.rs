//! What is wrong with case files, told as rustc tells it: the place, the line, a caret, and a way
//! out. Knows nothing of what makes a case right; see `validate`.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::locate::{Part, Segment, locate, locate_repeated_key, token};

/// One problem of one case file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, as it was named.
    pub file: PathBuf,
    /// Where in it; absent where the file as a whole is meant.
    pub position: Option<Position>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// A place in a case file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The character in it, from 1.
    pub column: usize,
    text: String,
    span: Range<usize>,
}

/// All problems of all case files: never none.
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
    pub(super) fn from_found(found: Vec<Diagnostic>) -> Result<(), Self> {
        if found.is_empty() {
            Ok(())
        } else {
            Err(Self(found))
        }
    }

    /// Each of them, file by file.
    #[must_use = "an iterator does nothing by itself"]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Diagnostic> {
        self.0.iter()
    }

    /// The text for people, with colours if `styled`.
    #[must_use]
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

    /// The same with a way out.
    pub(super) fn with_help(self, help: impl Into<String>) -> Self {
        Self {
            help: Some(help.into()),
            ..self
        }
    }

    fn render(&self, renderer: &Renderer) -> String {
        let file = self.file.to_string_lossy();
        let title = Level::ERROR.primary_title(&self.message);
        let mut group = match &self.position {
            Some(position) => title.element(
                Snippet::source(&position.text)
                    .path(file)
                    .line_start(position.line)
                    .annotation(AnnotationKind::Primary.span(position.span.clone())),
            ),
            None => Group::with_title(title).element(Origin::path(file)),
        };
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help));
        }
        renderer.render(&[group])
    }
}

impl Position {
    /// The position of these bytes of a text.
    fn of(text: &str, span: Range<usize>) -> Self {
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
            position: span.map(|span| Position::of(text, span)),
            message: self.message,
            help: self.help,
        }
    }
}

/// Problems at their places in the file's text, from its beginning to its end.
pub(super) fn locate_all(problems: Vec<Problem>, file: &Path, text: &str) -> Vec<Diagnostic> {
    let located = problems
        .into_iter()
        .map(|problem| problem.locate(file, text));
    let mut located: Vec<_> = located.collect();
    located.sort_by_key(|found| {
        let position = found.position.as_ref();
        position.map(|position| (position.line, position.column))
    });
    located
}

/// What the YAML parser, or the type of a value, objects to.
pub(super) fn of_yaml(file: &Path, text: &str, fault: &serde_yaml::Error) -> Diagnostic {
    let location = fault.location();
    let repeated_key = locate_repeated_key(text);
    let mut span = location.map(|at| token(text, at.line(), at.column()));
    let mut message = without_place(&fault.to_string());
    if message.contains("duplicate") && repeated_key.is_some() {
        span = repeated_key;
    }
    if let Some(field) = message.strip_prefix("duplicate field ") {
        message = format!("{field} is given twice");
    }
    let tab = span
        .as_ref()
        .is_some_and(|span| text[span.start..].starts_with('\t'));
    let help = if tab {
        Some("indent with spaces; YAML does not allow tabs there".to_owned())
    } else {
        help_with_word(&mut message)
    };
    Diagnostic {
        file: file.to_owned(),
        position: span.map(|span| Position::of(text, span)),
        message,
        help,
    }
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

/// Takes the list of known words out of a message on an unknown one, and helps with it.
fn help_with_word(message: &mut String) -> Option<String> {
    let (fault, list) = message.split_once(", expected ")?;
    if !fault.starts_with("unknown ") {
        return None;
    }
    let word = fault.split('`').nth(1)?;
    let known: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    let help = did_you_mean(word, known.iter().copied()).unwrap_or_else(|| {
        let list = list.trim_start_matches("one of ");
        format!(
            "expected {}{list}",
            if known.len() > 2 { "one of " } else { "" }
        )
    });
    let fault = fault.to_owned();
    *message = fault;
    Some(help)
}

/// Advice to use the known word that is nearest to an unknown one, if one is near.
pub(super) fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let (distance, nearest) = known
        .map(|known| (strsim::osa_distance(word, known), known))
        .min()?;
    (distance <= 1 + word.chars().count() / 4).then(|| format!("did you mean `{nearest}`?"))
}
