//! Makes a failing plan as small as it can be: tries smaller ones, and keeps what still fails.
//!
//! Pure: whether a plan fails is for the caller to say. Every candidate is made legal before, by
//! leaving out what depends on what was taken away.

use std::collections::{BTreeMap, BTreeSet};

use super::capabilities::Capabilities;
use super::plan::{Branch, Command, ContainerKind, Op, Plan, PodKind, Reader, Work, size};
use super::world::{World, plan_of};

/// The answer to whether a plan fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Fails,
    Passes,
    /// There is no time left to find out.
    OutOfTime,
}

/// The smallest plan found that fails, if this one does. It is that or this one when time is out.
/// What the finding is about has a name in the plan.
pub(super) fn shrink(
    plan: Plan,
    about: &str,
    can: &Capabilities,
    fails: &mut dyn FnMut(&Plan) -> Answer,
) -> Plan {
    let mut best = legal(plan, can);
    let mut tried = BTreeSet::from([best.clone()]);
    'smaller: loop {
        // The largest parts first: most of a plan has nothing to do with what it found.
        let candidates: Vec<Plan> = slices(&best, about)
            .into_iter()
            .chain(edits(&best))
            .chain(repeated_lives(&best))
            .map(|candidate| legal(candidate, can))
            .filter(|candidate| makes_something(candidate) && cost(candidate) < cost(&best))
            .collect();
        for candidate in candidates {
            if !tried.insert(candidate.clone()) {
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
    let mut world = World::new(can.clone());
    plan_of(&world.take_all(plan))
}

/// Whether there is anything that a case could be about.
fn makes_something(plan: &[Op]) -> bool {
    plan.iter().any(|op| {
        let inside = op.inner().into_iter().any(|ops| makes_something(ops));
        inside || matches!(op, Op::Sandbox { .. })
    })
}

/// How large a plan is: its steps, its blocks, and what is special in it.
fn cost(plan: &Plan) -> (usize, usize, usize) {
    (size(plan), blocks(plan), special(plan))
}

fn blocks(plan: &[Op]) -> usize {
    let count = |op: &Op| {
        let inner = op.inner().into_iter().map(|ops| blocks(ops)).sum::<usize>();
        let own = match op {
            Op::Parallel(branches) => {
                let others = branches.iter().filter(|branch| branch.other_client);
                1 + branches.len() + others.count()
            }
            Op::Repeat(times, workers, _) => usize::from(*times) + usize::from(*workers),
            op => usize::from(!op.inner().is_empty()),
        };
        inner + own
    };
    plan.iter().map(count).sum()
}

fn special(plan: &[Op]) -> usize {
    let count = |op: &Op| {
        let inner = op
            .inner()
            .into_iter()
            .map(|ops| special(ops))
            .sum::<usize>();
        let own = match op {
            Op::Sandbox {
                kind, attempt_of, ..
            } => usize::from(*kind != PodKind::Plain) + usize::from(attempt_of.is_some()),
            Op::Create { work, kind, .. } => {
                usize::from(*kind != ContainerKind::Plain)
                    + match work {
                        Work::UntilTerm => 0,
                        Work::Exit(0, 300) => 1,
                        _ => 2,
                    }
            }
            Op::Stop(_, grace_s, abandoned) => {
                usize::from(*grace_s > 0) + usize::from(abandoned.is_some())
            }
            Op::Start(_, abandoned) => usize::from(abandoned.is_some()),
            Op::Exec(_, command) => usize::from(*command != Command::Exit(0)),
            Op::Subscribe(_, reader) => usize::from(*reader != Reader::Reads),
            Op::Silence(seconds, _) => usize::from(*seconds > 1),
            Op::Restart { back_off, .. } => usize::from(*back_off),
            _ => 0,
        };
        inner + own
    };
    plan.iter().map(count).sum()
}

/// Plans that differ in one place: parts left out, blocks dissolved, operations made simpler.
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
    for (index, op) in plan.iter().enumerate() {
        let replaced = |ops: Plan| [&plan[..index], &ops, &plan[index + 1..]].concat();
        all.extend(simpler(op).into_iter().map(replaced));
        for (list, inner) in op.inner().into_iter().enumerate() {
            for edited in edits(inner) {
                let mut op = op.clone();
                if let Some(inner) = op.inner_mut().into_iter().nth(list) {
                    *inner = edited;
                }
                all.push(replaced(vec![op]));
            }
        }
    }
    all
}

/// What a plan does with one container or sandbox, and with the whole pod that this is or is in.
fn slices(plan: &[Op], about: &str) -> Vec<Plan> {
    let places: BTreeMap<&str, &str> = flat(plan)
        .into_iter()
        .filter_map(|op| match op {
            Op::Create { name, pod, .. } => Some((name.as_str(), pod.as_str())),
            _ => None,
        })
        .collect();
    let pod = places.get(about).copied().unwrap_or(about);
    let makes_pod = |op: &Op| matches!(op, Op::Sandbox { name, .. } if name == pod);
    let is_in_pod = |name: &str| name == pod || places.get(name) == Some(&pod);
    let alone = kept(plan, &|op| op.subject() == Some(about) || makes_pod(op));
    let with_pod = kept(plan, &|op| op.subject().is_some_and(is_in_pod));
    vec![alone, with_pod]
}

/// The operations that are wanted, in the blocks that they are in; and those blocks that do
/// something themselves.
fn kept(plan: &[Op], is_wanted: &dyn Fn(&Op) -> bool) -> Plan {
    let mut all = Vec::new();
    for op in plan {
        let mut op = op.clone();
        if op.inner().is_empty() {
            all.extend(is_wanted(&op).then_some(op));
            continue;
        }
        for inner in op.inner_mut() {
            *inner = kept(inner, is_wanted);
        }
        let acts = matches!(
            op,
            Op::Resubscribe(_) | Op::Silence(..) | Op::Restart { .. }
        );
        if acts || op.inner().iter().any(|inner| !inner.is_empty()) {
            all.push(op);
        }
    }
    all
}

/// Plans of which the life of one container is all that is left, many times: what needs many events
/// needs no different ones.
fn repeated_lives(plan: &[Op]) -> Vec<Plan> {
    const TIMES: [u8; 3] = [10, 70, 200];
    let mut all = Vec::new();
    for op in flat(plan) {
        let Op::Create { name, pod, .. } = op else {
            continue;
        };
        let mut life = flat(plan);
        life.retain(|op| names(op).contains(&name.as_str()));
        let mut rest = flat(plan);
        rest.retain(|op| match op {
            Op::Sandbox { name, .. } => name == pod,
            Op::Subscribe(..) => true,
            _ => false,
        });
        for times in TIMES {
            let life = life.iter().copied().cloned().collect();
            let rest = rest.iter().copied().cloned();
            all.push(rest.chain([Op::Repeat(times, 1, life)]).collect());
        }
    }
    all
}

/// All operations without others inside them.
fn flat(plan: &[Op]) -> Vec<&Op> {
    let mut all = Vec::new();
    for op in plan {
        if op.inner().is_empty() {
            all.push(op);
        }
        for inner in op.inner() {
            all.extend(flat(inner));
        }
    }
    all
}

/// The container that an operation creates or changes, or waits for.
fn names(op: &Op) -> Vec<&str> {
    match op {
        Op::Create { name, .. }
        | Op::Start(name, _)
        | Op::Stop(name, ..)
        | Op::Remove(name)
        | Op::Await(name, _) => vec![name],
        _ => Vec::new(),
    }
}

/// What may take the place of an operation.
fn simpler(op: &Op) -> Vec<Plan> {
    match op {
        Op::Parallel(branches) => of_branches(branches),
        Op::Repeat(times, workers, ops) => of_repetition(*times, *workers, ops),
        Op::Sandbox {
            name,
            attempt_of: None,
            ..
        } => vec![vec![Op::Sandbox {
            name: name.clone(),
            attempt_of: None,
            kind: PodKind::Plain,
        }]],
        Op::Sandbox {
            name,
            attempt_of: Some(_),
            kind,
        } => vec![vec![Op::Sandbox {
            name: name.clone(),
            attempt_of: None,
            kind: *kind,
        }]],
        Op::Create {
            name,
            pod,
            work,
            kind,
            other,
        } => {
            let with = |work, kind, other: &Option<String>| {
                vec![Op::Create {
                    name: name.clone(),
                    pod: pod.clone(),
                    work,
                    kind,
                    other: other.clone(),
                }]
            };
            vec![
                with(*work, ContainerKind::Plain, &None),
                with(Work::UntilTerm, *kind, other),
                with(Work::Exit(0, 300), *kind, other),
            ]
        }
        Op::Start(name, Some(_)) => vec![vec![Op::Start(name.clone(), None)]],
        Op::Stop(name, ..) => vec![vec![Op::Stop(name.clone(), 0, None)]],
        Op::Exec(name, _) => vec![vec![Op::Exec(name.clone(), Command::Exit(0))]],
        Op::Subscribe(name, _) => vec![vec![Op::Subscribe(name.clone(), Reader::Reads)]],
        Op::Silence(_, ops) => vec![vec![Op::Silence(1, ops.clone())], ops.clone()],
        Op::Restart { back_off: true, .. } => {
            let mut at_once = op.clone();
            if let Op::Restart { back_off, .. } = &mut at_once {
                *back_off = false;
            }
            vec![vec![at_once]]
        }
        op => op.inner().into_iter().cloned().collect(),
    }
}

fn of_repetition(times: u8, workers: u8, ops: &Plan) -> Vec<Plan> {
    let mut all = vec![ops.clone()];
    if workers > 1 {
        all.push(vec![Op::Repeat(times, 1, ops.clone())]);
    }
    if times > 2 {
        all.push(vec![Op::Repeat(times / 2, workers, ops.clone())]);
    }
    all
}

fn of_branches(branches: &[Branch]) -> Vec<Plan> {
    let mut all = vec![
        branches
            .iter()
            .flat_map(|branch| branch.ops.clone())
            .collect(),
    ];
    for index in 0..branches.len() {
        let mut fewer = branches.to_vec();
        let alone = fewer.remove(index);
        all.push(vec![Op::Parallel(fewer)]);
        all.push(alone.ops);
        if branches[index].other_client {
            let mut own = branches.to_vec();
            own[index].other_client = false;
            all.push(vec![Op::Parallel(own)]);
        }
    }
    all
}
