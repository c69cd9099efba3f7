//! Makes a failing plan as small as it can be: tries smaller ones, and keeps one that still fails.
//!
//! Pure: the caller decides whether a plan fails. Every candidate is made legal before: the steps
//! that depend on a removed one are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::plan::{
    Branch, Capabilities, Plan, branches, flat, inner, inner_mut, parallel, size, step, stop,
    subject,
};
use super::world::World;
use crate::case::{Step, WorkloadSpec};

/// The answer to whether a plan fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Fails,
    Passes,
    /// There is no time left to find out.
    OutOfTime,
}

/// The smallest plan found that fails, if this one does. It is that or this one when time is out.
/// The subject of the finding has a name in the plan.
pub(super) fn shrink(
    plan: Plan,
    about: &str,
    can: &Capabilities,
    fails: &mut dyn FnMut(&Plan) -> Answer,
) -> Plan {
    let mut best = legal(plan, can);
    let mut tried = BTreeSet::from([text(&best)]);
    'smaller: loop {
        let least = cost(&best);
        // The largest parts first: most of a plan has nothing to do with what it found.
        let candidates = slices(&best, about)
            .into_iter()
            .chain(edits(&best))
            .chain(repeated_lives(&best))
            .map(|candidate| legal(candidate, can))
            .filter(|candidate| makes_something(candidate) && cost(candidate) < least);
        for candidate in candidates {
            if !tried.insert(text(&candidate)) {
                continue;
            }
            match fails(&candidate) {
                Answer::Fails => {
                    best = candidate;
                    continue 'smaller;
                }
                Answer::Passes => {}
                Answer::OutOfTime => return best,
            }
        }
        return best;
    }
}

fn legal(plan: Plan, can: &Capabilities) -> Plan {
    World::new(can.clone()).take_all(plan)
}

/// The identity of a plan.
fn text(plan: &Plan) -> String {
    serde_json::to_string(plan).expect("a plan has words, names and numbers")
}

/// Whether there is anything that a case could be about.
fn makes_something(plan: &[Step]) -> bool {
    flat(plan)
        .iter()
        .any(|step| matches!(step, Step::Sandbox(_)))
}

/// The size of a plan: its steps, its blocks, and its optional keys and special values.
fn cost(plan: &Plan) -> (usize, usize, usize) {
    (size(plan), blocks(plan), special(plan))
}

fn blocks(plan: &[Step]) -> usize {
    let count = |step: &Step| {
        let inner = inner(step);
        let own = match step {
            Step::Parallel(block) => 1 + block.branches.len(),
            Step::Repeat(repeat) => (repeat.times.unwrap_or(1) + repeat.workers) as usize,
            _ => usize::from(!inner.is_empty()),
        };
        own + inner.into_iter().map(|steps| blocks(steps)).sum::<usize>()
    };
    plan.iter().map(count).sum()
}

/// How many keys the steps have, and how many values that could be simpler.
fn special(plan: &[Step]) -> usize {
    let count = |step: &Step| {
        let keys = keys(step);
        let keys = keys.values().filter(|value| **value != json!(false));
        let values = match step {
            Step::Create(it) if it.workload == WorkloadSpec::UntilTerm => 0,
            Step::Create(it) if json!(it.workload) == short_exit() => 1,
            Step::Create(_) => 2,
            Step::Stop(it) => usize::from(it.grace > Duration::ZERO),
            Step::Exec(it) => usize::from(json!(it.runs) != exit_at_once()),
            Step::StaysSilent(it) => usize::from(it.time > Duration::from_secs(1)),
            _ => 0,
        };
        let inner = inner(step).into_iter().map(|steps| special(steps));
        keys.count() + values + inner.sum::<usize>()
    };
    plan.iter().map(count).sum()
}

/// The keys of a step, with those that have their defaults.
fn keys(step: &Step) -> Map<String, Value> {
    let mut step = json!(step);
    let keys = step.as_object_mut().and_then(|it| it.values_mut().next());
    let keys = keys.and_then(Value::as_object_mut).map(std::mem::take);
    keys.unwrap_or_default()
}

