//! The entries of an expectation file.

use std::fmt;
use std::time::UNIX_EPOCH;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::texts::{Signatures, Texts};
use super::when::{When, both_or};
use crate::history::HostInstant;
use crate::outcome::Seen;
use crate::statistics::at_least;

/// Nanoseconds of a day. Computers count UTC without leap seconds.
const DAY_NS: i64 = 24 * 3_600 * 1_000_000_000;

/// The highest number of runs in a rate.
const MOST_RUNS: u32 = 1_000_000;

/// A day in UTC, such as `2026-12-31`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Day {
    text: String,
    began_ns: i64,
}

/// The rate of lost races, in a number of runs, such as `2/20`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Rate {
    /// The number of runs with the race; at least one.
    pub seen: u32,
    /// The number of all runs, which is greater.
    pub runs: u32,
}

/// The maximum rate of a race, by the number of containers: at most `5/1000` containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Bound {
    pub found: u32,
    /// The number of containers, which is greater.
    pub of: u32,
}

/// The minimum number of findings that break a bound: two of them can have one cause.
const FEWEST_FINDINGS: usize = 3;

/// The probability of a false alarm at the bound: a run has some ten bounds, so one in 1,000 runs
/// would fail by chance if all races were at their bounds.
const BY_CHANCE: f64 = 1e-4;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[serde(expecting = "an entry with `case`, `reason` and `link`")]
pub struct KnownFailure {
    /// The id of the failing case or invariant.
    pub case: String,
    /// The affected runtimes; all, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    pub reason: String,
    /// A reference: an issue, or the runtime's source.
    pub link: String,
    /// The page about the runtime's defect, in a built-in file: the name of one in
    /// `ci/findings/<runtime>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// The first versions without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_in: Option<Texts>,
    /// For an invariant: the ids of the cases whose histories break it; any, if absent.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub cases: Option<Texts>,
    /// A race: it fails in some runs and passes in others, and both are expected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sometimes: bool,
    /// A race, with its observed failure rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// A race, with the maximum rate; more failures are unexpected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Bound>,
    /// The last day on which the entry applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Day>,
    /// The findings, by kind and values; any other failure of the case is unexpected. All findings,
    /// if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Signatures>,
}

impl KnownFailure {
    pub fn is_over(&self, at: HostInstant) -> bool {
        self.expires.as_ref().is_some_and(|day| day.is_over(at))
    }

    /// Whether it applies to a failure of this kind. One after the case was judged can belong to
    /// any case.
    pub fn covers(&self, seen: &Seen) -> bool {
        let finding = self.finding.as_ref();
        finding.is_none_or(|finding| finding.fit(&seen.signature))
            && seen.case.as_deref().is_none_or(|case| self.is_of(case))
    }

    /// Whether it applies to an invariant broken by a case's history.
    pub fn is_of(&self, case: &str) -> bool {
        self.cases.as_ref().is_none_or(|cases| cases.fit(case))
    }

    /// Whether its case may pass, too.
    pub fn is_race(&self) -> bool {
        self.sometimes || self.rate.is_some() || self.at_most.is_some()
    }

    /// The reason and the reference, as a phrase.
    pub fn explanation(&self) -> String {
        let rate = self.rate.map(|rate| format!(", seen in {rate}"));
        let fixed = self.fixed_in.as_ref();
        let fixed = fixed.map(|versions| {
            let versions: Vec<&str> = versions.iter().collect();
            format!("; fixed in {}", versions.join(" and "))
        });
        let (rate, fixed) = (rate.unwrap_or_default(), fixed.unwrap_or_default());
        format!("{}{rate} ({}{fixed})", self.reason.trim(), self.link)
    }

    /// Whether one failure can match both.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.case == other.case
            && both_or(self.cases.as_ref(), other.cases.as_ref(), Texts::meet)
            && both_or(
                self.finding.as_ref(),
                other.finding.as_ref(),
                Signatures::meet,
            )
            && both_or(self.when.as_ref(), other.when.as_ref(), When::meets)
    }
}

impl Day {
    /// Whether the day has passed.
    pub fn is_over(&self, at: HostInstant) -> bool {
        at.realtime_ns >= self.began_ns.saturating_add(DAY_NS)
    }
}

impl Rate {
    /// A rate; `None` unless some of the runs are affected, and not all.
    pub fn of(seen: u32, runs: u32) -> Option<Self> {
        let is_race = 0 < seen && seen < runs && runs <= MOST_RUNS;
        is_race.then_some(Self { seen, runs })
    }
}

impl Bound {
    /// Whether this number of findings in these containers exceeds chance.
    pub fn is_broken_by(self, findings: usize, containers: usize) -> bool {
        let rate = f64::from(self.found) / f64::from(self.of);
        findings >= FEWEST_FINDINGS && at_least(findings, containers, rate) < BY_CHANCE
    }
}

