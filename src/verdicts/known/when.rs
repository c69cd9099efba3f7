//! The conditions of an entry of an expectation file: versions, an OCI runtime, cgroups.
//!
//! All conditions must hold, and an unknown fact satisfies none.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::texts::Texts;
use crate::history::RunInfo;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(Vec<u64>);

/// A range of versions, such as `<2.3` or `>=1.7, <2.2`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Versions {
    text: String,
    /// The lowest version in it.
    from: Option<Version>,
    /// The lowest version above it.
    until: Option<Version>,
}

/// The words for cgroups, each with that of a history.
const CGROUPS: [(&str, &str); 3] = [("v1", "1"), ("v2", "2"), ("hybrid", "hybrid")];

/// The words for cgroup drivers.
const CGROUP_DRIVERS: [&str; 2] = ["cgroupfs", "systemd"];

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "conditions: `version`, `handler`, `cgroup-driver`, `cgroup`"
)]
pub struct When {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Versions>,
    /// The OCI runtime: the name of its program or, if unknown, of its handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<Texts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_driver: Option<Texts>,
    /// The cgroup version of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<Texts>,
}

/// The facts about a run's runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeFacts {
    /// Its own name for itself.
    pub name: String,
    pub version: String,
    pub handler: Option<String>,
    pub cgroup_driver: Option<String>,
    /// The cgroup version, such as `v2`.
    pub cgroup: Option<String>,
}

impl RuntimeFacts {
    /// The facts in a run's information.
    pub fn of(info: &RunInfo) -> Self {
        let oci = info.oci.as_ref();
        let handler = oci.map(|oci| oci.name.as_ref().unwrap_or(&oci.handler));
        let recorded = info.host.as_ref().and_then(|host| host.cgroup.as_deref());
        let cgroup = CGROUPS.iter().find(|(_, word)| Some(*word) == recorded);
        Self {
            name: info.runtime.runtime_name.clone(),
            version: info.runtime.runtime_version.clone(),
            handler: handler.filter(|handler| !handler.is_empty()).cloned(),
            cgroup_driver: info.cgroup_driver.map(|driver| driver.name().to_owned()),
            cgroup: cgroup.map(|(word, _)| (*word).to_owned()),
        }
    }
}

impl When {
    pub fn holds(&self, facts: &RuntimeFacts) -> bool {
        let version = Version::parse(&facts.version);
        let of_version = self.version.as_ref().is_none_or(|versions| {
            let version = version.as_ref();
            version.is_some_and(|version| versions.hold(version))
        });
        let is = |wanted: Option<&Texts>, fact: Option<&str>| {
            wanted.is_none_or(|wanted| fact.is_some_and(|fact| wanted.fit(fact)))
        };
        of_version
            && is(self.handler.as_ref(), facts.handler.as_deref())
            && is(self.cgroup_driver.as_ref(), facts.cgroup_driver.as_deref())
            && is(self.cgroup.as_ref(), facts.cgroup.as_deref())
    }

    /// Whether both can hold at once.
    pub(super) fn meets(&self, other: &Self) -> bool {
        both_or(
            self.version.as_ref(),
            other.version.as_ref(),
            Versions::meet,
        ) && both_or(self.handler.as_ref(), other.handler.as_ref(), Texts::meet)
            && both_or(
                self.cgroup_driver.as_ref(),
                other.cgroup_driver.as_ref(),
                Texts::meet,
            )
            && both_or(self.cgroup.as_ref(), other.cgroup.as_ref(), Texts::meet)
    }

    /// The condition that no run can satisfy, if any.
    pub(super) fn fault(&self) -> Option<String> {
        let unknown = |key, given: Option<&Texts>, words: &[&str]| {
            let mut given = given.into_iter().flat_map(Texts::iter);
            let wrong = given.find(|word| !words.contains(word))?;
            Some(format!("`{key}: {wrong}`: there are {}", words.join(", ")))
        };
        unknown(
            "cgroup",
            self.cgroup.as_ref(),
            &CGROUPS.map(|(word, _)| word),
        )
        .or_else(|| {
            unknown(
                "cgroup-driver",
                self.cgroup_driver.as_ref(),
                &CGROUP_DRIVERS,
            )
        })
    }
}

/// Whether a claim holds of two values, or one is absent.
pub(super) fn both_or<T>(
    one: Option<&T>,
    other: Option<&T>,
    claim: impl FnOnce(&T, &T) -> bool,
) -> bool {
    one.zip(other).is_none_or(|(one, other)| claim(one, other))
}