fn short_exit() -> Value {
    json!({"exit": {"code": 0, "after": "300ms"}})
}

fn exit_at_once() -> Value {
    json!({"exit": {"code": 0, "after": "0s"}})
}

/// Plans that differ in one place: parts left out, blocks dissolved, steps made simpler.
fn edits(plan: &Plan) -> Vec<Plan> {
    let mut all = Vec::new();
    let mut chunk = plan.len();
    while chunk > 0 {
        for start in (0..plan.len()).step_by(chunk) {
            let end = (start + chunk).min(plan.len());
            all.push([&plan[..start], &plan[end..]].concat());
        }
        chunk /= 2;
    }
    for (index, step) in plan.iter().enumerate() {
        let replaced = |steps: Plan| [&plan[..index], &steps, &plan[index + 1..]].concat();
        all.extend(simpler(step).into_iter().map(replaced));
        let lists = inner_mut(&mut step.clone()).len();
        for list in 0..lists {
            let mut step = step.clone();
            let inner = std::mem::take(inner_mut(&mut step).remove(list));
            for edited in edits(&inner) {
                *inner_mut(&mut step).remove(list) = edited;
                all.push(replaced(vec![step.clone()]));
            }
        }
    }
    all
}

/// The steps of a plan on one container or sandbox, and those on its whole pod.
fn slices(plan: &[Step], about: &str) -> Vec<Plan> {
    let places: BTreeMap<&str, &str> = flat(plan)
        .into_iter()
        .filter_map(|step| match step {
            Step::Create(it) => Some((it.binding.as_str(), it.sandbox.as_str())),
            _ => None,
        })
        .collect();
    let pod = places.get(about).copied().unwrap_or(about);
    let makes_pod = |step: &Step| matches!(step, Step::Sandbox(it) if it.binding == pod);
    let is_in_pod = |name: &str| name == pod || places.get(name) == Some(&pod);
    let alone = kept(plan, &|step| {
        subject(step) == Some(about) || makes_pod(step)
    });
    let with_pod = kept(plan, &|step| subject(step).is_some_and(is_in_pod));
    vec![alone, with_pod]
}

/// The steps that are wanted, in the blocks that they are in; and those blocks that do something
/// themselves.
fn kept(plan: &[Step], is_wanted: &dyn Fn(&Step) -> bool) -> Plan {
    let mut all = Vec::new();
    for step in plan {
        let mut step = step.clone();
        let acts = matches!(
            step,
            Step::Resubscribe(_) | Step::StaysSilent(_) | Step::RestartRuntime(_)
        );
        let mut lists = inner_mut(&mut step);
        let is_leaf = lists.is_empty();
        for list in &mut lists {
            **list = kept(list, is_wanted);
        }
        let has_steps = lists.iter().any(|list| !list.is_empty());
        if acts || has_steps || is_leaf && is_wanted(&step) {
            all.push(step);
        }
    }
    all
}

/// Plans with only the life of one container, many times: a failure that needs many events needs no
/// different ones.
fn repeated_lives(plan: &[Step]) -> Vec<Plan> {
    const TIMES: [u8; 3] = [10, 70, 200];
    let steps = flat(plan);
    let mut all = Vec::new();
    for made in &steps {
        let Step::Create(made) = made else {
            continue;
        };
        let is_of_life = |step: &Step| {
            let acts = matches!(
                step,
                Step::Create(_) | Step::Start(_) | Step::Stop(_) | Step::Remove(_) | Step::Await(_)
            );
            acts && subject(step) == Some(&made.binding)
        };
        let is_around = |step: &Step| match step {
            Step::Sandbox(it) => it.binding == made.sandbox,
            Step::Subscribe(it) => it.deadline.is_none(),
            _ => false,
        };
        let those = |wanted: &dyn Fn(&Step) -> bool| -> Plan {
            let wanted = steps.iter().filter(|step| wanted(step));
            wanted.map(|step| (*step).clone()).collect()
        };
        for times in TIMES {
            let mut candidate = those(&is_around);
            let keys = json!({"times": times, "steps": those(&is_of_life)});
            candidate.push(step("repeat", keys));
            all.push(candidate);
        }
    }
    all
}

