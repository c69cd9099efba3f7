//! Times and durations in human-readable form. Only this module and `junit` use the parts of the
//! `time` crate that `junit-report` exports.

use std::time::Duration;

use junit_report::OffsetDateTime;

use crate::history::HostInstant;

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

    use super::{rfc3339, signed_span, span};
    use crate::history::HostInstant;

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
