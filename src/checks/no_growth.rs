//! `no-growth`: a runtime releases what it has used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scope::Scope;
use super::word::Finding::{Broken, Holds};
use super::word::{About, Finding, Word};
use crate::history::{Body, CaseHistory, HostFact, Resource, Seq};
use crate::oracle::Index;
use crate::outcome::{Fact, Kind, Mismatch};

/// The maximum growth of each resource from the first `measure` step to the last. An unlisted
/// resource
/// may grow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "resources such as `{descriptors: 20}`"
)]
pub struct NoGrowthCheck {
    /// Open file descriptors of the runtime, without pidfds: a program in Go closes those when it
    /// collects its garbage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptors: Option<u32>,
    /// Threads of the runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Resident memory of the runtime, in KiB. The heap of a program in Go may double before it
    /// collects its garbage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_kib: Option<u32>,
    /// Network namespaces that are mounted where the runtime runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_namespaces: Option<u32>,
    /// Shims and monitors of the case's pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitors: Option<u32>,
    /// Cgroups of the case's pods, in each hierarchy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroups: Option<u32>,
    /// Mounts of the case's pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mounts: Option<u32>,
    /// Lines that the runtime logs during the steps of a `measure`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_lines: Option<u32>,
}

impl NoGrowthCheck {
    fn limit(&self, resource: Resource) -> Option<u32> {
        match resource {
            Resource::Descriptors => self.descriptors,
            Resource::Threads => self.threads,
            Resource::MemoryKib => self.memory_kib,
            Resource::NetworkNamespaces => self.network_namespaces,
            Resource::Monitors => self.monitors,
            Resource::Cgroups => self.cgroups,
            Resource::Mounts => self.mounts,
            Resource::LogLines => self.log_lines,
        }
    }

    /// The limited resources, with their limits.
    fn limits(&self) -> impl Iterator<Item = (Resource, u32)> {
        let all = Resource::ALL.iter();
        all.filter_map(|resource| Some((*resource, self.limit(*resource)?)))
    }
}

impl Word for NoGrowthCheck {
    fn of(&self) -> &'static str {
        ""
    }

    fn names(&self) -> Vec<&str> {
        Vec::new()
    }

    fn validate(&self, scope: &mut dyn Scope<'_>) {
        if self.limits().next().is_none() {
            scope
                .error("this bounds nothing")
                .help("name a resource and how much more of it there may be: `monitors: 0`");
        }
        let mut limits = self.limits();
        let unmeasured = limits.find(|(it, _)| scope.measurements(it.holder()) < 2);
        if let Some((resource, _)) = unmeasured {
            scope
                .error(format!("there are no two measurements of the {resource}"))
                .help("add a step `measure` before the others, and one after them");
        }
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::Growth]
    }

    fn findings(&self, index: &Index<'_>) -> Vec<(About, Finding)> {
        let assessed = self.limits().map(|(resource, limit)| {
            let finding = assess(index.history, resource, limit);
            (About::new(resource.to_string()), finding)
        });
        assessed.collect()
    }
}

/// Compares the last measurement of a resource with the first.
fn assess(history: &CaseHistory, resource: Resource, limit: u32) -> Finding {
    let entries = history.entries().iter();
    let counts: Vec<(Seq, u64)> = entries
        .filter_map(|entry| match entry.body {
            Body::Fact {
                fact:
                    HostFact::Held {
                        resource: held,
                        count,
                    },
                ..
            } if held == resource => Some((entry.seq, count)),
            _ => None,
        })
        .collect();
    let [(began, first), .., (ended, last)] = counts[..] else {
        return Holds;
    };
    if last <= first.saturating_add(limit.into()) {
        return Holds;
    }
    let count = |count| Fact::Count(i64::try_from(count).unwrap_or(i64::MAX));
    Broken {
        mismatch: Mismatch::new(
            Kind::Growth,
            [Fact::Limit(limit.into()), count(first)],
            [Fact::Resource(resource.to_string()), count(last)],
        ),
        evidence: vec![began, ended],
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::checks::testing::check;

    #[test]
    fn the_last_measurement_is_compared_with_the_first() {
        let bound = "no-growth: {descriptors: 5}";
        check(
            bound,
            "held Descriptors 30; held Descriptors 90; held Descriptors 35; end",
            expect!["holds"],
        );
        check(
            bound,
            "held Descriptors 30; held Descriptors 36; held Threads 99; end",
            expect![[r#"
                ORD-01 at #1 #2: file descriptors of the runtime: expected at most 5 more file descriptors of the runtime than 30: 36
            "#]],
        );
    }

    #[test]
    fn only_what_is_bounded_may_not_grow() {
        check(
            "no-growth: {monitors: 0, cgroups: 0}",
            "held Monitors 0; held Cgroups 0; held Mounts 0; held Monitors 0; held Cgroups 2; \
             held Mounts 2; end",
            expect![[r#"
                ORD-01 at #2 #5: cgroups of the pods: expected at most 0 more cgroups of the pods than 0: 2
            "#]],
        );
        check(
            "no-growth: {monitors: 0}",
            "held Monitors 2; held Monitors 1; end",
            expect!["holds"],
        );
    }
}
