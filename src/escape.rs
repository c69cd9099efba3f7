//! Escapes foreign text for display on a terminal, directly or through another program.
//!
//! One invariant: the result contains no character that moves the cursor, changes a colour, or
//! changes the text direction.

use std::borrow::Cow;
use std::fmt::Write;

/// The name of this program, behind which its arguments follow.
const COMMAND: &str = "cri-event-conformance ";

/// The text with all unprintable characters escaped: control characters, line and paragraph
/// separators, invisible characters, and marks of the text direction.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_unprintable, |character, to| {
        to.extend(character.escape_default());
    })
}

/// As [`printable`], but keeps line breaks and tabs.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    let is_unprintable = |character| !is_layout(character) && is_unprintable(character);
    escaped(text, is_unprintable, |character, to| {
        to.extend(character.escape_default());
    })
}

/// As [`printable_lines`], but keeps colours.
pub fn printable_styled(text: &str) -> Cow<'_, str> {
    const STYLE: &str = "\u{1b}[";
    let Some(first) = text.find(STYLE) else {
        return printable_lines(text);
    };
    let mut safe = printable_lines(&text[..first]).into_owned();
    for part in text[first..].split(STYLE).skip(1) {
        let digits = |character: char| character.is_ascii_digit() || character == ';';
        if part.trim_start_matches(digits).starts_with('m') {
            safe.push_str(STYLE);
        } else {
            safe.push_str(&printable(STYLE));
        }
        safe.push_str(&printable_lines(part));
    }
    Cow::Owned(safe)
}

/// An equivalent JSON text with all unprintable characters escaped.
pub fn printable_json(text: &str) -> Cow<'_, str> {
    // Outside of strings JSON is ASCII, and line breaks are layout: those in strings are already
    // escaped.
    let is_unprintable = |character| !is_layout(character) && is_unprintable(character);
    escaped(text, is_unprintable, |character, to| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            let _ = write!(to, "\\u{unit:04x}");
        }
    })
}

/// Appends `text`, wrapped between words at `width` columns; lines after the first are indented. A
/// longer word is not broken, and no line begins with a command of a CI system, which skips the
/// blanks before it.
pub fn wrap(to: &mut String, text: &str, width: usize, indent: usize) {
    wrap_words(to, &printable(text), (width, indent), |word| {
        word.chars().count()
    });
}

fn wrap_words(
    to: &mut String,
    safe: &str,
    (width, indent): (usize, usize),
    columns: impl Fn(&str) -> usize,
) {
    let mut column = to.chars().rev().take_while(|c| *c != '\n').count();
    for (nth, word) in safe.split(' ').enumerate() {
        let length = columns(word);
        let is_command = word.starts_with("::") || word.starts_with("##");
        if nth > 0 && column + 1 + length > width && !is_command {
            to.truncate(to.trim_end_matches(' ').len());
            let _ = write!(to, "\n{:indent$}", "");
            column = indent;
        } else if nth > 0 {
            to.push(' ');
            column += 1;
        }
        to.push_str(word);
        column += length;
    }
}

/// The text, wrapped for a terminal with these columns, lines after the first indented by two.
pub fn wrapped(text: &str, columns: usize) -> String {
    let mut lines = String::new();
    wrap(&mut lines, text, columns, 2);
    lines
}

/// The lines of a text, which may have colours, each wrapped for a terminal with these columns;
/// those after the first of a line are indented by two more. `without_colours` removes colours.
/// A line with a command to copy stays whole.
pub fn fitted(text: &str, columns: usize, without_colours: fn(&str) -> String) -> String {
    let mut fitted = String::new();
    for line in printable_styled(text).lines() {
        if line.contains(COMMAND) || line.starts_with(['$', '#']) {
            fitted.extend([line, "\n"]);
            continue;
        }
        let plain = without_colours(line);
        let indent = plain.len() - plain.trim_start_matches(' ').len() + 2;
        wrap_words(&mut fitted, line, (columns, indent), |word| {
            without_colours(word).chars().count()
        });
        fitted.push('\n');
    }
    fitted
}

fn escaped(
    text: &str,
    is_unprintable: impl Fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if !text.contains(&is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unprintable(character) {
            escape(character, &mut safe);
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

fn is_layout(character: char) -> bool {
    matches!(character, '\n' | '\t')
}

/// Whether a character is invisible or has an effect on the display.
pub fn is_unprintable(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_unchanged() {
        let plain = "exit 137 – köttbullar 🦀";
        assert_eq!(printable(plain), plain);
        assert_eq!(printable_json(plain), plain);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(
            printable("\u{1b}[31mred\u{7}\0\r\n\u{9b}\u{202e}\u{2066}\u{e0041}"),
            r"\u{1b}[31mred\u{7}\u{0}\r\n\u{9b}\u{202e}\u{2066}\u{e0041}"
        );
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(
            printable_lines("a\n\tb\r\n\u{1b}[m"),
            "a\n\tb\\r\n\\u{1b}[m"
        );
    }

    #[test]
    fn only_colours_are_kept() {
        let styled = "a\u{1b}[1;31mred\u{1b}[0m\n";
        assert_eq!(printable_styled(styled), styled);
        assert_eq!(
            printable_styled("a\u{1b}[2Jb\u{1b}[1"),
            r"a\u{1b}[2Jb\u{1b}[1"
        );
        assert_eq!(
            printable_styled("\u{1b}]0;x\u{7}\u{1b}[mb"),
            "\\u{1b}]0;x\\u{7}\u{1b}[mb"
        );
        assert_eq!(printable_styled("\u{9b}2J"), r"\u{9b}2J");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"a": "\u{1b}\u{7f}\u{9b}\u{202e}\u{e0001}ü\n"});
        let text = serde_json::to_string_pretty(&value).unwrap();
        let safe = printable_json(&text);
        assert!(
            safe.contains(r"\u001b\u007f\u009b\u202e\udb40\udc01ü\n"),
            "{safe}"
        );
        let read: serde_json::Value = serde_json::from_str(&safe).unwrap();
        assert_eq!(read, value);
    }
}
