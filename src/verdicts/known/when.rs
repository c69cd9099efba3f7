//! The conditions of an entry of an expectation file: versions, an OCI runtime, cgroups.
//!
//! All conditions must hold, and an unknown fact satisfies none.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::texts::Texts;
use super::versions::{Version, Versions};
use crate::history::RunInfo;

/// The words for cgroups, each with that of a history.
const CGROUPS: [(&str, &str); 3] = [("v1", "1"), ("v2", "2"), ("hybrid", "hybrid")];

/// The words for cgroup drivers.
const CGROUP_DRIVERS: [&str; 2] = ["cgroupfs", "systemd"];

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
        let meet = |one: Option<&Texts>, other: Option<&Texts>| match (one, other) {
            (Some(one), Some(other)) => one.meet(other),
            _ => true,
        };
        let versions = match (&self.version, &other.version) {
            (Some(one), Some(other)) => one.meet(other),
            _ => true,
        };
        versions
            && meet(self.handler.as_ref(), other.handler.as_ref())
            && meet(self.cgroup_driver.as_ref(), other.cgroup_driver.as_ref())
            && meet(self.cgroup.as_ref(), other.cgroup.as_ref())
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
}
