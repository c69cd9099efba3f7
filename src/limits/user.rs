//! Durations and sizes given by the user, and the factor for built-in timeouts.

use std::str::FromStr;
use std::time::Duration;

/// The factor by which all timeouts are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutScale {
    percent: u32,
}

impl Default for TimeoutScale {
    fn default() -> Self {
        Self { percent: 100 }
    }
}

impl TimeoutScale {
    /// The factor in percent: 100 changes nothing.
    pub fn percent(self) -> u32 {
        self.percent
    }

    /// A timeout multiplied by the factor.
    pub fn scaled(self, bound: Duration) -> Duration {
        bound * self.percent / 100
    }
}

impl FromStr for TimeoutScale {
    type Err = &'static str;

    /// Parses a factor such as `2` or `0.5`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text
            .parse::<f64>()
            .ok()
            .filter(|factor| (0.1..=100.0).contains(factor));
        let factor = parsed.ok_or("it must be a number from 0.1 to 100")?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 10 to 10,000, by the filter above"
        )]
        let percent = (factor * 100.0).round() as u32;
        Ok(Self { percent })
    }
}

/// Parses `30s`, `1m 30s`, or `30` as crictl does. Fails if it is not a duration, zero, or longer
/// than an hour.
pub fn duration(text: &str) -> Result<Duration, String> {
    const HOUR: Duration = Duration::from_secs(3600);
    bounded(text, HOUR, "an hour")
}

/// Parses a duration of a watch, such as `10m` or `24h`. Fails if it is not a duration, zero, or
/// longer than 30 days.
pub fn long_duration(text: &str) -> Result<Duration, String> {
    const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);
    bounded(text, MONTH, "30 days")
}

fn bounded(text: &str, longest: Duration, in_words: &str) -> Result<Duration, String> {
    let parsed = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => humantime::parse_duration(text)
            .map_err(|fault| format!("{fault}; write it as 30s, or as a number of seconds"))?,
    };
    if parsed.is_zero() || parsed > longest {
        return Err(format!("it must be more than zero and at most {in_words}"));
    }
    Ok(parsed)
}

/// The units and their sizes in bytes.
const UNITS: [(&str, u64); 3] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
/// The minimum size for rotating a file.
const SMALLEST: u64 = 64 << 10;
/// The maximum size, that of any history.
const LARGEST: u64 = super::HISTORY_FILE_BYTES;

/// Parses a file size such as `64MiB`. Fails if it is not a number with one of the units, or below
/// 64 KiB or above 1 GiB.
pub fn size(text: &str) -> Result<u64, String> {
    let of_unit = |(unit, bytes): (&str, u64)| {
        let number = text.strip_suffix(unit)?.trim_end().parse::<u64>().ok()?;
        number.checked_mul(bytes)
    };
    let size = UNITS.into_iter().find_map(of_unit);
    let size = size.ok_or("write it as 512KiB, 64MiB or 1GiB")?;
    if (SMALLEST..=LARGEST).contains(&size) {
        Ok(size)
    } else {
        Err("it must be from 64KiB to 1GiB".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_or_have_a_unit() {
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert!(duration("0").is_err());
        assert!(duration("2 hours").is_err());
        assert!(duration("soon").is_err());
        assert_eq!(long_duration("24h"), Ok(Duration::from_secs(86_400)));
        assert!(long_duration("31 days").is_err());
    }

    #[test]
    fn factors_are_bounded() {
        let percent = |text: &str| text.parse().map(TimeoutScale::percent);
        assert_eq!(percent("1"), Ok(100));
        assert_eq!(percent("0.5"), Ok(50));
        assert!(percent("0").is_err());
        assert!(percent("NaN").is_err());
        assert!(percent("1000").is_err());
    }

    #[test]
    fn sizes_have_units_and_bounds() {
        assert_eq!(size("64KiB"), Ok(64 << 10));
        assert_eq!(size("1 GiB"), Ok(1 << 30));
        for text in [
            "63KiB",
            "2GiB",
            "64",
            "MiB",
            "-1MiB",
            "99999999999999999999GiB",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
