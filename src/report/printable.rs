//! Foreign text fitted into a report: printable, truncated, broken into lines; times and durations
//! for people.

use std::time::Duration;

use junit_report::OffsetDateTime;

use crate::history::HostInstant;

pub(super) use crate::escape::wrap;
pub use crate::escape::{printable, wrapped};

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

/// The answer about a node in one line of at most 80 characters, the limit of Node Problem Detector
/// for the output of a plugin.
pub fn headline(node: &str, answer: &str) -> String {
    const NODE: usize = 40;
    cut(&format!("{}: {answer}", cut(node, NODE)), 80)
}

/// Whether a text has the form of such a beginning.
pub(super) fn is_short_id(text: &str) -> bool {
    text.len() == SHORT_ID && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The text with each id of 64 hexadecimal digits cut as `crictl` cuts it.
pub fn short_ids(text: &str) -> String {
    const DIGITS: usize = 64;
    let mut short = String::with_capacity(text.len());
    for part in text.split_inclusive(|c: char| !c.is_ascii_hexdigit()) {
        let id = part.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
        let kept = if id.len() == DIGITS {
            SHORT_ID
        } else {
            id.len()
        };
        short.push_str(&id[..kept]);
        short.push_str(&part[id.len()..]);
    }
    short
}

/// The time by the host's calendar clock, in UTC.
pub(super) fn utc(at: HostInstant) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(at.realtime_ns))
        .expect("64 bits of nanoseconds end in the year 2262, the calendar ends in 9999")
}

/// The UTC time in RFC 3339 format, with milliseconds.
pub fn rfc3339(at: HostInstant) -> String {
    let at = utc(at);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.millisecond()
    )
}

/// A measured duration: `35.1 ms`, `2.345 s`.
pub fn span(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{:.1} ms", duration.as_secs_f64() * 1e3)
    } else {
        format!("{:.3} s", duration.as_secs_f64())
    }
}

/// Nanoseconds in 64 bits: up to 584 years.
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A duration in nanoseconds that may be negative.
pub fn signed_span(nanos: i64) -> String {
    /// A smaller value is written as zero, without a sign.
    const ROUNDED_AWAY: u64 = 50_000;
    let is_negative = nanos < 0 && nanos.unsigned_abs() >= ROUNDED_AWAY;
    let sign = if is_negative { "-" } else { "" };
    format!("{sign}{}", span(Duration::from_nanos(nanos.unsigned_abs())))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{cut, rfc3339, short_id, short_ids, signed_span, span, wrap};
    use crate::history::HostInstant;

    #[test]
    fn an_id_is_cut_as_crictl_cuts_it() {
        assert_eq!(short_id("3f2a9c81d0e4b7651"), "3f2a9c81d0e4b");
        assert_eq!(short_id("3f2a"), "3f2a");
        assert_eq!(short_id("🦀\n"), "🦀\\n");
    }

    #[test]
    fn whole_ids_in_a_text_are_cut() {
        let id = "3f2a9c81d0e4b765".repeat(4);
        let text = format!("c ({id}) in {id}, {id}0, {}", &id[..40]);
        let short = format!("c (3f2a9c81d0e4b) in 3f2a9c81d0e4b, {id}0, {}", &id[..40]);
        assert_eq!(short_ids(&text), short);
        assert_eq!(short_ids(&id), "3f2a9c81d0e4b");
        assert_eq!(short_ids("🦀\n"), "🦀\n");
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

    #[track_caller]
    fn check(realtime_ns: i64, expect: &str) {
        let at = HostInstant {
            monotonic_ns: 7,
            realtime_ns,
        };
        assert_eq!(rfc3339(at), expect);
    }

    #[test]
    fn moments_are_rfc_3339_in_utc() {
        check(0, "1970-01-01T00:00:00.000Z");
        check(1_795_193_560_123_456_789, "2026-11-20T16:52:40.123Z");
        check(i64::MAX, "2262-04-11T23:47:16.854Z");
        check(i64::MIN, "1677-09-21T00:12:43.145Z");
    }

    #[test]
    fn spans_are_short() {
        assert_eq!(span(Duration::from_micros(612)), "0.6 ms");
        assert_eq!(span(Duration::from_micros(35_140)), "35.1 ms");
        assert_eq!(span(Duration::from_millis(12_345)), "12.345 s");
        assert_eq!(signed_span(-1_500_000), "-1.5 ms");
        assert_eq!(signed_span(-60_000), "-0.1 ms");
        assert_eq!(signed_span(-40_000), "0.0 ms");
        assert_eq!(signed_span(1_500_000), "1.5 ms");
    }
}
