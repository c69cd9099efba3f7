//! Operations of several clients at once: what more than one of them acts on is uncertain.

use std::collections::{BTreeMap, BTreeSet};

use super::{End, Taken, World, plan_of};
use crate::explore::plan::{Branch, ContainerKind, Op};

/// Whether an operation changes what a name stands for, or only needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    Needs,
    Changes,
}

impl World {
    pub(super) fn take_parallel(&mut self, op: Op) -> Vec<Taken> {
        let Op::Parallel(branches) = op else {
            return Vec::new();
        };
        if self.around.concurrent || self.around.unsubscribed {
            // One client takes them one after the other.
            let all = branches.into_iter().flat_map(|branch| branch.ops);
            return self.take_all(all.collect());
        }
        let branches = without_rivals(branches);
        if let [only] = &branches[..] {
            return self.take_all(only.ops.clone());
        }
        self.around.concurrent = true;
        self.around.contested = self.contested(&branches);
        let mut taken = Vec::new();
        for branch in branches {
            self.branches += 1;
            self.scopes.push(self.branches);
            let inner = self.take_all(branch.ops);
            self.scopes.pop();
            if !inner.is_empty() {
                taken.push((branch.other_client, inner));
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
        finish(taken)
    }

    /// The names that one branch changes, and another changes or needs.
    fn contested(&self, branches: &[Branch]) -> BTreeSet<String> {
        let mut users = BTreeMap::<String, (BTreeSet<usize>, BTreeSet<usize>)>::new();
        for (index, branch) in branches.iter().enumerate() {
            for (name, how) in branch.ops.iter().flat_map(|op| self.all_names(op)) {
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

    /// The names that an operation uses: with a sandbox those of its containers, and with a
    /// container that of its sandbox.
    fn all_names(&self, op: &Op) -> Vec<(String, Use)> {
        let mut all = names(op);
        for (name, how) in all.clone() {
            if let Some(container) = self.containers.get(&name) {
                all.push((container.pod.clone(), Use::Needs));
                all.extend(container.target.clone().map(|target| (target, Use::Needs)));
            }
            if how == Use::Changes {
                let changed = self
                    .containers
                    .iter()
                    .filter(|(_, it)| it.pod == name || it.target.as_deref() == Some(&*name));
                all.extend(changed.map(|(container, _)| (container.clone(), Use::Changes)));
            }
        }
        all
    }
}

/// The branches without those operations on sandboxes that an earlier branch has, too.
fn without_rivals(branches: Vec<Branch>) -> Vec<Branch> {
    let mut owners = BTreeMap::<String, usize>::new();
    let mut kept = Vec::new();
    for (index, mut branch) in branches.into_iter().enumerate() {
        branch.ops.retain(|op| match op {
            Op::StopSandbox(pod) | Op::RemoveSandbox(pod) => {
                *owners.entry(pod.clone()).or_insert(index) == index
            }
            Op::Parallel(_) | Op::Resubscribe(_) | Op::Silence(..) | Op::StepClock(..) => false,
            _ => true,
        });
        if !branch.ops.is_empty() {
            kept.push(branch);
        }
    }
    kept
}

/// The names in an operation, and what it does with each.
pub(super) fn names(op: &Op) -> Vec<(String, Use)> {
    let mut all = match op {
        Op::Sandbox { attempt_of, .. } => attempt_of
            .iter()
            .map(|earlier| (earlier.clone(), Use::Needs))
            .collect(),
        Op::Create {
            pod, other, kind, ..
        } => {
            // Of a name's attempts the suite keeps count.
            let how = match kind {
                ContainerKind::NextAttempt => Use::Changes,
                _ => Use::Needs,
            };
            let other = other.iter().map(|other| (other.clone(), how));
            other.chain([(pod.clone(), Use::Needs)]).collect()
        }
        Op::Start(name, _)
        | Op::Stop(name, ..)
        | Op::Remove(name)
        | Op::RemoveByPrefix(name)
        | Op::Kill(name)
        | Op::Freeze(name)
        | Op::KillMonitor(name)
        | Op::StopSandbox(name)
        | Op::RemoveSandbox(name)
        | Op::KillSandbox(name) => vec![(name.clone(), Use::Changes)],
        Op::Await(name, _)
        | Op::Exec(name, _)
        | Op::Relist(name)
        | Op::ListWithFilters(name, _)
        | Op::OnEvent(name, ..)
        | Op::Poll(name, _)
        | Op::FreezeMonitor(name, _)
        | Op::FillDisk(name, _)
        | Op::ProcessExited(name)
        | Op::Call(_, Some(name)) => vec![(name.clone(), Use::Needs)],
        _ => Vec::new(),
    };
    all.extend(op.inner().into_iter().flatten().flat_map(names));
    all
}

/// The block of what was taken in each branch; what one branch took alone stands without a block.
fn finish(mut taken: Vec<(bool, Vec<Taken>)>) -> Vec<Taken> {
    match taken.len() {
        0 => Vec::new(),
        1 => taken.pop().map(|(_, inner)| inner).unwrap_or_default(),
        _ => {
            let branches = taken.iter().map(|(other_client, inner)| Branch {
                other_client: *other_client,
                ops: plan_of(inner),
            });
            vec![Taken {
                op: Op::Parallel(branches.collect()),
                end: End::Success,
                inner: taken.into_iter().map(|(_, inner)| inner).collect(),
                ends: Vec::new(),
            }]
        }
    }
}
