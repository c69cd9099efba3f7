//! Foreign text fitted into a report: printable, truncated, broken into lines.

use std::fmt::Write;

pub use crate::escape::printable;

/// The number of characters of an id that `crictl` shows.
const SHORT_ID: usize = 13;

/// The beginning of an id, as `crictl` shows it.
pub fn short_id(id: &str) -> String {
    printable(&id.chars().take(SHORT_ID).collect::<String>()).into_owned()
}

/// The printable text, truncated to `limit` characters with an ellipsis.
pub fn cut(text: &str, limit: usize) -> String {
    // Truncate before escaping: a runtime may send megabytes.
    let end = text
        .char_indices()
        .nth(limit)
        .map_or(text.len(), |(at, _)| at);
    let safe = printable(&text[..end]);
    if end == text.len() && safe.chars().count() <= limit {
        return safe.into_owned();
    }
    let mut kept: String = safe.chars().take(limit.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

/// Appends `text`, wrapped between words at `width` columns; lines after the first are indented. A
/// longer word is not broken, and no line begins with a command of a CI system, which skips the
/// blanks before it.
pub(super) fn wrap(to: &mut String, text: &str, width: usize, indent: usize) {
    let safe = printable(text);
    let mut column = to.chars().rev().take_while(|c| *c != '\n').count();
    for (nth, word) in safe.split(' ').enumerate() {
        let length = word.chars().count();
        let is_command = word.starts_with("::") || word.starts_with("##");
        if nth > 0 && column + 1 + length > width && !is_command {
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

/// A text whose lines longer than `width` columns are wrapped between words; continuation lines are
/// indented like the words of a timeline.
pub fn folded(text: &str, width: usize) -> String {
    /// The column of the words in a timeline's line.
    const WORDS: usize = 29;
    let mut folded = String::with_capacity(text.len());
    for line in text.lines() {
        let indent = WORDS.min(width / 2);
        wrap(&mut folded, line, width, indent);
        folded.push('\n');
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::{cut, folded, short_id, wrap};

    #[test]
    fn an_id_is_cut_as_crictl_cuts_it() {
        assert_eq!(short_id("3f2a9c81d0e4b7651"), "3f2a9c81d0e4b");
        assert_eq!(short_id("3f2a"), "3f2a");
        assert_eq!(short_id("🦀\n"), "🦀\\n");
    }

    #[test]
    fn a_cut_keeps_the_limit_and_is_marked() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("ab\ncdefg", 6), "ab\\nc…");
        assert_eq!(cut("\n\n\n", 4), "\\n\\…");
        assert_eq!(cut("", 4), "");
    }

    #[test]
    fn a_folded_text_keeps_what_fits_as_it_is() {
        let line = ">    #42     +1.204  event   STARTED c  pod READY  [c RUNNING, d EXITED 0]";
        let short = format!("{line}\nnext\n");
        assert_eq!(folded(&short, 100), short);
        let (first, rest) = line.split_at(line.find(" d EXITED").unwrap_or(0));
        let parted = format!("{first}\n{:29}{}\n", "", rest.trim_start());
        assert_eq!(folded(line, 63), parted);
    }

    #[test]
    fn no_line_begins_with_a_command_of_a_ci_system() {
        for word in ["::error::a", "##[error]a", "##vso[a]"] {
            let mut text = String::new();
            wrap(&mut text, &format!("one two {word} three"), 8, 2);
            assert_eq!(text, format!("one two {word}\n  three"));
        }
    }

    #[test]
    fn long_text_is_broken_between_words() {
        let mut text = "  key  ".to_owned();
        wrap(&mut text, "one two three unbreakable-as-it-is four", 16, 7);
        assert_eq!(
            text,
            "  key  one two\n       three\n       unbreakable-as-it-is\n       four"
        );
    }
}
