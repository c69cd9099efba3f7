//! Known facts about versions of runtimes, from `known-versions.yaml`.

use serde::Deserialize;

use super::finding::{Area, Finding, Status};
use super::runtime::RuntimeFacts;
use crate::history::{CgroupDriver, RuntimeVersion};
use crate::verdicts::Versions;

const FILE: &str = include_str!("known-versions.yaml");

/// Known facts about some versions of a runtime.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct KnownVersion {
    id: String,
    runtime: String,
    versions: Versions,
    /// The cgroup driver it uses; absent if irrelevant.
    #[serde(default)]
    cgroup_driver: Option<String>,
    effect: Effect,
    /// Whether each event is sent to only one subscriber.
    #[serde(default)]
    single_consumer: bool,
    finding: String,
    why: String,
    fix: String,
    source: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Effect {
    Unfit,
    Caution,
}

fn all() -> Vec<KnownVersion> {
    serde_yaml::from_str(FILE).expect("a test reads the file")
}

impl KnownVersion {
    fn is_of(&self, version: &RuntimeVersion, driver: Option<CgroupDriver>) -> bool {
        let asked = self.cgroup_driver.as_deref();
        self.runtime == version.runtime_name
            && self.versions.include(&version.runtime_version) == Some(true)
            && asked.is_none_or(|asked| driver.is_some_and(|driver| driver.name() == asked))
    }
}

/// Whether this runtime sends each event to only one of its subscribers.
pub fn is_single_consumer(version: &RuntimeVersion) -> bool {
    let mut all = all().into_iter();
    all.any(|known| known.single_consumer && known.is_of(version, None))
}

pub(super) fn findings(facts: &RuntimeFacts) -> Vec<Finding> {
    let all = all();
    let version = &facts.version;
    let name = format!("{} {}", version.runtime_name, version.runtime_version);
    let read = format!("Version: {name}, CRI {}", version.api_version);
    if !all
        .iter()
        .any(|known| known.runtime == version.runtime_name)
    {
        let finding = format!("nothing is known of versions of {}", version.runtime_name);
        return vec![Finding::new(
            (Area::Runtime, Status::Note),
            "runtime-not-known",
            finding,
            read,
        )];
    }
    let of_this = all.iter();
    let of_this = of_this.filter(|known| known.is_of(version, facts.cgroup_driver));
    let mut found: Vec<_> = of_this
        .map(|known| {
            let status = match known.effect {
                Effect::Unfit => Status::Wrong,
                Effect::Caution => Status::Note,
            };
            let mut read = read.clone();
            if let Some(driver) = &known.cgroup_driver {
                read = format!("{read}; cgroup driver {driver}");
            }
            Finding::new(
                (Area::Runtime, status),
                &known.id,
                known.finding.clone(),
                read,
            )
            .why(known.why.clone())
            .fix(known.fix.clone())
            .source(known.source.clone())
        })
        .collect();
    let is_fit = found.iter().all(|finding| finding.status != Status::Wrong);
    if is_fit {
        let finding = format!("{name} is not known to be unfit");
        let id = "runtime-version";
        found.push(Finding::new((Area::Runtime, Status::Ok), id, finding, read));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::runtime::Stream;

    #[track_caller]
    fn check(name: &str, version: &str, driver: CgroupDriver, expect: &[&str]) {
        let facts = RuntimeFacts {
            version: RuntimeVersion {
                runtime_name: name.to_owned(),
                runtime_version: version.to_owned(),
                api_version: "v1".to_owned(),
            },
            cgroup_driver: Some(driver),
            stream: Stream::Open,
            unmet: Vec::new(),
            lists: Vec::new(),
        };
        let found = findings(&facts);
        let found: Vec<_> = found
            .iter()
            .map(|it| format!("{:?} {}", it.status, it.id))
            .collect();
        assert_eq!(found, expect, "{name} {version}");
    }

    #[test]
    fn the_ranges_end_where_a_version_is_fixed() {
        use CgroupDriver::{Cgroupfs, Systemd};
        let (stalled, fit) = ("Note stalled-reader", "Ok runtime-version");
        let (lost, order) = ("Note oom-reason-lost", "Note stopped-before-started");
        check("containerd", "1.6.20~ds1", Cgroupfs, &["Wrong no-events"]);
        check(
            "containerd",
            "v1.7.0",
            Cgroupfs,
            &["Note single-subscriber", lost, fit],
        );
        check(
            "containerd",
            "1.7.34",
            Cgroupfs,
            &["Note single-subscriber", lost, fit],
        );
        let timestamp = "Wrong timestamp-without-statuses";
        check("containerd", "2.0.0", Cgroupfs, &[timestamp, stalled, lost]);
        check("containerd", "2.0.2", Cgroupfs, &[timestamp, stalled, lost]);
        check("containerd", "2.0.3", Cgroupfs, &[stalled, lost, fit]);
        check("containerd", "2.2.9", Cgroupfs, &[stalled, lost, fit]);
        let torn_down = "Note torn-down-after-start";
        check("containerd", "v2.3.0", Cgroupfs, &[torn_down, stalled, fit]);
        check("containerd", "v2.3.1", Cgroupfs, &[torn_down, stalled, fit]);
        check("containerd", "v2.3.2", Cgroupfs, &[stalled, fit]);
        check("containerd", "v2.3.4", Systemd, &[stalled, lost, fit]);
        check("cri-o", "1.25.4", Systemd, &["Wrong no-events"]);
        let empty = "Note empty-container-statuses";
        check("cri-o", "1.26.0", Systemd, &[empty, stalled, order, fit]);
        check("cri-o", "1.34.9", Systemd, &[empty, stalled, order, fit]);
        check("cri-o", "1.35.0", Systemd, &[stalled, order, fit]);
        check("other", "1.0", Systemd, &["Note runtime-not-known"]);
    }

    #[test]
    fn only_containerd_1_7_has_one_consumer() {
        let is_single = |name: &str, version: &str| {
            is_single_consumer(&RuntimeVersion {
                runtime_name: name.to_owned(),
                runtime_version: version.to_owned(),
                api_version: "v1".to_owned(),
            })
        };
        assert!(is_single("containerd", "1.7.24~ds1"));
        assert!(!is_single("containerd", "2.0.0"));
        assert!(!is_single("containerd", "1.6.20"));
        assert!(!is_single("cri-o", "1.7.0"));
    }

    #[test]
    fn each_entry_has_a_source() {
        for known in all() {
            assert!(known.source.starts_with("https://"), "{}", known.id);
        }
    }
}
