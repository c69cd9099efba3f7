//! Groups of steps, as real nodes have them.

use serde_json::json;

use super::Generator;
use super::works::until_term;
use crate::case::{Need, Step};
use crate::explore::plan::{Plan, create, remove, sandbox, step, stop_sandbox};
use crate::explore::world::PodState;

impl Generator<'_> {
    /// A group of steps on one pod or a new one.
    pub(super) fn group(&mut self) -> Plan {
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

    pub(super) fn another_pod(&mut self) -> Plan {
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
    pub(super) fn pod(&mut self) -> Plan {
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
    pub(super) fn repeated(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.another_pod();
        };
        if self.can.meet(&[Need::Handlers]) && self.chance(20) {
            return vec![step("for-each-handler", json!({"steps": self.pod()}))];
        }
        let times = self.pick(&[3, 3, 5, 5, 10, 10, 30, 70]).unwrap_or(3);
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
