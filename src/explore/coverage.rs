//! What walks have covered: operations, pairs of concurrent ones, requirements.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::plan::{Op, Plan};

/// What is counted of a pair of operations that two clients do at once.
type Pair = (&'static str, &'static str, &'static str);

/// How often each operation, and each pair of concurrent ones, was part of a plan.
#[derive(Clone, Debug, Default)]
pub(super) struct Coverage {
    operations: BTreeMap<&'static str, u64>,
    pairs: BTreeMap<Pair, u64>,
    /// The requirements of what was judged.
    requirements: BTreeSet<String>,
}

impl Coverage {
    /// Counts the operations of a plan.
    pub(super) fn count(&mut self, plan: &Plan) {
        let mut places = BTreeMap::new();
        find_pods(plan, &mut places);
        self.count_in(plan, &places);
    }

    pub(super) fn judged<'a>(&mut self, requirements: impl IntoIterator<Item = &'a str>) {
        self.requirements
            .extend(requirements.into_iter().map(str::to_owned));
    }

    /// How much is new in a plan that stands beside others: more, the less often it was part of
    /// one.
    pub(super) fn novelty(&self, plan: &Plan) -> f64 {
        let counts = plan.iter().map(|op| {
            let seen = self.operations.get(op.label()).copied().unwrap_or(0);
            let inner: f64 = op.inner().into_iter().map(|ops| self.novelty(ops)).sum();
            inner + 1.0 / (1.0 + f64::from(u32::try_from(seen).unwrap_or(u32::MAX)))
        });
        counts.sum()
    }

    /// How much is new in the pairs of two plans that two clients follow at once.
    pub(super) fn novelty_of_pairs(&self, one: &Plan, other: &Plan, around: &Plan) -> f64 {
        let mut places = BTreeMap::new();
        for plan in [around, one, other] {
            find_pods(plan, &mut places);
        }
        let pairs = pairs(one, other, &places).into_iter().map(|pair| {
            let seen = self.pairs.get(&pair).copied().unwrap_or(0);
            1.0 / (1.0 + f64::from(u32::try_from(seen).unwrap_or(u32::MAX)))
        });
        pairs.sum()
    }

    fn count_in(&mut self, plan: &Plan, places: &BTreeMap<String, String>) {
        for op in plan {
            *self.operations.entry(op.label()).or_default() += 1;
            for inner in op.inner() {
                self.count_in(inner, places);
            }
            if let Op::Parallel(branches) = op {
                for (index, one) in branches.iter().enumerate() {
                    for other in branches.iter().skip(index + 1) {
                        for pair in pairs(&one.ops, &other.ops, places) {
                            *self.pairs.entry(pair).or_default() += 1;
                        }
                    }
                }
            }
        }
    }

    /// The coverage in words; `labels` are those that this runtime could be seen to do.
    pub(super) fn text(&self, requirements: &[String]) -> String {
        let mut text = String::from("covered:\n");
        let all: u64 = self.operations.values().sum();
        let _ = writeln!(
            text,
            "  operations    {} kinds, {all} in all; the rarest: {}",
            self.operations.len(),
            rarest(
                self.operations
                    .iter()
                    .map(|(name, count)| ((*name).to_owned(), *count))
            )
        );
        let verbs = VERBS.len() as u64;
        let possible = verbs * (verbs + 1) / 2 * RELATIONS;
        let _ = writeln!(
            text,
            "  at once       {} of {possible} pairs of operations on the same container, in the same \
             pod or in different pods; the rarest: {}",
            self.pairs.len(),
            rarest(
                self.pairs.iter().map(|((one, other, at), count)| {
                    (format!("{one} and {other} {at}"), *count)
                })
            )
        );
        let missing: Vec<&str> = requirements
            .iter()
            .filter(|id| !self.requirements.contains(*id))
            .map(String::as_str)
            .collect();
        let rest = match &missing[..] {
            [] => String::new(),
            missing => format!("; not {}", missing.join(" ")),
        };
        let _ = writeln!(
            text,
            "  requirements  {} of {} were judged{rest}",
            requirements.len() - missing.len(),
            requirements.len()
        );
        text
    }
}

/// Three that were counted least.
fn rarest(counts: impl Iterator<Item = (String, u64)>) -> String {
    const SHOWN: usize = 3;
    let mut all: Vec<(u64, String)> = counts.map(|(name, count)| (count, name)).collect();
    all.sort();
    let shown = all.iter().take(SHOWN);
    let shown: Vec<String> = shown
        .map(|(count, name)| format!("{name} ({count})"))
        .collect();
    if shown.is_empty() {
        "none".to_owned()
    } else {
        shown.join(", ")
    }
}

const RELATIONS: u64 = 3;

/// The operations of which pairs are counted.
const VERBS: [&str; 11] = [
    "create",
    "exec",
    "kill",
    "list",
    "remove",
    "remove-sandbox",
    "run-sandbox",
    "start",
    "stop",
    "stop-sandbox",
    "await",
];

fn verb(op: &Op) -> Option<&'static str> {
    Some(match op {
        Op::Sandbox { .. } => "run-sandbox",
        Op::Create { .. } => "create",
        Op::Start(..) => "start",
        Op::Stop(..) => "stop",
        Op::Remove(_) | Op::RemoveByPrefix(_) => "remove",
        Op::Kill(_) => "kill",
        Op::Exec(..) => "exec",
        Op::Relist(_) | Op::ListWithFilters(..) => "list",
        Op::StopSandbox(_) => "stop-sandbox",
        Op::RemoveSandbox(_) => "remove-sandbox",
        Op::Await(..) => "await",
        _ => return None,
    })
}

/// What an operation acts on: a sandbox, or a container in one.
fn target<'a>(op: &'a Op, places: &'a BTreeMap<String, String>) -> Option<(&'a str, &'a str)> {
    if let Op::Create { pod, name, .. } = op {
        return Some((pod, name));
    }
    let name = op.subject()?;
    Some((places.get(name).map_or(name, String::as_str), name))
}

/// The pairs of operations of two plans.
fn pairs(one: &Plan, other: &Plan, places: &BTreeMap<String, String>) -> BTreeSet<Pair> {
    let mut found = BTreeSet::new();
    for a in one {
        for b in other {
            let (Some(first), Some(second)) = (verb(a), verb(b)) else {
                continue;
            };
            let (Some((pod, name)), Some((other_pod, other_name))) =
                (target(a, places), target(b, places))
            else {
                continue;
            };
            let relation = if name == other_name {
                "on the same"
            } else if pod == other_pod {
                "in a pod"
            } else {
                "in two pods"
            };
            found.insert((first.min(second), first.max(second), relation));
        }
    }
    found
}

/// The sandbox of each container of a plan.
fn find_pods(plan: &Plan, places: &mut BTreeMap<String, String>) {
    for op in plan {
        if let Op::Create { name, pod, .. } = op {
            places.insert(name.clone(), pod.clone());
        }
        for inner in op.inner() {
            find_pods(inner, places);
        }
    }
}