impl fmt::Display for When {
    /// `<2.3, crun, cgroup v2`; empty without conditions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let any = |texts: &Texts| texts.iter().collect::<Vec<_>>().join(" or ");
        let version = self.version.as_ref().map(|range| range.as_ref().to_owned());
        let driver = self.cgroup_driver.as_ref();
        let cgroup = self.cgroup.as_ref();
        let parts = [
            version,
            self.handler.as_ref().map(any),
            driver.map(|driver| format!("cgroup driver {}", any(driver))),
            cgroup.map(|cgroup| format!("cgroup {}", any(cgroup))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(&parts.join(", "))
    }
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

    /// Its first two numbers.
    pub(super) fn minor(&self) -> &[u64] {
        &self.0[..self.0.len().min(2)]
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
        both_or(self.from.as_ref(), other.until.as_ref(), PartialOrd::lt)
            && both_or(other.from.as_ref(), self.until.as_ref(), PartialOrd::lt)
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
    use crate::history::{CgroupDriver, Host, OciRuntime, RuntimeVersion};

    fn when(yaml: &str) -> When {
        serde_yaml::from_str(yaml).expect("conditions")
    }

    fn info() -> RunInfo {
        RunInfo {
            runtime: RuntimeVersion {
                runtime_name: "containerd".to_owned(),
                runtime_version: "2.1.9".to_owned(),
                ..RuntimeVersion::default()
            },
            oci: Some(OciRuntime {
                handler: "runc".to_owned(),
                name: Some("crun".to_owned()),
                version: None,
            }),
            cgroup_driver: Some(CgroupDriver::Systemd),
            host: Some(Host {
                cgroup: Some("2".to_owned()),
                ..Host::default()
            }),
            ..RunInfo::default()
        }
    }

    #[track_caller]
    fn check(yaml: &str, info: &RunInfo, holds: bool) {
        assert_eq!(when(yaml).holds(&RuntimeFacts::of(info)), holds, "{yaml}");
    }

    #[test]
    fn all_conditions_must_hold() {
        check("{}", &info(), true);
        check(
            "{version: '<2.3', handler: crun, cgroup: v2}",
            &info(),
            true,
        );
        check("{version: '<2.1', handler: crun}", &info(), false);
        check("{handler: runc}", &info(), false);
        check("{handler: [runc, crun]}", &info(), true);
        check("{cgroup-driver: systemd}", &info(), true);
        check("{cgroup-driver: cgroupfs}", &info(), false);
        check("{cgroup: [v1, hybrid]}", &info(), false);
    }

    #[test]
    fn a_handler_stands_for_a_program_that_is_not_known() {
        let mut info = info();
        info.oci = info.oci.map(|oci| OciRuntime { name: None, ..oci });
        check("{handler: runc}", &info, true);
    }

    #[test]
    fn what_a_run_does_not_know_fulfils_no_condition() {
        let unknown = RunInfo::default();
        for yaml in [
            "{version: '>=0'}",
            "{handler: runc}",
            "{cgroup: v2}",
            "{cgroup-driver: systemd}",
        ] {
            check(yaml, &unknown, false);
        }
        check("{}", &unknown, true);
    }

    #[test]
    fn conditions_exclude_each_other_or_meet() {
        for (one, other, meets) in [
            ("{}", "{}", true),
            ("{handler: runc}", "{handler: crun}", false),
            ("{handler: runc}", "{cgroup: v2}", true),
            (
                "{handler: runc, version: '<2'}",
                "{handler: runc, version: '>=2'}",
                false,
            ),
            ("{cgroup: [v1, v2]}", "{cgroup: [v2, hybrid]}", true),
        ] {
            assert_eq!(when(one).meets(&when(other)), meets, "{one}, {other}");
        }
    }

    #[test]
    fn values_that_no_run_has_are_refused() {
        let fault = when("{cgroup: '2'}").fault();
        assert_eq!(
            fault.as_deref(),
            Some("`cgroup: 2`: there are v1, v2, hybrid")
        );
        let fault = when("{cgroup-driver: system}").fault();
        assert_eq!(
            fault.as_deref(),
            Some("`cgroup-driver: system`: there are cgroupfs, systemd")
        );
        assert_eq!(when("{cgroup: v1, handler: anything}").fault(), None);
    }

    fn versions(text: &str) -> Versions {
        Versions::try_from(text.to_owned()).expect("it is a range")
    }

    #[track_caller]
    fn check_range(range: &str, inside: &[&str], outside: &[&str]) {
        let range = versions(range);
        let holds = |version: &&str| range.hold(&Version::parse(version).expect("a version"));
        let wrong: Vec<_> = inside.iter().filter(|version| !holds(version)).collect();
        assert!(wrong.is_empty(), "not in {range:?}: {wrong:?}");
        let wrong: Vec<_> = outside.iter().filter(|version| holds(version)).collect();
        assert!(wrong.is_empty(), "in {range:?}: {wrong:?}");
    }

    #[test]
    fn a_comparison_looks_at_the_numbers_that_it_names() {
        check_range(
            "<2.3",
            &["1.7.24", "2.2.9", "2.1"],
            &["2.3", "2.3.0", "2.10.1", "3.0"],
        );
        check_range("<=2.1", &["2.1.9", "2.0.4", "1.7"], &["2.2", "2.2.0"]);
        check_range(
            "=2.1",
            &["2.1", "2.1.0", "v2.1.9", "2.1.9~ds1"],
            &["2.0.9", "2.2", "2.11"],
        );
        check_range(">2.1", &["2.2", "2.2.0", "3"], &["2.1.9", "2.1", "1.7"]);
        check_range(
            ">=1.7, <2.2",
            &["1.7.24", "2.1.9+k3s1"],
            &["1.6.36", "2.2.0"],
        );
        check_range(">=1.7 <2.2", &["1.7.24"], &["2.2.0"]);
        check_range(">=2.0", &["2", "2.0.0", "2.0.1"], &["1.99"]);
        check_range("<2.0", &["1.7"], &["2.0", "2.0.0-rc.1"]);
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
