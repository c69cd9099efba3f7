//! Groups of operations, as real nodes have them.

use super::{Generator, create};
use crate::case::Need;
use crate::explore::plan::{ContainerKind, Op, Plan, PodKind, Work};
use crate::explore::world::PodState;

impl Generator<'_> {
    /// A group of operations on one pod or a new one.
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

    pub(super) fn teardown(&mut self) -> Plan {
        let pods = [PodState::Ready, PodState::Stopped].map(|state| self.world.pods_in(state));
        let Some(pod) = self.pick(&pods.concat()) else {
            return self.pod();
        };
        let mut ops = Vec::new();
        if self.chance(80) {
            ops.push(Op::StopSandbox(pod.clone()));
        }
        if self.chance(40) {
            let containers = self.world.names_in(&pod).into_iter();
            ops.extend(containers.map(Op::Remove));
        }
        if self.chance(60) {
            ops.push(Op::RemoveSandbox(pod.clone()));
        }
        if self.chance(20) {
            let name = self.name("c");
            ops.push(create(
                &name,
                &pod,
                Work::UntilTerm,
                ContainerKind::Plain,
                None,
            ));
        }
        ops
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
            let next = Op::Sandbox {
                name: name.clone(),
                attempt_of: Some(earlier),
                kind: PodKind::Plain,
            };
            let mut ops = vec![next];
            ops.extend(self.life_in(&name));
            return ops;
        }
        self.pod()
    }

    /// A sandbox with something in it.
    pub(super) fn pod(&mut self) -> Plan {
        let kinds = [
            PodKind::Plain,
            PodKind::Plain,
            PodKind::Plain,
            PodKind::Plain,
            PodKind::Labelled,
            PodKind::SharedPid,
            PodKind::Network,
            PodKind::Memory,
            PodKind::Faulty,
        ];
        let kind = self.pick(&kinds).unwrap_or_default();
        let kind = match kind {
            PodKind::Network if !self.can.meets(Need::Network) => PodKind::Plain,
            PodKind::Memory if !self.can.meets(Need::PodCgroup) => PodKind::Plain,
            PodKind::Faulty if !self.can.meets(Need::FaultyHandler) => PodKind::Plain,
            kind => kind,
        };
        let name = self.name("p");
        let sandbox = Op::Sandbox {
            name: name.clone(),
            attempt_of: None,
            kind,
        };
        let mut ops = vec![sandbox];
        if kind == PodKind::Faulty {
            ops.extend(self.crash(name.clone()));
        } else {
            ops.extend(self.life_in(&name));
        }
        if kind == PodKind::Memory {
            ops.extend(self.killed_sibling(&name));
        }
        ops
    }

    /// The same several times, or once for each runtime handler.
    pub(super) fn repeated(&mut self) -> Plan {
        let Some(pod) = self.some_pod() else {
            return self.another_pod();
        };
        if self.can.meets(Need::Handlers) && self.chance(20) {
            let ops = self.pod();
            return vec![Op::EachHandler(ops)];
        }
        let times = self.pick(&[3, 3, 5, 5, 10, 10, 30, 70]).unwrap_or(3);
        let workers = if times > 10 {
            4
        } else {
            self.pick(&[1, 2, 4]).unwrap_or(1)
        };
        let ops = if self.chance(30) {
            self.pod()
        } else {
            self.life_in(&pod)
        };
        vec![Op::Repeat(times, workers, ops)]
    }
}
