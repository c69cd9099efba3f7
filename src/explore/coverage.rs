//! The coverage of walks: kinds of steps, pairs of concurrent ones, requirements.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::plan::{Plan, flat, inner, subject};
use super::text::one_line;
use crate::case::Step;

/// A pair of steps that two clients take at once: their words, and the relation of their subjects.
type Pair = (&'static str, &'static str, &'static str);

/// How often each kind of step, and each pair of concurrent ones, was part of a plan.
#[derive(Clone, Debug, Default)]
pub(super) struct Coverage {
    kinds: BTreeMap<String, u64>,
    pairs: BTreeMap<Pair, u64>,
    /// The requirements of the judged invariants.
    requirements: BTreeSet<String>,
}

impl Coverage {
    /// Counts the steps of a plan.
    pub(super) fn count(&mut self, plan: &[Step]) {
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
    pub(super) fn novelty(&self, plan: &[Step]) -> f64 {
        let counts = plan.iter().map(|step| {
            let inside = inner(step).into_iter().map(|steps| self.novelty(steps));
            inside.sum::<f64>() + novelty(self.kinds.get(&kind(step)))
        });
        counts.sum()
    }

    /// How much is new in the pairs of two plans that two clients follow at once.
    pub(super) fn novelty_of_pairs(&self, one: &Plan, other: &Plan) -> f64 {
        let mut places = BTreeMap::new();
        for plan in [one, other] {
            find_pods(plan, &mut places);
        }
        let pairs = pairs(one, other, &places).into_iter();
        pairs.map(|pair| novelty(self.pairs.get(&pair))).sum()
    }

    fn count_in(&mut self, plan: &[Step], places: &BTreeMap<&str, &str>) {
        for step in plan {
            *self.kinds.entry(kind(step)).or_default() += 1;
            for inner in inner(step) {
                self.count_in(inner, places);
            }
            if let Step::Parallel(block) = step {
                for (index, one) in block.branches.iter().enumerate() {
                    for other in block.branches.iter().skip(index + 1) {
                        for pair in pairs(&one.steps, &other.steps, places) {
                            *self.pairs.entry(pair).or_default() += 1;
                        }
                    }
                }
            }
        }
    }

    /// The coverage in words.
    pub(super) fn text(&self, requirements: &[String]) -> String {
        let mut text = String::from("covered:\n");
        let all: u64 = self.kinds.values().sum();
        let _ = writeln!(
            text,
            "  steps         {} kinds, {all} in all; the rarest: {}",
            self.kinds.len(),
            rarest(
                self.kinds
                    .iter()
                    .map(|(kind, count)| (kind.clone(), *count))
            )
        );
        let verbs = VERBS.len() as u64;
        let possible = verbs * (verbs + 1) / 2 * RELATIONS;
        let _ = writeln!(
            text,
            "  at once       {} of {possible} pairs of steps on the same container, in the same \
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

/// The three with the lowest counts.
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

/// The steps of which pairs are counted.
const VERBS: [&str; 12] = [
    "await",
    "create",
    "exec",
    "kill",
    "list-with-filters",
    "relist",
    "remove",
    "remove-sandbox",
    "sandbox",
    "start",
    "stop",
    "stop-sandbox",
];

/// The novelty of a kind or pair that was part of plans so often.
fn novelty(count: Option<&u64>) -> f64 {
    let count = count.copied().unwrap_or(0);
    1.0 / (1.0 + f64::from(u32::try_from(count).unwrap_or(u32::MAX)))
}

/// The kind of a step: the word of a step around others; of any other step its text without numbers
/// other than 0, and so without the numbers of names.
fn kind(step: &Step) -> String {
    if !inner(step).is_empty() {
        return step.word().to_owned();
    }
    let mut kind = String::new();
    for part in one_line(step).split_inclusive(|char: char| !char.is_ascii_digit()) {
        let number = part.trim_end_matches(|char: char| !char.is_ascii_digit());
        kind += if number == "0" {
            part
        } else {
            &part[number.len()..]
        };
    }
    kind
}

/// The pairs of steps of two plans.
fn pairs(one: &[Step], other: &[Step], places: &BTreeMap<&str, &str>) -> BTreeSet<Pair> {
    let verbs = |plan: &'_ [Step]| {
        let steps = plan.iter().filter_map(|step| {
            let verb = VERBS.into_iter().find(|verb| *verb == step.word())?;
            let name = subject(step)?;
            Some((
                verb,
                places.get(name).copied().unwrap_or(name).to_owned(),
                name.to_owned(),
            ))
        });
        steps.collect::<Vec<_>>()
    };
    let mut found = BTreeSet::new();
    let others = verbs(other);
    for (first, pod, name) in verbs(one) {
        for (second, other_pod, other_name) in &others {
            let relation = if name == *other_name {
                "on the same"
            } else if pod == *other_pod {
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
fn find_pods<'a>(plan: &'a [Step], places: &mut BTreeMap<&'a str, &'a str>) {
    for step in flat(plan) {
        if let Step::Create(it) = step {
            places.insert(&it.binding, &it.sandbox);
        }
    }
}
