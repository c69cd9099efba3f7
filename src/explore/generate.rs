//! Makes plans from a seed: the steps of a kubelet on pods, and steps of several clients at once.
//!
//! A plan is a pure function of the seed, the number of the walk, the capabilities and the coverage
//! of earlier walks. Groups of steps are proposed as real nodes have them; of several proposals the
//! one with the most novelty is taken.

mod lives;
mod specials;

use serde_json::json;

use super::coverage::Coverage;
use super::plan::{
    Capabilities, Plan, create, needs, parallel, remove, sandbox, size, step, stop_sandbox,
};
use super::world::{Life, PodState, World};
use crate::case::{Need, Step};
use crate::model::Random;

use lives::until_term;

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

    /// Of so many groups the one with the most novelty.
    fn newest(&mut self, proposals: usize) -> Plan {
        self.newest_beside(&[], proposals)
    }

    /// Steps of several clients at once.
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

    /// Of so many groups the one with the most novelty beside the steps of other clients.
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

/// Groups of steps, as real nodes have them.
impl Generator<'_> {
    /// A group of steps on one pod or a new one.
    fn group(&mut self) -> Plan {
        match self.below(32) {
            0..6 => self.life(),
            6..9 => self.crash_loop(),
            9..12 => self.rolling_restart(),
            12..15 => self.probes(),
            15..22 => self.poke(),
            22..24 => self.teardown(),
            24..26 => self.another_pod(),
            26..29 => self.questions(),
            29..31 => self.failure(),
            _ => self.pid_target(),
        }
    }

    fn teardown(&mut self) -> Plan {
        let pods = [PodState::Ready, PodState::Stopped].map(|state| self.world.pods_in(state));
        let Some(pod) = self.pick(&pods.concat()) else {
            return self.pod();
        };
        let mut steps = Vec::new();
        if self.chance(80) {
            steps.push(stop_sandbox(&pod));
        }
        if self.chance(40) {
            let containers = self.world.names_in(&pod);
            steps.extend(containers.iter().map(|name| remove(name)));
        }
        if self.chance(60) {
            steps.push(step("remove-sandbox", json!({"sandbox": pod})));
        }
        if self.chance(20) {
            let name = self.name("c");
            steps.push(Step::Create(create(&name, &pod, &[&until_term()])));
        }
        steps
    }

    fn another_pod(&mut self) -> Plan {
        let ready = self.world.pods_in(PodState::Ready).len();
        if ready >= self.pods {
            return self.teardown();
        }
        let stopped = [PodState::Stopped, PodState::Removed]
            .map(|state| self.world.pods_in(state))
            .concat();
        if let Some(earlier) = self.pick(&stopped)
            && self.chance(60)
        {
            let name = self.name("p");
            let next = step("sandbox", json!({"as": name, "attempt-of": earlier}));
            let mut steps = vec![next];
            steps.extend(self.life_in(&name));
            return steps;
        }
        self.pod()
    }

    /// A sandbox with something in it.
    fn pod(&mut self) -> Plan {
        let labelled = json!({
            "labels": {"app": "web", "tier": "front-end"},
            "annotations": {"kubernetes.io/config.source": "api"},
        });
        let kinds = [
            json!({}),
            json!({}),
            json!({}),
            json!({}),
            labelled,
            json!({"shared-pid": true}),
            json!({"own-network": true}),
            json!({"memory-mib": 64}),
            json!({"faulty": true}),
        ];
        let mut keys = self.pick(&kinds).unwrap_or_else(|| json!({}));
        let name = self.name("p");
        keys["as"] = name.clone().into();
        let mut first = step("sandbox", keys);
        if !self.can_take(&first) {
            first = sandbox(&name);
        }
        let (is_faulty, is_limited) = match &first {
            Step::Sandbox(it) => (it.faulty, it.memory_mib.is_some()),
            _ => (false, false),
        };
        let mut steps = vec![first];
        if is_faulty {
            steps.extend(self.crash(&name));
        } else {
            steps.extend(self.life_in(&name));
        }
        if is_limited {
            steps.extend(self.killed_sibling(&name));
        }
        steps
    }

    /// The same several times, or once for each runtime handler.
    fn repeated(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.another_pod();
        };
        if self.can.meet(&[Need::Handlers]) && self.chance(20) {
            return vec![step("for-each-handler", json!({"steps": self.pod()}))];
        }
        let times = self.pick(&[3, 3, 5, 5, 10, 10, 30, 70, 110]).unwrap_or(3);
        let workers = if times > 10 {
            4
        } else {
            self.pick(&[1, 2, 4]).unwrap_or(1)
        };
        let steps = if self.chance(30) {
            self.pod()
        } else {
            self.life_in(&pod)
        };
        let keys = json!({"times": times, "workers": workers, "steps": steps});
        vec![step("repeat", keys)]
    }
}
