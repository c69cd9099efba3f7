//! Steps of several clients at once: what more than one of them acts on is uncertain.

use std::collections::{BTreeMap, BTreeSet};

use super::World;
use crate::case::{ParallelStep, Step};
use crate::explore::plan::{Branch, Plan, branches, inner, parallel, subject};

/// Whether a step changes what a name stands for, or only needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    Needs,
    Changes,
}

impl World {
    pub(super) fn take_parallel(&mut self, block: ParallelStep) -> Plan {
        let branches = branches(block);
        if self.around.concurrent || self.around.unsubscribed {
            // One client takes them one after the other.
            let all = branches.into_iter().flat_map(|(_, steps)| steps);
            return self.take_all(all.collect());
        }
        let mut branches = without_rivals(branches);
        if branches.len() == 1 {
            return self.take_all(branches.remove(0).1);
        }
        self.around.concurrent = true;
        self.around.contested = self.contested(&branches);
        let mut taken = Vec::new();
        for (other_client, steps) in branches {
            self.branches += 1;
            self.scopes.push(self.branches);
            let inner = self.take_all(steps);
            self.scopes.pop();
            if !inner.is_empty() {
                taken.push((other_client, inner));
            }
        }
        let contested = std::mem::take(&mut self.around.contested);
        self.around.concurrent = false;
        for name in &contested {
            if let Some(container) = self.containers.get_mut(name) {
                container.become_uncertain();
            }
            self.end_joined(name);
        }
        match taken.len() {
            0 => Vec::new(),
            // What one branch took alone stands without a block.
            1 => taken.remove(0).1,
            _ => vec![parallel(taken)],
        }
    }

    /// The names that one branch changes, and another changes or needs.
    fn contested(&self, branches: &[Branch]) -> BTreeSet<String> {
        let mut users = BTreeMap::<String, (BTreeSet<usize>, BTreeSet<usize>)>::new();
        for (index, (_, steps)) in branches.iter().enumerate() {
            for (name, how) in steps.iter().flat_map(|step| self.all_names(step)) {
                let (users, changers) = users.entry(name).or_default();
                users.insert(index);
                if how == Use::Changes {
                    changers.insert(index);
                }
            }
        }
        let is_contested = |(users, changers): &(BTreeSet<usize>, BTreeSet<usize>)| {
            !changers.is_empty() && users.len() > 1
        };
        let contested = users.iter().filter(|(_, used)| is_contested(used));
        contested.map(|(name, _)| name.clone()).collect()
    }

    /// The names that a step uses: with a sandbox those of its containers, and with a container
    /// that of its sandbox.
    fn all_names(&self, step: &Step) -> Vec<(String, Use)> {
        let mut all = names(step);
        for (name, how) in all.clone() {
            if let Some(container) = self.containers.get(&name) {
                let target = container.spec.pid_target.iter();
                let needed = target.chain([&container.spec.sandbox]).cloned();
                all.extend(needed.map(|name| (name, Use::Needs)));
            }
            if how == Use::Changes {
                let changed = self.containers.iter().filter(|(_, it)| {
                    it.spec.sandbox == name || it.spec.pid_target.as_ref() == Some(&name)
                });
                all.extend(changed.map(|(container, _)| (container.clone(), Use::Changes)));
            }
        }
        all
    }
}

/// The branches without those steps on sandboxes that an earlier branch has, too.
fn without_rivals(mut branches: Vec<Branch>) -> Vec<Branch> {
    let mut owners = BTreeMap::<String, usize>::new();
    for (index, (_, steps)) in branches.iter_mut().enumerate() {
        steps.retain(|step| match step {
            Step::StopSandbox(_) | Step::RemoveSandbox(_) => {
                let pod = subject(step).unwrap_or_default().to_owned();
                *owners.entry(pod).or_insert(index) == index
            }
            Step::Parallel(_)
            | Step::Resubscribe(_)
            | Step::StaysSilent(_)
            | Step::StepClock(_) => false,
            _ => true,
        });
    }
    branches.retain(|(_, steps)| !steps.is_empty());
    branches
}

/// The names in a step, and what it does with each.
pub(super) fn names(step: &Step) -> Vec<(String, Use)> {
    let how = match step {
        Step::Start(_)
        | Step::Stop(_)
        | Step::Remove(_)
        | Step::Kill(_)
        | Step::Signal(_)
        | Step::KillMonitor(_)
        | Step::StopSandbox(_)
        | Step::RemoveSandbox(_)
        | Step::KillSandbox(_) => Use::Changes,
        _ => Use::Needs,
    };
    let mut all: Vec<(String, Use)> = subject(step)
        .map(|name| (name.to_owned(), how))
        .into_iter()
        .collect();
    let needed = match step {
        Step::Sandbox(it) => vec![&it.attempt_of],
        Step::Create(it) => {
            // Of a name's attempts the suite keeps count.
            let earlier = it.attempt_of.iter().cloned();
            all.extend(earlier.map(|earlier| (earlier, Use::Changes)));
            all.push((it.sandbox.clone(), Use::Needs));
            vec![&it.same_as, &it.pid_target]
        }
        _ => Vec::new(),
    };
    all.extend(
        needed
            .into_iter()
            .flatten()
            .map(|name| (name.clone(), Use::Needs)),
    );
    all.extend(inner(step).into_iter().flatten().flat_map(names));
    all
}