/// Simpler replacements of a step.
fn simpler(step: &Step) -> Vec<Plan> {
    let mut all = match step {
        Step::Parallel(block) => fewer_branches(&branches(block.clone())),
        Step::Repeat(it) => {
            let with = |times: u32, workers: u32| {
                let mut repeat = it.clone();
                (repeat.times, repeat.workers) = (Some(times), workers);
                vec![Step::Repeat(repeat)]
            };
            let times = it.times.unwrap_or(1);
            let mut all = vec![it.steps.clone()];
            all.extend((it.workers > 1).then(|| with(times, 1)));
            all.extend((times > 2).then(|| with(times / 2, it.workers)));
            all
        }
        Step::Create(it) => {
            let with = |workload: Value| {
                let mut it = it.clone();
                (it.memory_mib, it.oom_group) = (None, false);
                it.workload = serde_json::from_value(workload).unwrap_or(it.workload);
                vec![Step::Create(it)]
            };
            vec![with("until-term".into()), with(short_exit())]
        }
        Step::Stop(it) => vec![vec![stop(&it.container, 0)]],
        Step::Exec(it) => {
            let keys = json!({"container": it.container, "runs": exit_at_once(), "timeout": "10s"});
            vec![vec![self::step("exec", keys)]]
        }
        Step::StaysSilent(it) => {
            let keys = json!({"for": "1s", "steps": it.steps});
            vec![vec![self::step("stays-silent", keys)], it.steps.clone()]
        }
        step => inner(step).into_iter().cloned().collect(),
    };
    let is_leaf = inner(step).is_empty() && !matches!(step, Step::Call(_));
    if is_leaf || matches!(step, Step::RestartRuntime(_)) {
        all.extend(fewer_keys(step));
    }
    all
}

/// The step without one of the keys that it need not have.
fn fewer_keys(step: &Step) -> Vec<Plan> {
    let all = keys(step);
    let fewer = all.keys().filter_map(|key| {
        let mut keys = all.clone();
        keys.remove(key);
        serde_json::from_value(json!({ step.word(): keys })).ok()
    });
    fewer.map(|step| vec![step]).collect()
}

/// The steps of several clients: by one after the other, without one of them, or by one alone.
fn fewer_branches(branches: &[Branch]) -> Vec<Plan> {
    let steps = branches.iter().flat_map(|(_, steps)| steps.clone());
    let mut all = vec![steps.collect()];
    for index in 0..branches.len() {
        let mut fewer = branches.to_vec();
        let (_, alone) = fewer.remove(index);
        all.push(vec![parallel(fewer)]);
        all.push(alone);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Need;
    use crate::explore::coverage::Coverage;
    use crate::explore::generate::{Size, generate};
    use crate::explore::plan::Behaviour;
    use crate::explore::text::{Header, walk};

    /// Any smaller plan makes a case, and all its steps are legal.
    #[test]
    fn each_smaller_plan_is_a_case() {
        let restart = [Need::RuntimeRestart];
        let can = Capabilities {
            met: Capabilities::USED.into_iter().chain(restart).collect(),
            behaviours: Behaviour::ALL.into(),
            disruption: true,
        };
        let size = Size { steps: 25, pods: 2 };
        for number in 0..4 {
            let plan = generate((1, number), size, &can, &Coverage::default());
            let candidates = edits(&plan).into_iter().chain(repeated_lives(&plan));
            for candidate in candidates.map(|candidate| legal(candidate, &can)) {
                if makes_something(&candidate) {
                    let made = walk(candidate.clone(), &can, &Header::of_test());
                    assert_eq!(made.plan, candidate);
                    assert_eq!(made.case.steps, candidate);
                }
            }
        }
    }
}