impl TryFrom<String> for Day {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no day such as `2026-12-31`");
        if text.len() != "2026-12-31".len() {
            return Err(wrong());
        }
        let began = humantime::parse_rfc3339(&format!("{text}T00:00:00Z")).map_err(|_| wrong())?;
        let began = began.duration_since(UNIX_EPOCH).map_err(|_| wrong())?;
        let began_ns = i64::try_from(began.as_nanos()).map_err(|_| wrong())?;
        Ok(Self { text, began_ns })
    }
}

impl TryFrom<String> for Rate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let rate = fraction(&text).and_then(|(seen, runs)| Self::of(seen, runs));
        rate.ok_or_else(|| {
            format!(
                "`{text}` is no rate such as `2/20`, seen in 2 of 20 runs: more than none of them, \
                 and fewer than all, for what always fails needs no rate"
            )
        })
    }
}

impl TryFrom<String> for Bound {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bound = fraction(&text).map(|(found, of)| Self { found, of });
        bound.ok_or_else(|| {
            format!("`{text}` is no bound such as `5/1000`, at most 5 findings in 1000 containers")
        })
    }
}

/// The numbers in `2/20`, of which the first is not 0 and the second is greater.
fn fraction(text: &str) -> Option<(u32, u32)> {
    let number = |digits: &str| {
        let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse().ok().filter(|_| plain)
    };
    let (part, whole) = text.split_once('/')?;
    let (part, whole) = (number(part)?, number(whole)?);
    (0 < part && part < whole && whole <= MOST_RUNS).then_some((part, whole))
}

impl From<Day> for String {
    fn from(day: Day) -> Self {
        day.text
    }
}

impl From<Rate> for String {
    fn from(Rate { seen, runs }: Rate) -> Self {
        format!("{seen}/{runs}")
    }
}

impl From<Bound> for String {
    fn from(Bound { found, of }: Bound) -> Self {
        format!("{found}/{of}")
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} containers", self.found, self.of)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} runs", self.seen, self.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_over_when_the_next_one_begins() {
        let day = Day::try_from("1970-01-02".to_owned()).unwrap();
        let at = |realtime_ns| HostInstant {
            realtime_ns,
            ..HostInstant::default()
        };
        assert!(!day.is_over(at(0)));
        assert!(!day.is_over(at(2 * DAY_NS - 1)));
        assert!(day.is_over(at(2 * DAY_NS)));
    }

    #[test]
    fn a_day_is_one_of_the_calendar() {
        assert!(Day::try_from("2028-02-29".to_owned()).is_ok());
        for wrong in [
            "2026-02-29",
            "2026-13-01",
            "2026-1-1",
            "26-01-01",
            "tomorrow",
            "",
            "2026-12-31T",
            "2026/12/31",
            "9999-12-31",
        ] {
            assert!(Day::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_rate_is_that_of_a_race() {
        let rate = Rate::try_from("2/20".to_owned()).unwrap();
        assert_eq!((rate.seen, rate.runs), (2, 20));
        assert_eq!(String::from(rate), "2/20");
        assert!(Rate::try_from("1/2".to_owned()).is_ok());
        for wrong in [
            "0/20",
            "20/20",
            "21/20",
            "2",
            "2/",
            "/20",
            "+2/20",
            "2/20/3",
            "2 / 20",
            "-1/2",
            "1/1000001",
            "",
        ] {
            assert!(Rate::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[track_caller]
    fn bound(text: &str, findings: usize, containers: usize, is_broken: bool) {
        let bound = Bound::try_from(text.to_owned()).unwrap();
        let context = format!("{findings} of {containers}, at most {text}");
        assert_eq!(
            bound.is_broken_by(findings, containers),
            is_broken,
            "{context}"
        );
    }

    #[test]
    fn a_bound_is_broken_by_more_than_chance_explains() {
        bound("5/1000", 0, 0, false);
        bound("5/1000", 1, 1, false);
        bound("1/1000000", 2, 2, false);
        bound("5/1000", 5, 100, false);
        bound("5/1000", 6, 100, true);
        bound("5/1000", 41, 200, true);
        bound("5/1000", 12, 1_000, false);
        bound("5/1000", 16, 1_000, true);
        bound("1/2", 60, 100, false);
        bound("1/2", 70, 100, true);
        bound("19/20", 100, 100, false);
        bound("1/2", 510_000, 1_000_000, true);
        bound("1/2", 500_000, 1_000_000, false);
    }

    #[test]
    fn a_bound_is_less_than_always() {
        for wrong in ["0/20", "20/20", "5", "5/", "5/x", "1/1000001", ""] {
            assert!(Bound::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
