//! Versions of a runtime, and ranges of them.
//!
//! The numbers alone count: a suffix (`-rc.1`, `~ds1`, `+k3s2`) does not. A comparison looks at as
//! many numbers as it names: `<=2.1` and `=2.1` hold for 2.1.9, `>2.1` holds from 2.2.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(Vec<u64>);

/// A range of versions, such as `<2.3` or `>=1.7, <2.2`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Versions {
    text: String,
    /// The lowest version in it.
    from: Option<Version>,
    /// The lowest version above it.
    until: Option<Version>,
}

impl Version {
    /// The leading numbers of a version, after an optional `v`; `None` if there are none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('v');
        let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == '.'));
        let numbers = text[..end.unwrap_or(text.len())].trim_end_matches('.');
        let numbers: Result<Vec<u64>, _> = numbers.split('.').map(str::parse).collect();
        Some(Self::trimmed(numbers.ok()?))
    }

    fn trimmed(mut numbers: Vec<u64>) -> Self {
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        Self(numbers)
    }
}

impl Versions {
    /// Whether it includes a version such as `v2.1.9`; `None` if the text is no version.
    pub fn include(&self, version: &str) -> Option<bool> {
        Some(self.hold(&Version::parse(version)?))
    }

    pub(super) fn hold(&self, version: &Version) -> bool {
        let begun = self.from.as_ref().is_none_or(|from| from <= version);
        begun && self.until.as_ref().is_none_or(|until| version < until)
    }

    /// Whether both can include the same version.
    pub(super) fn meet(&self, other: &Self) -> bool {
        let before = |from: Option<&Version>, until: Option<&Version>| match (from, until) {
            (Some(from), Some(until)) => from < until,
            _ => true,
        };
        before(self.from.as_ref(), other.until.as_ref())
            && before(other.from.as_ref(), self.until.as_ref())
    }

    /// Restricts the range to a comparison, such as `<2.3`.
    fn narrow(&mut self, comparison: &str) -> Result<(), String> {
        let wrong = || {
            format!(
                "`{comparison}` is no comparison of versions: write `<2.3`, `<=2.1`, `=2.1`, \
                 `>=1.7` or `>1.7`, or two of them, such as `>=1.7, <2.3`"
            )
        };
        let at = comparison.find(|letter: char| !"<>=".contains(letter));
        let (sign, version) = comparison.split_at(at.ok_or_else(wrong)?);
        let numbers: Result<Vec<u64>, _> = version.split('.').map(str::parse).collect();
        let numbers = numbers.map_err(|_| wrong())?;
        let this = Version::trimmed(numbers.clone());
        // The first version that these numbers do not begin.
        let mut next = numbers;
        if let Some(last) = next.last_mut() {
            *last = last.saturating_add(1);
        }
        let next = Version(next);
        match sign {
            "<" => self.end_before(this),
            "<=" => self.end_before(next),
            ">" => self.begin_at(next),
            ">=" => self.begin_at(this),
            "=" => {
                self.begin_at(this);
                self.end_before(next);
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }

    fn begin_at(&mut self, version: Version) {
        let later = self.from.take().map(|from| from.max(version.clone()));
        self.from = later.or(Some(version));
    }

    fn end_before(&mut self, version: Version) {
        let earlier = self.until.take().map(|until| until.min(version.clone()));
        self.until = earlier.or(Some(version));
    }
}

impl TryFrom<String> for Versions {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut versions = Self {
            text: String::new(),
            from: None,
            until: None,
        };
        let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
        for comparison in parts {
            versions.narrow(comparison)?;
        }
        let is_empty = !versions.meet(&versions) || text.trim().is_empty();
        if is_empty {
            return Err(format!("no version is in `{text}`"));
        }
        Ok(Self { text, ..versions })
    }
}

impl From<Versions> for String {
    fn from(versions: Versions) -> Self {
        versions.text
    }
}

impl AsRef<str> for Versions {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(text: &str) -> Versions {
        Versions::try_from(text.to_owned()).expect("it is a range")
    }

    #[track_caller]
    fn check(range: &str, inside: &[&str], outside: &[&str]) {
        let range = versions(range);
        let holds = |version: &&str| range.hold(&Version::parse(version).expect("a version"));
        let wrong: Vec<_> = inside.iter().filter(|version| !holds(version)).collect();
        assert!(wrong.is_empty(), "not in {range:?}: {wrong:?}");
        let wrong: Vec<_> = outside.iter().filter(|version| holds(version)).collect();
        assert!(wrong.is_empty(), "in {range:?}: {wrong:?}");
    }

    #[test]
    fn a_comparison_looks_at_the_numbers_that_it_names() {
        check(
            "<2.3",
            &["1.7.24", "2.2.9", "2.1"],
            &["2.3", "2.3.0", "2.10.1", "3.0"],
        );
        check("<=2.1", &["2.1.9", "2.0.4", "1.7"], &["2.2", "2.2.0"]);
        check(
            "=2.1",
            &["2.1", "2.1.0", "v2.1.9", "2.1.9~ds1"],
            &["2.0.9", "2.2", "2.11"],
        );
        check(">2.1", &["2.2", "2.2.0", "3"], &["2.1.9", "2.1", "1.7"]);
        check(
            ">=1.7, <2.2",
            &["1.7.24", "2.1.9+k3s1"],
            &["1.6.36", "2.2.0"],
        );
        check(">=1.7 <2.2", &["1.7.24"], &["2.2.0"]);
        check(">=2.0", &["2", "2.0.0", "2.0.1"], &["1.99"]);
        check("<2.0", &["1.7"], &["2.0", "2.0.0-rc.1"]);
    }

    #[test]
    fn what_has_no_number_is_no_version() {
        for text in ["", "main", "v", "a1.2"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "",
            "2.1",
            "<",
            "<two",
            "==2",
            "<2.x",
            "<3 >4",
            ">=2.1 <2.1",
            "~2.1",
        ] {
            assert!(Versions::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_meet_where_a_version_is_in_both() {
        for (one, other, meet) in [
            ("<2.0", ">=2.0", false),
            ("<2.1", ">=2.0", true),
            ("<=2.0", ">=2.0", true),
            ("=1.7", "=2.1", false),
            ("<2.3", "=2.1", true),
            (">1.7", "=1.7", false),
        ] {
            assert_eq!(versions(one).meet(&versions(other)), meet, "{one}, {other}");
            assert_eq!(versions(other).meet(&versions(one)), meet, "{other}, {one}");
        }
    }
}
