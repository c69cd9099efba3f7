//! Makes plans from a seed: what a kubelet does with pods, and what several clients do at once.
//!
//! A plan is a pure function of the seed, the number of the walk, what the runtime can do and what
//! earlier walks have covered. Groups of steps are proposed as real nodes have them; of several
//! proposals that is taken which covers most that is new.

mod groups;
mod lives;
mod questions;
mod specials;
mod works;

use super::capabilities::Capabilities;
use super::coverage::Coverage;
use super::plan::{Plan, needs, parallel, size};
use super::world::{Life, PodState, World};
use crate::case::Step;
use crate::model::Random;

/// How large walks are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) steps: usize,
    pub(super) pods: usize,
}

/// Makes the plan of a walk.
pub(super) fn generate(
    (seed, number): (u64, u64),
    size_of: Size,
    can: &Capabilities,
    coverage: &Coverage,
) -> Plan {
    let mixed = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
    let mut generator = Generator {
        random: Random::new(mixed),
        world: World::new(can.clone()),
        can,
        coverage,
        named: 0,
        pods: size_of.pods,
    };
    generator.plan(size_of.steps)
}

struct Generator<'a> {
    random: Random,
    world: World,
    can: &'a Capabilities,
    coverage: &'a Coverage,
    named: u32,
    pods: usize,
}

impl Generator<'_> {
    fn plan(&mut self, steps: usize) -> Plan {
        /// Proposals of which nothing is legal, as when all is torn down.
        const FRUITLESS: usize = 50;
        let mut plan = Vec::new();
        let first = self.pod();
        plan.extend(self.world.take_all(first));
        if self.chance(15) {
            let silence = self.silence();
            plan.extend(self.world.take_all(silence));
        }
        let mut fruitless = 0;
        while size(&plan) < steps && fruitless < FRUITLESS {
            let before = plan.len();
            let proposal = self.proposal();
            plan.extend(self.world.take_all(proposal));
            fruitless = if plan.len() == before {
                fruitless + 1
            } else {
                0
            };
        }
        plan
    }

    fn proposal(&mut self) -> Plan {
        match self.below(20) {
            0..8 => self.newest(3),
            8..15 => self.at_once(),
            15..17 => self.repeated(),
            _ => self.special(),
        }
    }

    /// Of so many groups the one that covers most that is new.
    fn newest(&mut self, proposals: usize) -> Plan {
        self.newest_beside(&[], proposals)
    }

    /// What several clients do at once.
    fn at_once(&mut self) -> Plan {
        let count = 2 + self.below(3);
        let mut branches: Vec<Plan> = Vec::new();
        for _ in 0..count {
            branches.push(self.newest_beside(&branches, 3));
        }
        let branches = branches.into_iter();
        let branches = branches.map(|steps| (self.random.next() & 1 == 0, steps));
        vec![parallel(branches.collect::<Vec<_>>())]
    }

    /// Of so many groups the one that covers most that is new beside what other clients do.
    fn newest_beside(&mut self, others: &[Plan], proposals: usize) -> Plan {
        let mut best = (f64::MIN, Vec::new());
        for _ in 0..proposals {
            let group = self.group();
            let pairs = others.iter();
            let pairs = pairs.map(|other| self.coverage.novelty_of_pairs(&group, other));
            let novelty = self.coverage.novelty(&group) + pairs.sum::<f64>();
            if novelty > best.0 {
                best = (novelty, group);
            }
        }
        best.1
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next() % bound.max(1)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> Option<T> {
        let index = usize::try_from(self.below(items.len() as u64)).unwrap_or_default();
        items.get(index).cloned()
    }

    fn name(&mut self, prefix: &str) -> String {
        self.named += 1;
        format!("{prefix}{}", self.named)
    }

    /// A sandbox that is ready.
    fn some_pod(&mut self) -> Option<String> {
        let ready = self.world.pods_in(PodState::Ready);
        self.pick(&ready)
    }

    /// A container with one of these lives.
    fn some(&mut self, lives: &[Life]) -> Option<String> {
        let names = self.world.containers_in(lives);
        self.pick(&names)
    }

    fn pod_of(&self, container: &str) -> String {
        let container = self.world.containers.get(container);
        container
            .map(|it| it.spec.sandbox.clone())
            .unwrap_or_default()
    }

    /// Whether the runtime and its node can take a step.
    fn can_take(&self, step: &Step) -> bool {
        self.can.meet(&needs(step))
    }
}
