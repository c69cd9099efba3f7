//! Foreign text made valid for an XML document.
//!
//! The `junit-report` crate escapes markup in attributes and nothing else. All text in a document
//! passes through [`attribute`] or [`cdata`].

use std::str::Chars;

use crate::escape::is_unprintable;

/// Text for an attribute: one line, because parsers replace line breaks there by spaces.
pub(super) fn attribute(text: &str) -> String {
    xml_text(text).trim_end().replace('\n', " ¶ ")
}

/// Text for a CDATA section, which `junit-report` uses for every element's text. A terminator in
/// the text is divided between two sections, so that a parser reads the text unchanged.
pub(super) fn cdata(text: &str) -> String {
    xml_text(text).replace("]]>", "]]]]><![CDATA[>")
}

/// The text without characters that XML 1.0 forbids even as character references, and without
/// terminal escape sequences, of which otherwise the printable half would remain. Line breaks
/// become `\n`.
fn xml_text(text: &str) -> String {
    let mut rest = text.chars();
    let mut kept = String::with_capacity(text.len());
    while let Some(character) = rest.next() {
        match character {
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_csi(&mut rest),
            '\r' if rest.as_str().starts_with('\n') => {}
            '\r' => kept.push('\n'),
            '\t' | '\n' => kept.push(character),
            '\u{fffe}' | '\u{ffff}' => {}
            _ if character.is_control() => {}
            _ if is_unprintable(character) => kept.extend(character.escape_default()),
            _ => kept.push(character),
        }
    }
    kept
}

/// Skips the rest of an escape sequence. An unknown one counts as two characters.
fn skip_escape(rest: &mut Chars<'_>) {
    let kind = rest.clone().next();
    match kind {
        Some('[') => {
            rest.next();
            skip_csi(rest);
        }
        Some(']') => {
            rest.next();
            skip_osc(rest);
        }
        Some(' '..='~') => {
            rest.next();
        }
        _ => {}
    }
}

/// Skips parameters and the final character; other characters are kept.
fn skip_csi(rest: &mut Chars<'_>) {
    while let Some(' '..='~') = rest.clone().next() {
        if let Some('@'..='~') = rest.next() {
            return;
        }
    }
}

/// Skips a title or a link, up to BEL or ESC `\`; to the line's end if neither is found.
fn skip_osc(rest: &mut Chars<'_>) {
    while let Some(character) = rest.clone().next() {
        if character == '\n' {
            return;
        }
        rest.next();
        if character == '\u{7}' {
            return;
        }
        if character == '\u{1b}' {
            if rest.as_str().starts_with('\\') {
                rest.next();
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{attribute, cdata, xml_text};

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(xml_text(text), expect);
    }

    #[test]
    fn what_xml_forbids_is_dropped() {
        check("a\u{0}b\u{1}c\u{b}d\u{7f}e\u{fffe}f\u{ffff}g", "abcdefg");
        check(
            "tab\t, feed\n, return\r, both\r\n.",
            "tab\t, feed\n, return\n, both\n.",
        );
        check("🦀 \u{fffd} ü", "🦀 \u{fffd} ü");
    }

    #[test]
    fn escape_sequences_leave_nothing_behind() {
        check("\u{1b}[1;31mred\u{1b}[0m", "red");
        check("\u{9b}31mred", "red");
        check("\u{1b}]0;title\u{7}text", "text");
        check("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link");
        check("\u{1b}]no end\nnext", "\nnext");
        check("\u{1b}(Btext\u{1b}", "Btext");
        check("\u{1b}[12\nnext", "\nnext");
        check("\u{1b}ünext", "ünext");
    }

    #[test]
    fn what_turns_the_reading_direction_is_shown() {
        check("a\u{202e}b\u{2066}c", r"a\u{202e}b\u{2066}c");
    }

    #[test]
    fn an_attribute_is_one_line() {
        assert_eq!(attribute("one\r\ntwo\n"), "one ¶ two");
    }

    #[test]
    fn a_section_ends_only_where_it_should() {
        assert_eq!(cdata("a]]>b]]"), "a]]]]><![CDATA[>b]]");
    }
}
